"""Registers models, tasks, criterions, an optimizer, a schedule and scorers with fairseq.

`fairseq-train --user-dir` imports it.

In a program that imports fairseq after `pyramidions`, import this module as well.
"""

import logging
import warnings
from importlib import import_module

#: How fairseq calls Hydra and torch is nothing that its users can change: 24 lines before the first useful one.
FAIRSEQS_OWN_WARNINGS = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"\nThe strict flag in the compose API is deprecated",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\n'config' is validated against ConfigStore schema with the same name",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
)


def silence_fairseqs_own_warnings() -> None:
    """Ignore warnings about fairseq's own code, as long as this process lives."""
    for message in FAIRSEQS_OWN_WARNINGS:
        warnings.filterwarnings("ignore", message)


silence_fairseqs_own_warnings()
# Some of fairseq's modules configure the root logger when they are imported, down to DEBUG: that is not ours to do.
_level, _handlers = logging.root.level, list(logging.root.handlers)
for _module in (
    *("decaying_adafactor", "linear_decay", "scorer"),
    *("criterions.boundary_cross_entropy", "criterions.extractive_summarization", "criterions.pooled_cross_entropy"),
    *("models.pyramidion", "models.pyramidion_extractor", "models.pyramidion_lm"),
    *("tasks.character_language_modeling", "tasks.extractive_summarization", "tasks.long_document_summarization"),
    *("tasks.span_denoising", "tasks.toy_sequences"),
):
    import_module(f"{__name__}.{_module}")
logging.root.setLevel(_level)
logging.root.handlers[:] = _handlers
import_module(f"{__name__}.hooks").show_errors_as_sentences()

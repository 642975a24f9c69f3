"""Registers models, tasks, criterions and scorers with fairseq; `fairseq-train --user-dir` imports it.

In a program that imports fairseq after `pyramidions`, import this module as well.
"""

import logging
import warnings

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

from pyramidions.plugin import scorer as _scorer  # noqa: E402
from pyramidions.plugin.criterions import boundary_cross_entropy as _boundary_criterion  # noqa: E402
from pyramidions.plugin.criterions import extractive_summarization as _extraction_criterion  # noqa: E402
from pyramidions.plugin.criterions import pooled_cross_entropy as _criterion  # noqa: E402
from pyramidions.plugin.models import pyramidion as _model  # noqa: E402
from pyramidions.plugin.models import pyramidion_extractor as _extractor  # noqa: E402
from pyramidions.plugin.models import pyramidion_lm as _language_model  # noqa: E402
from pyramidions.plugin.tasks import character_language_modeling as _characters  # noqa: E402
from pyramidions.plugin.tasks import extractive_summarization as _extraction  # noqa: E402
from pyramidions.plugin.tasks import long_document_summarization as _task  # noqa: E402
from pyramidions.plugin.tasks import span_denoising as _denoising  # noqa: E402
from pyramidions.plugin.tasks import toy_sequences as _toys  # noqa: E402

logging.root.setLevel(_level)
logging.root.handlers[:] = _handlers
del (
    _boundary_criterion,
    _characters,
    _criterion,
    _denoising,
    _extraction,
    _extraction_criterion,
    _extractor,
    _handlers,
    _language_model,
    _level,
    _model,
    _scorer,
    _task,
    _toys,
)

"""Long-document summarization with trainable pooling, as a plugin of fairseq.

Importing the package registers models, tasks, criterions and scorers where fairseq is installed; `pyramidions.nn`
and `pyramidions.models` work without it.
"""

import logging
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# The command `pyramidions` registers nothing: no command of it needs fairseq, which takes seconds to import.
_is_own_command = Path((sys.argv or [""])[0]).name in ("pyramidions", "pyramidions.exe")

# How fairseq itself calls Hydra and torch is nothing that its users can change: 24 lines before the first useful one.
_FAIRSEQS_OWN_WARNINGS = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"\nThe strict flag in the compose API is deprecated",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\n'config' is validated against ConfigStore schema with the same name",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
)


def _silence_fairseqs_own_warnings() -> None:
    for message in _FAIRSEQS_OWN_WARNINGS:
        warnings.filterwarnings("ignore", message)


if not _is_own_command and find_spec("fairseq") is not None:
    _silence_fairseqs_own_warnings()
    # Some of fairseq's modules configure the root logger when they are imported, down to DEBUG: that is not ours to do.
    _level, _handlers = logging.root.level, list(logging.root.handlers)

    from pyramidions.criterions import pooled_cross_entropy as _criterion
    from pyramidions.models import pyramidion as _model
    from pyramidions.scoring import fairseq_scorer as _scorer
    from pyramidions.tasks import long_document_summarization as _task

    logging.root.setLevel(_level)
    logging.root.handlers[:] = _handlers
    del _criterion, _handlers, _level, _model, _scorer, _task


def __getattr__(name: str) -> Any:
    """Import what is for people with a document when it is asked for."""
    if name in ("Summarizer", "Summary"):
        from pyramidions import inference

        return getattr(inference, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

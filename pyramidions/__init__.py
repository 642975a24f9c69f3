"""Long-document summarization with trainable pooling, as a plugin of fairseq.

Importing the package registers models, tasks, criterions and scorers where fairseq is installed; `pyramidions.nn`
and `pyramidions.models` work without it.
"""

import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# The command `pyramidions` registers nothing: no command of it needs fairseq, which takes seconds to import.
_is_own_command = Path((sys.argv or [""])[0]).name in ("pyramidions", "pyramidions.exe")

if not _is_own_command and find_spec("fairseq") is not None:
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

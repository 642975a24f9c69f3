"""Long-document summarization with trainable pooling, as a plugin of fairseq.

Where fairseq has been imported, as in its commands with `--user-dir`, importing the package registers models, tasks,
criterions and scorers with it; see `pyramidions.plugin`. Elsewhere it imports nothing: commands, `pyramidions.nn` and
`pyramidions.models` work without fairseq, which takes seconds to import.
"""

import sys
from typing import Any

__version__ = "0.2.0"

if sys.modules.get("fairseq") is not None:
    from pyramidions import plugin as _plugin

    del _plugin


def __getattr__(name: str) -> Any:
    """Import what is for people with a document when it is asked for."""
    if name in ("Extractor", "Summarizer", "Summary"):
        from pyramidions import inference

        return getattr(inference, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

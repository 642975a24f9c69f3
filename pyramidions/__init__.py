"""Long-document summarization with trainable pooling, as a plugin of fairseq.

Where fairseq has been imported, as in its commands with `--user-dir`, importing the package registers models, tasks,
criterions and scorers with it; see `pyramidions.plugin`. Elsewhere it imports nothing: commands, `pyramidions.nn` and
`pyramidions.models` work without fairseq, which takes seconds to import.
"""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from pyramidions.base import __version__ as __version__
from pyramidions.base.optional import stand_in

_NAMES = Path(__file__).with_suffix(".pyi").read_text()
_HOMES = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", _NAMES, re.MULTILINE)}
__all__ = list(_HOMES)

if sys.modules.get("fairseq") is not None:
    from pyramidions import plugin as _plugin

    del _plugin


def __getattr__(name: str) -> Any:
    # A module is imported when one of its names is asked for: torch takes seconds and hundreds of megabytes.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return stand_in(name, "torch")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Long-document summarization with trainable pooling, as a plugin of fairseq.

Where fairseq has been imported, as in its commands with `--user-dir`, importing the package registers models, tasks,
criterions and scorers with it; see `pyramidions.plugin`. Elsewhere it imports nothing: commands, `pyramidions.nn` and
`pyramidions.models` work without fairseq, which takes seconds to import.
"""

import importlib
import sys
from typing import TYPE_CHECKING

from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.extract.extraction import Extraction
    from pyramidions.inference.batch_maps import ExtractorMap, SummarizerMap
    from pyramidions.inference.extractor import Extractor
    from pyramidions.inference.search import SamplingOptions
    from pyramidions.inference.segmenter import SegmentedText, Segmenter
    from pyramidions.inference.summarizer import Summarizer
    from pyramidions.inference.summary import Summary

__version__ = "0.3.0.dev0"
__all__ = [
    "Extraction",
    "Extractor",
    "ExtractorMap",
    "SamplingOptions",
    "SegmentedText",
    "Segmenter",
    "Summarizer",
    "SummarizerMap",
    "Summary",
    "UserError",
]

if sys.modules.get("fairseq") is not None:
    from pyramidions import plugin as _plugin

    del _plugin

if not TYPE_CHECKING:  # A checker that saw this would let any attribute pass.

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module("pyramidions.inference"), name)

    def __dir__():
        return sorted({*globals(), *__all__})

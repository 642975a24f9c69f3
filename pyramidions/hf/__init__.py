"""Summarizers under transformers: its Auto classes read our exports once this package is imported.

Its own names are the classes that they find.
"""

from pyramidions.base.optional import optional_library

optional_library("transformers", "`pyramidions.hf`", extra="hf")

from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: E402

from pyramidions.hf.configuration import PyramidionsConfig  # noqa: E402
from pyramidions.hf.modeling import PyramidionsForConditionalGeneration  # noqa: E402
from pyramidions.hf.tokenization import PyramidionsTokenizer  # noqa: E402

__all__ = ["PyramidionsConfig", "PyramidionsForConditionalGeneration", "PyramidionsTokenizer"]

AutoConfig.register(PyramidionsConfig.model_type, PyramidionsConfig, exist_ok=True)
AutoModelForSeq2SeqLM.register(PyramidionsConfig, PyramidionsForConditionalGeneration, exist_ok=True)
AutoTokenizer.register(PyramidionsConfig, PyramidionsTokenizer, exist_ok=True)

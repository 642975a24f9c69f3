"""Summaries of documents, extracted or written by trained models, without fairseq."""

import importlib
from typing import TYPE_CHECKING

from pyramidions.optional import optional_library

if TYPE_CHECKING:
    from pyramidions.extract.extraction import Extraction
    from pyramidions.inference.batch_maps import ExtractorMap, SummarizerMap
    from pyramidions.inference.explanation import Explanation
    from pyramidions.inference.explanation_page import ExplanationPage, html_page
    from pyramidions.inference.extraction_page import ExtractionPage
    from pyramidions.inference.extractor import Extractor
    from pyramidions.inference.learned_ranker import LearnedRanker
    from pyramidions.inference.saved_language_model import SavedLanguageModel, load_language_model
    from pyramidions.inference.saved_model import SavedExtractor, SavedModel, export_model, load_extractor, load_model
    from pyramidions.inference.search import SamplingOptions
    from pyramidions.inference.segment_page import SegmentPage
    from pyramidions.inference.segmenter import SegmentedText, Segmenter
    from pyramidions.inference.summarizer import Summarizer
    from pyramidions.inference.summary import Summary

__all__ = [
    "Explanation",
    "ExplanationPage",
    "Extraction",
    "Extractor",
    "ExtractorMap",
    "LearnedRanker",
    "SamplingOptions",
    "SavedExtractor",
    "ExtractionPage",
    "SavedLanguageModel",
    "SavedModel",
    "SegmentPage",
    "SegmentedText",
    "Segmenter",
    "Summarizer",
    "SummarizerMap",
    "Summary",
    "export_model",
    "html_page",
    "load_extractor",
    "load_language_model",
    "load_model",
]

if not TYPE_CHECKING:  # A checker that saw this would let any attribute pass.
    # A module is imported when one of its names is asked for: torch takes seconds and hundreds of megabytes.
    _NAMES = {
        "extract.extraction": "Extraction",
        "inference.batch_maps": "ExtractorMap SummarizerMap",
        "inference.explanation": "Explanation",
        "inference.explanation_page": "ExplanationPage html_page",
        "inference.extraction_page": "ExtractionPage",
        "inference.extractor": "Extractor",
        "inference.learned_ranker": "LearnedRanker",
        "inference.saved_language_model": "SavedLanguageModel load_language_model",
        "inference.saved_model": "SavedExtractor SavedModel export_model load_extractor load_model",
        "inference.search": "SamplingOptions",
        "inference.segment_page": "SegmentPage",
        "inference.segmenter": "SegmentedText Segmenter",
        "inference.summarizer": "Summarizer",
        "inference.summary": "Summary",
    }
    _HOMES = {name: f"pyramidions.{home}" for home, names in _NAMES.items() for name in names.split()}

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(importlib.import_module(_HOMES[name]), name)
        except ModuleNotFoundError:
            optional_library("torch", f"`{name}`", extra="torch")
            raise

    def __dir__():
        return sorted({*globals(), *__all__})

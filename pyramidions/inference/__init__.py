"""Summaries of documents, extracted or written by trained models, without fairseq."""

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

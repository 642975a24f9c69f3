"""Summaries from trained models, without fairseq."""

from pyramidions.inference.saved_model import SavedModel, export_model, load_model
from pyramidions.inference.summarizer import Summarizer, Summary

__all__ = ["SavedModel", "Summarizer", "Summary", "export_model", "load_model"]

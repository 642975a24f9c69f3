"""Extraction by concepts: predicts which words and pairs of words a summary holds, and covers them."""

from pyramidions.extract.concepts.files import is_concept_model, load_concepts
from pyramidions.extract.concepts.model import ConceptModel
from pyramidions.extract.concepts.ranker import ConceptRanker, covered

__all__ = ["ConceptModel", "ConceptRanker", "covered", "is_concept_model", "load_concepts"]

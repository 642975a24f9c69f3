"""Extraction by concepts: predicts which words and pairs of words a summary holds, and chooses sentences by them."""

from pyramidions.extract.concepts.files import hash_of, is_concept_model, load_concepts
from pyramidions.extract.concepts.model import ConceptModel
from pyramidions.extract.concepts.ranker import ConceptRanker, covered, read_ranker

__all__ = ["ConceptModel", "ConceptRanker", "covered", "hash_of", "is_concept_model", "load_concepts", "read_ranker"]

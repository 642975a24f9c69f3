"""Extraction: picks the sentences of a document that make a summary, without a model or with one."""

from pyramidions.extract.core import RANKERS, Ranker
from pyramidions.extract.hiporank import HipoRank
from pyramidions.extract.lead import Lead
from pyramidions.extract.oracle import Oracle
from pyramidions.extract.selection import Budget, SelectionRules, select
from pyramidions.extract.textrank import TextRank
from pyramidions.extract.vectors import TfIdf

__all__ = ["RANKERS", "Budget", "HipoRank", "Lead", "Oracle", "Ranker", "SelectionRules", "TextRank", "TfIdf", "select"]

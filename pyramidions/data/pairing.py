"""The role of a pairing, which makes training pairs of a document."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from pyramidions.data.readers import Document
from pyramidions.text.tokenizer import Tokenizer


class Pairs(NamedTuple):
    """What a document becomes."""

    documents: list[Document]  # texts with their summaries; their ids differ
    is_whole: bool = False  # the document could not be handled as asked, and is taken as it is


class Pairing(ABC):
    """Makes pairs of text and summary from a document.

    Called in worker processes, so it is picklable.
    """

    whole_because: str  # why a document is taken as a whole: "no section ..."
    left_out_because = "no pair of text and summary"

    @abstractmethod
    def __call__(self, document: Document, tokenizer: Tokenizer) -> Pairs:
        """Return the pairs of one document, perhaps none."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Return all that determines the pairs, for the manifest; `kind` among it."""

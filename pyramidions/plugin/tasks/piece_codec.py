"""The tokenizer as fairseq's commands use it."""

from pyramidions.base.errors import UserError
from pyramidions.text.tokenizer import Tokenizer

_SHOWN = 60  # characters of a wrong line


class PieceCodec:
    """A tokenizer behind fairseq's interface for subword units.

    Args:
        tokenizer: the tokenizer.
        has_queries: a text is a query, a tab and a document.
    """

    def __init__(self, tokenizer: Tokenizer, has_queries: bool = False) -> None:
        self.tokenizer = tokenizer
        self.has_queries = has_queries

    def encode(self, text: str) -> str:
        """Return the pieces of a text, joined by spaces; those of a query, and `</s>`, before those of its document.

        Raises:
            UserError: the query or the document is missing.
        """
        if not self.has_queries:
            return " ".join(self.tokenizer.encode_as_pieces(text))
        query, _, document = text.partition("\t")
        if not self.tokenizer.normalize(query) or not self.tokenizer.normalize(document):
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            raise UserError(
                "The model answers queries, so each line must hold a query, a tab and a document, but one is "
                f"{shown!r}."
            )
        asked = self.tokenizer.names(self.tokenizer.asked(query))
        return " ".join([*asked, *self.tokenizer.encode_as_pieces(document)])

    def decode(self, pieces: str) -> str:
        """Return the text of pieces joined by spaces."""
        return self.tokenizer.decode_pieces(pieces.split())

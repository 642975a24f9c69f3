"""The tokenizer as fairseq's commands use it."""

from pyramidions.text.tokenizer import Tokenizer


class PieceCodec:
    """A tokenizer behind fairseq's interface for subword units.

    Args:
        tokenizer: the tokenizer.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str) -> str:
        """Return the pieces of a text, joined by spaces."""
        return " ".join(self.tokenizer.encode_as_pieces(text))

    def decode(self, pieces: str) -> str:
        """Return the text of pieces joined by spaces."""
        return self.tokenizer.decode_pieces(pieces.split())

"""Tokenizes documents for a model."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pyramidions.errors import UserError
from pyramidions.inference.pieces import pieces
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import Tokenizer

#: Progress callback: characters tokenized since the last call.
OnRead = Callable[[int], object]


class TokenizedText(NamedTuple):
    """What a model reads of a document or of a piece of it.

    Attributes:
        tokens: those that the model reads, as `Tokenizer.surfaces` gives them, without prefix and end of the text.
        whole: number of tokens of the whole document or piece, prefix and end included.
        share: how many parts of a document share the lengths that decoding allows for its summary.
        around: number of tokens that are read beside: the prefix, and the end of the text.
    """

    tokens: list[str]
    whole: int
    share: int = 1
    around: int = 1

    @property
    def read(self) -> int:
        """Number of tokens that the model reads."""
        return len(self.tokens) + self.around


class Reader:
    """Tokenizes documents, each once and window by window.

    Args:
        tokenizer: the model's.
        max_source_positions: most tokens that the model reads, prefix and end of the text included.

    Raises:
        UserError: these leave no room for a token.
    """

    def __init__(self, tokenizer: Tokenizer, max_source_positions: int) -> None:
        self.tokenizer = tokenizer
        self.max_source_positions = max_source_positions
        self._most = tokenizer.room(max_source_positions, "max_source_positions")
        self._around = max_source_positions - self._most

    def head(self, text: str, name: str, on_read: OnRead | None = None) -> TokenizedText:
        """Return the head of a document, as long as the model reads; the other tokens are counted.

        Args:
            text: the document.
            name: what an error calls it.
            on_read: progress callback.

        Raises:
            UserError: the document is not a string, or holds no text.
        """
        head: list[str] = []
        whole = self._around
        for tokens in self._tokens(text, name, on_read):
            head += tokens[: self._most - len(head)]
            whole += len(tokens)
        return TokenizedText(head, whole, around=self._around)

    def pieces(self, text: str, name: str, on_read: OnRead | None = None) -> Iterator[TokenizedText]:
        """Yield a whole document in pieces, each as long as the model reads.

        Args and errors are those of `head`.
        """
        tokens = self._tokens(text, name, on_read)
        for piece in pieces(tokens, self._most, self.tokenizer.marker_id is not None):
            yield TokenizedText(piece, len(piece) + self._around, around=self._around)

    def _tokens(self, text: str, name: str, on_read: OnRead | None) -> Iterator[list[str]]:
        if not isinstance(text, str):
            raise UserError(f"A document must be a text, but {name} is a {type(text).__name__}.")
        holds_text = False
        for tokens in self.tokenizer.surfaces(_watched(windows(text), on_read)):
            holds_text = holds_text or bool(tokens)
            yield tokens
        if not holds_text:
            raise UserError(f"A document must hold text, but {name} holds none.")


def _watched(texts: Iterable[str], on_read: OnRead | None) -> Iterator[str]:
    for text in texts:
        yield text
        if on_read is not None:
            on_read(len(text))

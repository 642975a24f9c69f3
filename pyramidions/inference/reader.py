"""Tokenizes documents for a model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.inference.pieces import pieces
from pyramidions.text.casing import Casing
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import Tokenizer

#: Progress callback: characters tokenized since the last call.
OnRead = Callable[[int], object]


class TokenizedText(NamedTuple):
    """What a model reads of a document or of a piece of it."""

    # Those that the model reads, as `Tokenizer.surfaces` gives them, without prefix and end of the text.
    tokens: list[str]
    whole: int  # number of tokens of the whole document or piece, prefix and end included
    share: int = 1  # how many parts of a document share the lengths that decoding allows for its summary
    around: int = 1  # number of tokens that are read beside: the prefix, the query, and the end of the text
    number: int = 0  # of the document among those that are summarized, from 1; 0 for what was itself written
    # Ids of what stands before it: the model's prefix, and the query as `Tokenizer.asked` gives it.
    query: tuple[int, ...] = ()
    casing: Casing | None = None  # of the text, for a model that writes no capitals; None for one that does
    sentence: bool = False  # it is a single one, to be rewritten

    @property
    def read(self) -> int:
        """Number of tokens that the model reads."""
        return len(self.tokens) + self.around


class Reader:
    """Tokenizes documents, each once and window by window.

    Where the tokenizer has a `document_separator`, it stands behind each document, and the ``prefix`` stands before it.
    ``max_source_positions`` counts prefix, query and end of the text, and ``queries`` says that the model answers them.
    """

    def __init__(
        self, tokenizer: Tokenizer, max_source_positions: int, queries: bool = False, prefix: str = ""
    ) -> None:
        self.tokenizer = tokenizer
        self.max_source_positions = max_source_positions
        self.queries = queries
        self.prefix = prefix
        separator = tokenizer.document_separator
        #: behind each document
        self._end = [] if separator is None else [separator]
        #: of the prefix and the query
        self._query = tuple(tokenizer.encode(prefix))
        most = tokenizer.query_room(max_source_positions, "max_source_positions") if prefix else 0
        if len(self._query) > most:
            raise UserError(
                f"`source_prefix` must have at most {most:,} tokens, half of what the model reads, but has "
                f"{len(self._query):,}: {shown(prefix)}."
            )
        self._most = tokenizer.room(max_source_positions - len(self._query), "max_source_positions")
        self._around = max_source_positions - self._most
        if self._most <= len(self._end):
            raise UserError(
                f"`max_source_positions` must be at least {self._around + 2}, with its separator, "
                f"but is {max_source_positions}."
            )

    def asking(self, query: str | None) -> "Reader":
        """Return what reads documents behind a query: documents are cut, queries never."""
        check_queries(self.queries, query is not None)
        if query is None:
            return self
        if not isinstance(query, str):
            raise UserError(f"`query` must be a text, but is a {type(query).__name__}.")
        if not self.tokenizer.normalize(query):
            raise UserError("`query` must hold text, but holds none.")
        asked = tuple(self.tokenizer.asked(query))
        most = self.tokenizer.query_room(self.max_source_positions, "max_source_positions") - len(self._query)
        if len(asked) > most:
            raise UserError(
                f"`query` must have at most {most:,} tokens with its end, half of what the model reads, but has "
                f"{len(asked):,}: {shown(query)}."
            )
        reader = Reader(self.tokenizer, self.max_source_positions, True, self.prefix)
        reader._query += asked
        reader._most -= len(asked)
        reader._around += len(asked)
        return reader

    def budget(self, documents: int = 1) -> int:
        """Return the most tokens that the model reads of each document and around it, beside the query."""
        return self.tokenizer.share(self._most, documents) + self._around - len(self._query)

    def head(self, text: str, name: str, on_read: OnRead | None = None) -> TokenizedText:
        """Return the head of a document, as long as the model reads, and count the other tokens.

        Of several documents (`documents_of`), a model whose tokenizer separates them reads equal shares (Xiao et al.
        2022, section 2.1), each with the separator behind it. Errors call the document ``name``.
        """
        return self.head_of(self.documents(text), name, on_read)._replace(casing=self.casing(text))

    def head_of(self, documents: Sequence[str], name: str, on_read: OnRead | None = None) -> TokenizedText:
        """Return the heads of documents that are read together."""
        head: list[str] = []
        whole = self._around
        if (share := self.tokenizer.share(self._most, len(documents))) < 1:
            raise UserError(
                f"{name} must be at most {self._most // 2:,} documents, two of {self.max_source_positions:,} tokens "
                f"for each, but is {len(documents):,}."
            )
        for document in documents:
            room = share
            for tokens in self._tokens(document, name, on_read):
                head += tokens[:room]
                room -= len(tokens[:room])
                whole += len(tokens)
            head += self._end
            whole += len(self._end)
        return TokenizedText(head, whole, around=self._around, query=self._query)

    def documents(self, text: str) -> list[str]:
        """Return the documents of a text, for a tokenizer that separates them; else the text alone."""
        return self.tokenizer.documents(text)

    def separated(self, tokens: list[str]) -> str:
        """Return what `head` has read of several documents as a text, each a paragraph."""
        return "".join("\n\n" if any(token is end for end in self._end) else token for token in tokens).strip()

    def pieces(self, text: str, name: str, on_read: OnRead | None = None) -> Iterator[TokenizedText]:
        """Yield a whole document in pieces, each as long as the model reads."""
        casing = self.casing(text)
        markers = self.tokenizer.marker_id is not None, self.tokenizer.marks_first
        for document in self.documents(text):
            for piece in pieces(self._tokens(document, name, on_read), self._most - len(self._end), *markers):
                piece += self._end
                whole = len(piece) + self._around
                yield TokenizedText(piece, whole, around=self._around, query=self._query, casing=casing)

    def casing(self, text: str) -> Casing | None:
        """Return how the words of a document are written, for a model that writes no capitals; else None."""
        return Casing(text) if self.tokenizer.folds_case else None

    def _tokens(self, text: str, name: str, on_read: OnRead | None) -> Iterator[list[str]]:
        if not isinstance(text, str):
            raise UserError(f"A document must be a text, but {name} is a {type(text).__name__}.")
        holds_text = False
        for tokens in self.tokenizer.surfaces(_watched(windows(text), on_read)):
            holds_text = holds_text or bool(tokens)
            yield tokens
        if not holds_text:
            raise UserError(f"A document must hold text, but {name} holds none.")


def check_queries(queries: bool, given: bool) -> None:
    """Refuse a query for a model that answers none, and no query for one that does."""
    if queries and not given:
        raise UserError("The model answers queries: give `query`.")
    if given and not queries:
        raise UserError("`query` must not be given: the model was trained without queries.")


def _watched(texts: Iterable[str], on_read: OnRead | None) -> Iterator[str]:
    for text in texts:
        yield text
        if on_read is not None:
            on_read(len(text))

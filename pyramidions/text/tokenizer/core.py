"""The role of a tokenizer, which turns texts into ids and back."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

from pyramidions.base.arguments import fits, rule_of, shown
from pyramidions.base.errors import UserError
from pyramidions.text.several_documents import documents_of

#: The special pieces of tokenizers that `prepare` trains, in the order of their ids, which fairseq's dictionary has.
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
BOS, PAD, EOS, UNK = range(4)
#: A model may have so many rows of embeddings more than there are pieces; fairseq's BART has 936.
MOST_UNUSED = 1024
#: Before each sentence, before each line, and behind the speaker's name at the beginning of a line.
SENTENCE_MARKER, TURN_MARKER, NAME_END = "<sentence>", "<turn>", "</name>"
#: Behind each of several documents that are summarized together, in PRIMERA (Xiao et al. 2022).
DOCUMENT_SEPARATOR = "<doc-sep>"
#: Those of 0.2.0, which put them between sentences and between lines.
MARKERS_BETWEEN = ("<n>", "<t>")
#: All that mark sentences or lines; a vocabulary has one of them at most.
MARKERS = (SENTENCE_MARKER, TURN_MARKER, *MARKERS_BETWEEN)
SPACE = "▁"  # how a sentencepiece spells it
#: What a checkpoint records of a tokenizer.
RECORDED = ("tokenizer", "special_tokens")
UNKNOWN = " ⁇ "  # how `<unk>` reads


class Numbering(NamedTuple):
    """Ids of a model's special tokens, which its config says and the file of its tokenizer need not."""

    bos: int | None = BOS  # the token that some models begin with; None without one
    pad: int = PAD  # the padding
    eos: int = EOS  # the end of a text
    unk: int | None = UNK  # the unknown token; None without one
    rows: int | None = None  # rows of the embeddings; None for as many as there are ids
    ends: tuple[int, ...] = ()  # further tokens that end a text where a model writes one

    @classmethod
    def of_names(cls, ids: Mapping[str, int]) -> "Numbering":
        """Return the ids of the usual names, `SPECIALS`."""
        bos, pad, eos, unk = map(ids.get, SPECIALS)
        if pad is None or eos is None:
            raise UserError(
                f"The tokenizer must have the pieces {SPECIALS[PAD]} and {SPECIALS[EOS]}, or its model say others."
            )
        return cls(bos, pad, eos, unk)

    @classmethod
    def recorded(cls, values: Any) -> "Numbering | None":
        """Return what `as_recorded` gave."""
        if not values:
            return None
        if not isinstance(values, Mapping) or not {"pad", "eos"} <= values.keys() <= {*cls._fields}:
            raise UserError(f"The ids of special tokens must be numbers by name, but are {shown(values)}.")
        for name, value in values.items():
            kind = list[int] if name == "ends" else int
            if not fits(value, kind):
                raise UserError(f"`{name}` of the special tokens must be {rule_of(kind)}, but is {shown(value)}.")
        return cls(**{"bos": None, "unk": None, **values, "ends": tuple(values.get("ends", ()))})

    def as_recorded(self) -> dict[str, Any]:
        """Return the ids that there are by their names, for checkpoints and manifests."""
        recorded = {name: value for name, value in self._asdict().items() if value not in (None, ())}
        return {**recorded, "ends": [*self.ends]} if self.ends else recorded


class Tokenizer(ABC):
    """Text to ids and back. The ids are the file's own, and those of fairseq's dictionary.

    No text is encoded as a special piece: a document that contains `</s>` gets ordinary pieces.

    Attributes:
        model_bytes: the file.
        numbering: as given, with as many rows as there are.
        bos: the token that some models begin with; None without one.
        pad: the padding.
        eos: the end of a text.
        ends: that, and further tokens that end what a model writes.
        unk: the unknown token; the padding without one.
        vocab_size: number of ids: of pieces, the special ones included, and of rows without a piece.
        marker_id: of the piece before sentences or lines, which not every tokenizer has.
        marks_turns: the marker is of lines.
        marks_first: the first sentence or line has a marker, too.
        name_end_id: of the piece behind the name that a line begins with, which not every tokenizer has.
        document_separator: the token behind each of several documents, as `surfaces` gives tokens; None if it has none.
        prefix: what stands in front of each text that a model reads or writes, such as `<s>`. `encode` leaves it out,
            as it does the end; see `framed`.
    """

    #: how the file is called in a folder
    file_name: ClassVar[str]
    #: the library that encodes
    library: ClassVar[str]

    marker_id: int | None = None
    marks_turns: bool = False
    marks_first: bool = False
    name_end_id: int | None = None
    document_separator: str | None = None
    prefix: tuple[int, ...] = ()

    def __init__(self, model_bytes: bytes, numbering: Numbering, ids: int) -> None:
        self.model_bytes = model_bytes
        rows = ids if numbering.rows is None else numbering.rows
        if ids > rows:
            raise UserError(
                f"The tokenizer must have ids below {rows:,}, the rows of the embeddings, but has {ids - 1:,}."
            )
        if rows > ids + MOST_UNUSED:
            raise UserError(
                f"The embeddings must have at most {MOST_UNUSED:,} rows more than the tokenizer has ids, {ids:,}, but "
                f"have {rows:,}."
            )
        self.numbering = numbering._replace(rows=rows)
        self._usual = Numbering(rows=ids)
        self.vocab_size = rows
        self.bos, self.pad, self.eos, unk, _, others = self.numbering
        self.ends = (self.eos, *others)
        self.unk = self.pad if unk is None else unk
        named = [("bos", self.bos), ("pad", self.pad), ("unk", self.unk), *(("eos", end) for end in self.ends)]
        for name, i in named:
            if i is not None and not 0 <= i < rows:
                raise UserError(f"The id of `{name}` must be below {rows:,}, the rows of the embeddings, but is {i}.")
        if self.pad in self.ends:
            raise UserError(f"The padding must be another token than the end of a text, but both are {self.pad}.")

    def __eq__(self, other: object) -> bool:
        """Return whether the same file is run with the same ids."""
        return isinstance(other, Tokenizer) and other.__reduce__() == self.__reduce__()

    def __hash__(self) -> int:
        """Return a hash of the file."""
        return hash(self.model_bytes)

    @final
    @staticmethod
    def from_bytes(model_bytes: bytes, numbering: Numbering | None = None) -> "Tokenizer":
        """Make a tokenizer of the kind that wrote the bytes."""
        kind = next(kind for kind in KINDS if kind.wrote(model_bytes))
        return kind(model_bytes, numbering)

    @final
    @staticmethod
    def from_file(path: str | Path, numbering: Numbering | None = None) -> "Tokenizer":
        """Read the file of a tokenizer of any kind; ``numbering`` as in `from_bytes`."""
        try:
            model_bytes = Path(path).read_bytes()
        except FileNotFoundError:
            raise UserError(f"The tokenizer {path} does not exist.") from None
        except IsADirectoryError:
            raise UserError(f"The tokenizer {path} must be a file, but is a folder.") from None
        try:
            return Tokenizer.from_bytes(model_bytes, numbering)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes, Numbering]]:
        """Pickle as the file's bytes and the ids, so that workers can receive it."""
        return type(self), (self.model_bytes, self.numbering)

    @final
    @staticmethod
    def from_recorded(values: Mapping[str, Any]) -> "Tokenizer":
        """Return the tokenizer of a checkpoint; see `as_recorded`."""
        if not isinstance(model_bytes := values.get("tokenizer"), bytes):
            raise UserError(f"The tokenizer must be bytes, but is {shown(model_bytes)}.")
        return Tokenizer.from_bytes(model_bytes, Numbering.recorded(values.get("special_tokens")))

    def as_recorded(self) -> dict[str, Any]:
        """Return what a checkpoint records of it, as plain values."""
        special = {"special_tokens": self.special_tokens} if self.special_tokens else {}
        return {"tokenizer": self.model_bytes, **special}

    # What a kind is

    @classmethod
    @abstractmethod
    def wrote(cls, model_bytes: bytes) -> bool:
        """Return whether a file looks like one of this kind."""

    @abstractmethod
    def normalize(self, text: str) -> str:
        """Return what of a text is encoded: one line, single spaces, no space at either end."""

    @abstractmethod
    def pieces(self) -> list[str]:
        """All pieces in the order of their ids, the special ones included."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Normalise a text and turn it into ids, without prefix and `</s>`."""

    @abstractmethod
    def counts(self, texts: Iterable[str]) -> list[int]:
        """Return the number of tokens of each text where it stands behind another, without markers."""

    @abstractmethod
    def ids_of(self, surfaces: Sequence[str]) -> list[int]:
        """Return the ids of tokens that `surfaces` gave."""

    @abstractmethod
    def spellings(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each id, with the space before it; empty for special pieces, ` ⁇ ` for `<unk>`.

        A character that is spelt by several pieces is the text of one of them, and the others are empty.
        """

    @abstractmethod
    def surfaces(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        """Cut the windows of a text into tokens, some at a time, each as its text with the space before it.

        A marker is an empty token, and so is one that does not end a character. The texts joined are the normalised
        text, but for a space in front, and, of sentencepiece, for one in place of each `▁`. Their ids (`ids_of`)
        joined are what `encode` makes of the text.

        No piece of a model that `prepare` trains crosses white space, where `windows` cuts. In a text of several
        windows the ids can differ: where it has no white space in a whole window, in a marker inside a quotation or
        brackets that a window's end cuts, and, far behind a text's beginning, where two ways to cut a word are equally
        likely.
        """

    @abstractmethod
    def _decode(self, ids: list[int]) -> str:
        """Return the text of valid ids."""

    @abstractmethod
    def _id_of(self, piece: str) -> int:
        """Return the id of a piece's name, `UNK` if there is none."""

    # What follows from that

    @property
    def special_tokens(self) -> dict[str, Any]:
        """What is recorded beside the file: its ids, unless they are those that `prepare` gives; see `Numbering`."""
        return {} if self.numbering == self._usual else self.numbering.as_recorded()

    @property
    def document_separator_id(self) -> int | None:
        """The id of the token behind each of several documents, or None."""
        return None if self.document_separator is None else self.ids_of([self.document_separator])[0]

    @cached_property
    def folds_case(self) -> bool:
        """Capitals are read as small letters, and none are written."""
        return self.normalize("A") == "a"

    @cached_property
    def _names(self) -> list[str]:
        return self.pieces()

    def encode_units(self, units: Sequence[str]) -> list[int]:
        """Turn headings and sentences, none of them empty, into ids with markers, without `<s>` and `</s>`.

        A unit starts at the first id and at each marker behind it, so that the k-th start is the k-th unit.
        """
        raise UserError(f"The tokenizer must have the piece {SENTENCE_MARKER} to keep sentences apart, but has none.")

    def units_in(self, ids: Iterable[int]) -> list[list[int]]:
        """Return the ids of each unit of what `encode_units` returned, or of its beginning, without special ids."""
        units: list[list[int]] = [[]]
        for place, i in enumerate(ids):
            if i == self.marker_id:
                units += [[]] * (place > 0)
            elif i not in (self.pad, self.eos):
                units[-1].append(i)
        return units

    def room(self, most: int, name: str) -> int:
        """Return how many tokens of a text fit between the prefix and `</s>`; an error calls ``most`` by a name."""
        least = len(self.prefix) + 2
        if most < least:
            read = ", ".join([*(self._names[i] for i in self.prefix), "a token"])
            raise UserError(f"`{name}` must be at least {least}, {read} and the end of the text, but is {most}.")
        return most - least + 1

    def query_room(self, most: int, name: str) -> int:
        """Return how many tokens a query may have, its `</s>` included: half of the `room`, whose errors these are."""
        return self.room(most, name) // 2

    def documents(self, text: str) -> list[str]:
        """Return the documents of a text if there is a `document_separator`; else the text alone."""
        return [text] if self.document_separator is None else documents_of(text)

    def encode_documents(self, text: str, encode: Callable[[str], list[int]] | None = None) -> list[int]:
        """Return the ids of a text to read, with the `document_separator` behind each document."""
        separator = [] if self.document_separator_id is None else [self.document_separator_id]
        return [i for document in self.documents(text) for i in (*(encode or self.encode)(document), *separator)]

    def share(self, room: int, documents: int) -> int:
        """Return how many ids of each document fit, its separator apart (Xiao et al. 2022, section 2.1)."""
        return room // documents - (self.document_separator is not None)

    def head(self, ids: Sequence[int], room: int) -> list[int]:
        """Return the first ids of what `encode_documents` returned, ``room`` at most.

        Of several documents a `share` is kept, with the separator behind it, if that is an id at least.
        """
        separator = self.document_separator_id
        ends = [place for place, each in enumerate(ids) if each == separator]
        if not ends or (share := self.share(room, len(ends))) < 1:
            return list(ids[: max(room, 0)])
        begun = pairwise([-1, *ends])
        return [i for before, end in begun for i in (*ids[before + 1 : end][:share], ids[end])]

    def framed(self, ids: Iterable[int], query: Sequence[int] = ()) -> list[int]:
        """Return ids of a text as a model reads them: behind the prefix and the query, and in front of the end."""
        return [*self.prefix, *query, *ids, self.eos]

    def asked(self, query: str) -> list[int]:
        """Return the ids of a query and `</s>`, which stand before a document to ask for something in it.

        No id of a text is `</s>`. A query is no sentence of the document, and has no markers.
        """
        ids = [i for i in self.encode(query) if i not in (self.marker_id, self.name_end_id)]
        # A query of nothing but `▁` has no pieces.
        return [*(ids or [self.unk]), self.eos]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text on one line; special pieces are dropped, and `<unk>` reads ` ⁇ `.

        A UserError names an id without a piece: a file of ids was made with another tokenizer, or is damaged.
        """
        ids = [int(i) for i in ids]
        if ids and not 0 <= min(ids) <= max(ids) < self.vocab_size:
            wrong = next(i for i in ids if not 0 <= i < self.vocab_size)
            raise UserError(f"An id must be below {self.vocab_size}, the number of pieces, but is {wrong}.")
        return " ".join(self._decode(ids).split())

    def encode_as_pieces(self, text: str) -> list[str]:
        """Return the names of a text's pieces, an unknown one as `<unk>`.

        Sentencepiece's own list shows an unknown stretch of text as it stands, which may spell a special piece.
        """
        return self.names(self.encode(text))

    def names(self, ids: Iterable[int]) -> list[str]:
        """Return the names of pieces."""
        return [self._names[i] for i in ids]

    def decode_pieces(self, pieces: Sequence[str]) -> str:
        """Turn pieces' names into text on one line; a name that is no piece reads ` ⁇ `."""
        return self.decode(self._id_of(piece) for piece in pieces)


#: All kinds; importing the package fills the list. The last takes what no other wrote.
KINDS: list[type[Any]] = []

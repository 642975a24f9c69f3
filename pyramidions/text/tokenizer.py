"""Text to ids and back, around a sentencepiece model."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import sentencepiece

from pyramidions.errors import UserError
from pyramidions.text.normalization import normalize, split_sentences
from pyramidions.text.text_windows import sentences

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
BOS, PAD, EOS, UNK = range(4)
SENTENCE_MARKER = "<n>"
SPACE = "▁"  # how a piece spells it
Piece = TypeVar("Piece", int, str)  # by its id, or by its text


class Tokenizer:
    """A sentencepiece model whose ids are fairseq's dictionary ids.

    Kudo & Richardson, 2018, "SentencePiece". The model has `<s>`, `<pad>`, `</s>`, `<unk>` at 0 to 3, where
    fairseq's dictionary puts them, and all other pieces after them: no table translates between the two.

    No text is encoded as a special piece: a document that contains `</s>` or `<n>` gets ordinary pieces.

    Sentence markers: a model trained with them has the control piece `<n>`. `encode` then splits the text and
    puts the marker between sentences, so that the model may learn from boundaries; `decode` leaves it out and
    joins with a space, because fairseq writes one line a document. Scoring finds its boundaries on both sides
    with `split_sentences`, whether or not the model knows markers: no system gains by placing its own.

    Args:
        model_bytes: a serialized sentencepiece model.

    Raises:
        UserError: the bytes are not a sentencepiece model, or its special pieces have other ids.
    """

    def __init__(self, model_bytes: bytes) -> None:
        self.model_bytes = model_bytes
        try:
            if not model_bytes:
                raise RuntimeError
            self._model = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        except RuntimeError:
            raise UserError("The tokenizer must be a sentencepiece model, but this is none.") from None
        found = (self._model.bos_id(), self._model.pad_id(), self._model.eos_id(), self._model.unk_id())
        if found != (BOS, PAD, EOS, UNK):
            raise UserError(
                "The sentencepiece model must have the ids <s>=0, <pad>=1, </s>=2, <unk>=3, "
                f"but it has {', '.join(f'{name}={i}' for name, i in zip(SPECIALS, found, strict=True))}."
            )
        marker = self._model.piece_to_id(SENTENCE_MARKER)
        # Only a control piece is safe as a marker: sentencepiece never finds one inside a text.
        self.marker_id: int | None = marker if self._model.is_control(marker) else None

    @classmethod
    def from_file(cls, path: str | Path) -> "Tokenizer":
        """Read a `sentencepiece.model` file."""
        try:
            model_bytes = Path(path).read_bytes()
        except FileNotFoundError:
            raise UserError(f"The tokenizer {path} does not exist.") from None
        except IsADirectoryError:
            raise UserError(f"The tokenizer {path} must be a file, but is a folder.") from None
        try:
            return cls(model_bytes)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes]]:
        """Pickle as the model's bytes, so that workers can receive it."""
        return Tokenizer, (self.model_bytes,)

    @property
    def vocab_size(self) -> int:
        """Number of pieces, the special ones included."""
        return int(self._model.vocab_size())

    def pieces(self) -> list[str]:
        """All pieces in the order of their ids, the special ones included."""
        return [self._model.id_to_piece(i) for i in range(self.vocab_size)]

    def encode(self, text: str) -> list[int]:
        """Normalise a text and turn it into ids, without `<s>` and `</s>`."""
        if self.marker_id is None:
            return list(self._model.encode(normalize(text)))
        return self._sentences(split_sentences(text), int, self.marker_id)

    def encode_units(self, units: Sequence[str]) -> list[int]:
        """Turn the headings and sentences of a document into ids, a marker between any two, without `<s>` and `</s>`.

        A unit starts at the first id and behind each marker, so that the k-th start is the k-th unit.

        Args:
            units: normalised texts, none of them empty.

        Raises:
            UserError: the model has no marker.
        """
        if self.marker_id is None:
            raise UserError(
                f"The tokenizer must have the piece {SENTENCE_MARKER} to keep sentences apart, but has none."
            )
        found: list[int] = []
        for number, ids in enumerate(self._model.encode(list(units))):
            # A unit of nothing but `▁` has no pieces.
            found += [*([self.marker_id] if number else []), *(ids or [UNK])]
        return found

    def counts(self, texts: Iterable[str]) -> list[int]:
        """Return the number of tokens of each text, without markers."""
        return [len(ids) for ids in self._model.encode([normalize(text) for text in texts])]

    def surfaces(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        """Cut the windows of a text into tokens, some at a time, each as its text with the space before it.

        A marker is an empty token. The texts joined are the normalised text, but for a space in front, and for one in
        place of each `▁`. Their ids (`ids_of`) joined are what `encode` makes of the text.

        No piece of a model that `prepare` trains crosses white space, where `windows` cuts. In a text of several
        windows the ids can differ: where it has no white space in a whole window, in a marker inside a quotation or
        brackets that a window's end cuts, and, far behind a text's beginning, where two ways to cut a word are equally
        likely.
        """
        for pieces in self._windows(of_windows):
            # sentencepiece's own list shows an unknown stretch of text as it stands.
            yield [piece.replace(SPACE, " ") for piece in pieces]

    def ids_of(self, surfaces: Sequence[str]) -> list[int]:
        """Return the ids of tokens that `surfaces` gave."""
        found = self._model.piece_to_id([surface.replace(" ", SPACE) for surface in surfaces])
        # An unknown stretch of text may spell a special piece.
        found = [UNK if special else i for i, special in zip(found, self._model.is_control(found), strict=True)]
        if self.marker_id is None:
            return found
        return [i if surface else self.marker_id for i, surface in zip(found, surfaces, strict=True)]

    def _windows(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        if self.marker_id is None:
            for window in of_windows:
                yield list(self._model.encode(normalize(window), out_type=str))
        else:
            between: list[str] = []
            for some in sentences(of_windows):
                yield between + self._sentences(some, str, "")
                between = [""]

    def _sentences(self, some: list[str], kind: type[Piece], marker: Piece) -> list[Piece]:
        found: list[Piece] = []
        for sentence in self._model.encode(some, out_type=kind):
            if found:
                found.append(marker)
            found.extend(sentence)
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text on one line; special pieces are dropped, and `<unk>` reads ` ⁇ `.

        Raises:
            UserError: an id that no piece has; a file of ids was made with another tokenizer, or is damaged.
        """
        ids = [int(i) for i in ids]
        if ids and not 0 <= min(ids) <= max(ids) < self.vocab_size:
            wrong = next(i for i in ids if not 0 <= i < self.vocab_size)
            raise UserError(f"An id must be below {self.vocab_size}, the number of pieces, but is {wrong}.")
        # Control pieces go out before decoding, else the word after a marker keeps no space in front.
        kept = [i for i in ids if not self._model.is_control(i)]
        return " ".join(self._model.decode(kept).split())

    def encode_as_pieces(self, text: str) -> list[str]:
        """Normalise a text and turn it into the pieces' names, an unknown one as `<unk>`.

        Built from the ids: sentencepiece's own list shows an unknown stretch of text as it stands, which a
        dictionary lookup could mistake for a special piece.
        """
        return [self._model.id_to_piece(i) for i in self.encode(text)]

    def decode_pieces(self, pieces: Sequence[str]) -> str:
        """Turn pieces' names into text on one line; a name that is no piece reads ` ⁇ `."""
        return self.decode(self._model.piece_to_id(piece) for piece in pieces)

    def spellings(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each id, with the space before it; empty for special pieces, ` ⁇ ` for `<unk>`."""
        spelt = {UNK: " ⁇ "}
        return [
            "" if self._model.is_control(i) else spelt.get(i, self._model.id_to_piece(i).replace(SPACE, " "))
            for i in ids
        ]

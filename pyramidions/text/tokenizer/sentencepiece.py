"""Tokenizers of the library sentencepiece."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import sentencepiece

from pyramidions.errors import UserError
from pyramidions.text.normalization import normalize, split_lines, split_sentences
from pyramidions.text.text_windows import sentences
from pyramidions.text.tokenizer.core import (
    BOS,
    EOS,
    PAD,
    SENTENCE_MARKER,
    SPACE,
    SPECIALS,
    TURN_MARKER,
    UNK,
    UNKNOWN,
    Tokenizer,
)

Piece = TypeVar("Piece", int, str)  # by its id, or by its text


class SentencePieceTokenizer(Tokenizer):
    """A sentencepiece model whose ids are fairseq's dictionary ids.

    Kudo & Richardson, 2018, "SentencePiece". Texts are normalised by `normalize`, then as the model says; those that
    `prepare` trains leave the text as it is.

    Sentence markers: a model trained with them has the control piece `<n>`. `encode` then splits the text and
    puts the marker between sentences, so that the model may learn from boundaries; `decode` leaves it out and
    joins with a space, because fairseq writes one line a document. Scoring finds its boundaries on both sides
    with `split_sentences`, whether or not the model knows markers: no system gains by placing its own.

    Turn markers: a model trained with them has the control piece `<t>` instead, which stands between the lines of a
    text, such as the turns of a dialogue.

    Args:
        model_bytes: a serialized sentencepiece model.

    Raises:
        UserError: the bytes are not a sentencepiece model, or its special pieces have other ids.
    """

    file_name = "sentencepiece.model"
    library = "sentencepiece"

    def __init__(self, model_bytes: bytes) -> None:
        super().__init__(model_bytes)
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
        # Only a control piece is safe as a marker: sentencepiece never finds one inside a text.
        markers = {name: self._model.piece_to_id(name) for name in (SENTENCE_MARKER, TURN_MARKER)}
        found_markers = [name for name, marker in markers.items() if self._model.is_control(marker)]
        self.marker_id = markers[found_markers[0]] if found_markers else None
        self.marks_turns = found_markers == [TURN_MARKER]
        self._split = split_lines if self.marks_turns else split_sentences

    @classmethod
    def wrote(cls, model_bytes: bytes) -> bool:
        """Return True: sentencepiece itself says what is none of its models."""
        return True

    @property
    def vocab_size(self) -> int:
        """Number of pieces, the special ones included."""
        return int(self._model.vocab_size())

    def normalize(self, text: str) -> str:
        """Return the text as `normalize` and then the model itself normalise it."""
        return " ".join(str(self._model.normalize(normalize(text))).replace(SPACE, " ").split())

    def pieces(self) -> list[str]:
        """All pieces in the order of their ids, the special ones included."""
        return [self._model.id_to_piece(i) for i in range(self.vocab_size)]

    def encode(self, text: str) -> list[int]:
        """Normalise a text and turn it into ids, without `</s>`."""
        if self.marker_id is None:
            return list(self._model.encode(normalize(text)))
        return self._sentences(self._split(text), int, self.marker_id)

    def encode_units(self, units: Sequence[str]) -> list[int]:
        """Turn the headings and sentences of a document into ids; see `Tokenizer`."""
        if self.marker_id is None:
            return super().encode_units(units)
        found: list[int] = []
        for number, ids in enumerate(self._model.encode(list(units))):
            # A unit of nothing but `▁` has no pieces.
            found += [*([self.marker_id] if number else []), *(ids or [UNK])]
        return found

    def counts(self, texts: Iterable[str]) -> list[int]:
        """Return the number of tokens of each text, without markers."""
        return [len(ids) for ids in self._model.encode([normalize(text) for text in texts])]

    def ids_of(self, surfaces: Sequence[str]) -> list[int]:
        """Return the ids of tokens that `surfaces` gave."""
        found = self._model.piece_to_id([surface.replace(" ", SPACE) for surface in surfaces])
        # An unknown stretch of text may spell a special piece.
        found = [UNK if special else i for i, special in zip(found, self._model.is_control(found), strict=True)]
        if self.marker_id is None:
            return found
        return [i if surface else self.marker_id for i, surface in zip(found, surfaces, strict=True)]

    def _surfaces(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        for pieces in self._windows(of_windows):
            # sentencepiece's own list shows an unknown stretch of text as it stands.
            yield [piece.replace(SPACE, " ") for piece in pieces]

    def _windows(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        if self.marker_id is None:
            for window in of_windows:
                yield list(self._model.encode(normalize(window), out_type=str))
        else:
            between: list[str] = []
            for some in sentences(of_windows, split=self._split):
                yield between + self._sentences(some, str, "")
                between = [""]

    def _sentences(self, some: list[str], kind: type[Piece], marker: Piece) -> list[Piece]:
        found: list[Piece] = []
        for sentence in self._model.encode(some, out_type=kind):
            if found:
                found.append(marker)
            found.extend(sentence)
        return found

    def _decode(self, ids: list[int]) -> str:
        # Control pieces go out before decoding, else the word after a marker keeps no space in front.
        return str(self._model.decode([i for i in ids if not self._model.is_control(i)]))

    def _id_of(self, piece: str) -> int:
        return int(self._model.piece_to_id(piece))

    def spellings(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each id, with the space before it; empty for special pieces, ` ⁇ ` for `<unk>`."""
        spelt = {UNK: UNKNOWN}
        return [
            "" if self._model.is_control(i) else spelt.get(i, self._model.id_to_piece(i).replace(SPACE, " "))
            for i in ids
        ]

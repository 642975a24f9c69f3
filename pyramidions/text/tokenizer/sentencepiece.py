"""Tokenizers of the library sentencepiece."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from pyramidions.base.errors import UserError
from pyramidions.text.normalization import normalize, split_lines, split_sentences
from pyramidions.text.text_windows import sentences
from pyramidions.text.tokenizer.core import (
    BOS,
    EOS,
    MARKERS,
    MARKERS_BETWEEN,
    NAME_END,
    PAD,
    SENTENCE_MARKER,
    SPACE,
    SPECIALS,
    TURN_MARKER,
    UNK,
    UNKNOWN,
    Numbering,
    Tokenizer,
)

# A name, and a colon with more of the line behind it.
_NAME = re.compile("[^:]{1,60}:(?= .)")
#: How the end of a name is spelt in `surfaces`: by what no normalised text holds.
NAME_END_SURFACE = "\u2060"
#: What `<s>` is called where a language takes its place.
WITHOUT_LANGUAGE = "<bos>"


class SentencePieceTokenizer(Tokenizer):
    """A sentencepiece model whose ids are fairseq's dictionary ids.

    Kudo & Richardson, 2018, "SentencePiece". Texts are normalised by `normalize`, then as the model says; those that
    `prepare` trains leave the text as it is.

    Markers are control pieces. `<sentence>` stands before each sentence, so that the model may learn from boundaries;
    `decode` leaves it out, and scoring finds boundaries of its own: no system gains by placing them. `<turn>` stands
    before each line instead, such as a turn of a dialogue, and `</name>` behind the name and colon that it begins with.
    Those of 0.2.0, `<n>` and `<t>`, stand between sentences or lines, and none before the first.

    In an imported mBART, piece 0 is a language, which stands in front of each text. Its `<s>`, which no text has, is
    the control piece `<bos>` at 4 then.
    """

    file_name = "sentencepiece.model"
    library = "sentencepiece"

    def __init__(self, model_bytes: bytes, numbering: Numbering | None = None) -> None:
        try:
            if not model_bytes:
                raise RuntimeError
            self._model = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        except RuntimeError:
            raise UserError("The tokenizer must be a sentencepiece model, but this is none.") from None
        ids = (self._model.bos_id(), self._model.pad_id(), self._model.eos_id(), self._model.unk_id())
        if ids != (BOS, PAD, EOS, UNK):
            raise UserError(
                "The sentencepiece model must have the ids <s>=0, <pad>=1, </s>=2, <unk>=3, "
                f"but it has {', '.join(f'{name}={i}' for name, i in zip(SPECIALS, ids, strict=True))}."
            )
        size = int(self._model.vocab_size())
        if numbering not in (None, Numbering(), usual := Numbering(rows=size)):
            raise UserError(f"A sentencepiece model must have the ids {usual.as_recorded()}, but a model says others.")
        super().__init__(model_bytes, usual, size)
        without = self._model.piece_to_id(WITHOUT_LANGUAGE)
        self.prefix = (BOS,) if without == len(SPECIALS) and self._model.is_control(without) else ()
        # Only a control piece is safe as a marker: sentencepiece never finds one inside a text.
        markers = {name: self._model.piece_to_id(name) for name in MARKERS}
        name = next((name for name, marker in markers.items() if self._model.is_control(marker)), "")
        self.marker_id = markers.get(name)
        self.marks_turns = name in (TURN_MARKER, MARKERS_BETWEEN[1])
        self.marks_first = name in (SENTENCE_MARKER, TURN_MARKER)
        self.name_end_id = self._model.piece_to_id(NAME_END) if name == TURN_MARKER else None
        self._split = split_lines if self.marks_turns else split_sentences

    @classmethod
    def wrote(cls, model_bytes: bytes) -> bool:
        """Return True: loading already rejects other files."""
        return True

    def normalize(self, text: str) -> str:
        return " ".join(str(self._model.normalize(normalize(text))).replace(SPACE, " ").split())

    def pieces(self) -> list[str]:
        return [self._model.id_to_piece(i) for i in range(self.vocab_size)]

    def encode(self, text: str) -> list[int]:
        if self.marker_id is None:
            return list(self._model.encode(normalize(text)))
        return self._marked(self._split(text), int, self.marker_id, self.name_end_id)

    def encode_units(self, units: Sequence[str]) -> list[int]:
        if self.marker_id is None:
            return super().encode_units(units)
        encoded: list[int] = []
        for number, ids in enumerate(self._model.encode([normalize(unit) for unit in units])):
            # A unit of nothing but `▁` has no pieces.
            encoded += [*[self.marker_id] * (number > 0 or self.marks_first), *(ids or [UNK])]
        return encoded

    def counts(self, texts: Iterable[str]) -> list[int]:
        return [len(ids) for ids in self._model.encode([normalize(text) for text in texts])]

    def ids_of(self, surfaces: Sequence[str]) -> list[int]:
        ids = self._model.piece_to_id([surface.replace(" ", SPACE) for surface in surfaces])
        # An unknown stretch of text may spell a special piece.
        ids = [UNK if special else i for i, special in zip(ids, self._model.is_control(ids), strict=True)]
        if self.marker_id is None:
            return ids
        markers = {"": self.marker_id} | ({} if self.name_end_id is None else {NAME_END_SURFACE: self.name_end_id})
        return [markers.get(surface, i) for i, surface in zip(ids, surfaces, strict=True)]

    def surfaces(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
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
                yield between + self._marked(some, str, "", NAME_END_SURFACE)
                between = [] if self.marks_first else [""]

    def _marked(self, some: list[str], kind: type, marker: int | str, name_end: int | str | None) -> list[Any]:
        """Return the pieces of sentences or lines with markers, by their ids or by their texts."""
        marked: list[Any] = []
        for unit in some:
            if marked or self.marks_first:
                marked.append(marker)
            if self.name_end_id is not None and (name := _NAME.match(unit)):
                marked += [*self._model.encode(name[0], out_type=kind), name_end]
                unit = unit[name.end() + 1 :]
            marked += self._model.encode(unit, out_type=kind)
        return marked

    def _decode(self, ids: list[int]) -> str:
        # Control pieces go out before decoding, else the word after a marker keeps no space in front.
        return str(self._model.decode([i for i in ids if not self._model.is_control(i)]))

    def _id_of(self, piece: str) -> int:
        return int(self._model.piece_to_id(piece))

    def spellings(self, ids: Iterable[int]) -> list[str]:
        spelt = {UNK: UNKNOWN}
        return [
            "" if self._model.is_control(i) else spelt.get(i, self._model.id_to_piece(i).replace(SPACE, " "))
            for i in ids
        ]

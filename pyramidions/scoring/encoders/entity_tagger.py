"""Finds entities in sentences."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders.batches import batches_by_length
from pyramidions.scoring.encoders.embedder import truncation
from pyramidions.scoring.encoders.heads import ENTITY_LABELS
from pyramidions.scoring.encoders.loading import Loaded, library_version, load
from pyramidions.scoring.reading import Span

_OUTSIDE = "O"
# Of the schemes BIO, IOB2, BIOES and BILOU.
_BEGINS, _GOES_ON = ("B", "S", "U"), ("I", "E", "L")
_AROUND = " \t.,;:!?\"'()[]“”‘’«»"


class EntityTagger:
    """Finds entities with a token classifier.

    A word has the label of its first piece. Neighbouring words of one type are one entity, unless the second begins
    one (B-, S-, U-).

    Args:
        loaded: the model.
        place: where it is from, for errors.

    Raises:
        UserError: its labels have no "O".
    """

    def __init__(self, loaded: Loaded, place: str) -> None:
        self._loaded = loaded
        self._labels: dict[int, str] = loaded.model.config.id2label
        labels = list(self._labels.values())
        if _OUTSIDE not in labels or len(labels) < 2:
            shown = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
            raise UserError(
                f"`{ENTITY_LABELS.option}` must have the label {_OUTSIDE} for words outside of entities, and labels of "
                f"entities, but {place} has {shown}."
            )

    @classmethod
    def of(cls, place: str | None, device: str) -> "EntityTagger":
        """Load a model.

        Raises:
            UserError: as `load` does.
        """
        return cls(load(place, ENTITY_LABELS, device), str(place))

    def signature(self) -> str:
        """Name the model."""
        return f"{self._loaded.name} | {library_version()}"

    def entities(self, sentences: Sequence[str]) -> list[list[Span]]:
        """Return the entities of sentences, in order.

        A sentence that is longer than the model is read in pieces.
        """
        found: list[list[Span]] = [[] for _ in sentences]
        if not sentences:
            return found
        made = self._loaded.tokenizer(
            list(sentences), return_overflowing_tokens=True, **truncation(self._loaded.length)
        )
        pieces = list(zip(made["overflow_to_sample_mapping"], made.encodings, strict=True))
        labels: list[list[str]] = [[]] * len(pieces)
        for batch in batches_by_length([len(encoding.ids) for _, encoding in pieces]):
            for index, of_piece in zip(batch, self._tagged([pieces[i][1] for i in batch]), strict=True):
                labels[index] = of_piece
        for (sentence, encoding), of_piece in zip(pieces, labels, strict=True):
            spans = (_trimmed(sentences[sentence], span) for span in _spans(encoding, of_piece))
            found[sentence] += [span for span in spans if span.start < span.end]
        return found

    @torch.inference_mode()
    def _tagged(self, encodings: Sequence[Any]) -> list[list[str]]:
        inputs = self._loaded.tokenizer.pad(
            {
                "input_ids": [encoding.ids for encoding in encodings],
                "attention_mask": [encoding.attention_mask for encoding in encodings],
            },
            padding_side="right",
            return_tensors="pt",
        ).to(self._loaded.device)
        best = self._loaded.model(**inputs).logits.argmax(dim=-1).tolist()
        return [
            [self._labels[label] for label in of_text[: len(encoding.ids)]]
            for encoding, of_text in zip(encodings, best, strict=True)
        ]


def _spans(encoding: Any, labels: Sequence[str]) -> Iterator[Span]:
    """Yield the spans of entities, from the start of the first word to the end of the last piece."""
    word_before, open_kind, start, end = None, "", 0, 0
    for word, label, (left, right) in zip(encoding.word_ids, labels, encoding.offsets, strict=True):
        if word is None:
            continue
        if word == word_before:
            if open_kind:
                end = right
            continue
        word_before = word
        prefix, kind = _parsed(label)
        if open_kind and (kind != open_kind or prefix in _BEGINS):
            yield Span(start, end)
            open_kind = ""
        if kind:
            if not open_kind:
                start = left
            open_kind, end = kind, right
    if open_kind:
        yield Span(start, end)


def _parsed(label: str) -> tuple[str, str]:
    """Return the prefix and the type of a label; both "" for words outside of entities."""
    if label == _OUTSIDE:
        return "", ""
    prefix, dash, kind = label.partition("-")
    return (prefix, kind) if dash and prefix in (*_BEGINS, *_GOES_ON) else ("", label)


def _trimmed(text: str, span: Span) -> Span:
    """Leave out punctuation around an entity; some tokenizers take it for a part of the word."""
    found = text[span.start : span.end]
    start = span.start + len(found) - len(found.lstrip(_AROUND))
    return Span(start, max(start, span.end - len(found) + len(found.rstrip(_AROUND))))

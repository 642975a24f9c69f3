"""Answers questions by a span of a text."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from pyramidions.scoring.encoders.batches import batches_by_length
from pyramidions.scoring.encoders.heads import ANSWERS
from pyramidions.scoring.encoders.loading import Loaded, library_version, load
from pyramidions.scoring.reading import Question

_LONGEST_ANSWER = 30  # tokens, as in the evaluation of SQuAD by BERT
_STRIDE = 128  # tokens that two windows of a long text share


class QuestionAnswerer:
    """Reads answers with an extractive model (Devlin et al. 2019, section 4.2).

    The answer is the span with the highest sum of the logits of its start and its end, over all windows of a long
    text. There is always one, whatever a model that knows unanswerable questions says; it is "" for a blank text.

    Args:
        loaded: the model.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    @classmethod
    def of(cls, place: str | None, device: str) -> "QuestionAnswerer":
        """Load a model.

        Raises:
            UserError: as `load` does.
        """
        return cls(load(place, ANSWERS, device))

    @property
    def blank(self) -> str:
        """What stands for the masked words of a question."""
        return str(self._loaded.tokenizer.mask_token or "_")

    def signature(self) -> str:
        """Name the model."""
        return f"{self._loaded.name} | {library_version()}"

    def answers(self, asked: Sequence[Question]) -> list[str]:
        """Return the answers."""
        found = [""] * len(asked)
        best = [-np.inf] * len(asked)
        windows = [
            window for n, question in enumerate(asked) if question.text.strip() for window in self._cut(n, question)
        ]
        for batch in batches_by_length([len(window.encoding.ids) for window in windows]):
            for index, (score, start, end) in zip(
                batch, self._spans([windows[i].encoding for i in batch]), strict=True
            ):
                of_question = windows[index].question
                if score > best[of_question]:
                    best[of_question] = score
                    found[of_question] = asked[of_question].text[start:end]
        return found

    def _cut(self, number: int, question: Question) -> list["_Window"]:
        """Return a question with each window of its text."""
        settings: dict[str, Any] = {}
        asked = question.question
        if (length := self._loaded.length) is not None:
            asked = self._shortened(asked, length // 2)
            # Windows that share as much as they hold would never end.
            settings = {"truncation": "only_second", "max_length": length, "stride": min(_STRIDE, length // 8)}
        made = self._loaded.tokenizer(asked, question.text, return_overflowing_tokens=True, **settings)
        return [_Window(number, encoding) for encoding in made.encodings]

    def _shortened(self, question: str, length: int) -> str:
        """Cut a question that leaves no room for the text, on both sides of what is masked."""
        encoding = self._loaded.tokenizer(question, add_special_tokens=False).encodings[0]
        if len(encoding.ids) <= length:
            return question
        place = question.find(self.blank)
        middle = next((n for n, (_, end) in enumerate(encoding.offsets) if end > place), 0)
        first = max(0, min(middle - length // 2, len(encoding.ids) - length))
        return question[encoding.offsets[first][0] : encoding.offsets[first + length - 1][1]]

    @torch.inference_mode()
    def _spans(self, encodings: Sequence[Any]) -> list[tuple[float, int, int]]:
        """Return the score of the best span of each window, and where in the text it starts and ends."""
        inputs = self._loaded.tokenizer.pad(
            {
                "input_ids": [encoding.ids for encoding in encodings],
                "attention_mask": [encoding.attention_mask for encoding in encodings],
                "token_type_ids": [encoding.type_ids for encoding in encodings],
            },
            return_tensors="pt",
        ).to(self._loaded.device)
        if "token_type_ids" not in self._loaded.tokenizer.model_input_names:
            del inputs["token_type_ids"]
        out = self._loaded.model(**inputs)
        starts, ends = (logits.float().cpu().numpy() for logits in (out.start_logits, out.end_logits))
        left = self._loaded.tokenizer.padding_side == "left"
        found = []
        for encoding, start, end in zip(encodings, starts, ends, strict=True):
            own = slice(-len(encoding.ids), None) if left else slice(len(encoding.ids))
            found.append(_best_span(encoding, start[own], end[own]))
        return found


class _Window(NamedTuple):
    question: int
    encoding: Any


def _best_span(encoding: Any, start: np.ndarray, end: np.ndarray) -> tuple[float, int, int]:
    """Return the score of the best span of the text, and its characters; nothing where the window has no text."""
    places = np.array([n for n, of in enumerate(encoding.sequence_ids) if of == 1], dtype=np.int64)
    if not len(places):
        return -np.inf, 0, 0
    # (starts, ends)
    scores = start[places][:, None] + end[places][None, :]
    distance = places[None, :] - places[:, None]
    scores = np.where((distance >= 0) & (distance < _LONGEST_ANSWER), scores, -np.inf)
    first, last = np.unravel_index(int(np.argmax(scores)), scores.shape)
    return (
        float(scores[first, last]),
        encoding.offsets[places[first]][0],
        encoding.offsets[places[last]][1],
    )

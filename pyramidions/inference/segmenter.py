"""Segments that a language model of characters draws in texts."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.base.device import Device, found_device
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE
from pyramidions.base.results import as_html, brief
from pyramidions.files.progress import counted
from pyramidions.pretrained.saved_model import SavedLanguageModel, load_language_model
from pyramidions.text.tokenizer import EOS

_SEED = 1


@dataclass(frozen=True, eq=False)
class SegmentedText:
    """A text, and where segments of it end.

    Attributes:
        text: as it was read: of a model of letters, in these, single spaces and line ends.
        ends: (characters,), True at the last character of each segment. What follows the last one is no segment.
        probabilities: (characters,), of a boundary behind each; of a model of bytes, the highest behind one of its
            bytes; None if the model predicts none.
        outside: how often each character stood in the text that is not in the alphabet.
        entropies: (at most characters,), the entropy in bits of the prediction of each of the first characters; of a
            model of bytes, the sum over its bytes; None if they were not asked for.
    """

    text: str
    ends: np.ndarray
    probabilities: np.ndarray | None
    outside: Counter[str]
    entropies: np.ndarray | None = None

    @cached_property
    def segments(self) -> list[str]:
        """All segments, in order."""
        ends = np.flatnonzero(self.ends) + 1
        begins = [0, *ends[:-1]]
        return [self.text[begin:end] for begin, end in zip(begins, ends, strict=True)] if len(ends) else []

    @property
    def rest(self) -> str:
        """What follows the last segment."""
        return self.text[sum(map(len, self.segments)) :]

    @property
    def shortening_factor(self) -> float | None:
        """Characters over segments; None without segments."""
        return len(self.text) / len(self.segments) if self.segments else None

    @property
    def boundaries_at_spaces(self) -> float | None:
        """The share of boundaries that stand at spaces or line ends; None without boundaries."""
        return sum(segment[-1].isspace() for segment in self.segments) / len(self.segments) if self.segments else None

    @property
    def spaces_at_boundaries(self) -> float | None:
        """The share of spaces and line ends that are boundaries; None without spaces."""
        spaces = sum(map(str.isspace, self.text))
        return sum(segment[-1].isspace() for segment in self.segments) / spaces if spaces else None

    def __repr__(self) -> str:
        return brief(self, counted(len(self.segments), "segment"))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text, with a bar after each segment."""
        return as_html([("", "".join(f"{segment}|" for segment in self.segments) + self.rest)])

    def to_dict(self) -> dict[str, Any]:
        """Return the segments and figures about them as values that JSON holds."""
        p = self.probabilities
        return {
            "segments": self.segments,
            "rest": self.rest,
            "probabilities": None if p is None else [round(each, 4) for each in p.tolist()],
            "shortening_factor": self.shortening_factor,
            "boundaries_at_spaces": self.boundaries_at_spaces,
            "spaces_at_boundaries": self.spaces_at_boundaries,
            "outside": dict(self.outside),
            **({} if self.entropies is None else {"entropies": [round(each, 4) for each in self.entropies.tolist()]}),
        }

    @checked
    def most_frequent(self, most: CountOrZero) -> list[tuple[str, int]]:
        """Return so many segments with their counts, the most frequent first; of equal counts the earlier first."""
        return Counter(self.segments).most_common(most)


class Segmenter:
    """Shows where a language model of characters ends segments: those of its outermost shortened part.

    Examples:
        >>> from pyramidions import Segmenter
        >>> Segmenter.from_pretrained("checkpoints").segment("A long text").segments   # doctest: +SKIP

    Args:
        model: the model.
        device: where it computes; None for a GPU if there is one.

    Raises:
        UserError: the model has no boundaries, or there is no such device.
    """

    @checked
    def __init__(self, model: SavedLanguageModel, device: Device | None = None) -> None:
        if not model.network.boundaries:
            raise UserError(f"The model must draw boundaries, but its `boundaries` are {NONE!r}.")
        self.model = model
        self.device = found_device(device)
        model.network.to(self.device)

    def __repr__(self) -> str:
        return f"Segmenter({self.model})"

    @classmethod
    @checked
    def from_pretrained(cls, path: str | Path, device: Device | None = None) -> "Segmenter":
        """Load a model: a checkpoint, or the best in a folder of them; errors as in `load_language_model`."""
        return cls(load_language_model(path), device)

    @checked
    def segment(
        self,
        text: str,
        name: str = "The text",
        on_progress: Callable[[float], object] | None = None,
        entropies: CountOrZero = 0,
    ) -> SegmentedText:
        """Find the segments of a text.

        The text is cleaned as `pyramidions prepare --characters` does. Long texts are read in overlapping windows as
        long as those of training, and the last quarter of each counts. Boundaries that a model draws at random are the
        same in each call.

        The first layers alone find segments. Entropies take the whole model, a few times as long.

        Args:
            text: any string.
            name: what an error calls it.
            on_progress: called with the share of the text that was read since the last call.
            entropies: of how many characters at the beginning to return the entropy.

        Raises:
            UserError: the text holds no letter of the alphabet.
        """
        alphabet = self.model.alphabet
        clean = alphabet.clean(text).strip(" \n")
        if not clean:
            raise UserError(f"{name} holds no letter of the alphabet {alphabet.language!r}.")
        written = alphabet.written(clean)
        # A character of the text may be several bytes; it ends a segment if one of them does.
        sizes = [1 if len(written) == len(clean) else len(alphabet.clean(each)) for each in written]
        begins, wanted = np.cumsum([0, *sizes[:-1]]), sum(sizes[:entropies])
        # In front of a text stands its end, as in training.
        tokens = torch.from_numpy(np.concatenate([[EOS], alphabet.encode(clean)]).astype(np.int64))
        counted = -(-self.model.window // 4)
        network, ends, logits, bits = self.model.network, [], [], []
        of_gpu = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(of_gpu), torch.inference_mode():
            for begin in range(0, len(tokens), counted):
                # Anew for each window: inner hourglasses draw as well, and run for entropies alone.
                torch.manual_seed(_SEED + begin)
                shown, end = max(0, begin + counted - self.model.window), min(begin + counted, len(tokens))
                window = tokens[None, shown:end].to(self.device)
                # The first token predicts the first character.
                if begin < wanted:
                    x, (marked, *_) = network.features(window, start=shown)
                    bits.append(_entropy(network.logits(x[0, begin - shown :])).cpu())
                else:
                    found = network.mark(window, shown)
                    assert found is not None
                    marked = found
                ends.append((marked.boundaries[0, begin - shown :] != 0).cpu())
                if marked.logits is not None:
                    logits.append(marked.logits[0, begin - shown :].cpu())
                if on_progress is not None:
                    on_progress((end - begin) / len(tokens))
        probabilities = torch.cat(logits).sigmoid()[1:].numpy() if logits else None
        # The last token predicts what follows the text.
        predicted = torch.cat(bits)[:wanted].numpy() if bits else None
        return SegmentedText(
            written,
            np.logical_or.reduceat(torch.cat(ends)[1:].numpy(), begins),
            None if probabilities is None else np.maximum.reduceat(probabilities, begins),
            alphabet.outside(text),
            None if predicted is None else np.add.reduceat(predicted, begins[:entropies]),
        )


def _entropy(logits: torch.Tensor) -> torch.Tensor:
    """Return the entropy of predictions in bits: (T, V) -> (T,)."""
    return torch.distributions.Categorical(logits=logits.float()).entropy() / math.log(2)

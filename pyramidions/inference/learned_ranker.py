"""Rates sentences by a trained model."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from pyramidions.extract import Ranker
from pyramidions.files.parallel import chunks
from pyramidions.inference.device import found_device
from pyramidions.inference.saved_model import SavedExtractor, load_extractor
from pyramidions.models.parse import extractor_spec_of
from pyramidions.nn.pooling import POOLING
from pyramidions.text.outline import Outline
from pyramidions.text.tokenizer import PAD

_BATCH_TOKENS = 2**16  # of a batch, padding included
_DOCUMENTS = 32  # whose windows share batches


class _Window(NamedTuple):
    """Consecutive units of a document that the model reads at once.

    Attributes:
        document: its number.
        first: number of its first unit.
        units: their number.
        ids: of its tokens.
    """

    document: int
    first: int
    units: int
    ids: np.ndarray


class LearnedRanker(Ranker):
    """Rates the sentences of documents by a trained model.

    A document that is longer than the model reads is rated in windows of whole units, each as long as the model reads.
    A longer unit is truncated. A sentence has the score -inf if the model's poolings did not keep it.

    Args:
        model: the trained model.
        device: where it computes, such as "cpu" or "cuda:1"; a GPU if there is one, if None.

    Raises:
        UserError: there is no such device.
    """

    def __init__(self, model: SavedExtractor, device: str | torch.device | None = None) -> None:
        self.model = model
        self.device = found_device(device)
        self._ranker = model.ranker.to(self.device).eval()
        poolings = extractor_spec_of(model.config).encoder.poolings.values()
        limits = [pooling.length for pooling in poolings if POOLING[pooling.pooler.kind].reads_marks]
        # Poolings at markers hand on no more units.
        self._most_units = min(limits, default=model.max_source_positions)

    @classmethod
    def from_pretrained(cls, path: str | Path, device: str | torch.device | None = None) -> "LearnedRanker":
        """Read a checkpoint, a folder of checkpoints (the best is taken), or an exported model.

        Raises:
            UserError: there is none, or it is damaged, or it writes summaries; or there is no such device.
        """
        found = found_device(device)
        return cls(load_extractor(path), found)

    def rank(self, outline: Outline) -> np.ndarray:
        (scores,) = self.rank_all([outline])
        return scores

    def rank_all(self, outlines: Iterable[Outline]) -> Iterator[np.ndarray]:
        """Yield what `rank` returns for each document; documents share batches."""
        for some in chunks(outlines, _DOCUMENTS):
            rated = [np.full(len(outline.units), -np.inf) for outline in some]
            windows = (window for number, outline in enumerate(some) for window in self._windows(number, outline))
            for batch in _batches(windows):
                for window, scores in zip(batch, self._rate(batch), strict=True):
                    rated[window.document][window.first : window.first + window.units] = scores[: window.units]
            for outline, scores in zip(some, rated, strict=True):
                yield scores[[not unit.is_heading for unit in outline.units]]

    def _windows(self, number: int, outline: Outline) -> Iterator[_Window]:
        most, tokenizer = self.model.max_source_positions, self.model.tokenizer
        first = 0
        for units in chunks((unit.text for unit in outline.units), self._most_units):
            ids = np.array(tokenizer.encode_units(units))
            markers = np.flatnonzero(ids == tokenizer.marker_id).tolist()
            begins, ends = [0, *(marker + 1 for marker in markers)], [*markers, len(ids)]
            for start, stop in _cut(begins, ends, most):
                yield _Window(number, first + start, stop - start, ids[begins[start] : ends[stop - 1]][:most])
            first += len(units)

    @torch.inference_mode()
    def _rate(self, batch: Sequence[_Window]) -> np.ndarray:
        lengths = [len(window.ids) for window in batch]
        source = torch.full((len(batch), max(lengths)), PAD)
        for row, window in zip(source, batch, strict=True):
            row[: len(window.ids)] = torch.from_numpy(window.ids)
        scores: np.ndarray = self._ranker(source.to(self.device), lengths).double().cpu().numpy()
        return scores


def _cut(begins: Sequence[int], ends: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield windows of at most ``most`` tokens, or of one longer unit: the first unit, and the one after the last.

    Args:
        begins: positions of the first tokens of the units.
        ends: positions after their last tokens.
        most: tokens of a window.
    """
    start = 0
    for unit, end in enumerate(ends):
        if unit > start and end - begins[start] > most:
            yield start, unit
            start = unit
    yield start, len(ends)


def _batches(windows: Iterable[_Window]) -> Iterator[list[_Window]]:
    """Cut windows into batches of few enough tokens, at least one window each."""
    batch: list[_Window] = []
    longest = 0
    for window in windows:
        longest = max(longest, len(window.ids))
        if batch and longest * (len(batch) + 1) > _BATCH_TOKENS:
            yield batch
            batch, longest = [], len(window.ids)
        batch.append(window)
    if batch:
        yield batch

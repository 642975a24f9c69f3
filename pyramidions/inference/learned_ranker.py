"""Rates sentences by a trained model."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyramidions.base.arguments import checked
from pyramidions.base.device import Device, found_device
from pyramidions.extract import Budget, Ranker, SelectionRules
from pyramidions.extract.core import BLOCK
from pyramidions.extract.selection import WORDS
from pyramidions.files.parallel import chunks
from pyramidions.inference.precision import FLOAT32, PrecisionName, found_precision, in_precision
from pyramidions.models.parse import extractor_spec_of
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.sentence_ranker import UnitVectors
from pyramidions.pretrained.saved_model import SavedExtractor, load_extractor
from pyramidions.text.outline import Outline
from pyramidions.text.tokenizer import PAD

_BATCH_TOKENS = 2**16  # of a batch, padding included


class _Window(NamedTuple):
    """Consecutive units of a document that the model reads at once."""

    document: int  # its number
    first: int  # number of its first unit
    known: int  # units at its beginning that an earlier window rates; they are read for their context
    units: int  # number of all units
    ids: np.ndarray  # of its tokens


class LearnedRanker(Ranker):
    """Rates the sentences of documents by a trained model.

    A document that is longer than the model reads is rated in windows of whole units, each as long as the model reads.
    A window begins with the second half of the one before, so that its new sentences are not taken for a document's
    first ones. A unit that is longer than the model reads is truncated. A sentence has the score -inf if the model's
    poolings did not keep it.

    Args:
        model: the trained model.
        device, precision: as in `Summarizer`.

    Raises:
        UserError: as `Summarizer`.
    """

    @checked
    def __init__(self, model: SavedExtractor, device: Device | None = None, precision: PrecisionName = FLOAT32) -> None:
        self.model = model
        self.device = found_device(device)
        self.precision = found_precision(precision, self.device, model.config.embed_dim)
        self._ranker = in_precision(model.ranker, self.precision).to(self.device)
        poolings = extractor_spec_of(model.config).encoder.poolings.values()
        limits = [pooling.length for pooling in poolings if POOLING[pooling.pooler.kind].reads_units]
        # Poolings at markers hand on no more units.
        self._most_units = min(limits, default=model.max_source_positions)

    @classmethod
    @checked
    def from_pretrained(
        cls, path: str | Path, device: Device | None = None, precision: PrecisionName = FLOAT32
    ) -> "LearnedRanker":
        """Read a checkpoint, a folder of checkpoints (the best is taken), or an exported model, of an extractor."""
        found = found_device(device)
        found_precision(precision, found)
        return cls(load_extractor(path), found, precision)

    @property
    def rules(self) -> SelectionRules:
        """Those that it was trained with."""
        model = self.model
        return SelectionRules(Budget(model.extract_words or WORDS), model.redundancy, model.mmr_weight)

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        (scores,) = self.rank_all([outline])
        return scores

    @checked
    def rank_all(self, outlines: Iterable[Outline]) -> Iterator[np.ndarray]:
        """Yield what `rank` returns for each document; documents share batches."""
        for some in chunks(outlines, BLOCK):
            read: list[list[UnitVectors]] = [[] for _ in some]
            windows = (window for number, outline in enumerate(some) for window in self._windows(number, outline))
            for batch in _batches(windows):
                found = self._read(batch)
                for row, window in enumerate(batch):
                    new = slice(window.known, window.units)
                    read[window.document].append(UnitVectors(found.x[row, new], found.known[row, new]))
            for outline, parts in zip(some, read, strict=True):
                sentences = torch.tensor([not unit.is_heading for unit in outline.units], dtype=torch.bool)
                yield self._rated(parts, sentences.to(self.device))

    def _windows(self, number: int, outline: Outline) -> Iterator[_Window]:
        if not outline.units:
            return
        most, tokenizer = self.model.max_source_positions, self.model.tokenizer
        ids = np.array(tokenizer.encode_units([unit.text for unit in outline.units]))
        markers = 1 + np.flatnonzero(ids[1:] == tokenizer.marker_id)
        begins, ends = [0, *(markers + (not tokenizer.marks_first)).tolist()], [*markers.tolist(), len(ids)]
        for first, new, stop in _plan(begins, ends, most, self._most_units):
            read = ids[begins[first] : ends[stop - 1]]
            yield _Window(number, first, new - first, stop - first, read[:most])

    @torch.inference_mode()
    def _rated(self, parts: Sequence[UnitVectors], sentences: Tensor) -> np.ndarray:
        """Return the scores of the sentences of a document, read in parts."""
        if not parts:
            return np.zeros(0)
        x, known = (torch.cat(each) for each in zip(*parts, strict=True))
        scores: Tensor = self._ranker.output(x[None], (known & sentences)[None])[0]
        return scores[sentences].double().cpu().numpy()

    @torch.inference_mode()
    def _read(self, batch: Sequence[_Window]) -> UnitVectors:
        lengths = [len(window.ids) for window in batch]
        source = torch.full((len(batch), max(lengths)), PAD)
        for row, window in zip(source, batch, strict=True):
            row[: len(window.ids)] = torch.from_numpy(window.ids)
        return self._ranker.units(source.to(self.device), lengths)


def _plan(begins: Sequence[int], ends: Sequence[int], most: int, most_units: int) -> Iterator[tuple[int, int, int]]:
    """Yield windows: the first unit, the first one that no earlier window has, and the one after the last.

    A unit of more than ``most`` tokens has a window of its own.
    """
    first = new = 0
    while new < len(ends):
        stop = new + 1
        while stop < len(ends) and stop - first < most_units and ends[stop] - begins[first] <= most:
            stop += 1
        yield first, new, stop
        new = stop
        # At most half of the next window is known, and its first new unit fits in.
        while (
            first < new < len(ends) and max(2 * (begins[new] - begins[first]), ends[new] - begins[first]) > most
        ) or 2 * (new - first) > most_units:
            first += 1


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

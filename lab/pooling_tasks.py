"""What the rows of `python -m lab pooling` learn: real papers, and needles in a text without meaning."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader

PAD, EOS, FIRST = 1, 2, 4  # as in prepared data; tokens begin at FIRST
_HELD_BACK = 10_000  # is added to seeds for validation


class Batch(NamedTuple):
    """Documents (B, L), their summaries (B, T), and which tokens of these count in the loss (B, T)."""

    source: Tensor
    target: Tensor
    counted: Tensor


class Task(ABC):
    """Pairs of documents and summaries; all documents have room for ``source`` tokens."""

    #: fields of the model's config
    fields: ClassVar[Mapping[str, Any]]
    source: int
    target: int
    vocabulary: int
    #: of a training
    updates: int
    batch: int
    rate: float

    @abstractmethod
    def training(self, seed: int) -> Iterator[Batch]:
        """Yield the batches of a training, without end."""

    @abstractmethod
    def validation(self) -> list[Batch]:
        """Return the batches that a loss is measured on, the same for all rows."""

    def settings(self) -> dict[str, Any]:
        """Return the settings that comparable rows share."""
        return {name: getattr(self, name) for name in ("source", "target", "vocabulary", "updates", "batch", "rate")}


class Papers(Task):
    """The beginnings of papers and of their abstracts, from a folder that `pyramidions prepare` made.

    A recurrence in each layer lets small models copy within 600 updates.
    """

    fields: ClassVar = {"recurrence": "sru", "self_attention": "blockwise(block_size=128)"}
    source, target, updates, batch, rate = 512, 128, 600, 8, 1e-3
    _VALIDATED = 192

    def __init__(self, folder: Path) -> None:
        self.folder = DataFolder(folder)
        tokenizer = self.folder.tokenizer()
        if (tokenizer.pad, tokenizer.eos) != (PAD, EOS):
            raise UserError("--data must be prepared with a tokenizer of its own, not with that of a pretrained model.")
        self.vocabulary = tokenizer.vocab_size

    def settings(self) -> dict[str, Any]:
        files = self.folder.manifest["files"]
        return {**super().settings(), "data": {name: files[name] for name in sorted(files) if name.endswith(".bin")}}

    def training(self, seed: int) -> Iterator[Batch]:
        source, target = self._split("train")
        random = np.random.default_rng(seed)
        while True:
            order = random.permutation(len(source))
            for begin in range(0, len(order) - self.batch + 1, self.batch):
                yield self._batch(source, target, order[begin : begin + self.batch].tolist())

    def validation(self) -> list[Batch]:
        source, target = self._split("valid")
        number = min(len(source), self._VALIDATED)
        chosen = [range(begin, min(begin + self.batch, number)) for begin in range(0, number, self.batch)]
        return [self._batch(source, target, list(each)) for each in chosen]

    def _split(self, name: str) -> tuple[IndexedReader, IndexedReader]:
        self.folder.verify(name)
        source, target = (IndexedReader(self.folder.indexed(name, side)) for side in ("source", "target"))
        if len(source) < self.batch:
            raise UserError(f"--data must hold at least {self.batch} papers in {name}, but holds {len(source)}.")
        return source, target

    def _batch(self, documents: IndexedReader, summaries: IndexedReader, chosen: list[int]) -> Batch:
        source, target = (torch.full((len(chosen), length), PAD) for length in (self.source, self.target))
        for reader, side in ((documents, source), (summaries, target)):
            for row, number in zip(side, chosen, strict=True):
                ids = reader[number][: len(row)]
                row[: len(ids)] = torch.tensor(ids)
        return Batch(source, target, target != PAD)


class Needles(Task):
    """Pairs of a key and a value in a text of fillers and of values without a key; the decoder names keys, one by one.

    Only the values count: a decoder that reads nothing loses log 16 = 2.77 nats, one that knows which values a document
    has about log 8 = 2.08, and one that reads nothing wrong 0. Positions say nothing and are left out.
    """

    fields: ClassVar = {
        "recurrence": "sru",
        "self_attention": "blockwise(block_size=32)",
        "encoder_positions": "none",
        "normalize_before": True,
    }
    source, target, updates, batch, rate = 128, 16, 1000, 32, 3e-3
    _KEYS, _FILLERS, _VALIDATED = 16, 64, 256
    vocabulary = FIRST + 2 * _KEYS + _FILLERS

    def training(self, seed: int) -> Iterator[Batch]:
        random = torch.Generator().manual_seed(seed)
        while True:
            yield self._batch(random)

    def validation(self) -> list[Batch]:
        random = torch.Generator().manual_seed(_HELD_BACK)
        return [self._batch(random) for _ in range(self._VALIDATED // self.batch)]

    def _batch(self, random: torch.Generator) -> Batch:
        pairs, values = self.target // 2, FIRST + self._KEYS
        source = torch.randint(values + self._KEYS, self.vocabulary, (self.batch, self.source), generator=random)
        keys = _drawn(self.batch, self._KEYS, pairs, random) + FIRST
        said, lone = torch.randint(values, values + self._KEYS, (2, self.batch, pairs), generator=random)
        # Pairs and lone values have places of their own.
        places = 2 * _drawn(self.batch, self.source // 2, 2 * pairs, random)
        source.scatter_(1, places[:, :pairs], keys).scatter_(1, places[:, :pairs] + 1, said)
        source.scatter_(1, places[:, pairs:], lone)
        target = torch.stack([keys, said], dim=-1).flatten(1)
        counted = torch.zeros_like(target, dtype=torch.bool)
        counted[:, 1::2] = True
        return Batch(source, target, counted)


def _drawn(rows: int, of: int, most: int, random: torch.Generator) -> Tensor:
    """Return different numbers below ``of``: (rows, most)."""
    return torch.rand(rows, of, generator=random).argsort(dim=1)[:, :most]


TASKS = ("papers", "needles")

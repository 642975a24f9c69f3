"""Rows that were trained for several seeds: their figures over documents and seeds, and how they compare."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lab.catalogue import PaperRow
from lab.results import Result, read_result
from pyramidions.errors import UserError
from pyramidions.scoring.pooled import pooled, pooled_difference
from pyramidions.scoring.scores import Estimate

#: Figures of a document, by where they are written.
LOSSES = ("own", "another")
ROUGE = ("rouge1", "rouge2", "rougeLsum")


@dataclass(frozen=True)
class SeededRow:
    """A row of the paper with the results of its seeds.

    Attributes:
        row: what the paper says.
        results: by seed, in the order of their numbers.
        losses: of the seeds whose loss was measured, by seed: document -> its figures, those in `LOSSES`.
        scores: of the seeds that were scored, likewise: those in `ROUGE`.
    """

    row: PaperRow
    results: Mapping[int, Result]
    losses: Mapping[int, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    scores: Mapping[int, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The row, as pages call it."""
        return self.row.row

    @property
    def scale(self) -> str:
        """The scale of its results."""
        return next(iter(self.results.values())).scale

    @cached_property
    def updates(self) -> int | None:
        """The updates of a training, with those of its start; None if seeds differ in them or are not trained."""
        found = {
            result.training.updates + (result.start.updates if result.start else 0) if result.training else None
            for result in self.results.values()
        }
        return found.pop() if len(found) == 1 else None

    @property
    def minutes(self) -> list[float]:
        """How long each training took, with its start."""
        return [result.training.seconds / 60 for result in self.results.values() if result.training]

    @property
    def memory(self) -> int | None:
        """The highest peak of all trainings, in bytes; None if none is known."""
        return max((result.memory.bytes for result in self.results.values() if result.memory), default=None)

    def values(self, figure: str, seeds: Collection[int] | None = None) -> np.ndarray | None:
        """Return a figure of each document, (seeds, documents); None if no seed has it.

        "cost" is what another document costs.

        Args:
            figure: one of `LOSSES`, of `ROUGE`, or "cost".
            seeds: those that count; None for all.

        Raises:
            UserError: seeds have figures of different documents.
        """
        of = self.scores if figure in ROUGE else self.losses
        if seeds is not None:
            of = {seed: found for seed, found in of.items() if seed in seeds}
        if not of:
            return None
        names = {tuple(documents) for documents in of.values()}
        if len(names) > 1:
            raise UserError(f"The seeds of {self.row.data}/{self.row.config} must have the same documents, but differ.")
        if figure == "cost":
            return np.array([[each["another"] - each["own"] for each in found.values()] for found in of.values()])
        return np.array([[each[figure] for each in found.values()] for found in of.values()])

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Mean and interval of every figure that was measured."""
        found = {figure: self.values(figure) for figure in (*LOSSES, "cost", *ROUGE)}
        return {figure: pooled(values) for figure, values in found.items() if values is not None}

    def loss_above(self, other: "SeededRow") -> Estimate | None:
        """Return how much higher the loss is than another row's, over the seeds that both have.

        None if they have no seed in common, or different documents.
        """
        ours, theirs = ({document for found in row.losses.values() for document in found} for row in (self, other))
        seeds = self.losses.keys() & other.losses.keys()
        one, two = self.values("own", seeds), other.values("own", seeds)
        return pooled_difference(one, two) if one is not None and two is not None and ours == theirs else None


def read_seeds(out: Path, catalogue: Sequence[PaperRow]) -> dict[tuple[str, str], SeededRow]:
    """Read OUT/<data>/<config>/seed-N/ of all rows that have such folders.

    Returns:
        Rows by corpus and config.

    Raises:
        UserError: a file is damaged, or names another row or seed.
    """
    rows = {}
    for row in catalogue:
        if not row.config or (row.data, row.config) in rows:
            continue
        results, losses, scores = {}, {}, {}
        for seed, folder in _folders(out / row.data / row.config):
            result = read_result(folder / "result.json", row.data, row.config)
            if result.seed != seed:
                raise UserError(f"{folder / 'result.json'}: `seed` must be {seed}, but is {result.seed}.")
            results[seed] = result
            if result.losses:
                losses[seed] = _figures(folder / "losses.json", LOSSES)
            if result.scores:
                scores[seed] = _figures(folder / "scores.json", ROUGE)
        if results:
            rows[row.data, row.config] = SeededRow(row, results, losses, scores)
    return rows


def _folders(folder: Path) -> list[tuple[int, Path]]:
    """Return the folders of seeds that have results, by number: 10 comes after 9."""
    found = [(re.fullmatch(r"seed-(\d+)", path.parent.name), path.parent) for path in folder.glob("seed-*/result.json")]
    return sorted((int(match[1]), path) for match, path in found if match)


def _figures(path: Path, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Read figures of each document from what `pyramidions loss` and `score` write; of a score, the first system."""
    try:
        documents: Any = json.loads(path.read_bytes())["documents"]
        found = {}
        for each in documents:
            numbers = each if names[0] in each else next(of for key, of in each.items() if key != "id")
            found[str(each["id"])] = {name: float(numbers[name]) for name in names}
    except FileNotFoundError:
        raise UserError(f"{path} must be there beside result.json, which tells of it, but is not.") from None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
        raise UserError(f"{path} must hold the {' and '.join(names)} of each document, but does not.") from None
    return found


def reference_of(seeded: SeededRow, rows: Sequence[SeededRow]) -> SeededRow | None:
    """Return the row that a row is compared with: blockwise, which reads as much and pools nothing.

    Of several, one of the same table, then one with as many layers, comes first; without any that reads as much, the
    longest. None if there is none on the same data, or the row is itself one.
    """
    data = next(iter(seeded.results.values())).data_hash
    others = [
        other
        for other in rows
        if other.row.architecture == "blockwise" and next(iter(other.results.values())).data_hash == data
    ]
    if seeded.row.architecture == "blockwise" or not others:
        return None

    def unlike(other: SeededRow) -> tuple[bool, bool, bool, int]:
        one, two = seeded.row, other.row
        reads = _read(two)
        return (reads != _read(one), one.table != two.table, one.encoder_layers != two.encoder_layers, -reads)

    return min(others, key=unlike)


def _read(row: PaperRow) -> int:
    """Return how many tokens the first layer reads, at the paper's size; 0 if the paper does not say."""
    first = re.match(r"\d+", row.encoder_lengths)
    return int(first[0]) if first else 0

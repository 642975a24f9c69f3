"""Rows that were trained for several seeds: their figures over documents and seeds, and how they compare."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import pandas as pd
from scipy.stats import ttest_rel

from lab.catalogue import PaperRow, lengths
from lab.results import Result, Run, read_documents
from lab.scale import SCALES
from lab.tables import with_interval
from pyramidions.base.errors import UserError
from pyramidions.scoring.scores import Estimate, pooled, pooled_difference

LOSSES = ("own", "another")
ROUGE = ("rouge1", "rouge2", "rougeLsum")
# What table 1 of Nawrot et al. 2023 compares with, and its level
_FIXED, _SURE = re.compile("vanilla|fixed"), 0.05
_FIGURES = ("loss", "another_document", "cost", *ROUGE)  # of a seed


@dataclass(frozen=True)
class SeededRow:
    """A row of the paper with the results of its seeds, in the order of their numbers.

    `figures` are by name ("own", "another", "cost", and those in `ROUGE`) and seed, each of all documents.
    """

    row: PaperRow
    results: Mapping[int, Result]
    figures: Mapping[str, Mapping[int, pd.Series]]

    @property
    def name(self) -> str:
        """The row, as tables and plots call it."""
        return f"{self.row.row}: {self.row.architecture}, {self.lengths}"

    @property
    def lengths(self) -> str:
        """What its layers consume, at the scale of its results."""
        return lengths(self.row, SCALES[next(iter(self.results.values())).scale].lengths)

    def values(self, figure: str, seeds: Collection[int]) -> pd.DataFrame:
        """Return a figure, (documents, seeds), of those seeds that have it."""
        values = pd.concat({seed: of for seed, of in self.figures[figure].items() if seed in seeds}, axis=1)
        if values.isna().any(axis=None):
            raise UserError(f"The seeds of {self.row.data}/{self.row.config} must have the same documents, but differ.")
        return values

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Mean and interval of every figure that was measured."""
        return {name: pooled(self.values(name, of).to_numpy().T) for name, of in self.figures.items() if of}

    def loss_above(self, other: "SeededRow") -> Estimate | None:
        """Return how much higher the loss is than another row's, over the seeds that both have.

        None if they have no seed in common, or different documents.
        """
        seeds = self.figures["own"].keys() & other.figures["own"].keys()
        if not seeds:
            return None
        one, two = self.values("own", seeds), other.values("own", seeds)
        return pooled_difference(one.to_numpy().T, two.to_numpy().T) if one.index.equals(two.index) else None


def read_seeds(runs: Sequence[Run]) -> list[SeededRow]:
    """Return the rows of those runs that have seeds, with the figures of their documents."""
    rows = []
    for _, members in groupby((run for run in runs if run.seed is not None), lambda run: id(run.row)):
        own = list(members)
        figures: dict[str, dict[int, pd.Series]] = {name: {} for name in (*LOSSES, "cost", *ROUGE)}
        for _, seed, folder, result in own:
            assert seed is not None
            losses = read_documents(folder / "losses.json", LOSSES) if result.losses else pd.DataFrame()
            scores = read_documents(folder / "scores.json", ROUGE) if result.scores else pd.DataFrame()
            if result.losses:
                losses["cost"] = losses.another - losses.own
            for name, column in (*losses.items(), *scores.items()):
                figures[str(name)][seed] = column
        rows.append(SeededRow(own[0].row, {run.seed or 0: run.result for run in own}, figures))
    return rows


def by_seed(rows: Sequence[SeededRow]) -> pd.DataFrame:
    """Return one line a row and seed; what was not run is missing."""
    lines = []
    for seeded in rows:
        for seed, result in seeded.results.items():
            losses, scores = result.losses, result.scores
            figures = {
                **({"loss": losses.own, "another_document": losses.another, "cost": losses.cost} if losses else {}),
                **({name: scores.figures[name] for name in ROUGE} if scores else {}),
            }
            lines.append(
                {
                    **{name: getattr(seeded.row, name) for name in ("table", "row", "config", "data")},
                    "scale": result.scale,
                    "seed": seed,
                    "updates": result.training and result.training.updates,
                    "minutes": result.training and result.training.seconds / 60,
                    **{f"memory_{name}": result.memory and getattr(result.memory, name) for name in ("bytes", "of")},
                    **{name: figures[name].value if name in figures else None for name in _FIGURES},
                    **(result.language.model_dump() if result.language else {}),
                }
            )
    return pd.DataFrame(lines)


def _copied(results: Iterable[Result]) -> str:
    """Return the share of the summaries that a row with a pointer copies, the mean of its seeds."""
    shares = [result.losses.copied.value for result in results if result.losses and result.losses.copied]
    return f"{sum(shares) / len(shares):.1%}" if shares else ""


def compared(rows: Sequence[SeededRow]) -> pd.DataFrame:
    """Return one line a row, as text: its figures with intervals, and its loss over that of a blockwise row."""
    lines = []
    for seeded, (_, seeds) in zip(rows, by_seed(rows).groupby(["config", "data"], sort=False), strict=True):
        reference = reference_of(seeded, rows)
        row, above = seeded.row, seeded.loss_above(reference) if reference else None
        figures = {name: with_interval(*of, 2 if name in ROUGE else 3) for name, of in seeded.estimates.items()}
        lines.append(
            {
                "table": row.table,
                "row": row.row,
                "architecture": row.architecture,
                "encoder → decoder": seeded.lengths,
                "seeds": ", ".join(map(str, seeds.seed)),
                "updates": ", ".join(f"{updates:,.0f}" for updates in seeds.updates.dropna().unique()),
                "loss": figures.get("own", ""),
                "loss over": f"{with_interval(*above, 3)} {reference.row.row}" if above and reference else "",
                "another costs": figures.get("cost", ""),
                "copied": _copied(seeded.results.values()),
                **{head: figures.get(name, "") for head, name in zip(("R-1", "R-2", "R-L"), ROUGE, strict=True)},
                "minutes": "{:.1f} to {:.1f}".format(*seeds.minutes.agg(["min", "max"])),
                "GiB": with_interval(seeds.memory_bytes.max() / 2**30, math.nan, math.nan, 2),
            }
        )
    return pd.DataFrame(lines)


def bits_per_character(rows: Sequence[SeededRow]) -> pd.DataFrame:
    """Return one line a language model, as text: its bits per character, and how sure it is that they are fewer.

    Each is compared with the models of its depth that have no segments or fixed ones, by a paired t-test over the seeds
    that both have (Nawrot et al. 2023, table 1).
    """
    found = {id(row): _bits(row) for row in rows}
    lines = []
    for row in rows:
        own = found[id(row)]
        others = [each for each in rows if each is not row and _FIXED.match(each.row.row)]
        tests = {
            each.row.architecture: _paired(own, found[id(each)])
            for each in others
            if _depth(each.row) == _depth(row.row)
        }
        sure = (
            bool(tests) and not _FIXED.match(row.row.row) and all(p is not None and p < _SURE for p in tests.values())
        )
        factors = [result.language.shortening_factor for result in row.results.values() if result.language]
        known = [factor for factor in factors if factor is not None]
        lines.append(
            {
                "row": row.row.row,
                "architecture": row.row.architecture,
                "seeds": ", ".join(map(str, own.index)),
                "bits per character": "" if own.empty else f"{own.mean():.3f}",
                "by seed": ", ".join(f"{value:.3f}" for value in own),
                "characters a segment": f"{sum(known) / len(known):.1f}" if known else "",
                **{f"fewer than {name}, p": "" if p is None else f"{p:.3f}" for name, p in tests.items()},
                "fewer than all": "*" if sure else "",
            }
        )
    return pd.DataFrame(lines)


def _depth(row: PaperRow) -> str:
    """Return the layers that its config names, "" for those of the base: tables share runs, under the name of one."""
    named = re.search(r"_(\d+)_layers$", row.config)
    return named[1] if named else ""


def _bits(row: SeededRow) -> "pd.Series[float]":
    return pd.Series({seed: of.language.bpc for seed, of in row.results.items() if of.language}, dtype=float)


def _paired(own: "pd.Series[float]", other: "pd.Series[float]") -> float | None:
    """Return the p-value of a mean below another's; None if it is not below, or with fewer than two common seeds."""
    seeds = own.index.intersection(other.index)
    if len(seeds) < 2 or own[seeds].mean() >= other[seeds].mean():
        return None
    return float(ttest_rel(own[seeds], other[seeds]).pvalue)


def differences(rows: Sequence[SeededRow]) -> pd.DataFrame:
    """Return how much higher the loss of each row is than that of each better one, as text."""
    known = sorted((row for row in rows if "own" in row.estimates), key=lambda row: row.estimates["own"].mean)
    cells = {
        f"{other.row.row} {other.row.architecture}": [
            with_interval(*above, 3) if place > better and (above := row.loss_above(other)) else ""
            for place, row in enumerate(known)
        ]
        for better, other in enumerate(known[:-1])
    }
    return pd.DataFrame({"loss above": [f"{row.row.row} {row.row.architecture}" for row in known], **cells})[1:]


def reference_of(seeded: SeededRow, rows: Sequence[SeededRow]) -> SeededRow | None:
    """Return the row that a row is compared with: blockwise, which reads as much and pools nothing.

    Of several, one of the same table, then one with as many layers, comes first; without any that reads as much, the
    longest. None if there is none on the same data, or the row is itself one.
    """
    hashes = {id(row): next(iter(row.results.values())).data_hash for row in (seeded, *rows)}
    others = [row for row in rows if row.row.architecture == "blockwise" and hashes[id(row)] == hashes[id(seeded)]]
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

"""`python -m lab correlate`: how well figures of summaries agree with people's judgements of them."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata, t

from lab.tables import markdown, with_interval
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.cli.options import PATH
from pyramidions.files.bounded import read_regular
from pyramidions.scoring import FIGURES
from pyramidions.scoring.scores import SAMPLES, SEED, Estimate

#: With fewer, Williams' test has no degree of freedom.
FEWEST = 4


class DocumentScores(NamedTuple):
    """The figures of a system, (documents, figures), by ids and names; and what determines them."""

    system: str
    figures: pd.DataFrame
    signature: str


@click.command(short_help="Say how well metrics agree with people's judgements.")
@click.argument("scores", type=PATH)
@click.argument("judgements", type=PATH)
@click.option("--system", metavar="NAME", help="Whose summaries were judged, as SCORES names it.  [default: the first]")
def correlate(scores: Path, judgements: Path, system: str | None) -> None:
    """Correlate the figures of documents with people's judgements: Pearson, Spearman and Kendall.

    SCORES is what `pyramidions score --json` wrote. JUDGEMENTS has an id and any number of ratings for each document: a
    .jsonl file such as {"id": "a", "informativeness": 4, "errors": 1}, or a .csv file with these names in its first
    line. Several judgements of a document are averaged. Documents that nobody judged are left out.

    Brackets hold 95% bootstrap intervals over documents. "p" is that of Williams' test, whether Pearson's correlation
    differs from the strongest one with the same rating.

    \b
    Example:
      python -m lab correlate scores.json judgements.csv
    """
    found, ratings = read_scores(scores, system), read_judgements(judgements)
    if missing := [name for name in ratings.index if name not in found.figures.index]:
        raise UserError(
            f"{judgements} must judge documents of {scores}, but {len(missing)} of {len(ratings)} have no scores there "
            f"({missing[0]!r} first)."
        )
    if len(ratings) < FEWEST:
        raise UserError(f"{judgements} must judge at least {FEWEST} documents, but judges {len(ratings)}.")
    for name, values in ratings.items():
        if np.ptp(values) == 0:
            raise UserError(f"A rating must differ between documents, but {name} is {values.iloc[0]:g} for all.")
    click.echo(markdown(correlations(found.figures.loc[ratings.index], ratings)))
    click.echo(
        f"\nn = {len(ratings)} documents, summaries of {found.system}. Brackets hold 95% bootstrap intervals. p: "
        "Williams' test of Pearson's correlation against the strongest one, two-sided. A figure that is the same for "
        f"all documents has no correlation.\n\n{found.signature}"
    )


def read_scores(path: Path, system: str | None = None) -> DocumentScores:
    """Read the figures of a system, the first where it is None, from what `pyramidions score --json` wrote."""
    try:
        found = parse_json(read_regular(path))
        documents = {str(each["id"]): each for each in found["documents"]}
        figures = {
            name: pd.DataFrame([each[name] for each in documents.values()], index=list(documents), dtype=float)
            for name in found["systems"]
        }
        first, signature = next(iter(figures)), str(found["signature"])
    except FileNotFoundError:
        raise UserError(f"The scores {path} do not exist.") from None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, IsADirectoryError):
        raise UserError(f"{path} must be as written by `pyramidions score --json`.") from None
    name = first if system is None else system
    if name not in figures:
        raise UserError(f"--system must be one of {', '.join(figures)}, but is {name!r}.")
    return DocumentScores(name, figures[name], signature)


def read_judgements(path: Path) -> pd.DataFrame:
    """Read ratings, (documents, ratings), by ids and names; several judgements of a document are averaged."""
    if (ending := path.suffix.lower()) not in (".jsonl", ".csv"):
        raise UserError(f"Judgements must be a .jsonl or .csv file, but are {path}.")
    if not path.is_file():
        raise UserError(f"The file {path} does not exist.")
    try:
        # Spreadsheets write a mark in front.
        table = (
            pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
            if ending == ".csv"
            else pd.read_json(path, lines=True, dtype=False)
        )
        ratings = table.drop(columns="id").apply(pd.to_numeric, errors="coerce").astype(float)
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} must hold judgements, each with an id and numbers, but does not.") from None
    wrong = ~np.isfinite(ratings).all(axis=1).to_numpy()
    if wrong.any() or ratings.columns.empty:
        raise UserError(
            f"{path}, judgement {wrong.argmax() + 1}: each must have an id and numbers, the same ratings as the first."
        )
    return ratings.groupby(table.id.astype(str), sort=False).mean()


def correlations(figures: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return one line a rating and figure, as text; both are (documents, ...), and no rating is the same for all."""
    n = len(ratings)
    draws = np.random.default_rng(SEED).integers(0, n, (SAMPLES, n))
    lines = []
    for rating, judged in ratings.items():
        pearson = figures.loc[:, figures.nunique() > 1].corrwith(judged)
        best = pearson.abs().idxmax() if len(pearson) else None
        for figure, scored in figures.items():
            cells = {"p": ""}
            if figure in pearson:
                cells = {
                    head: with_interval(*_estimate(of, scored.to_numpy(), judged.to_numpy(), draws), 2)
                    for head, of in _CORRELATIONS.items()
                }
                p = williams_p(pearson[best], pearson[figure], scored.corr(figures[best]), n)
                cells["p"] = "strongest" if figure == best else f"{p:.3f}" if p >= 0.001 else "< 0.001"
            label = FIGURES[figure].label if figure in FIGURES else figure
            lines.append({"rating": rating, "figure": label, **cells})
    return pd.DataFrame(lines)


def _pearson(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the correlation of each row: (rows, documents) -> (rows,)."""
    x, y = (values - values.mean(axis=1, keepdims=True) for values in (x, y))
    found: np.ndarray = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return found


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _pearson(rankdata(x, axis=1), rankdata(y, axis=1))


def _kendall(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([kendalltau(*pair, method="asymptotic").statistic for pair in zip(x, y, strict=True)])


_CORRELATIONS = {"Pearson": _pearson, "Spearman": _spearman, "Kendall": _kendall}


def _estimate(
    of: Callable[[np.ndarray, np.ndarray], np.ndarray], scored: np.ndarray, judged: np.ndarray, draws: np.ndarray
) -> Estimate:
    """Return a correlation and its 95% percentile bootstrap interval; it leaves out draws of equal values."""
    x, y = scored[draws], judged[draws]
    differ = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    low, high = np.percentile(of(x[differ], y[differ]), [2.5, 97.5])
    return Estimate(float(of(scored[None], judged[None])[0]), float(low), float(high))


def williams_p(one: float, other: float, between: float, n: int) -> float:
    """Return the two-sided p-value of Williams' test (Williams, 1959) that two figures correlate equally with a rating.

    As Graham and Baldwin (2014) have it, for Pearson's correlations over n documents, at least 4; `between` is that of
    the two figures. Correlations are compared by strength: the test turns each figure around that falls with the
    rating.
    """
    between *= math.copysign(1, one) * math.copysign(1, other)
    one, other = abs(one), abs(other)
    # Figures that say the same differ in rounding only.
    if one == other or 1 - between < 1e-12:
        return 1.0
    determinant = max(0.0, 1 - one**2 - other**2 - between**2 + 2 * one * other * between)
    spread = 2 * determinant * (n - 1) / (n - 3) + (one + other) ** 2 / 4 * (1 - between) ** 3
    return float(2 * t.sf(abs(one - other) * math.sqrt((n - 1) * (1 + between) / spread), n - 3))

"""How figures correlate with judgements, and which correlations differ."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from invoking import run_lab, sentence_of
from scipy import stats

from lab.correlate import correlations, read_judgements, williams_p
from pyramidions.cli.score_report import write_json
from pyramidions.scoring import FIGURES
from pyramidions.scoring.scores import SEED, Scores

NAMES = ["rouge1", "meteor", "bleurt"]
RATINGS = [3, 4, 2, 5, 1, 4, 3, 2]
ROUGE = [31.0, 44.0, 25.0, 47.0, 20.0, 40.0, 39.0, 22.0]
METEOR = [20.0, 15.0, 20.0, 25.0, 30.0, 15.0, 10.0, 20.0]
IDS = [f"d{number}" for number in range(len(RATINGS))]
pytestmark = pytest.mark.nightly
BRACKETS = str.maketrans("", "", "[],")
DRAWS = 40


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.correlate.SAMPLES", DRAWS)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """What `pyramidions score` writes of two systems; BLEURT is the same for all documents."""
    path, values = tmp_path / "scores.json", np.stack([ROUGE, METEOR, [-0.5] * len(ROUGE)], axis=1)
    figures = {name: FIGURES[name] for name in NAMES}
    with path.open("wb") as file:
        of = {"ours.jsonl": values, "lead": values[::-1]}
        write_json(file, {name: Scores(figures, each, ["rouge 1"]) for name, each in of.items()}, IDS)
    return path


def judged(folder: Path, ratings: list[Any] = RATINGS, ids: list[str] = IDS) -> Path:
    path = folder / "judgements.jsonl"
    records = [{"id": name, "informativeness": rating} for name, rating in zip(ids, ratings, strict=False)]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def cells(figures: dict[str, list[float]], ratings: list[int]) -> pd.DataFrame:
    found = correlations(pd.DataFrame(figures).astype(float), pd.DataFrame({"r": ratings}).astype(float))
    return found.set_index("figure")


def test_correlations_are_those_of_scipy_with_intervals_over_documents() -> None:
    draws = np.random.default_rng(SEED).integers(0, 8, (DRAWS, 8))
    found = cells({"a": ROUGE, "b": METEOR}, RATINGS)
    for figure, values in (("a", ROUGE), ("b", METEOR)):
        for head, of in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr), ("Kendall", stats.kendalltau)):
            x, y = np.array(values), np.array(RATINGS)
            samples = [of(x[draw], y[draw]).statistic for draw in draws]
            shown = [float(number) for number in found.loc[figure, head].replace("−", "-").translate(BRACKETS).split()]
            expected = [of(x, y).statistic, *np.percentile(samples, [2.5, 97.5])]
            np.testing.assert_allclose(shown, expected, atol=0.00501)


def test_williams_test_has_the_p_value_of_published_and_worked_examples() -> None:
    # The example of `r.test` in R's package psych, after Steiger (1980): t = -0.89, p = 0.37.
    assert williams_p(0.4, 0.5, 0.1, 103) == pytest.approx(0.3749, abs=1e-4)
    # By hand: K = 1 - 0.64 - 0.04 = 0.32, t = 0.6 sqrt(3 / (6 * 0.32 + 1 / 4)) = 0.7055; one degree of freedom.
    assert williams_p(0.8, 0.2, 0.0, 4) == pytest.approx(1 - 2 / math.pi * math.atan(0.70548), abs=1e-5)
    # It knows neither order nor direction.
    assert williams_p(0.5, 0.4, 0.1, 103) == williams_p(0.4, 0.5, 0.1, 103)
    # A figure that falls with the rating is turned around, and with it how it goes along with the other.
    assert williams_p(-0.4, 0.5, -0.1, 103) == williams_p(-0.4, -0.5, 0.1, 103) == williams_p(0.4, 0.5, 0.1, 103)
    assert williams_p(0.5, 0.5, 1.0, 10) == williams_p(0.5, 0.5 + 1e-16, 1 - 1e-16, 10) == 1


def test_the_strongest_figure_of_a_rating_is_compared_with_the_others() -> None:
    found = cells({"a": ROUGE, "b": METEOR, "minus a": [-value for value in ROUGE]}, RATINGS)
    frame = pd.DataFrame({"a": ROUGE, "b": METEOR, "r": RATINGS}).corr()
    p = williams_p(frame.r["a"], frame.r["b"], frame.a["b"], 8)
    assert found.p.tolist() == ["strongest", f"{p:.3f}", "1.000"]


def test_the_command_prints_a_table_and_says_how_many_documents(scores: Path, tmp_path: Path) -> None:
    result = run_lab("correlate", scores, judged(tmp_path))
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert head == ["rating", "figure", "Pearson", "Spearman", "Kendall", "p"]
    assert [row[:2] for row in rows] == [["informativeness", FIGURES[name].label] for name in NAMES]
    assert rows[0][2].startswith(f"{stats.pearsonr(ROUGE, RATINGS).statistic:.2f} [") and rows[0][5] == "strongest"
    # What is the same for all documents has no correlation.
    assert rows[2][2:] == ["", "", "", ""]
    assert "ours.jsonl" in result.stdout and "bootstrap" in result.stdout
    # Of the other system, and of documents that were judged.
    shown = run_lab("correlate", scores, judged(tmp_path, RATINGS[:5]), "--system", "lead").stdout
    other = f"| {stats.pearsonr(ROUGE[::-1][:5], RATINGS[:5]).statistic:.2f} [".replace("-", "−")
    assert other in shown


@pytest.mark.parametrize(
    ("ratings", "ids", "told"),
    [
        (RATINGS, ["x", *IDS[1:]], "1 of 8 have no scores"),
        (RATINGS[:3], IDS, "at least 4"),
        ([3] * 8, IDS, "3 for all"),
    ],
)
def test_bad_judgements_are_one_sentence(
    ratings: list[Any], ids: list[str], told: str, scores: Path, tmp_path: Path
) -> None:
    assert told in sentence_of(run_lab("correlate", scores, judged(tmp_path, ratings, ids)))


def test_several_judgements_of_a_document_are_averaged(tmp_path: Path) -> None:
    (table := tmp_path / "judgements.csv").write_text("\ufeffid,errors\na,1\nb,3\n\na,2\n", encoding="utf-8")
    assert read_judgements(table).errors.to_dict() == {"a": 1.5, "b": 3}

"""Curves of a training, as fairseq's logs in JSON tell them, and the picture of several."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.runs.curves import draw_training, read_curves, read_record, run_names

STAMP = "2026-11-20 08:57:46 | INFO | train_inner | "
Points = list[tuple[int, float]]


def inner(*updates: int, **values: object) -> str:
    """Lines within an epoch; numbers are text, as fairseq writes them."""
    numbers = {"loss": 7.0, "nll_loss": 9, "sharpness_2": 0.9, "ppl": 8, **values}
    return "".join(
        f"{STAMP}{json.dumps({'epoch': 1, 'update': 0.2, **_texts(numbers), 'num_updates': str(n)})}\n" for n in updates
    )


def ends(split: str, update: int, **values: object) -> str:
    """A line at the end of an epoch, whose names begin with the split."""
    return (
        json.dumps({"epoch": 1, **{f"{split}_{k}": v for k, v in _texts({**values, "num_updates": update}).items()}})
        + "\n"
    )


def _texts(numbers: dict[str, object]) -> dict[str, str]:
    return {name: str(number) for name, number in numbers.items()}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., dict[tuple[str, str], Points]]:
    """Writes a log and gives its curves by split and measure."""

    def written(text: str | bytes) -> dict[tuple[str, str], Points]:
        (tmp_path / "train.log").write_bytes(text.encode() if isinstance(text, str) else text)
        points = read_curves(tmp_path).groupby(["split", "measure"], sort=False)
        return {key: [*zip(curve.updates, curve.value, strict=True)] for key, curve in points}

    return written


def test_a_log_gives_the_training_curve_and_validation(read):
    curves = read(inner(5, loss=11.5) + inner(10, loss=11.25) + ends("valid", 10, loss=10.5, rouge2=9.25))
    assert curves == {
        ("train", "loss"): [(5, 11.5), (10, 11.25)],
        ("train", "sharpness_2"): [(5, 0.9), (10, 0.9)],
        ("valid", "loss"): [(10, 10.5)],
        ("valid", "rouge2"): [(10, 9.25)],
    }


def test_the_training_curve_is_that_of_intervals_or_of_epochs_whichever_has_more_points(read):
    epochs = "".join(ends("train", n, loss=loss, wall=5) for n, loss in ((40, 9.0), (80, 8.0)))
    assert read(epochs)["train", "loss"] == [(40, 9.0), (80, 8.0)]
    assert read(epochs + inner(100))["train", "loss"] == [(40, 9.0), (80, 8.0)]
    assert read(inner(20, 40) + ends("train", 40, loss=9.0, wall=5))["train", "loss"] == [(20, 7.0), (40, 7.0)]


def test_a_validation_on_the_training_documents_is_no_training_curve(read):
    curves = read(ends("train", 10, loss=5) + ends("train", 10, loss=9.0, wall=3))
    assert curves["train", "loss"] == [(10, 9.0)] and curves["train (validation)", "loss"] == [(10, 5.0)]


def test_nll_loss_takes_the_place_of_a_loss_that_is_not_there(read):
    assert read(ends("valid", 5, nll_loss=3)) == {("valid", "nll_loss"): [(5, 3.0)]}


def test_a_million_updates_are_printed_rounded(read):
    assert read(ends("valid", 0, loss=2).replace('"0"', '"1.23457e+06"'))["valid", "loss"] == [(1234570, 2.0)]


def test_after_a_resume_what_was_lost_is_gone_and_what_was_repeated_is_the_later(read):
    first = inner(5, 10) + ends("valid", 10, loss=6) + inner(15, 20) + ends("valid", 20, loss=5)
    curves = read(first + inner(15, loss=3.0))
    assert curves["train", "loss"] == [(5, 7.0), (10, 7.0), (15, 3.0)] and curves["valid", "loss"] == [(10, 6.0)]
    assert read(inner(5, 10) + inner(10, loss=3.0))["train", "loss"] == [(5, 7.0), (10, 3.0)]


@for_each(
    "torn", ['{"epoch": 1, "update": 0.2, "loss": "7.6", "num_updates": "1', '{"epoch": ' + "[" * 5000, "\xff num_upd"]
)
def test_a_line_torn_by_a_kill_counts_for_nothing(read, torn):
    assert read(inner(5) + torn + "\n" + inner(10))["train", "loss"] == [(5, 7.0), (10, 7.0)]


lines = st.sampled_from(
    [
        *inner(5).encode().splitlines(),
        b'{"epoch": 1, "update": 0.5, "loss": null, "rouge1": [1], "num_updates": 7}',
        b'{"epoch": 1, "valid_loss": 1' + b"0" * 400 + b', "valid_num_updates": 1e400}',
        b'{"epoch": 1, "loss": ' + b"9" * 5000 + b', "num_updates": 3}',
    ]
)
damaged = st.builds(
    lambda line, start, end, more: line[:start] + more + line[end:],
    *(lines, st.integers(0, 150), st.integers(0, 150), st.binary(max_size=8)),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.one_of(lines, damaged, st.binary()))
def test_no_line_raises(line: bytes) -> None:
    record = read_record(line.decode(errors="replace"))
    assert record is None or (record.values and record.update >= 0)


def test_the_log_of_a_folder_is_its_train_log_or_the_only_one_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "score.log").write_text("nothing\n")
    for name, updates in (("deep/hydra_train.log", 5), ("other.log", 7), ("train.log", 9)):
        (tmp_path / name).write_text(inner(updates))
        if name == "other.log":
            with pytest.raises(UserError, match="holds 2: choose among .*hydra_train.log, .*other.log.$"):
                read_curves(tmp_path)
        else:
            assert read_curves(tmp_path).updates.unique() == [updates]


@for_each(
    ("paths", "names"),
    [
        (["runs/a/train.log"], ["a"]),
        (["arxiv/t3/deep/train.log", "pubmed/t3/deep"], ["arxiv/t3/deep", "pubmed/t3/deep"]),
        (["runs/a/train.log", "runs/a.log"], ["runs/a/train.log", "runs/a.log"]),
        (["a\nb\udcff"], ["a b�"]),
    ],
)
def test_a_name_is_the_path_below_the_folder_that_runs_share(paths: list[str], names: list[str]) -> None:
    assert run_names([Path(path) for path in paths]) == names


POINTS = pd.DataFrame(
    [
        *(("a", "train", "loss", n, value) for n, value in ((5, 9.0), (10, 8.0), (15, 2.5))),
        *(
            ("a", "valid", "loss", 15, 3.0),
            ("$b$ <i>", "train", "sharpness_2", 5, 0.5),
            ("a", "valid", "rouge1", 15, 20.0),
        ),
    ],
    columns=["run", "split", "measure", "updates", "value"],
)


def test_there_is_a_panel_for_each_kind_of_measure_and_the_same_curves_give_the_same_bytes() -> None:
    image = draw_training(POINTS, "svg")
    assert image == draw_training(POINTS, "svg") and draw_training(POINTS, "png").startswith(b"\x89PNG")
    text = image.decode()
    assert all(f"<!-- {label} -->" in text for label in ("loss", "ROUGE", "sharpness", "updates"))
    assert "$b$" in text.replace("\\", "")
    assert "<!-- ROUGE -->" not in draw_training(POINTS[POINTS.measure == "loss"], "svg").decode()


def test_numbers_that_are_not_finite_are_read_as_they_are(read):
    assert math.isnan(read(inner(5, loss="nan"))["train", "loss"][0][1])

"""Files of results: what is read of them, and what damaged ones say."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from result_files import CATALOGUE, DELETED, POOLED, VANILLA, changed, write

from lab.catalogue import PaperRow, read_catalogue
from lab.results import Best, Interval, Result, read_object, read_runs
from pyramidions.base.errors import UserError

pytestmark = pytest.mark.nightly


@pytest.fixture
def catalogue(tmp_path: Path) -> list[PaperRow]:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "paper.csv").write_text(CATALOGUE)
    return read_catalogue(tmp_path / "configs")


def test_a_result_is_read_whole_and_a_speed_up_is_the_inverse_of_the_ratio_of_seconds(tmp_path: Path) -> None:
    result: Any = read_object(write(tmp_path), Result)
    assert result.scores.rouge2 == Interval(16.6, 16.4, 16.8)
    best = Best(metric="rouge2", value=16.0)
    assert dict(result.training) == {"seconds": 3600.0, "updates": 1000, "epochs": 3, "best": best}
    assert dict(result.hardware) == {"device": "NVIDIA H200", "threads": 8, "gpus": 8, "nodes": 1}
    assert result.times.reference == VANILLA
    assert {name: phase.speed_up for name, phase in result.times.phases.items()} == {
        "train_s": Interval(4.0, 3.2, 5.0),
        "infer256_s": Interval(2.0, 1.6, 2.5),
        "infer512_s": Interval(2.5, 2.0, 3.125),
    }


def test_decoding_may_be_shorter_or_not_timed_and_parts_may_be_missing(tmp_path: Path) -> None:
    short, long = (changed({})["times"][name] for name in ("decode_256", "decode_512"))
    times = {"times.decode_tokens": [16, 32], "times.decode_16": short, "times.decode_32": long}
    found: Any = read_object(write(tmp_path / "tiny", changes=times), Result)
    phases = [found.times.phases[phase] for phase in ("infer256_s", "infer512_s")]
    assert [phase.ratio_to_reference.value for phase in phases] == [0.5, 0.4]
    for number, times in enumerate(
        ({"times.decode_tokens": []}, {"times.decode_256": DELETED, "times.decode_512": DELETED})
    ):
        found = read_object(write(tmp_path / str(number), changes=times), Result)
        assert list(found.times.phases) == ["train_s"]
    parts = ("training", "generation", "scores", "times", "data_hash")
    found = read_object(write(tmp_path, changes=dict.fromkeys(parts)), Result)
    assert [getattr(found, part) for part in parts] == [None] * 5


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"seed": DELETED}, " lacks `seed`."),
        ({"hardware": "a GPU"}, ": `hardware` must be an object, but is 'a GPU'."),
        ({"scores.rouge1.low": float("nan")}, ": `scores.rouge1.low` must be a finite number, but is nan."),
        ({"times.decode_tokens": [1, 2, 3]}, ": `times.decode_tokens` must have at most 2 items"),
        ({"times.train_step.ratio_to_reference.low": 0}, ": `times.train_step.ratio_to_reference` must be above 0"),
        ({"training.seconds": 10**400}, ": `training.seconds` must be a finite number, but is "),
        (b"{", " must hold one JSON object, but does not."),
    ],
)
def test_a_damaged_result_is_one_sentence(tmp_path: Path, changes: Any, told: str) -> None:
    path = write(tmp_path, changes=None if isinstance(changes, bytes) else changes)
    if isinstance(changes, bytes):
        path.write_bytes(changes)
    with pytest.raises(UserError) as refused:
        read_object(path, Result)
    assert str(refused.value).startswith(f"{path}{told}")


def test_runs_are_found_where_rows_have_them_and_nowhere_else(tmp_path: Path, catalogue: list[PaperRow]) -> None:
    write(tmp_path, "table4/mean")
    path = write(tmp_path)
    found = [(run.row.config, run.seed) for run in read_runs(tmp_path, catalogue)]
    assert found == [(POOLED, None), ("table4/mean", None)]
    for changes, argument in (({"config": VANILLA}, "config"), ({"data": "pubmed"}, "data")):
        path.write_text(json.dumps(changed(changes)))
        with refused(f"`{argument}`"):
            read_runs(tmp_path, catalogue)
    path.unlink()
    write(tmp_path, "table2/mine")
    with refused("paper.csv"):
        read_runs(tmp_path, catalogue)

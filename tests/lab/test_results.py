import json
import re

import pytest
from result_files import CATALOGUE, DELETED, POOLED, VANILLA, changed, write, write_topk

from lab.catalogue import read_catalogue
from lab.results import Best, Interval, Result, read_object, read_runs, read_topk
from pyramidions.base.errors import UserError


@pytest.fixture
def catalogue(tmp_path):
    configs = tmp_path / "configs"
    configs.mkdir()
    (configs / "paper.csv").write_text(CATALOGUE)
    return read_catalogue(configs)


def test_a_result_is_read_whole(tmp_path):
    result = read_object(write(tmp_path), Result)
    assert result.scores.rouge2 == Interval(16.6, 16.4, 16.8)
    best = Best(metric="rouge2", value=16.0)
    assert dict(result.training) == {"seconds": 3600.0, "updates": 1000, "epochs": 3, "best": best}
    assert result.generation.seconds == 60.0
    assert dict(result.hardware) == {"device": "NVIDIA H200", "threads": 8, "gpus": 8, "nodes": 1}
    assert result.times.reference == VANILLA
    assert list(result.times.phases) == ["train_s", "infer256_s", "infer512_s"]


def test_a_speed_up_is_the_inverse_of_the_ratio_of_seconds(tmp_path):
    result = read_object(write(tmp_path), Result)
    assert result.times.phases["train_s"].speed_up == Interval(4.0, 3.2, 5.0)
    assert result.times.phases["infer512_s"].speed_up == Interval(2.5, 2.0, 3.125)


def test_the_shorter_and_the_longer_decoding_are_told_apart_at_tiny_scale(tmp_path):
    short, long = (changed({})["times"][name] for name in ("decode_256", "decode_512"))
    times = {"times.decode_tokens": [16, 32], "times.decode_16": short, "times.decode_32": long}
    phases = read_object(write(tmp_path, changes=times), Result).times.phases
    assert [phases[phase].ratio_to_reference.value for phase in ("infer256_s", "infer512_s")] == [0.5, 0.4]


def test_parts_that_were_not_run_are_none(tmp_path):
    parts = ("training", "generation", "scores", "times", "data_hash")
    result = read_object(write(tmp_path, changes=dict.fromkeys(parts)), Result)
    assert (result.training, result.generation, result.scores) == (None,) * 3
    assert (result.times, result.data_hash) == (None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"times.decode_tokens": []},
        {"times.decode_256": DELETED, "times.decode_512": DELETED},
    ],
)
def test_training_alone_may_be_timed(tmp_path, changes):
    times = read_object(write(tmp_path, changes=changes), Result).times
    assert list(times.phases) == ["train_s"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seed": DELETED}, "PATH lacks `seed`."),
        ({"scale": "huge"}, "PATH: `scale` must be 'paper', 'small' or 'tiny', but is 'huge'."),
        ({"seed": True}, "PATH: `seed` must be a valid integer, but is True."),
        ({"hardware": "a GPU"}, "PATH: `hardware` must be an object, but is 'a GPU'."),
        ({"hardware.threads": 0}, "PATH: `hardware.threads` must be greater than or equal to 1, but is 0."),
        ({"versions.torch": 2}, "PATH: `versions.torch` must be a valid string, but is 2."),
        ({"scores.rouge1.low": float("nan")}, "PATH: `scores.rouge1.low` must be a finite number, but is nan."),
        ({"scores.rougeL": None}, "PATH: `scores.rougeL` must be an object, but is None."),
        ({"times.decode_tokens": [1, 2, 3]}, "PATH: `times.decode_tokens` must have at most 2 items"),
        (
            {"times.train_step.ratio_to_reference.low": 0},
            "PATH: `times.train_step.ratio_to_reference` must be above 0",
        ),
        ({"times.decode_256.mean": "?"}, "PATH: `times.decode_256.mean` must be a valid number, but is '?'."),
        ({"training.seconds": "long"}, "PATH: `training.seconds` must be a valid number, but is 'long'."),
        ({"training.seconds": 10**400}, "PATH: `training.seconds` must be a finite number, but is "),
    ],
)
def test_a_damaged_value_is_one_sentence(tmp_path, changes, sentence):
    path = write(tmp_path, changes=changes)
    with pytest.raises(UserError, match=f"^{re.escape(sentence.replace('PATH', str(path)))}"):
        read_object(path, Result)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_one_sentence(tmp_path, content):
    path = write(tmp_path)
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"^{re.escape(str(path))} must hold one JSON object, but does not.$"):
        read_object(path, Result)


def test_runs_are_found_where_rows_have_them(tmp_path, catalogue):
    write(tmp_path, "table4/mean")
    write(tmp_path)
    runs = read_runs(tmp_path, catalogue)
    assert [(run.row.config, run.seed) for run in runs] == [(POOLED, None), ("table4/mean", None)]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"config": VANILLA}, f"`config` must be {POOLED}, but is '{VANILLA}'."),
        ({"data": "pubmed"}, "`data` must be arxiv, but is 'pubmed'."),
    ],
)
def test_a_result_in_the_folder_of_another_is_an_error(tmp_path, catalogue, changes, sentence):
    path = tmp_path / "arxiv" / POOLED / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(changed(changes)))
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}: {sentence}')}$"):
        read_runs(tmp_path, catalogue)


def test_a_result_of_no_row_is_an_error(tmp_path, catalogue):
    path = write(tmp_path, "table2/mine")
    with pytest.raises(UserError) as error:
        read_runs(tmp_path, catalogue)
    assert (
        str(error.value) == f"{path} must be the result of a row of paper.csv, but no row has this config and corpus."
    )


def test_the_benchmark_of_top_k_is_read(tmp_path):
    assert read_topk(tmp_path) is None
    write_topk(tmp_path)
    assert dict(read_topk(tmp_path)) == {"machine": "x86_64, 2 threads", "commit": "38ff4f9", "summary": "sorting pays"}


def test_a_benchmark_must_say_where_it_comes_from(tmp_path):
    write_topk(tmp_path)
    about = tmp_path / "topk" / "topk.json"
    about.write_text(json.dumps({"commit": "1"}))
    with pytest.raises(UserError, match=r"topk.json lacks `machine`\."):
        read_topk(tmp_path)
    about.unlink()
    with pytest.raises(UserError, match=r"topk.json must be there beside topk.png"):
        read_topk(tmp_path)

"""The programs in lab/benchmarks/ about language models and segments run, in a small size, and write what they say."""

import json
import signal
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from conftest import SAMPLE
from fairseq_commands import run, start

BENCHMARKS = Path(__file__).parent.parent / "lab/benchmarks"


@pytest.mark.slow
def test_a_step_of_an_hourglass_is_compared_with_one_that_shortens_nothing(tmp_path: Path) -> None:
    out = tmp_path / "costs.json"
    small = ["--length", 114, "--embed-dim", 32, "--num-heads", 2, "--layers", "1,2,1", "--repeats", 2, "--out", out]
    done = run("python", BENCHMARKS / "language_models.py", *small)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    assert {figure["name"]: round(1 / figure["target"], 2) for figure in written["figures"]} == {
        "peak of a step, vanilla / hourglass_fixed_2": 0.70,
        "peak of a step, vanilla / hourglass_fixed_4": 0.53,
        "peak of a step, vanilla / hourglass_whitespace": 0.48,
        "a step, vanilla / hourglass_fixed_2": 0.63,
        "a step, vanilla / hourglass_fixed_4": 0.48,
        "a step, vanilla / hourglass_whitespace": 0.45,
    }
    # 114 characters are 57 segments of two, 28 of four, and 20 words of 5.7.
    factors = {"vanilla": 1.0, "fixed_2": 2.0, "fixed_4": 114 / 28, "whitespace": 5.7}
    assert written["shortening_factors"] == pytest.approx({f"hourglass_{name}": of for name, of in factors.items()})
    shares, megabytes = written["shares_of_vanilla"], written["peak_megabytes"]
    assert shares["hourglass_fixed_2"]["memory"]["counted"] == 0.75
    measured = megabytes["hourglass_fixed_2"] / megabytes["hourglass_vanilla"]
    assert shares["hourglass_fixed_2"]["memory"]["measured"] == pytest.approx(measured)
    assert len(written["seconds"]["hourglass_vanilla"]) == 2
    assert done.stdout.count("| hourglass_whitespace | ") == 2 and "| 45% |" in done.stdout


def test_multiplications_of_the_papers_hourglasses_are_58_44_and_40_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from language_models import expected

    paper = Namespace(layers="2,8,2", embed_dim=512, length=2048)
    shares = [expected(factor, paper) for factor in (2.0, 4.0, 5.7)]
    assert [round(100 * share["time"]) for share in shares] == [58, 44, 40]
    assert [round(100 * share["memory"]) for share in shares] == [67, 50, 45]


@pytest.mark.nightly
def test_language_models_train_for_equal_seconds_and_go_on_where_they_were(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "quality.json"
    small = ["--embed-dim", 16, "--num-heads", 2, "--layers", "1,1,1", "--length", 64, "--context", 32, "--pieces", 100]
    small += ["--train-characters", 20000, "--valid-characters", 2000, "--seconds", 0.3, "--work", work, "--out", out]
    small += ["--turns", 1, "--settle", 1]
    compare = ["python", BENCHMARKS / "language_model_quality.py", SAMPLE, *small]
    interrupted = start(*compare, "--rows", "vanilla", "--seeds", 1)
    assert interrupted.stdout is not None
    first = next(line for line in interrupted.stdout if line.startswith("vanilla, seed 1: "))
    interrupted.send_signal(signal.SIGKILL)
    interrupted.communicate()
    once = ["vanilla_pre_norm", "longformer", "fixed_2", "fixed_3", "fixed_4", "gumbel", "unigram", "entropy"]
    compare += ["--seeds", 1, 2, "--once", *once]
    done = run(*compare)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    found = written["runs"]["1"]
    assert list(written["runs"]["2"]) == ["vanilla", "whitespace"]
    assert f": {found['vanilla']['course'][0]['updates']} of {found['vanilla']['updates']} updates, " in first
    rows = ["vanilla", *once[:5], "whitespace", *once[5:]]
    assert list(found) == rows
    for of in found.values():
        assert 1 < of["bpc"] < 8 and of["characters"] == 2000 and of["read"] == of["updates"] * 4 * 64
        assert of["course"][-1]["updates"] == of["updates"]
    assert {row: of["updates"] for row, of in found.items()} == written["updates"]
    assert "shortening_factor" not in found["vanilla"] and found["fixed_4"]["shortening_factor"] == 4
    assert found["whitespace"]["spaces_f1"] == 1
    assert 0 <= found["unigram"]["targets_f1"] <= 1 and 0 <= found["entropy"]["targets_f1"] <= 1
    # A predictor that has learned nothing draws half of the characters, or rounds to none or all of them.
    rounded = found["gumbel"]["rounded"]
    assert 1 <= found["gumbel"]["shortening_factor"] < 4 and rounded["bpc"] != found["gumbel"]["bpc"]
    names = [figure["name"] for figure in written["figures"]]
    assert names[:2] == ["bits, whitespace minus vanilla", "bits, whitespace minus fixed_4"] and len(names) == 5
    less = found["whitespace"]["bpc"] - found["vanilla"]["bpc"]
    assert written["figures"][0]["value"] == pytest.approx(less)
    assert written["figures"][0]["met"] == (less <= -0.03)
    # What is finished is taken as it is.
    kept = work / "vanilla-1" / "valid.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "bpc": 9.0}))
    again = run(*compare)
    assert again.returncode == 0 and "updates" not in again.stdout and "prepare" not in again.stdout, again.stdout
    assert json.loads(out.read_text())["runs"]["1"]["vanilla"]["bpc"] == 9
    other = run(*compare, "--lr", 0.1)
    assert other.returncode == 1 and "holds trainings with other arguments" in other.stdout


@pytest.mark.nightly
def test_poolings_of_segments_are_compared_with_the_top_k_and_trained_once(tmp_path: Path) -> None:
    size = ["--embed-dim", 16, "--ffn-embed-dim", 32, "--num-heads", 2, "--vocab-size", 300, "--source", 64]
    size += ["--pooled", 16, "--target", 16, "--updates", 4, "--batch", 2, "--documents", 3, "--seeds", 1, 2]
    compare = ["python", BENCHMARKS / "segment_pooling.py", SAMPLE, "--work", tmp_path / "work", *size]
    out = tmp_path / "segments.json"
    done = run(*compare, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    loss = {name: ways["own text"] for name, ways in written["nats a token"].items()}
    assert list(loss) == ["transpooler", "transpooler_mean", "transpooler_segments"]
    for name, difference in written["differences"].items():
        one, other = name.split(" minus ")
        by_seed = np.subtract(loss[one]["seeds"], loss[other]["seeds"])
        assert difference["seeds"] == pytest.approx(by_seed) and difference["mean"] == pytest.approx(by_seed.mean())
        assert difference["low"] <= difference["mean"] <= difference["high"]
    assert len(written["differences"]) == 3
    # What fairseq logs of the same documents is the same loss, for all tokens.
    assert written["courses"]["transpooler"]["1"]["4"] == pytest.approx(loss["transpooler"]["seeds"][0], abs=0.01)
    vectors = written["vectors"]
    assert vectors["transpooler"] == vectors["transpooler_mean"] == {"own text": 16}
    assert 1 <= vectors["transpooler_segments"]["own text"] <= 16
    # About as many are drawn as there are windows of four.
    assert 10 < vectors["transpooler_segments"]["own text, ends drawn"] <= 16
    assert list(written["what its text is worth"]) == list(loss)
    again = run(*compare, "--models", "transpooler")
    assert again.returncode == 0 and "fairseq-train" not in again.stdout, again.stdout
    other = run(*compare, "--pooled", 8)
    assert other.returncode == 1 and "holds trainings with other arguments" in other.stdout


@pytest.mark.nightly
def test_scorers_are_watched_over_norms_rates_and_ways_to_keep_them_from_collapsing(tmp_path: Path) -> None:
    size = ["--embed-dim", 16, "--ffn-embed-dim", 32, "--num-heads", 2, "--vocab-size", 300, "--source", 64]
    size += ["--pooled", 16, "--target", 16, "--updates", 3, "--batch", 2, "--documents", 3]
    watch = ["python", BENCHMARKS / "collapse.py", SAMPLE, "--work", tmp_path / "work", *size]
    out = tmp_path / "collapse.json"
    some = ["--lr", 0.001, "--scorers", "norm", "base-400", "--norms", "post", "pre", "--seeds", 1]
    done = run(*watch, *some, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    assert list(written["settings"]) == [
        f"{norms}-{way}-0.001" for norms in ("post", "pre") for way in ("norm", "base-400")
    ]
    for found in written["settings"].values():
        assert 0 <= found["spread"][0] <= 1 and 1 / 16 <= found["sharpness"][0] <= 1
        assert found["collapsed"] == (found["spread"][0] < written["limit"])
        # A vocabulary of 300 pieces, hardly trained.
        assert 4 < found["loss"][0] < 8 and abs(found["another costs"][0]) < 1
    log = (tmp_path / "work" / "pre-norm-0.001-1-done.log").read_text()
    assert "'normalize_before': True" in log and "layer_norm" in log
    log = (tmp_path / "work" / "post-base-400-0.001-1-done.log").read_text()
    assert "'normalize_before': False" in log and "soft_topk(base=400)" in log and "layer_norm" not in log
    # A rate is added without training the others anew.
    more = run(*watch, *some, "--lr", 0.001, 0.01)
    assert more.returncode == 0 and more.stdout.count("fairseq-train") == 4, more.stdout
    pointing = run(*watch, *some, "--outputs", "pointer", "--out", out)
    assert pointing.returncode == 0, pointing.stdout
    assert "pre-norm-pointer-0.001" in json.loads(out.read_text())["settings"]
    assert "'output': 'pointer'" in (tmp_path / "work" / "pre-norm-pointer-0.001-1-done.log").read_text()

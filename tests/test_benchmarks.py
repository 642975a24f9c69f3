"""The programs in lab/benchmarks/ run, in a small size, and write what they say."""

import contextlib
import csv
import gc
import hashlib
import io
import json
import re
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import SAMPLE
from fairseq_commands import run
from tables import for_each

from pyramidions.data.folder import DataFolder

BENCHMARKS = Path(__file__).parent.parent / "lab/benchmarks"
GENERATE = [
    *("python", BENCHMARKS / "generate.py", "--tiny", "--batch", 2, "--source", 64, "--vocab-size", 100),
    *("--steps", 3, "--slow-steps", 2, "--after", 0, 5, "--tokens", 20, "--stride", 2, "--repeats", 2),
]
THROUGHPUT = [
    *("python", BENCHMARKS / "throughput.py", "--documents", 4, "--repeats", 1),
    *("--embed-dim", 16, "--ffn-embed-dim", 32, "--num-heads", 2),
]


@for_each("name", sorted(path.name for path in BENCHMARKS.glob("*.py")))
def test_what_a_benchmark_imports_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    runpy.run_path(str(BENCHMARKS / name), run_name="imported")


@pytest.mark.slow
def test_the_page_of_an_explanation_is_opened(tmp_path: Path) -> None:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs Debian's chromium and chromium-driver")
    small = ["--tiny", "--source", 64, "--target", 5, "--vocab-size", 100, "--repeats", 2]
    done = run("python", BENCHMARKS / "explanation_page.py", *small, "--out", tmp_path / "page.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "page.json").read_text())
    assert written["bytes"] < 100_000 and len(written["seconds"]["page"]) == 2


@pytest.mark.slow
def test_topk_writes_figures_and_a_summary(tmp_path: Path) -> None:
    out = tmp_path / "results" / "topk"
    done = run(
        "python", BENCHMARKS / "topk.py", *("--batch", 2, "--n", 64, 128, "--k", 16, "--repeats", 1, "--out", out)
    )
    assert done.returncode == 0, done.stdout
    assert "above the unsorted and the iterative one at every size" in done.stdout
    assert len(out.with_suffix(".csv").read_text().splitlines()) == 1 + 2 * 5
    assert out.with_suffix(".png").stat().st_size > 1000 and '"commit"' in out.with_suffix(".json").read_text()


@pytest.mark.slow
def test_attention_memory_writes_a_curve(tmp_path: Path) -> None:
    out = tmp_path / "memory"
    done = run("python", BENCHMARKS / "attention_memory.py", "--lengths", 256, 512, "--out", out)
    assert done.returncode == 0, done.stdout
    assert "lsh" in out.with_suffix(".csv").read_text() and out.with_suffix(".png").exists()


@pytest.mark.slow
def test_attention_times_every_kind_goes_on_where_it_was_and_asks_for_lines(tmp_path: Path) -> None:
    out = tmp_path / "attention.json"
    few = ["--only", "sinkhorn", "full", "--lengths", 64, 128, "--linear-from", 64, "--repeats", 2, "--out", out]
    done = run("python", BENCHMARKS / "attention.py", *few)
    assert done.returncode == 0, done.stdout
    rows = [line.split(",") for line in out.with_suffix(".csv").read_text().splitlines()]
    assert rows[0] == ["measure", "kind", "length", "turn", "value"]
    assert sorted(row[0] for row in rows[1:]) == ["peak"] * 4 + ["saved"] * 4 + ["seconds"] * 8
    written = json.loads(out.read_text())
    asked = {figure["name"]: figure["target"] for figure in written["figures"]}
    assert asked["full: linear time / time from 64 to 128 tokens"] is None
    assert asked["sinkhorn: linear peak / peak from 64 to 128 tokens"] == pytest.approx(1 / 1.15)
    assert len(asked) == 6 and written["commit"] and out.with_suffix(".png").stat().st_size > 1000
    # As if it had been interrupted before its last figure.
    out.with_suffix(".csv").write_text("\n".join(",".join(row) for row in rows[:-1]) + "\n")
    done = run("python", BENCHMARKS / "attention.py", *few)
    assert done.returncode == 0 and done.stdout.count("\npeak ") + done.stdout.startswith("peak ") == 1, done.stdout
    assert "seconds " not in done.stdout and out.with_suffix(".csv").read_text().count("\n") == len(rows)


@pytest.mark.slow
def test_lecture_memory_writes_three_tables(tmp_path: Path) -> None:
    small = ["--lengths", 512, 2048, "--chunks", 1, 4, "--layers", 1, 3, "--embed-dim", 64, "--positions", 16384]
    small += ["--batch", 2, "--length", 256, "--vocab-size", 50, "--repeats", 1, "--out", tmp_path / "memory.json"]
    done = run("python", BENCHMARKS / "lecture_memory.py", *small)
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "memory.json").read_text())
    short, long = written["by_length"]
    assert long["full, as a matrix"] > 10 * short["full, as a matrix"]
    assert long["local + LSH"] < 4.1 * short["local + LSH"]
    one, four = written["by_chunks"]
    assert one["activations"] > 2 * four["activations"]
    kept = {(row["stack"], row["layers"]): row["kept"] for row in written["by_layers"]}
    assert kept["reversible", 3] - kept["reversible", 1] < 0.02 * (kept["plain", 3] - kept["plain", 1])
    assert kept["reversible", 3] - kept["reversible", 1] < 0.25 * (kept["recomputing", 3] - kept["recomputing", 1])


@pytest.mark.slow
def test_reversible_layers_are_compared_by_depth_and_terraformers_by_length(tmp_path: Path) -> None:
    small = ["--length", 1024, "--layers", 1, 3, "--timed-layers", 1, "--lengths", 1024, "--target", 8]
    small += ["--embed-dim", 64, "--num-heads", 2, "--repeats", 2]
    out = tmp_path / "reversible.json"
    done = run("python", BENCHMARKS / "reversible.py", *small, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    asked = {figure["name"]: figure["target"] for figure in written["figures"]}
    assert {name: target for name, target in asked.items() if target} == {
        "a further layer, kept, plain / reversible": 50,
        "a further layer, kept, recomputing / reversible": 4,
        "a further layer, peak, plain / reversible": 50,
        "a further layer, peak, recomputing / reversible": 4,
        "a step, plain / reversible": pytest.approx(1 / 1.5),
        "a step, recomputing / reversible": pytest.approx(1 / 1.1),
    }
    kept = {(row["stack"], row["layers"]): row["kept"] for row in written["by_layers"]}
    # Two sublayers a layer, each with the state of the random numbers.
    assert kept["reversible", 3] - kept["reversible", 1] == pytest.approx(4 * 5.1e-3, rel=0.5)
    # Its input, (1024, 64) in float32
    assert kept["recomputing", 3] - kept["recomputing", 1] == pytest.approx(2 * 0.262, rel=0.2)
    all_vectors, pooled = written["by_length"]
    assert all_vectors["decoder, peak"] > pooled["decoder, peak"] and pooled["step, seconds"] > 0
    assert out.with_suffix(".png").stat().st_size > 1000 and len(written["seconds"]["plain"]) == 2


@pytest.mark.slow
def test_a_step_with_sparse_parts_is_compared_by_time_and_by_bytes(tmp_path: Path) -> None:
    small = ["--widths", 64, "--layers", 2, "--repeats", 2, "--steps", 2, "--training-width", 16, "--tokens", 8]
    small += ["--output-width", 16, "--vocab-size", 64, "--plot", tmp_path / "sparse.png"]
    done = run("python", BENCHMARKS / "sparse_decode.py", *small, "--out", tmp_path / "sparse.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "sparse.json").read_text())
    figures = {figure["name"]: figure["target"] for figure in written["figures"]}
    assert figures["a training step, D 16, dense / weighting all units"] == pytest.approx(1 / 1.15)
    assert figures["a training step, D 16, dense / choosing units"] == pytest.approx(1 / 1.5)
    assert "a step, D 64, dense / sparse feed-forward" in figures
    assert "to capture a step, D 64, sparse feed-forward, 2 layers" in figures
    read = written["bytes_read"]
    # Two layers, one head. Both matrices and their biases; or a controller of rank 4, of each of them 4 rows, a bias.
    assert read["feed-forward parts, D 64, dense"] == 2 * 4 * (2 * 64 * 256 + 256 + 64)
    assert read["feed-forward parts, D 64, sparse feed-forward"] == 2 * 4 * (4 * 64 + 4 * 256 + 256 + 2 * 4 * 64 + 64)
    steps = [read[f"a step, D 64, {name}"] for name in ("dense", "sparse feed-forward")]
    alone = [read[f"feed-forward parts, D 64, {name}"] for name in ("dense", "sparse feed-forward")]
    assert steps[0] - steps[1] == alone[0] - alone[1] and read["matrices times a vector, D 64"] == 4 * 4 * 64 * 256
    # One multiplicative layer to 16 modules of 4, and three convolutions; hidden units are half as many again.
    qkv = 64 * 16 + 64 * 4 + 64 + (9 + 9 + 3) * 4 * 4 + 3 * 4
    assert read["self-attention, D 64, sparse feed-forward and QKV"] == 2 * 4 * qkv
    more = 6 * 64 + 6 * 384 + 384 + 2 * 6 * 64 + 64
    assert read["feed-forward parts, D 64, sparse feed-forward and QKV"] == 2 * 4 * more
    assert read["cross-attention, D 64, + sparse cross-attention"] == 2 * 4 * 2 * (64 * 16 + 64 * 4 + 64)
    # An expert has 4 of 256 units.
    assert read["feed-forward parts, D 64, experts"] == 2 * 4 * (64 * 64 + 64 + 2 * 4 * 64 + 64)
    assert figures["output layer, D 16, V 64, dense / 4 modules"] == 2.5
    assert read["output layer, D 16, dense"] == 2 * 4 * 64 * 16
    assert read["output layer, D 16, 4 modules"] == 2 * 4 * (4 * 16 + 16 * 16)
    assert done.stdout.count("\n| D 64 | ") == 6 and (tmp_path / "sparse.png").stat().st_size > 1000


@pytest.mark.slow
def test_models_with_sparse_parts_are_compared_with_a_dense_one_and_trained_once(tmp_path: Path) -> None:
    size = ["--embed-dim", 16, "--ffn-embed-dim", 32, "--num-heads", 2, "--vocab-size", 300, "--source", 64]
    size += ["--target", 16, "--updates", 4, "--batch", 2, "--documents", 3, "--seeds", 1, 2]
    compare = ["python", BENCHMARKS / "sparse_quality.py", SAMPLE, "--work", tmp_path / "work", *size]
    done = run(*compare, "--models", "dense", "sparse", "--out", tmp_path / "quality.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "quality.json").read_text())
    loss, less = written["nats a token"], written["minus dense"]
    for reading in ("chosen", "chosen with noise", "weighted"):
        assert less["sparse"][reading]["mean"] == pytest.approx(
            loss["sparse"][reading]["mean"] - loss["dense"]["chosen"]["mean"]
        )
    # What fairseq logs of the same documents is the same loss, for all tokens.
    assert written["courses"]["dense"]["1"]["4"] == pytest.approx(loss["dense"]["chosen"]["seeds"][0], abs=0.01)
    again = run(*compare, "--models", "dense")
    assert again.returncode == 0 and "fairseq-train" not in again.stdout, again.stdout
    other = run(*compare, "--models", "dense", "--updates", 5)
    assert other.returncode == 1 and "holds trainings with other arguments" in other.stdout


@pytest.mark.slow
def test_trainings_in_bfloat16_are_compared_with_those_in_float32(tmp_path: Path) -> None:
    size = ["--embed-dim", 16, "--ffn-embed-dim", 32, "--num-heads", 2, "--vocab-size", 300, "--source", 64]
    size += ["--target", 16, "--updates", 8, "--batch", 2, "--documents", 3, "--pooling-lengths", "32,16"]
    out = tmp_path / "precision.json"
    compare = ["python", BENCHMARKS / "training_precision.py", SAMPLE, "--work", tmp_path / "work", *size]
    done = run(*compare, "--seeds", 1, 2, "--out", out)
    assert done.returncode == 0 and done.stdout.count(" --bf16 ") == 2, done.stdout
    written = json.loads(out.read_text())
    loss, less = written["nats a token"], written["bfloat16 minus float32"]
    assert less["mean"] == pytest.approx(loss["bfloat16"]["mean"] - loss["float32"]["mean"])
    assert 0 < abs(less["mean"]) < written["between seeds of float32"]
    one, other = loss["float32"]["seeds"]
    assert written["between seeds of float32"] == pytest.approx(abs(one - other))
    faster = written["times the updates a second"]
    assert faster["median"] == pytest.approx(sum(faster["seeds"]) / 2)


@pytest.mark.slow
def test_needle_prints_a_row_for_each_way(tmp_path: Path) -> None:
    few = ["--updates", 2, "--batch", 4, "--test", 8, "--seeds", 2]
    out = tmp_path / "needle"
    done = run("python", BENCHMARKS / "needle.py", "--ways", "linear", "max", *few, "--out", out)
    assert done.returncode == 0, done.stdout
    table = out.with_suffix(".md").read_text()
    assert table.count("| linear |") == 1 and "| max |" in table and "no provenance" in table
    done = run("python", BENCHMARKS / "needle.py", "--ways", "linear", "--outputs", "tied", "pointer", *few)
    assert done.returncode == 0 and "| linear |" in done.stdout and "| linear, pointer |" in done.stdout


@pytest.mark.slow
def test_generate_prints_a_table_and_figures_beside_their_targets(tmp_path: Path) -> None:
    done = run(*GENERATE, "--full", "--out", tmp_path / "generate.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "generate.json").read_text())
    asked = {figure["name"]: figure["target"] for figure in written["figures"]}
    targets = {
        "a step, fairseq's decoder, memory 64 / ours": 2.0,
        "documents with the same hypotheses, our decoder, memory 64": 100.0,
        "a step, fairseq's decoder, memory 4 / ours": 2.0,
        "documents with the same hypotheses, our decoder, memory 4": 100.0,
        "a step, full cross-attention / HEPOS, stride 2": 2.0,
        "its memory projected": None,
        "bytes kept of the memory": 2.0,
        "20 tokens, deep_blockwise / deep_pyramidion": 2.5,
        "20 tokens, deep_blockwise, copied memory / deep_pyramidion": 4.5,
        "deep_blockwise: 20 tokens in full / by their parts": None,
        "deep_pyramidion: 20 tokens in full / by their parts": None,
    }
    steps = {"our decoder, memory 4": 3, "deep_pyramidion": 3, "deep_blockwise, copied memory": 2}
    if find_spec("transformers"):
        targets["20 tokens, LED / deep_pyramidion"] = 5.0
        steps["LED"] = 2
    assert asked == targets and written["steps"].items() >= steps.items()
    assert all(f"\n| {name} | " in done.stdout for name in steps)
    assert [figure["value"] for figure in written["figures"] if "same hypotheses" in figure["name"]] == [100, 100]
    assert [figure["value"] for figure in written["figures"] if "bytes kept" in figure["name"]] == [2]
    assert "same hypotheses, our decoder, memory 64: 100.00% (turns 100.00 to 100.00), asked 100%\n" in done.stdout
    assert written["commit"] and len(written["seconds"]["deep_pyramidion after 5"]) == 2


@pytest.mark.slow
def test_steps_with_strides_are_compared(tmp_path: Path) -> None:
    small = ["--tiny", "--documents", 2, "--memory", 64, "--stride", 2, "--vocab-size", 100, "--repeats", 2]
    done = run("python", BENCHMARKS / "hepos.py", *small, "--out", tmp_path / "hepos.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "hepos.json").read_text())
    assert [figure["target"] for figure in written["figures"]] == [2.0, 2.0]
    # Six layers, keys and values, of two documents: 64 vectors of 16 numbers, and half of them.
    assert written["kept"] == {"full cross-attention": 6 * 2 * 2 * 64 * 16 * 4, "HEPOS": 6 * 2 * 2 * 32 * 16 * 4}


@pytest.mark.nightly
def test_generate_leaves_out_what_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "transformers.py").write_text("raise ImportError\n")
    done = run(*GENERATE, "--only", "blockwise", "led", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0 and "left out: led. LED needs transformers" in done.stdout, done.stdout
    assert "| deep_blockwise |" in done.stdout and "| LED |" not in done.stdout


@pytest.mark.parametrize(("value", "status"), [(2.0, 0), (1.9, 1)])
def test_check_ends_with_status_1_if_a_target_is_missed(value: float, status: int) -> None:
    program = (
        "from side_by_side import Figure, finish, parser\n"
        f"finish(parser('', 'x').parse_args(['--check']), [Figure('speed', {value}, 1, 3, 2.0)], {{}})"
    )
    done = run("python", "-c", program, folder=BENCHMARKS)
    assert done.returncode == status, done.stdout
    assert done.stdout.startswith(f"speed: {value:.2f}x (turns 1.00 to 3.00), asked 2x")
    assert ("MISSED" in done.stdout) == bool(status)


@pytest.mark.slow
def test_precisions_take_turns_and_are_compared_with_float32(checkpoint: Path, tmp_path: Path) -> None:
    program = ["python", BENCHMARKS / "precision.py", checkpoint, SAMPLE / "test.jsonl.xz", "--documents", 3]
    program += ["--beam", 1, "--min-len", 4, "--max-len", 8, "--repeats", 2, "--multiplications", 1e6]
    done = run(*program, "--out", tmp_path / "precision.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "precision.json").read_text())
    assert list(written["rouge"]) == list(written["documents_a_second"]) == ["float32", "bfloat16", "int8"]
    bfloat16 = written["rouge"]["bfloat16"]
    low, high = (bfloat16["minus_float32"]["rougeL"][end] for end in ("low", "high"))
    assert low <= bfloat16["rougeL"]["mean"] - written["rouge"]["float32"]["rougeL"]["mean"] <= high
    asked = {figure["name"]: figure["target"] for figure in written["figures"]}
    twice = written["gflops"]["bfloat16"] >= 2 * written["gflops"]["float32"]
    assert asked["documents a second, bfloat16 / float32"] == (1.6 if twice else None)
    assert asked["documents a second, int8 / float32"] is None
    assert len(written["seconds"]["int8"]) == 2 and written["documents"] == 3 and written["commit"]
    done = run(*program, "--preset", "toy_vanilla", "--out", tmp_path / "preset.json")
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "preset.json").read_text())["rouge"] is None


@pytest.mark.slow
def test_throughput_prints_documents_a_second_of_each_model_and_way(data: DataFolder, tmp_path: Path) -> None:
    out = tmp_path / "throughput.json"
    few = ["--source", 64, "--max-target-positions", 32]
    done = run(*THROUGHPUT, "--data", data.path, *few, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    ways = {f"{arch}, {way}" for arch in ("deep_pyramidion", "deep_blockwise") for way in ("padded", "by length")}
    assert written["seconds"].keys() == written["contenders"].keys() == ways and written["commit"]
    assert all(f"\n{name}: " in f"\n{done.stdout}" for name in ways) and "documents/s" in done.stdout


@pytest.mark.nightly
def test_leaving_out_padding_computes_less_and_loses_nothing(data: DataFolder, tmp_path: Path) -> None:
    out = tmp_path / "throughput.json"
    same = ["--arch", "deep_pyramidion", "--source", 10000, "--max-target-positions", 64, "--dropout", 0]
    done = run(*THROUGHPUT, "--data", data.path, *same, "--out", out)
    assert done.returncode == 0, done.stdout
    padded, by_length = json.loads(out.read_text())["contenders"].values()
    assert by_length["loss"] == pytest.approx(padded["loss"], rel=1e-6)
    # Four documents, blocks of 512
    assert padded["source_positions"] == 4 * 10240 and by_length["source_positions"] < 4 * 10000


@pytest.mark.slow
def test_train_step_prints_every_target_and_names_what_the_time_goes_to(tmp_path: Path) -> None:
    out = tmp_path / "step.json"
    sizes = ["--source", 64, "--target", 8, "--vocab-size", 100, "--repeats", 2]
    done = run("python", BENCHMARKS / "train_step.py", "--tiny", *sizes, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    targets = {
        "deep_blockwise / deep_pyramidion": 2.5,
        "fairseq's transformer / our vanilla": 1.0,
        "fairseq's transformer / our blockwise": 1.0,
        "deep_pyramidion, share of the matrix rate": 80.0,
        "deep_blockwise, share of the matrix rate": 70.0,
    }
    if find_spec("transformers"):
        targets |= {"LED / deep_pyramidion": 6.0, "LED with 12 heads / deep_pyramidion": 6.0}
    assert {f["name"]: f["target"] for f in written["figures"] if f["target"]} == targets
    (spent,) = written["profile"].values()
    assert sum(spent.values()) <= 100 and len(spent) == 12
    assert "| fairseq's transformer |" in done.stdout and "deep_pyramidion spends its time on: " in done.stdout


@pytest.mark.nightly
def test_train_step_takes_the_presets_of_the_lecture_where_asked_to(tmp_path: Path) -> None:
    out = tmp_path / "lecture.json"
    sizes = ["--source", 64, "--target", 8, "--vocab-size", 100, "--repeats", 1]
    done = run("python", BENCHMARKS / "train_step.py", "--tiny", "--only", "lecture", *sizes, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    names = {figure["name"] for figure in written["figures"]}
    assert {"led / led_pyramidion", "led / lsh_window", "led_pyramidion, share of the matrix rate"} <= names
    assert "deep_pyramidion" not in written["seconds"] and len(written["seconds"]["led"]) == 1


def test_a_peak_is_that_of_the_work_alone() -> None:
    program = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from peaks import peak
if sys.argv[2:]:
    print(peak(lambda: None), peak(lambda: torch.ones(25_000_000)), peak(lambda: None))
else:
    # What a parent held, its children begin with.
    held = torch.ones(100_000_000)
    import subprocess
    sys.exit(subprocess.run([sys.executable, "-c", sys.orig_argv[2], sys.argv[1], "child"]).returncode)
"""
    done = run("python", "-c", program, BENCHMARKS)
    assert done.returncode == 0, done.stdout
    nothing, hundred, nothing_again = map(float, done.stdout.split())
    assert nothing < 5 and 95 < hundred < 110 and nothing_again < 5


def test_what_is_allocated_counts_tensors_until_they_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import torch
    from peaks import allocated

    # What other tests left behind must not be freed meanwhile.
    gc.collect()
    before = allocated()
    held = [torch.zeros(2_500_000), torch.zeros(25_000)]
    assert allocated() - before == pytest.approx(10_100_000, abs=50_000)
    held.clear()
    assert allocated() - before == pytest.approx(0, abs=50_000)


@pytest.mark.slow
def test_windows_compares_outputs_steps_peaks_and_summaries_with_led(tmp_path: Path) -> None:
    out = tmp_path / "windows.json"
    sizes = ["--source", 64, "--target", 8, "--lengths", 64, 128, "--repeats", 2]
    done = run("python", BENCHMARKS / "windows.py", "--tiny", *sizes, "--out", out)
    assert done.returncode == 0, done.stdout
    figures = {figure["name"]: figure for figure in json.loads(out.read_text())["figures"]}
    assert {name: figure["target"] for name, figure in figures.items() if figure["target"]} == {
        "1e-5 over the largest difference of outputs": 1.0,
        "a step, LED of transformers / led": 2.2,
        "a step, led / led_pyramidion": 1.8,
        "peak of a step, LED of transformers / led": 2.0,
        "summaries with the same tokens": 100.0,
        "a summary, LED of transformers / led": 6.0,
        "linear time / time from 64 to 128 tokens": pytest.approx(1 / 1.15),
        "linear memory / memory from 64 to 128 tokens": pytest.approx(1 / 1.15),
    }
    assert figures["1e-5 over the largest difference of outputs"]["met"]
    assert figures["summaries with the same tokens"]["met"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["longt5", "pegasus_x"])
def test_an_imported_model_computes_and_writes_as_that_of_transformers(model: str, tmp_path: Path) -> None:
    out, sizes = tmp_path / "imported.json", ["--source", 64, "--target", 8, "--vocab-size", 100, "--repeats", 2]
    done = run("python", BENCHMARKS / "imported.py", model, "--tiny", *sizes, "--out", out)
    assert done.returncode == 0, done.stdout
    figures = {figure["name"]: figure for figure in json.loads(out.read_text())["figures"]}
    assert {name: figure["target"] for name, figure in figures.items()} == {
        "1e-5 over the largest relative difference of outputs": 1.0,
        "a step, transformers / imported": 1.5,
        "summaries with the same tokens": 100.0,
        "a summary, transformers / imported": 3.0,
    }
    assert figures["1e-5 over the largest relative difference of outputs"]["met"]
    assert figures["summaries with the same tokens"]["met"]


@pytest.mark.slow
def test_train_memory_doubles_with_the_length_and_shrinks_with_checkpoints(tmp_path: Path) -> None:
    out = tmp_path / "memory"
    lengths = ["--lengths", 2048, 4096, "--vocab-size", 100, "--target", 8, "--models", "deep_pyramidion"]
    done = run("python", BENCHMARKS / "train_memory.py", *lengths, "--out", out)
    assert done.returncode == 0, done.stdout
    rows = [line.split(",") for line in out.with_suffix(".csv").read_text().splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        ["deep_pyramidion", checkpointed, length] for checkpointed in ("False", "True") for length in ("2048", "4096")
    ]
    short, long, short_checkpointed, long_checkpointed = (float(row[3]) for row in rows)
    assert short < long < 3 * short and short_checkpointed < short and long_checkpointed < long
    assert out.with_suffix(".png").stat().st_size > 1000


@pytest.mark.slow
def test_the_campaign_of_faults_counts_what_held(tmp_path: Path) -> None:
    out = tmp_path / "faults.json"
    done = run("python", BENCHMARKS / "faults.py", "--only", "average", "--repeats", 1, "--check", "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    harms = [each["harm"] for each in written["tries"]]
    assert harms == [
        "killed at a random moment",
        *("killed at a chosen call", "killed at a chosen call", "disk full", "two at once"),
    ]
    assert written["held"] == 5 and written["kills"] == 3 and not any(written["wrong"].values())
    printed = re.sub(" +", " ", done.stdout)
    assert "| average | disk full | 1 | 1 |" in printed and "| commands | 1 | 3 | 5 | 5 | 0 | 0 |" in printed
    assert written["commit"] and written["bad_input"] is None


def test_infilling_hides_spans_behind_one_mask_each(monkeypatch: pytest.MonkeyPatch) -> None:
    if not find_spec("transformers"):
        pytest.skip("needs transformers")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import numpy as np
    from pretraining import MASK, infilled

    text = np.arange(100, 600)
    found = infilled(text, np.random.default_rng(1))
    kept = found[found != MASK]
    assert 0.6 < len(kept) / len(text) <= 0.7 and (np.diff(kept) > 0).all()
    assert not ((found[1:] == MASK) & (found[:-1] == MASK)).any()
    assert (found == infilled(text, np.random.default_rng(1))).all()


def test_an_interval_over_seeds_is_wider_where_seeds_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import numpy as np
    from likelihoods import interval, shown

    same = interval(np.array([[1.0, 2.0, 3.0]] * 3))
    other = interval(np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [5.0, 6.0, 7.0]]))
    assert same["mean"] == 2 and other["mean"] == 4
    assert other["high"] - other["low"] > same["high"] - same["low"] > 0
    assert shown({"mean": -1.5, "low": -2.0, "high": -1.0}, 1) == "−1.5 [−2.0, −1.0]"


@pytest.mark.nightly
def test_a_pretrained_start_is_compared_with_none_and_poolers_with_none(tmp_path: Path) -> None:
    if not find_spec("transformers"):
        pytest.skip("needs transformers")
    pretrained, work, out = tmp_path / "pretrained", tmp_path / "start", tmp_path / "start.json"
    small = ["--width", 8, "--layers", 3, "--heads", 2, "--vocab-size", 300, "--length", 32, "--batch", 2]
    short = ["--minutes", 0.02, "--save-minutes", 0.01, "--tokenizer-documents", 2]
    done = run("python", BENCHMARKS / "pretraining.py", SAMPLE, "--work", pretrained, *small, *short)
    assert done.returncode == 0, done.stdout
    made = json.loads((pretrained / "pretraining.json").read_text())
    assert made["updates"] == made["history"][-1]["updates"] > 0
    done = run("python", BENCHMARKS / "pretraining.py", SAMPLE, "--work", pretrained, *small, *short)
    assert f"going on after {made['updates']:,} updates" in done.stdout

    few = ["--source", 64, "--target", 16, "--block", 32, "--pooling-lengths", "None,16,None", "--documents-scored", 3]
    ways = ["--pretrained", pretrained, "--work", work, "--updates", 2, "--out", out]
    done = run("python", BENCHMARKS / "pretrained_start.py", SAMPLE, *ways, *few)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    names = {"pretrained", "pretrained-pooled", "scratch", "scratch-pooled"}
    assert written["likelihood"]["systems"].keys() == names
    assert written["rouge"]["systems"].keys() == names | {"lead"} and len(written["rouge"]["differences"]) == 16
    assert all(list(course["valid_loss"]) == ["1", "2"] for course in written["courses"].values())
    assert written["pretraining"] == made and written["commit"]

    model = ["--model", work / "pretrained" / "checkpoint_best.pt", "--work", tmp_path / "poolers"]
    model += ["--pooling-lengths", "None,16,None", "None,None,16"]
    few = ["--updates", 1, 2, "--train-documents", 4, "--calibration-documents", 2, "--test-documents", 3]
    done = run("python", BENCHMARKS / "pooled_start.py", SAMPLE, *model, *few, "--seeds", 1, 2, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    starts = {"as built", "spread", "calibrated"}
    assert all(of.keys() == starts for of in written["at the start, minus unpooled"].values())
    assert written["after updates"].keys() == starts | {"unpooled"} and written["seeds"] == [1, 2]


@pytest.mark.nightly
def test_toy_copying_compares_two_models_with_one_that_lacks_a_part_and_goes_on_where_it_was(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "toy.json"
    few = ["--updates", 2, "--batch", 4, "--test", 6, "--seeds", 1, 2, "--lengths", "3-4", "--test-lengths", "6-7"]
    few += ["--ablations", "Terraformer without recurrence", "--work", work, "--out", out]
    done = run("python", BENCHMARKS / "toy_copying.py", *few)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    both = {"Transformer", "Terraformer"}
    assert written["percent_right"].keys() == both | {"Terraformer minus Transformer"}
    assert written["ablations"].keys() == {"Terraformer without recurrence"} and written["commit"]
    counted = [of["6-7"]["sequences"] for of in written["without_repeated_pairs"].values()]
    assert len(counted) == 2 and 0 < counted[0] == counted[1] <= 6
    assert all(len(shares) == 2 for of in written["each_seed"].values() for shares in of.values())
    # What is there is taken as it is.
    right = np.load(work / "Terraformer-1" / "right.npy")
    assert right.shape == (4, 6)
    np.save(work / "Terraformer-1" / "right.npy", np.full_like(right, 50))
    again = run("python", BENCHMARKS / "toy_copying.py", *few)
    assert again.returncode == 0 and "fairseq-train" not in again.stdout, again.stdout
    assert json.loads(out.read_text())["each_seed"]["Terraformer"]["6-7 symbols"][0] == 50
    other = run("python", BENCHMARKS / "toy_copying.py", *few, "--updates", 3)
    assert other.returncode == 1 and "holds trainings with other arguments" in other.stdout, other.stdout


def test_support_compares_a_document_with_another_one(tmp_path: Path) -> None:
    papers = tmp_path / "papers.jsonl"
    texts = ["Cells divide in warm water. Cold stops them.", "We sing at night. Nobody hears us."]
    papers.write_text("".join(json.dumps({"article": text, "abstract": text}) + "\n" for text in texts))
    done = run("python", BENCHMARKS / "support.py", papers)
    assert done.returncode == 0, done.stdout
    assert "4 sentences of 2 summaries" in done.stdout
    assert "| 0.25 (ours) | 100.0% | 0.0% | 100.0% | 0.0% |" in done.stdout


def test_salient_bigrams_are_counted_up_to_each_percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    statistics = pytest.importorskip("corpus_statistics")
    ten = "Red fox. Blue whale. Green frog. Pink crab. Gray wolf."
    # Red fox ends after 2 of 10 words, blue whale after 4, gray wolf after 10; "of the" has stop words only.
    pairs = [(ten, "Red fox, blue whale."), (ten, "Gray wolf"), ("A part of the whole.", "Of the")]
    papers = tmp_path / "test.jsonl"
    papers.write_text("".join(json.dumps({"article": text, "abstract": short}) + "\n" for text, short in pairs))
    out = tmp_path / "results" / "statistics"
    monkeypatch.setattr("sys.argv", ["corpus_statistics.py", str(tmp_path), "--limit", "3", "--out", str(out)])
    statistics.main()
    with out.with_suffix(".csv").open() as file:
        rows = {int(row["percent"]): row for row in csv.DictReader(file)}
    expected = {19: 0, 20: 0.25, 39: 0.25, 40: 0.5, 99: 0.5, 100: 1}
    assert {percent: float(rows[percent]["seen"]) for percent in expected} == expected
    assert (rows[40]["new"], rows[41]["new"], rows[100]["shuffled"]) == ("0.2500", "0.0000", "1.0000")
    written = json.loads(out.with_suffix(".json").read_text())
    means = written["means"][tmp_path.name]
    assert {"command", "commit", "versions"} <= written.keys()
    assert means == {
        "documents": 3,
        "with salient bigrams": 2,
        "words": 8.3333,
        "summary words": 2.6667,
        "coverage": 0.9444,
        "density": 2.0556,
        "compression": 4.3333,
        "salient": 0.5556,
    }
    assert out.with_suffix(".png").stat().st_size > 1000


def test_documents_are_read_judged_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    reading = pytest.importorskip("reading")
    names = {each.name for each in reading.documents() if each.kind != "unseen"}
    assert names == {each["name"] for each in reading.lines(reading.GOLD / "headings.jsonl")} and len(names) >= 60
    monkeypatch.setattr(reading, "GOLD", tmp_path)
    wings, ends = "Bees fly very fast.\n\nThey have four wings.", "Their stings hurt all animals."
    text = f"# On bees\n\n## 1. Wings\n\n{wings}\n\n## Ends\n\n{ends}"
    (tmp_path / "bees.md").write_text(text)
    row = ["bees", "bees.md", "bees", "1", "bees.md", hashlib.sha256(text.encode()).hexdigest()]
    header = ",".join(reading.Document._fields)
    kinds = ("book", "unseen")
    rows = [
        ",".join([name, *row[1:], kind, "text", "en", "MIT", ""])
        for name, kind in zip(("bees", "new"), kinds, strict=True)
    ]
    (tmp_path / "documents.csv").write_text("\n".join([header, *rows, ""]))
    (tmp_path / "headings.jsonl").write_text('{"name": "bees", "headings": ["Wings", "Stings"]}\n')
    (tmp_path / "judged.jsonl").write_text("")

    def printed(*flags: object) -> str:
        monkeypatch.setattr("sys.argv", ["reading.py", *map(str, (tmp_path, *flags))])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            reading.main()
        return out.getvalue()

    unjudged = tmp_path / "unjudged.jsonl"
    assert "| all | 1 | none | none | none | none | 12 | 50.0% (1 of 2) | 1 |" in printed("--unjudged", unjudged)
    judged = [{**each, "noise": "fragment" * ("all" in each["sentence"])} for each in reading.lines(unjudged)]
    unjudged.write_text("".join(f"{json.dumps(each)}\n" for each in judged))
    table = printed("--judged", unjudged)
    assert f"| all | 1 |{' 33.3% (1 of 3) |' * 4} 0 | 50.0% (1 of 2) | 1 |" in table and table == printed()


def test_headings_of_latex_are_counted_in_what_is_included(tmp_path: Path) -> None:
    body = r"\begin{document}\section{A} \input{b} % \section{No}" "\n" r"\begin{comment}\section{No}\end{comment}"
    (tmp_path / "a.tex").write_text(rf"{body}\title{{T}}\end{{document}}")
    (tmp_path / "b.tex").write_text(r"\subsection*{B} Two words.")
    done = run("python", BENCHMARKS / "latex_headings.py", tmp_path, "--out", tmp_path / "found")
    assert done.returncode == 0 and "2 of 2 headings of 1 documents" in done.stdout, done.stdout
    found = json.loads((tmp_path / "found.json").read_text())["documents"]
    assert found == {"a.tex": {"commands": 2, "headings": 2, "words": 2, "title": True}}


@pytest.mark.slow
def test_scoring_equals_the_plain_loop_and_is_measured_in_time_and_memory(tmp_path: Path) -> None:
    out = tmp_path / "scoring.json"
    small = ["--documents", 4, "--words", 60, "--repeats", 1, "--few", 20, "--many", 60]
    done = run("python", BENCHMARKS / "scoring.py", *small, "--out", out)
    assert done.returncode == 0, done.stdout
    assert "all figures are equal to the last digit" in done.stdout
    written = json.loads(out.read_text())
    assert set(written["peaks_mb"]) == {"20", "60"} and len(written["figures"]) == 3


def test_an_experiment_without_its_corpus_leaves_no_folder(tmp_path: Path) -> None:
    done = run("python", BENCHMARKS / "collapse.py", tmp_path / "nothing", "--work", tmp_path / "work")
    sentence = (
        f"CORPUS must be a folder with train, valid and test files, but {tmp_path / 'nothing'} is not a folder.\n"
    )
    assert done.returncode == 1 and done.stdout == sentence
    assert not (tmp_path / "work").exists()

"""The programs in benchmarks/ run, in a small size, and write what they say."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from fairseq_commands import run

from pyramidions.data.folder import DataFolder

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
GENERATE = [
    *("python", BENCHMARKS / "generate.py", "--tiny", "--batch", 2, "--source", 64, "--vocab-size", 100),
    *("--steps", 3, "--slow-steps", 2, "--after", 0, 5, "--tokens", 20, "--repeats", 2),
]
THROUGHPUT = [
    *("python", BENCHMARKS / "throughput.py", "--documents", 4, "--repeats", 1),
    *("--embed-dim", 16, "--ffn-embed-dim", 32, "--num-heads", 2),
]


@pytest.mark.slow
def test_the_page_of_an_explanation_is_opened(tmp_path: Path) -> None:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs Debian's chromium and chromium-driver")
    small = ["--tiny", "--source", 64, "--target", 5, "--vocab-size", 100, "--repeats", 2]
    done = run("python", BENCHMARKS / "explanation_page.py", *small, "--out", tmp_path / "page.json")
    assert done.returncode == 0, done.stdout
    written = json.loads((tmp_path / "page.json").read_text())
    assert written["bytes"] < 50_000 and len(written["seconds"]["page"]) == 2


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
def test_needle_prints_a_row_for_each_way(tmp_path: Path) -> None:
    few = ["--updates", 2, "--batch", 4, "--test", 8, "--seeds", 2]
    out = tmp_path / "needle"
    done = run("python", BENCHMARKS / "needle.py", "--ways", "linear", "max", *few, "--out", out)
    assert done.returncode == 0, done.stdout
    table = out.with_suffix(".md").read_text()
    assert table.count("| linear |") == 1 and "| max |" in table and "no provenance" in table


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
    assert "same hypotheses, our decoder, memory 64: 100.00% (turns 100.00 to 100.00), asked 100%\n" in done.stdout
    assert written["commit"] and len(written["seconds"]["deep_pyramidion after 5"]) == 2


@pytest.mark.slow
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
def test_throughput_prints_documents_a_second_of_each_model_and_way(data: DataFolder, tmp_path: Path) -> None:
    out = tmp_path / "throughput.json"
    few = ["--source", 64, "--max-target-positions", 32]
    done = run(*THROUGHPUT, "--data", data.path, *few, "--out", out)
    assert done.returncode == 0, done.stdout
    written = json.loads(out.read_text())
    ways = {f"{arch}, {way}" for arch in ("deep_pyramidion", "deep_blockwise") for way in ("padded", "by length")}
    assert written["seconds"].keys() == written["contenders"].keys() == ways and written["commit"]
    assert all(f"\n{name}: " in f"\n{done.stdout}" for name in ways) and "documents/s" in done.stdout


@pytest.mark.slow
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
    assert sum(written["profile"].values()) <= 100 and len(written["profile"]) == 12
    assert "| fairseq's transformer |" in done.stdout and "deep_pyramidion spends its time on: " in done.stdout


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
    assert written["held"] == 5 and "| average | disk full | 1 | 1 |" in done.stdout

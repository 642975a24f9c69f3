"""The programs in benchmarks/ run, in a small size, and write what they say."""

from pathlib import Path

from fairseq_commands import run

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_topk_writes_figures_and_a_summary(tmp_path: Path) -> None:
    out = tmp_path / "results" / "topk"
    done = run(
        "python", BENCHMARKS / "topk.py", *("--batch", 2, "--n", 64, 128, "--k", 16, "--repeats", 1, "--out", out)
    )
    assert done.returncode == 0, done.stdout
    assert "above the unsorted and the iterative one at every size" in done.stdout
    assert len(out.with_suffix(".csv").read_text().splitlines()) == 1 + 2 * 5
    assert out.with_suffix(".png").stat().st_size > 1000 and '"commit"' in out.with_suffix(".json").read_text()


def test_attention_memory_writes_a_curve(tmp_path: Path) -> None:
    out = tmp_path / "memory"
    done = run("python", BENCHMARKS / "attention_memory.py", "--lengths", 256, 512, "--out", out)
    assert done.returncode == 0, done.stdout
    assert "lsh" in out.with_suffix(".csv").read_text() and out.with_suffix(".png").exists()


def test_needle_prints_a_row_for_each_way(tmp_path: Path) -> None:
    few = ["--updates", 2, "--batch", 4, "--test", 8, "--seeds", 2]
    out = tmp_path / "needle"
    done = run("python", BENCHMARKS / "needle.py", "--ways", "linear", "max", *few, "--out", out)
    assert done.returncode == 0, done.stdout
    table = out.with_suffix(".md").read_text()
    assert table.count("| linear |") == 1 and "| max |" in table and "no provenance" in table

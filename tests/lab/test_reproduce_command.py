import json
import shlex
import sys
from pathlib import Path

import pytest
from invoking import run_lab, sentence_of

ROOT = Path(__file__).parents[2]
CONFIGS = ("--configs", str(ROOT / "configs"))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """A folder with two corpora that count as prepared."""
    for name in ("arxiv", "pubmed"):
        (tmp_path / "corpora" / name).mkdir(parents=True)
        (tmp_path / "corpora" / name / "manifest.json").touch()
    return tmp_path / "corpora"


def planned(*words: object) -> list[list[str]]:
    """The commands of a dry run, by word, without folders of programs; first the GPUs that each sees."""
    result = run_lab("reproduce", *words, "--dry-run", *CONFIGS)
    assert result.exit_code == 0, result.stderr
    lines = [shlex.split(line) for line in result.stdout.splitlines() if line and not line.startswith("#")]
    lines = [line if line[0].startswith("CUDA_VISIBLE_DEVICES=") else ["=all", *line] for line in lines]
    return [[gpus.partition("=")[2], Path(program).name, *words] for gpus, program, *words in lines]


def test_a_row_is_trained_generated_scored_and_timed(corpora: Path, tmp_path: Path) -> None:
    commands = planned("table2", "--rows", "7", "--gpus", "1", "--data", corpora, "--out", tmp_path / "out")
    assert [line[:2] for line in commands] == [
        *(
            ["0", "fairseq-hydra-train"],
            ["0", "fairseq-generate"],
            ["all", "pyramidions"],
            ["0", Path(sys.executable).name],
        )
    ]
    assert "optimization.update_freq=[64]" in commands[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_rows_of_the_small_scale_begin_with_nothing_and_have_as_many_updates_as_asked_for(
    corpora: Path, tmp_path: Path
) -> None:
    small = ("--scale", "small", "--seeds", "1", "--data", corpora / "arxiv", "--out", tmp_path / "out")
    commands = planned("table4", "--rows", "linear,mean", *small)
    assert [line[1] for line in commands].count("fairseq-hydra-train") == 2
    assert not any("finetune_from_model" in word for line in commands for word in line)
    longer, *_ = planned("table4", "--rows", "mean", *small, "--updates", "1000")
    assert "optimization.max_update=1000" in longer
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_a_dry_run_prints_the_jobs_of_slurm_without_slurm(corpora: Path) -> None:
    flags = ("--gpus", 8, "--nodes", 2, "--launcher", "slurm", "--data", corpora, "--dry-run", *CONFIGS)
    printed = run_lab("reproduce", "table2", "--rows", "7", *flags).stdout
    assert [line.split(", ")[1:4] for line in printed.splitlines() if line.startswith("# job: ")] == [
        ["nodes 2", "gpus_per_node 8", "cpus_per_task 32"],
        ["nodes 1", "gpus_per_node 8", "cpus_per_task 32"],
        ["nodes 1", "gpus_per_node 0", "cpus_per_task 16"],
        ["nodes 1", "gpus_per_node 1", "cpus_per_task 4"],
    ]


@pytest.mark.nightly
def test_a_corpus_that_is_not_the_papers_is_named_at_the_papers_scale(corpora: Path) -> None:
    manifest = corpora / "arxiv" / "manifest.json"

    def printed(train: int, *words: object) -> str:
        manifest.write_text(json.dumps({"splits": {"train": {"documents": train}, "test": {"documents": 6_440}}}))
        flags = ("--gpus", 0, "--data", corpora, "--dry-run", *CONFIGS)
        return run_lab("reproduce", "table2", "--rows", "7", *words, *flags).stdout

    assert f"# {corpora / 'arxiv'} is not the paper's arxiv: it has 24 documents to train on" in printed(24)
    assert "is not the paper's" not in printed(203_000) + printed(24, "--scale", "tiny")


@pytest.mark.nightly
def test_tiny_runs_on_the_cpu_with_the_sample_and_figures_5_and_6_are_one_measurement() -> None:
    commands = planned("table4", "--rows", "max", "--scale", "tiny")
    assert commands[0][1:4] == ["pyramidions", "prepare", str(ROOT / "data" / "sample")]
    assert commands[1][0] == "" and commands[1][-1] == "common.cpu=true"
    (command,) = planned("figure5", "figure6", "--gpus", "1")
    assert command[2] == str(ROOT / "lab/benchmarks" / "topk.py")


@pytest.mark.nightly
def test_gpus_are_those_that_torch_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    asked = sentence_of(run_lab("reproduce", "table2", "--gpus", 8, *CONFIGS))
    assert asked == "--gpus must be at most 2, what torch finds, but is 8."

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONFIGS = ("--configs", str(ROOT / "configs"))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """A folder with two corpora that count as prepared."""
    for name in ("arxiv", "pubmed"):
        (tmp_path / "corpora" / name).mkdir(parents=True)
        (tmp_path / "corpora" / name / "manifest.json").touch()
    return tmp_path / "corpora"


def planned(run: Any, *words: object) -> list[list[str]]:
    """The commands of a dry run, by word, without folders of programs; first the GPUs that each sees."""
    result = run("reproduce", *words, "--dry-run", *CONFIGS)
    assert result.exit_code == 0, result.stderr
    lines = [shlex.split(line) for line in result.stdout.splitlines() if line and not line.startswith("#")]
    lines = [line if line[0].startswith("CUDA_VISIBLE_DEVICES=") else ["=all", *line] for line in lines]
    return [[gpus.partition("=")[2], Path(program).name, *words] for gpus, program, *words in lines]


def test_a_row_is_trained_generated_scored_and_timed(run: Any, corpora: Path, tmp_path: Path) -> None:
    commands = planned(run, "table2", "--rows", "7", "--gpus", "1", "--data", corpora, "--out", tmp_path / "out")
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
    run: Any, corpora: Path, tmp_path: Path
) -> None:
    small = ("--scale", "small", "--seeds", "1", "--data", corpora / "arxiv", "--out", tmp_path / "out")
    commands = planned(run, "table4", "--rows", "linear,mean", *small)
    assert [line[1] for line in commands].count("fairseq-hydra-train") == 2
    assert not any("finetune_from_model" in word for line in commands for word in line)
    longer, *_ = planned(run, "table4", "--rows", "mean", *small, "--updates", "1000")
    assert "optimization.max_update=1000" in longer
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_a_dry_run_prints_the_jobs_of_slurm_without_slurm(run: Any, corpora: Path) -> None:
    flags = ("--gpus", 8, "--nodes", 2, "--launcher", "slurm", "--data", corpora, "--dry-run", *CONFIGS)
    printed = run("reproduce", "table2", "--rows", "7", *flags).stdout
    assert [line.split(", ")[1:4] for line in printed.splitlines() if line.startswith("# job: ")] == [
        ["nodes 2", "gpus_per_node 8", "cpus_per_task 32"],
        ["nodes 1", "gpus_per_node 8", "cpus_per_task 32"],
        ["nodes 1", "gpus_per_node 0", "cpus_per_task 16"],
        ["nodes 1", "gpus_per_node 1", "cpus_per_task 4"],
    ]


@pytest.mark.nightly
def test_a_corpus_that_is_not_the_papers_is_named_at_the_papers_scale(run: Any, corpora: Path) -> None:
    manifest = corpora / "arxiv" / "manifest.json"

    def printed(train: int, *words: object) -> str:
        manifest.write_text(json.dumps({"splits": {"train": {"documents": train}, "test": {"documents": 6_440}}}))
        flags = ("--gpus", 0, "--data", corpora, "--dry-run", *CONFIGS)
        return run("reproduce", "table2", "--rows", "7", *words, *flags).stdout

    assert f"# {corpora / 'arxiv'} is not the paper's arxiv: it has 24 documents to train on" in printed(24)
    assert "is not the paper's" not in printed(203_000) + printed(24, "--scale", "tiny")


@pytest.mark.nightly
def test_tiny_runs_on_the_cpu_with_the_sample_and_figures_5_and_6_are_one_measurement(run: Any) -> None:
    commands = planned(run, "table4", "--rows", "max", "--scale", "tiny")
    assert commands[0][1:4] == ["pyramidions", "prepare", str(ROOT / "data" / "sample")]
    assert commands[1][0] == "" and commands[1][-1] == "common.cpu=true"
    (command,) = planned(run, "figure5", "figure6", "--gpus", "1")
    assert command[2] == str(ROOT / "lab/benchmarks" / "topk.py")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("table2 --rows 99 --gpus 1", "--rows must be of 1, 2, 3"),
        ("table2 --rows 1,,2 --gpus 1", ", but one is ''."),
        ("figure5 --rows 1", "not to figure5."),
        ("dynamic_pooling_figure3 --batch-size 4", "--batch-size"),
        ("table2 --configs nowhere", "paper.csv, but is "),
        ("table2 --data nowhere --gpus 1", "but is nowhere."),
        ("table2 --data . --gpus 1", "a folder arxiv, but . does neither."),
        (f"table2 --out {__file__}", f"{__file__} is a file."),
        ("table2 --nodes 2 --gpus 0", "--gpus must be at least 1"),
        # Of two GPUs
        ("table2 --gpus 8", "--gpus must be at most 2, what torch finds, but is 8."),
        ("table2 --gpus 2 --nodes 2", "--nodes must be 1 without --launcher slurm"),
    ],
)
def test_what_a_user_gets_wrong_ends_in_one_sentence(
    fail: Any, words: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    configs = () if "--configs" in words else CONFIGS
    # A dry run needs no GPU here.
    dry = () if told.endswith("8.") or "slurm" in told else ("--dry-run",)
    assert told in fail("reproduce", *words.split(), *configs, *dry)


@pytest.mark.nightly
def test_gpus_that_are_not_there_are_refused(fail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("lab.environment._first_gpu", lambda: None)
    for asked, rule in ((["--gpus", 8], "--gpus must be 0"), ([], "--gpus must be given")):
        assert fail("reproduce", "table2", *asked, *CONFIGS).startswith(rule)

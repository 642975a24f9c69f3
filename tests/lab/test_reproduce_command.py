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

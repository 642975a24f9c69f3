"""Toy problems under fairseq's commands."""

from pathlib import Path

import pytest
import torch
from fairseq_commands import USER_DIR, run

TASK = ["--user-dir", USER_DIR, "--task", "toy_sequences", "--cpu", "--shortest", "3", "--longest", "6"]
SIZES = [*("--test-shortest", "8", "--test-longest", "9"), *("--examples", "16", "--test-examples", "8")]


def train_command(folder: Path, updates: int) -> list[object]:
    return [
        *("fairseq-train", *TASK, *SIZES, "--arch", "vanilla", "--embed-dim", "16", "--ffn-embed-dim", "32"),
        *("--num-heads", "2", "--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.01"),
        *("--lr-scheduler", "fixed", "--batch-size", "8", "--valid-subset", "valid,test", "--save-dir", folder),
        *("--max-update", updates, "--save-interval-updates", "2", "--num-workers", "0", "--log-format", "simple"),
        *("--best-checkpoint-metric", "symbols_right", "--maximize-best-checkpoint-metric"),
    ]


def train(folder: Path, updates: int) -> str:
    done = run(*train_command(folder, updates))
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_an_unknown_best_metric_ends_a_run_at_its_first_update(tmp_path: Path) -> None:
    done = run(*train_command(tmp_path, 6), "--best-checkpoint-metric", "symbols_left")
    assert done.returncode != 0
    assert "--best-checkpoint-metric must be one of loss, nll_loss, ppl, sequences_right, " in done.stdout
    assert done.stdout.rstrip().endswith("but is 'symbols_left'.") and "num_updates 2" not in done.stdout


@pytest.mark.slow
def test_a_model_learns_is_tested_on_longer_inputs_and_resumes_bit_for_bit(tmp_path: Path) -> None:
    log = train(tmp_path / "whole", 6)
    for split in ("valid", "test"):
        (line,) = [line for line in log.splitlines() if f"on '{split}' subset" in line and "num_updates 6" in line]
        assert "symbols_right" in line and "sequences_right" in line
    # An end in mid-epoch, from where fairseq alone would train on.
    train(tmp_path / "parts", 5)
    assert "is finished" in train(tmp_path / "parts", 5)
    train(tmp_path / "parts", 6)
    whole, parts = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True)["model"] for name in ("whole", "parts")
    )
    assert all(torch.equal(weight, parts[name]) for name, weight in whole.items())
    best = tmp_path / "whole" / "checkpoint_best.pt"
    written = run("fairseq-generate", *TASK, *SIZES, "--path", best, "--gen-subset", "test", "--beam", "1")
    assert written.returncode == 0 and written.stdout.count("H-") == 8

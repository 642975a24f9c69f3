"""Language models under fairseq's own task and commands."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder
from fairseq_commands import USER_DIR, run

MODEL = [*("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2", "--layers", "1,2,1")]
TASK = ["--user-dir", USER_DIR, "--task", "language_modeling", "--cpu", "--sample-break-mode", "none"]
TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps " * 12


def prepared(folder: Path) -> Path:
    folder.mkdir()
    dictionary = Dictionary()
    for letter in "▁abcdefghijklmnopqrstuvwxyz":
        dictionary.add_symbol(letter)
    dictionary.save(str(folder / "dict.txt"))
    ids = torch.tensor([dictionary.index(letter) for letter in TEXT.replace(" ", "▁")])
    for split, part in (("train", ids), ("valid", ids[:200]), ("test", ids[100:400])):
        builder = MMapIndexedDatasetBuilder(str(folder / f"{split}.bin"), dtype=np.uint16)
        builder.add_item(part)
        builder.finalize(str(folder / f"{split}.idx"))
    return folder


def train(data: Path, folder: Path, arch: str, updates: int, *flags: object) -> str:
    done = run(
        *("fairseq-train", data, *TASK, "--tokens-per-sample", "64", "--arch", arch, *MODEL),
        *("--criterion", "boundary_cross_entropy", "--optimizer", "adam", "--lr", "0.01", "--lr-scheduler", "fixed"),
        *("--batch-size", "4", "--required-batch-size-multiple", "1", "--save-dir", folder, "--max-update", updates),
        *("--save-interval-updates", "2", "--num-workers", "0", "--log-format", "simple", "--log-interval", "1"),
        *("--clip-norm", "0.25", "--best-checkpoint-metric", "bpc", *flags),
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["hourglass_gumbel", "hourglass_entropy", "hourglass_whitespace"])
def test_a_model_trains_goes_on_and_is_scored(arch: str, tmp_path: Path) -> None:
    data = prepared(tmp_path / "data")
    log = train(data, tmp_path, arch, 4)
    assert "| bpc " in log and "| shortening_of_longest " in log and "| spaces_f1 " in log
    assert ("| boundary_loss " in log) == (arch != "hourglass_whitespace")
    log = train(data, tmp_path, arch, 6)
    assert "num_updates=5," in log and "num_updates=4," not in log
    checkpoint = tmp_path / "checkpoint_last.pt"
    losses = []
    for context in (0, 48):
        scored = run(
            *("fairseq-eval-lm", data, *TASK, "--tokens-per-sample", "64", "--context-window", context),
            *("--path", checkpoint, "--gen-subset", "test", "--batch-size", "2"),
        )
        assert scored.returncode == 0, scored.stdout
        assert "Evaluated 299 tokens" in scored.stdout or "Evaluated 300 tokens" in scored.stdout
        losses += [float(loss) for loss in re.findall(r"Loss \(base 2\): ([\d.]+)", scored.stdout)]
    assert len(losses) == 2 and all(0 < loss < 8 for loss in losses)

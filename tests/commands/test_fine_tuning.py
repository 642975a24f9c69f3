"""Runs that begin with the weights of another one, or gently."""

from pathlib import Path

import pytest
import torch
from fairseq_commands import train

from pyramidions.data.folder import DataFolder

# Update 8 ends the second of four intervals, the checkpoint at update 6 is in its middle.
GENTLE = [
    *("--pooling-warmup", "16", "--scorer-lr-scale", "10", "--freeze", "embeddings,encoder.0"),
    *("--disable-validation", "--save-interval-updates", "6"),
]


def weights(path: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(path, weights_only=True)["model"]
    return found


def test_a_gentle_run_resumes_bit_for_bit_and_frozen_parts_stay(data: DataFolder, tmp_path: Path) -> None:
    log = train(data, tmp_path / "whole", *GENTLE, "--max-update", "9")
    assert "parameters (embeddings,encoder.0)" in log
    train(data, tmp_path / "parts", *GENTLE, "--max-update", "6")
    middle = weights(tmp_path / "parts" / "checkpoint_last.pt")
    train(data, tmp_path / "parts", *GENTLE, "--max-update", "9")
    whole, parts = (weights(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "parts"))
    assert all(torch.equal(weight, parts[name]) for name, weight in whole.items())
    frozen = ("encoder.core.embedder.", "decoder.core.embedder.", "encoder.core.layers.0.")
    stayed = {name for name, weight in whole.items() if torch.equal(weight, middle[name])}
    assert stayed >= {name for name in whole if name.startswith(frozen)}
    assert not [name for name in stayed if name.startswith("encoder.core.layers.1.")]


def test_pooling_and_copying_are_added_where_fine_tuning_begins(data: DataFolder, tmp_path: Path) -> None:
    flags = ["--encoder-layers", "2", "--disable-validation", "--no-epoch-checkpoints"]
    plain = [*flags, "--pooling-lengths", "None,None"]
    pooled = [*flags, "--pooling-lengths", "None,16"]
    train(data, tmp_path / "blockwise", *plain, "--max-update", "1", arch="blockwise")
    start = tmp_path / "blockwise" / "checkpoint_last.pt"
    tunes = ["--finetune-from-model", start]
    log = train(data, tmp_path / "pooled", *pooled, *tunes, "--max-update", "1", arch="transpooler_pointer")
    assert f"loading pretrained model from {start}" in log and "is ignored" not in log
    named = "lacks these parts, which begin at random: encoder.core.poolers.1.scorer, decoder.core.output.pointer."
    assert named in log
    # Run again, it goes on from its own checkpoint, where fairseq would say nothing of the flag.
    again = train(data, tmp_path / "pooled", *pooled, *tunes, "--max-update", "2", arch="transpooler_pointer")
    assert "begin at random" not in again and "num_updates=2," in again
    assert f"--finetune-from-model {start} is ignored: {tmp_path / 'pooled'} holds checkpoint_last.pt" in again
    wrong = ["--finetune-from-model", tmp_path / "pooled" / "checkpoint_last.pt", "--max-update", "1"]
    with pytest.raises(AssertionError, match="The checkpoint is of another architecture: it has unknown "):
        train(data, tmp_path / "wrong", *plain, *wrong, arch="blockwise")

"""Runs that begin gently resume bit for bit."""

from pathlib import Path

import pytest
import torch
from fairseq_commands import train

from pyramidions.data.folder import DataFolder

# Update 8 ends the second of four intervals, the checkpoint at update 6 is in its middle.
GENTLE = [
    "--pooling-warmup",
    "16",
    "--scorer-lr-scale",
    "10",
    "--freeze",
    "embeddings,encoder.0",
    "--disable-validation",
    "--save-interval-updates",
    "6",
]


def weights(path: Path) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=True)["model"]


@pytest.mark.slow
def test_a_gentle_run_resumes_bit_for_bit(data: DataFolder, tmp_path: Path) -> None:
    log = train(data, tmp_path / "whole", *GENTLE, "--max-update", "10")
    assert "parameters (embeddings,encoder.0)" in log
    train(data, tmp_path / "parts", *GENTLE, "--max-update", "6")
    train(data, tmp_path / "parts", *GENTLE, "--max-update", "10")
    train(data, tmp_path / "usual", *GENTLE[6:], "--max-update", "10")
    whole, parts, usual = (weights(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "parts", "usual"))
    assert all(torch.equal(weight, parts[name]) for name, weight in whole.items())
    assert any(not torch.equal(weight, usual[name]) for name, weight in whole.items())
    frozen = ("encoder.core.embedder.", "decoder.core.embedder.", "encoder.core.layers.0.")
    begun = train(data, tmp_path / "begun", *GENTLE, "--max-update", "1")
    assert "num_updates=1," in begun
    first = weights(tmp_path / "begun" / "checkpoint_last.pt")
    stayed = {name for name, weight in whole.items() if torch.equal(weight, first[name])}
    assert stayed >= {name for name in whole if name.startswith(frozen)}
    assert not [name for name in stayed if name.startswith("encoder.core.layers.1.")]

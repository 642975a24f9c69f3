"""A GPU that torch cannot use is told apart from one that is not there."""

from pathlib import Path

import pytest
import torch

from lab.environment import why_no_gpu


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that lists two GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)'\necho 'GPU 1: other (UUID: 2)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")


def test_a_gpu_that_cannot_be_used_is_told_with_what_helps(driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert why_no_gpu() == (
        "torch 2.13.0+cpu is built without CUDA and cannot use this machine's GPU (NVIDIA A100-SXM4-40GB); "
        "TORCH=torch==2.13.0 scripts/setup.sh installs a build that can"
    )
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert why_no_gpu().endswith("its driver may be too old for CUDA 13.0, or CUDA_VISIBLE_DEVICES may hide it")
    monkeypatch.setenv("PATH", "/nowhere")
    assert why_no_gpu() == "torch finds no GPU"

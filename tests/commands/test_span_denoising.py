"""Pretraining on missing spans, and what follows it."""

from pathlib import Path

import pytest
import torch
from fairseq_commands import TASK, USER_DIR, run, train

from pyramidions.data.folder import DataFolder

SPANS = ["--task", "span_denoising", "--save-interval-updates", "4"]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]


@pytest.mark.slow
def test_a_pretrained_model_resumes_bit_for_bit_and_learns_to_summarize(data: DataFolder, tmp_path: Path) -> None:
    log = train(data, tmp_path / "whole", *SPANS, "--max-update", "8")
    # What fits 47 tokens of target beside the end: 35 missing ones behind 12 sentinels.
    assert "train: passages of up to 236 tokens: 213 and 47 in source and target" in log
    train(data, tmp_path / "parts", *SPANS, "--max-update", "4")
    train(data, tmp_path / "parts", *SPANS, "--max-update", "8")
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(weight, parts[name]) for name, weight in whole.items())
    start = tmp_path / "whole" / "checkpoint_last.pt"
    denoised = run(
        "fairseq-generate", data.path, "--user-dir", USER_DIR, "--cpu", *SPANS[:2], "--path", start, "--min-len", "1"
    )
    assert denoised.returncode == 0 and "Generate test with beam=" in denoised.stdout
    refused = run("pyramidions", "summarize", start, data.references_path("test")).stdout
    sentence = "must be a checkpoint of --task long_document_summarization, but was trained with --task span_denoising"
    assert f"{start} {sentence}" in refused
    tuned = train(data, tmp_path / "tuned", "--finetune-from-model", start, "--max-update", "1")
    assert f"loading pretrained model from {start}" in tuned
    model = tmp_path / "tuned" / "checkpoint_last.pt"
    written = run("fairseq-generate", data.path, *TASK, "--path", model, "--gen-subset", "test", "--min-len", "1")
    assert written.returncode == 0 and "Generate test with" in written.stdout


@pytest.mark.slow
def test_spans_that_are_copied_stay_in_the_source(data: DataFolder, tmp_path: Path) -> None:
    log = train(data, tmp_path, *SPANS, "--copy-spans", "--max-update", "1")
    # 231 tokens, and a sentinel on both sides of 12 spans; missing ones leave 213 of 236 tokens.
    assert "train: passages of up to 231 tokens: 255 and 47 in source and target" in log


def test_an_extractor_is_refused(data: DataFolder, tmp_path: Path) -> None:
    failed = run(
        *("fairseq-train", data.path, "--user-dir", USER_DIR, "--cpu", *SPANS, "--arch", "pyramidion_extractor"),
        *("--criterion", "cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--save-dir", tmp_path),
        *("--batch-size", "4", "--self-attention", "full", "--pooling-lengths", "64,None,None,None"),
    )
    assert failed.returncode != 0
    assert "--task span_denoising needs a model that writes, but --arch names one that rates sent" in failed.stdout

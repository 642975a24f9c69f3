"""fairseq's commands that read a checkpoint: generate, interactive, ensembles, averages; and what they refuse."""

import re
from pathlib import Path

import pytest
import torch
from fairseq_commands import TASK, finish, run
from torch.serialization import get_unsafe_globals_in_checkpoint

from pyramidions.data.folder import DataFolder

SHORT = ["--beam", "2", "--min-len", "4", "--max-len-b", "12"]


def generate(data: DataFolder, path: object, *flags: object) -> str:
    return finish("fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", path, *flags)


def hypotheses(log: str) -> dict[int, tuple[float, str]]:
    found = re.findall(r"^D-(\d+)\t(\S+)\t(.*)$", log, re.MULTILINE)
    return {int(index): (float(score), text) for index, score, text in found}


def test_decoding_settings_of_the_preset_travel_and_yield_to_flags(data: DataFolder, checkpoint: Path) -> None:
    # The tiny model's targets end at 48 tokens: the preset's 966 cannot be reached, its 72 not be asked for.
    log = generate(data, checkpoint, "--min-len", "6", "--batch-size", "10")
    assert sorted(hypotheses(log)) == list(range(10))
    assert re.search(r"Generate test with beam=2: rouge1 \d+\.\d+ \[.*\].* \| stemmer \| .* \| n=10 ", log)
    refused = run("fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", checkpoint)
    assert refused.returncode != 0
    assert "must have at most 47 tokens, as many as the model may write, but has 72." in refused.stdout
    # So does our score.
    log = generate(data, checkpoint, *SHORT, "--beam", "5", "--scoring", "bleu")
    assert "Generate test with beam=5: BLEU4 = " in log


def test_an_average_and_an_ensemble_write_the_same(data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    average = tmp_path / "average.pt"
    finish("pyramidions", "average", checkpoint, checkpoint, "-o", average)
    alone = hypotheses(generate(data, checkpoint, *SHORT))
    for path in (average, f"{checkpoint}:{checkpoint}"):
        other = hypotheses(generate(data, path, *SHORT))
        assert {i: text for i, (_, text) in other.items()} == {i: text for i, (_, text) in alone.items()}
        assert [s for s, _ in other.values()] == pytest.approx([s for s, _ in alone.values()], abs=1e-4)


def test_checkpoints_load_without_pickled_code(checkpoint: Path) -> None:
    assert get_unsafe_globals_in_checkpoint(checkpoint) == []
    assert torch.load(checkpoint, weights_only=True)["cfg"]["model"]["_name"] == "deep_pyramidion"

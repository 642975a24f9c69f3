"""Language models of characters under fairseq's commands."""

import random
import re
from pathlib import Path

import pytest
import torch
from fairseq_commands import USER_DIR, kill_at, run

from pyramidions.data.characters import WHOLE, CharacterSettings, prepare_characters
from pyramidions.data.text_streams import TextStream
from pyramidions.models import LANGUAGE_MODEL_PRESETS

TASK = ["--user-dir", USER_DIR, "--task", "character_language_modeling", "--cpu", "--tokens-per-sample", "64"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of words of a few letters, whose ends, of 500 characters each, become valid and test."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefg", k=draw.randint(1, 6))) for _ in range(40)]
    text = " ".join(draw.choices(words, k=700))
    path = tmp_path_factory.mktemp("characters") / "data"
    settings = CharacterSettings("en", valid_characters=500, pieces=30)
    prepare_characters(path, {WHOLE: TextStream("text", lambda: iter([text]))}, settings)
    return path


def train_command(data: Path, folder: Path, arch: str) -> list[object]:
    """An epoch has some seven updates, so that each run rolls its stream once or twice."""
    return [
        *("fairseq-train", data, *TASK, "--piece-boundaries", "--arch", arch, "--layers", "1,2,1"),
        *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
        *("--criterion", "boundary_cross_entropy", "--best-checkpoint-metric", "bpc", "--clip-norm", "0.25"),
        *("--optimizer", "adam", "--lr", "0.01", "--lr-scheduler", "cosine", "--batch-size", "4"),
        *("--max-update", "12", "--save-interval-updates", "2", "--log-format", "simple", "--log-interval", "1"),
        *("--num-workers", "0", "--save-dir", folder),
    ]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("arch", LANGUAGE_MODEL_PRESETS)
def test_a_killed_run_resumes_bit_for_bit_and_eval_lm_scores_the_whole_split(
    arch: str, data: Path, tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    done = run(*train_command(data, whole, arch))
    assert done.returncode == 0, done.stdout
    assert "| bpc " in done.stdout and "| epoch 002 |" in done.stdout
    assert ("| spaces_f1 " in done.stdout) == (arch != "hourglass_vanilla")
    learns = arch in ("hourglass_gumbel", "hourglass_unigram", "hourglass_entropy")
    assert ("| boundary_loss " in done.stdout) == learns

    command = train_command(data, parts, arch)
    kill_at(5, command)
    resumed = run(*command)
    assert resumed.returncode == 0 and "Loaded checkpoint" in resumed.stdout, resumed.stdout
    assert "num_updates=3," not in resumed.stdout
    expected, found = weights(whole), weights(parts)
    assert expected.keys() == found.keys()
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items())

    scored = run(
        *("fairseq-eval-lm", data, *TASK, "--path", parts / "checkpoint_last.pt", "--gen-subset", "test"),
        *("--context-window", "48", "--batch-size", "8"),
    )
    assert scored.returncode == 0 and "Evaluated 500 tokens" in scored.stdout, scored.stdout
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored.stdout)
    assert 1 < float(bits) < 5

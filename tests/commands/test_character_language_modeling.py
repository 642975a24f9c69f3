"""A language model of characters under fairseq's commands."""

import random
import re
import signal
from pathlib import Path

import pytest
import torch
from fairseq_commands import USER_DIR, run, start

from pyramidions.data.characters import WHOLE, CharacterSettings, prepare_characters
from pyramidions.data.text_streams import TextStream

TASK = ["--user-dir", USER_DIR, "--task", "character_language_modeling", "--cpu", "--tokens-per-sample", "64"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefg", k=draw.randint(1, 6))) for _ in range(40)]
    text = " ".join(draw.choices(words, k=1200))
    path = tmp_path_factory.mktemp("characters") / "data"
    settings = CharacterSettings("en", valid_characters=500, pieces=30)
    prepare_characters(path, {WHOLE: TextStream("text", lambda: iter([text]))}, settings)
    return path


def train_command(data: Path, folder: Path, updates: int) -> list[object]:
    return [
        *("fairseq-train", data, *TASK, "--piece-boundaries", "--arch", "transformer_lm", "--decoder-layers", "1"),
        *("--decoder-embed-dim", "16", "--decoder-ffn-embed-dim", "32", "--decoder-attention-heads", "2"),
        *("--criterion", "cross_entropy", "--optimizer", "adam", "--lr", "0.01", "--batch-size", "8"),
        *("--max-update", updates, "--save-interval-updates", "2", "--log-format", "simple", "--log-interval", "1"),
        *("--num-workers", "1", "--save-dir", folder),
    ]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
    return found


@pytest.mark.slow
def test_a_killed_run_resumes_bit_for_bit_and_eval_lm_scores_the_whole_split(data: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    done = run(*train_command(data, whole, 20))
    assert done.returncode == 0, done.stdout
    killed = start(*train_command(data, parts, 20))
    assert killed.stdout is not None
    for line in killed.stdout:
        if "num_updates=7" in line:
            break
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    resumed = run(*train_command(data, parts, 20))
    assert resumed.returncode == 0 and "Loaded checkpoint" in resumed.stdout, resumed.stdout
    assert all(torch.equal(weight, weights(parts)[name]) for name, weight in weights(whole).items())

    path = ["--path", whole / "checkpoint_last.pt", "--gen-subset", "test", "--context-window", "48"]
    bits = []
    for options in (["--batch-size", "1"], ["--num-workers", "2"]):
        scored = run("fairseq-eval-lm", data, *TASK, *path, *options)
        assert scored.returncode == 0, scored.stdout
        assert "Evaluated 500 tokens" in scored.stdout
        bits += re.findall(r"Loss \(base 2\): (\d\.\d+)", scored.stdout)
    assert len(bits) == 2 and bits[0] == bits[1] and 1 < float(bits[0]) < 5

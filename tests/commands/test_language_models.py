"""Language models of characters under fairseq's commands."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq_commands import USER_DIR, run
from small_language_models import OWN_LAYERS, WITHOUT_SEGMENTS

from pyramidions.data.characters import WHOLE, CharacterSettings, prepare_characters
from pyramidions.data.text_streams import TextStream
from pyramidions.models import LANGUAGE_MODEL_PRESETS, LanguageModelConfig

TASK = ["--user-dir", USER_DIR, "--task", "character_language_modeling", "--cpu"]
WINDOW = ["--tokens-per-sample", "64"]
LEARNED = ("hourglass_gumbel", "hourglass_unigram", "hourglass_entropy", "hourglass_routing")


def prepared(path: Path, text: str) -> Path:
    """Make a folder of a text, whose ends, of 500 characters each, become valid and test."""
    settings = CharacterSettings("en", valid_characters=500, pieces=30)
    prepare_characters(path, {WHOLE: TextStream("text", lambda: iter([text]))}, settings)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of words of a few letters."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefg", k=draw.randint(1, 6))) for _ in range(40)]
    return prepared(tmp_path_factory.mktemp("characters") / "data", " ".join(draw.choices(words, k=700)))


def train_command(data: Path, folder: Path, arch: str, *flags: object) -> list[object]:
    """An epoch has some seven updates, so that each run rolls its stream once or twice."""
    own = OWN_LAYERS.get(arch, {})
    layers = ["--layers", "1,2,1"] if not own else [f for k, v in own.items() for f in (f"--{k.replace('_', '-')}", v)]
    return [
        *("fairseq-train", data, *TASK, *WINDOW, "--arch", arch, *layers),
        *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
        *("--criterion", "boundary_cross_entropy", "--best-checkpoint-metric", "bpc", "--clip-norm", "0.25"),
        *("--optimizer", "adam", "--lr", "0.01", "--lr-scheduler", "cosine", "--batch-size", "4"),
        *("--max-update", "12", "--save-interval-updates", "4", "--log-format", "simple", "--log-interval", "1"),
        *("--num-workers", "0", "--save-dir", folder, *flags),
    ]


def saved(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("arch", LANGUAGE_MODEL_PRESETS)
def test_a_killed_run_ends_bit_for_bit_like_a_whole_one_is_scored_and_continues_texts(
    arch: str, data: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = run(*train_command(data, whole, arch, "--piece-boundaries"))
    assert done.returncode == 0, done.stdout
    assert "| bpc " in done.stdout and "| epoch 002 |" in done.stdout
    assert ("| spaces_f1 " in done.stdout) == (arch not in WITHOUT_SEGMENTS)
    assert ("| boundary_loss " in done.stdout) == (arch in LEARNED)

    command = train_command(data, killed, arch, "--piece-boundaries")
    assert run(*command, kill_at=6).returncode == -9
    rest = run(*command)
    assert rest.returncode == 0 and "Loaded checkpoint" in rest.stdout, rest.stdout
    assert "num_updates=5," in rest.stdout and "num_updates=4," not in rest.stdout
    first, second = saved(whole), saved(killed)
    for part in ("model", "last_optimizer_state"):
        torch.testing.assert_close(first[part], second[part], rtol=0, atol=0)

    # As of a version that had none of the fields which are at their defaults.
    model = second["cfg"]["model"]
    defaults = vars(LanguageModelConfig())
    second["cfg"]["model"] = {name: value for name, value in model.items() if value != defaults.get(name, ...)}
    assert "attention_dropout" not in second["cfg"]["model"]
    torch.save(second, killed / "older.pt")
    checkpoint = ["--path", killed / "older.pt"]
    scored = run(
        *("fairseq-eval-lm", data, *TASK, *WINDOW, *checkpoint, "--gen-subset", "test"),
        *("--context-window", "48", "--batch-size", "8"),
    )
    assert scored.returncode == 0 and "Evaluated 500 tokens" in scored.stdout, scored.stdout
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored.stdout)
    assert 1 < float(bits) < 5

    (tmp_path / "prompts.txt").write_text("Bad cafe\n\n")
    written = run(
        *("fairseq-interactive", data, *TASK, *checkpoint, "--input", tmp_path / "prompts.txt", "--beam", "2"),
        *("--buffer-size", "2", "--max-len-a", "1", "--max-len-b", "20"),
    )
    texts = dict(re.findall(r"^D-(\d)\t-\d+\.\d+\t(.*)$", written.stdout, re.MULTILINE))
    assert written.returncode == 0 and {name: len(text) for name, text in texts.items()} == {"0": 28, "1": 20}
    assert re.fullmatch("bad cafe[a-g ]*", texts["0"]), written.stdout


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["hourglass_whitespace", *LEARNED])
def test_a_text_without_any_space_is_trained_on_and_scored(arch: str, tmp_path: Path) -> None:
    data = prepared(tmp_path / "data", "".join(random.Random(3).choices("abcdefg", k=1400)))
    done = run(*train_command(data, tmp_path / "trained", arch, "--piece-boundaries", "--max-update", "3"))
    assert done.returncode == 0 and "nan" not in done.stdout and "inf," not in done.stdout, done.stdout
    checkpoint = tmp_path / "trained" / "checkpoint_last.pt"
    scored = run("fairseq-eval-lm", data, *TASK, *WINDOW, "--path", checkpoint, "--gen-subset", "test")
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored.stdout)
    assert 2 < float(bits) < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "flags", "sentence"),
    [
        ("fixed_2", ["--boundaries", "fixed(factor=0)"], "`factor` must be at least 2, but is 0."),
        ("fixed_2", ["--boundaries", "fixed(factor=1)"], "`factor` must be at least 2, but is 1."),
        ("gumbel", ["--boundaries", "gumbel(prior=0)"], "`prior` must be above 0 and below 1, but is 0."),
        ("gumbel", ["--boundaries", "gumbel(prior=1.5)"], "`prior` must be above 0 and below 1, but is 1.5."),
        (
            "whitespace",
            ["--layers", "2,8"],
            "`layers` must be one number, three or five ..., such as 2,8,2, and from 1 to 1,000 in all, but is '2,8'.",
        ),
        (
            "vanilla",
            ["--tokens-per-sample", "4000"],
            "`tokens_per_sample` must be at most the 2,164 characters of train, but is 4,000.",
        ),
        (
            "vanilla",
            ["--max-tokens", "63"],
            "A window of 64 characters must fit --max-tokens, but the most is 63.",
        ),
        (
            "unigram",
            [],
            "`boundaries` unigram learns from the ends of pieces: prepare the data with `pyramidions prepare "
            "--characters --pieces`, and train with --piece-boundaries.",
        ),
        ("gumbel", ["--boundary-weight", "-1"], "`boundary_weight` must be at least 0 and finite, but is -1.0."),
        (
            "gumbel",
            ["--criterion", "cross_entropy", "--best-checkpoint-metric", "loss"],
            "Boundaries that learn need --criterion boundary_cross_entropy, but --criterion is cross_entropy.",
        ),
    ],
)
def test_what_cannot_be_trained_ends_in_one_sentence(
    arch: str, flags: list[str], sentence: str, data: Path, tmp_path: Path
) -> None:
    done = run(*train_command(data, tmp_path, f"hourglass_{arch}", *flags))
    assert done.returncode == 1
    assert done.stdout.rstrip("\n").splitlines()[-1] == f"pyramidions.base.errors.UserError: {sentence}"


@pytest.fixture(scope="module")
def checkpoint(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    done = run(*train_command(data, folder, "hourglass_gumbel", "--max-update", "1"))
    assert done.returncode == 0, done.stdout
    return folder / "checkpoint_last.pt"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--context-window", "64"],
            "`tokens_per_sample` must be at least 1, and above --context-window where that is given, but is 0.",
        ),
        (["--max-tokens", "63"], "A window of 64 characters must fit --max-tokens, but the most is 63."),
        (["--gen-subset", "dev"], "DATA has no split 'dev'; its splits are train, valid, test."),
    ],
)
def test_what_cannot_be_scored_ends_in_one_sentence(
    flags: list[str], sentence: str, data: Path, checkpoint: Path
) -> None:
    done = run("fairseq-eval-lm", data, *TASK, *WINDOW, "--path", checkpoint, "--gen-subset", "test", *flags)
    assert done.returncode == 1
    expected = f"pyramidions.base.errors.UserError: {sentence.replace('DATA', str(data))}"
    assert done.stdout.rstrip("\n").splitlines()[-1] == expected


@pytest.mark.slow
def test_a_model_scores_and_continues_texts_of_its_own_alphabet_alone(
    data: Path, checkpoint: Path, tmp_path: Path
) -> None:
    finnish = tmp_path / "finnish"
    settings = CharacterSettings("fi", valid_characters=100)
    prepare_characters(finnish, {WHOLE: TextStream("text", lambda: iter(["päivää " * 99]))}, settings)
    (tmp_path / "prompts.txt").write_text("abc\n")
    prompted = ["--input", tmp_path / "prompts.txt"]
    sentence = f"The checkpoint is of the alphabet 'en-lines', but {finnish} of 'fi-lines'."
    for command, more in (("eval-lm", [*WINDOW, "--gen-subset", "test"]), ("interactive", prompted)):
        done = run(f"fairseq-{command}", finnish, *TASK, "--path", checkpoint, *more)
        assert done.returncode == 1
        assert done.stdout.rstrip("\n").splitlines()[-1] == f"pyramidions.base.errors.UserError: {sentence}"
    short = run("fairseq-interactive", data, *TASK, "--path", checkpoint, *prompted, "--max-len-b", "3")
    assert short.returncode == 1 and short.stdout.rstrip("\n").endswith("than its prompt of 3 characters, but has 3.")

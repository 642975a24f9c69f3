"""`pyramidions import`, and what becomes of its checkpoint."""

import json
import lzma
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import Result
from conftest import SAMPLE
from fairseq.data import Dictionary
from fairseq_commands import TASK
from fairseq_commands import run as run_program
from fairseq_commands import start as start_program
from small_pretrained import RECIPE, model_of, save
from tables import for_each

from pyramidions import Summarizer
from pyramidions.models.experiment import read_experiment
from pyramidions.models.fitting import VOCABULARY, fingerprint, fingerprint_of
from pyramidions.pretrained.checkpoint_file import read_checkpoint
from pyramidions.text.tokenizer import Tokenizer

CONFIGS = Path(__file__).parents[2] / "configs"
Run = Callable[..., Result]
POOLED = ["--max-source-positions", 120, "--self-attention", "blockwise(block_size=40)"]


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save(model_of("bart"), tmp_path_factory.mktemp("bart"))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return folder


def test_it_says_what_was_taken_extended_and_made_anew(run: Run, bart: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"article": "Bees fly fast over roses.", "abstract": "Bees fly."}\n' * 2)
    out = tmp_path / "bart.pt"
    done = run("import", bart, "-o", out, *POOLED, "--pooling-lengths", "None,8", "--compare", pairs, "--seed", 3)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("bart, licence apache-2.0: 2 + 2 layers, 16 wide, 340 pieces, ")
    assert "extended: encoder positions from 40 to 120, by copying" in lines
    assert "new: encoder.poolers.1.scorer.linear.weight, encoder.poolers.1.scorer.linear.bias" in lines
    assert "scaled so that their scores spread: poolers.1.scorer.linear" in lines
    assert "writes 0 to 38 tokens, with repetitions: beam 4, length penalty 1" in lines
    told = [line.rpartition(" ") for line in lines if line.startswith("log-likelihood")]
    assert [words for words, *_ in told] == [
        f"log-likelihood of a token, mean over 2 pairs, {when}:" for when in ("before", "after")
    ]
    # Short texts are not pooled.
    assert told[0][2] != "nan" and len({value for *_, value in told}) == 2
    state = read_checkpoint(out)
    assert state["source"] == {"source": bart.name, "family": "bart", "licence": "apache-2.0"}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "configs" / "pretrained" / "small.yaml"
    path.parent.mkdir(parents=True)
    shutil.copy(CONFIGS / "base.yaml", tmp_path / "configs")
    path.write_text(RECIPE)
    return path


def test_a_config_says_the_same_as_options(run: Run, bart: Path, tmp_path: Path, recipe: Path) -> None:
    options = [*POOLED, "--pooling-lengths", "None,8"]
    for name, given in (("options", options), ("config", ["--config", recipe])):
        done = run("import", bart, "-o", tmp_path / f"{name}.pt", *given)
        assert done.exit_code == 0, done.output
    by_options, by_config = (read_checkpoint(tmp_path / f"{name}.pt")["model"] for name in ("options", "config"))
    assert by_options.keys() == by_config.keys()
    assert all(value.equal(by_config[name]) for name, value in by_options.items())


@for_each(
    ("says", "instead", "sentence"),
    [
        (
            "'gelu'",
            "'relu'",
            "`feed_forward` must be dense(activation='gelu'), as in the pretrained model, but is "
            "dense(activation='relu').",
        ),
        (
            "encoder_positions: learned(length=120)",
            "encoder_positions: none",
            "`encoder_positions` must be learned(length=40), as in the pretrained model, but is none.",
        ),
        (
            "length=120",
            "length=400",
            "`encoder_positions` must be learned(length=120), to hold both texts and weights, but is "
            "learned(length=400).",
        ),
        ("num_heads: 2", "num_heads: 4", "`num_heads` must be 2, as in the pretrained bart, but is 4."),
    ],
)
def test_a_config_of_another_model_is_refused(
    run: Run, bart: Path, tmp_path: Path, recipe: Path, says: str, instead: str, sentence: str
) -> None:
    recipe.write_text(RECIPE.replace(says, instead))
    done = run("import", bart, "-o", tmp_path / "bart.pt", "--config", recipe)
    assert done.exit_code == 1 and sentence in done.stderr
    assert not (tmp_path / "bart.pt").exists()


def test_the_printed_training_is_that_of_the_recipes(run: Run, bart: Path, tmp_path: Path) -> None:
    done = run("import", bart, "-o", tmp_path / "bart.pt")
    words = shlex.split(done.stdout[done.stdout.index("fairseq-train") :].replace("\\\n", " "))
    flags = ("--lr", "--warmup-updates", "--max-update", "--clip-norm")
    printed = [float(words[words.index(flag) + 1]) for flag in flags]
    found = read_experiment(str(CONFIGS / "pretrained" / "bart_base_4k_blockwise.yaml")).run
    ours = [*found["optimization"]["lr"], found["lr_scheduler"]["warmup_updates"]]
    ours += [found["optimization"][name] for name in ("max_update", "clip_norm")]
    assert printed == ours


def test_a_config_leaves_no_room_for_other_options(run: Run, bart: Path, tmp_path: Path, recipe: Path) -> None:
    done = run("import", bart, "-o", tmp_path / "bart.pt", "--config", recipe, "--scorer", "linear")
    assert done.exit_code == 1 and done.stderr.startswith("Error: --scorer ")


def test_calibration_is_told_and_compared(run: Run, bart: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    text = "Bees fly fast over roses."
    pairs.write_text(f'{{"article": "{text * 2}", "abstract": "Bees fly."}}\n' * 3)
    both = ["--pooling-lengths", "None,8", "--scorer", "nonlinear", "--compare", pairs, "--calibrate", pairs]
    done = run("import", bart, "-o", tmp_path / "bart.pt", *both, "--limit", 2)
    assert done.exit_code == 0, done.output
    assert "not scaled without documents, but by --calibrate: poolers.1.scorer" in done.stdout.splitlines()
    assert "calibrated on 2 documents: poolers.1.scorer, whose logits had mean " in done.stdout
    told = {line.split()[-2]: line.split()[-1] for line in done.stdout.splitlines() if line.startswith("log-like")}
    assert list(told) == ["before:", "after:", "calibrated:"] and len(set(told.values())) == 3


def test_summaries_need_nothing_but_the_checkpoint(run: Run, bart: Path, tmp_path: Path) -> None:
    assert run("import", bart, "-o", tmp_path / "bart.pt").exit_code == 0
    (found,) = Summarizer.from_pretrained(tmp_path / "bart.pt", "cpu").summarize(["Bees fly."], max_len=8, min_len=8)
    # The end, and what stands in front of every text.
    assert found.tokens == 9 and found.document_tokens == found.read_tokens > 2


def test_the_checkpoint_is_exported_for_transformers(run: Run, bart: Path, tmp_path: Path) -> None:
    assert run("import", bart, "-o", tmp_path / "bart.pt").exit_code == 0
    done = run("export", tmp_path / "bart.pt", tmp_path / "out", "--to", "hf", "--license", "apache-2.0")
    assert done.exit_code == 0, done.output
    names = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]
    assert done.stdout.endswith(f"out: {', '.join([*names, 'tokenizer_config.json'])}\n")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "bart"
    # The same place may get our own format afterwards.
    assert run("export", tmp_path / "bart.pt", tmp_path / "out").exit_code == 0
    assert Summarizer.from_pretrained(tmp_path / "out", "cpu").model.config.layernorm_embedding


@for_each(
    ("arguments", "sentence"),
    [
        (["-o", "bart.ckpt"], "--out must end in .pt, but is bart.ckpt."),
        (["-o", "b.pt", "--max-source-positions", 1], "--max-source-positions must be a whole number from 2 to "),
        (["-o", "b.pt", "--self-attention", "half"], "--self-attention must be one of adaptive_span, "),
        (["-o", "b.pt", "--calibrate", "no.txt"], "--calibrate needs --pooling-lengths, which are not given."),
        (
            ["-o", "b.pt", "--limit", 20],
            "--limit is an option of --compare and --calibrate, neither of which is given.",
        ),
        (["-o", "b.pt", "--scorer", "random"], "--scorer is an option of --pooling-lengths, which is not given."),
    ],
)
def test_what_breaks_a_rule_writes_nothing(
    fail: Callable[..., str],
    bart: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[object],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fail("import", bart, *arguments).startswith(sentence)
    assert not list(tmp_path.iterdir())


def test_the_weights_that_are_read_are_never_replaced(
    fail: Callable[..., str], bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(bart, tmp_path / "bart"))
    torch.save({"model": {}, "cfg": {}}, "model.pt")
    before = Path("model.pt").read_bytes()
    assert fail("import", ".", "-o", "model.pt") == "--out must not replace one of the inputs, but is model.pt."
    assert Path("model.pt").read_bytes() == before


@pytest.mark.parametrize("option", ["--calibrate", "--compare"])
def test_what_cannot_be_read_is_said_before_the_import(
    fail: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr("pyramidions.conversion.importing.import_model", lambda *_, **__: pytest.fail("imported"))
    (tmp_path / "empty.jsonl").touch()
    for name in ("no.jsonl", "empty.jsonl"):
        given = ["-o", tmp_path / "b.pt", "--pooling-lengths", "None,8", option, tmp_path / name]
        assert f"{name}" in fail("import", "owner/bart", *given)


@pytest.mark.parametrize("changed", [["--scorer", "random"], ["--pooling", "mean"]])
def test_without_a_scorer_to_calibrate_nothing_is_compared(
    fail: Callable[..., str], bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: list[str]
) -> None:
    monkeypatch.setattr("pyramidions.cli.import_model._compare", lambda *_: pytest.fail("compared"))
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"article": "Bees fly fast over roses.", "abstract": "Bees fly."}\n')
    given = ["--pooling-lengths", "None,8", *changed, "--compare", pairs, "--calibrate", pairs]
    sentence = "--calibrate needs poolings with a linear or nonlinear --scorer, but the model has none."
    assert fail("import", bart, "-o", tmp_path / "b.pt", *given).startswith(sentence)


def test_logits_that_do_not_vary_are_told_from_scorers_that_are_not_there(
    run: Run, bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyramidions.conversion import calibration

    (tmp_path / "paper.txt").write_text("Bees fly fast over roses.")
    given = [
        "import",
        bart,
        "-o",
        tmp_path / "b.pt",
        "--pooling-lengths",
        "12,8",
        "--calibrate",
        tmp_path / "paper.txt",
    ]
    calibrate = calibration.calibrate
    monkeypatch.setattr(calibration, "calibrate", lambda *given: calibrate(*given)[1:])
    done = run(*given)
    assert done.exit_code == 0 and "calibrated on 1 document: poolers.1.scorer, whose logits had" in done.stdout
    assert "not calibrated, as their logits do not vary: poolers.0.scorer\n" in done.stdout
    (tmp_path / "b.pt").unlink()
    monkeypatch.setattr(calibration, "calibrate", lambda *_: [])
    done = run(*given)
    sentence = "--calibrate needs logits that vary, but those of poolers.0.scorer, poolers.1.scorer do not."
    assert done.exit_code == 1 and sentence in done.stderr and not (tmp_path / "b.pt").exists()


def test_the_vocabulary_is_known_by_the_number_that_fairseq_computes(bart: Path) -> None:
    from pyramidions.conversion.importing import import_model

    tokenizer: Tokenizer = import_model(bart).model.tokenizer
    dictionary = Dictionary()
    for piece in tokenizer.pieces()[4:]:
        dictionary.add_symbol(piece)
    assert fingerprint_of(tokenizer.pieces()) == fingerprint(dictionary)


@pytest.mark.slow
def test_an_imported_model_is_trained_resumed_and_summarizes(run: Run, bart: Path, tmp_path: Path) -> None:
    imported, data = tmp_path / "bart.pt", tmp_path / "data"
    done = run("import", bart, "-o", imported, *POOLED, "--pooling-lengths", "None,8")
    assert done.exit_code == 0, done.output
    flags = shlex.split(done.stdout[done.stdout.index("--finetune-from-model") :].replace("\\\n", " "))
    papers = tmp_path / "papers"
    papers.mkdir()
    for split, count in (("train", 12), ("valid", 4), ("test", 4)):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as lines:
            (papers / f"{split}.jsonl").write_text("".join(line for _, line in zip(range(count), lines, strict=False)))
    made = run_program("pyramidions", "prepare", papers, "--out", data, "--tokenizer", imported)
    assert made.returncode == 0, made.stdout

    def training(save_dir: str, updates: int) -> list[object]:
        # fairseq ignores the checkpoint to start from where there is one to go on with.
        return [
            *("fairseq-train", data, *TASK, *flags, "--save-dir", tmp_path / save_dir),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--batch-size", "4"),
            *("--max-update", updates, "--save-interval-updates", "2", "--num-workers", "0", "--disable-validation"),
        ]

    def train(save_dir: str, updates: int) -> dict[str, torch.Tensor]:
        done = run_program(*training(save_dir, updates))
        assert done.returncode == 0, done.stdout
        return read_checkpoint(tmp_path / save_dir / "checkpoint_last.pt")["model"]

    whole, _ = train("whole", 30), train("parts", 2)
    killed = start_program(*training("killed", 30))
    while killed.poll() is None and not (tmp_path / "killed" / "checkpoint_2_4.pt").exists():
        time.sleep(0.01)
    killed.kill()
    assert "num_updates 30" not in killed.communicate()[0] and killed.returncode == -signal.SIGKILL
    before = read_checkpoint(imported)["model"]
    for save_dir in ("parts", "killed"):
        resumed = train(save_dir, 30)
        assert all(torch.equal(weight, whole[name]) for name, weight in resumed.items()), save_dir
    assert whole.keys() == before.keys() and int(whole[VOCABULARY]) == int(before[VOCABULARY])
    assert any(not torch.equal(weight, whole[name]) for name, weight in before.items())
    path = tmp_path / "whole" / "checkpoint_last.pt"
    written = run_program(
        *("fairseq-generate", data, *TASK, "--path", path, "--batch-size", "2", "--max-len-b", "9", "--min-len", "1"),
        *("--results-path", tmp_path / "generated"),
    )
    assert written.returncode == 0, written.stdout
    assert run("score", tmp_path / "generated" / "generate-test.txt", "--data", data, "--workers", 1).exit_code == 0
    assert run("export", path, tmp_path / "export").exit_code == 0
    summaries, page = tmp_path / "summaries.jsonl", tmp_path / "page.html"
    done = run(
        *(
            "summarize",
            tmp_path / "export",
            papers / "test.jsonl",
            "--field",
            "article",
            "--max-len",
            9,
            "--min-len",
            1,
        ),
        *("-o", summaries, "--explain", page, "--precision", "float32"),
    )
    assert done.exit_code == 0, done.output
    ours = [json.loads(line)["summary"] for line in summaries.read_text().splitlines()]
    theirs = {
        int(line.split("\t")[0][2:]): line.split("\t")[2]
        for line in (tmp_path / "generated" / "generate-test.txt").read_text().splitlines()
        if line.startswith("D-")
    }
    assert ours == [" ".join(theirs[number].split()) for number in range(4)]

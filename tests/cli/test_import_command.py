"""`pyramidions import`; tests/commands has the life of what it makes."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from invoking import fail, run, succeed
from small_pretrained import model_of, save

from pyramidions import Summarizer
from pyramidions.models.experiment import read_experiment
from pyramidions.models.formats import fingerprint
from pyramidions.pretrained import calibration
from pyramidions.pretrained.checkpoint_file import read_checkpoint
from pyramidions.pretrained.importing import import_model
from pyramidions.text.tokenizer import Tokenizer

CONFIGS = Path(__file__).parents[2] / "configs"
POOLED = ["--max-source-positions", 120, "--self-attention", "blockwise(block_size=40)"]


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save(model_of("bart"), tmp_path_factory.mktemp("bart"))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return folder


def test_it_says_what_was_taken_extended_and_made_anew(bart: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"article": "Bees fly fast over roses.", "abstract": "Bees fly."}\n' * 2)
    out = tmp_path / "bart.pt"
    done = succeed("import", bart, "-o", out, *POOLED, "--pooling-lengths", "None,8", "--compare", pairs, "--seed", 3)
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


def test_the_printed_training_is_that_of_the_recipes(bart: Path, tmp_path: Path) -> None:
    done = run("import", bart, "-o", tmp_path / "bart.pt")
    words = shlex.split(done.stdout[done.stdout.index("fairseq-train") :].replace("\\\n", " "))
    flags = ("--lr", "--warmup-updates", "--max-update", "--clip-norm")
    printed = [float(words[words.index(flag) + 1]) for flag in flags]
    found = read_experiment(str(CONFIGS / "pretrained" / "bart_base_4k_blockwise.yaml")).run
    ours = [*found["optimization"]["lr"], found["lr_scheduler"]["warmup_updates"]]
    ours += [found["optimization"][name] for name in ("max_update", "clip_norm")]
    assert printed == ours


def test_calibration_is_told_and_compared(bart: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    text = "Bees fly fast over roses."
    pairs.write_text(f'{{"article": "{text * 2}", "abstract": "Bees fly."}}\n' * 3)
    both = ["--pooling-lengths", "None,8", "--scorer", "nonlinear", "--compare", pairs, "--calibrate", pairs]
    done = succeed("import", bart, "-o", tmp_path / "bart.pt", *both, "--limit", 2)
    assert "not scaled without documents, but by --calibrate: poolers.1.scorer" in done.stdout.splitlines()
    assert "calibrated on 2 documents: poolers.1.scorer, whose logits had mean " in done.stdout
    told = {line.split()[-2]: line.split()[-1] for line in done.stdout.splitlines() if line.startswith("log-like")}
    assert list(told) == ["before:", "after:", "calibrated:"] and len(set(told.values())) == 3


def test_the_checkpoint_is_exported_for_transformers(bart: Path, tmp_path: Path) -> None:
    succeed("import", bart, "-o", tmp_path / "bart.pt")
    done = succeed("export", tmp_path / "bart.pt", tmp_path / "out", "--license", "apache-2.0")
    names = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]
    assert done.stdout.endswith(f"out: {', '.join([*names, 'tokenizer_config.json'])}\n")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "bart"
    # With a part of ours, it is read by `pyramidions.hf`, and may take the same place.
    succeed("import", bart, "-o", tmp_path / "pooled.pt", "--pooling-lengths", "None,8")
    done = run("export", tmp_path / "pooled.pt", tmp_path / "out")
    assert "`pooling_lengths` must be None in a Bart of transformers, but is 'None,8'." in done.stdout
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "pyramidions"
    # It becomes a checkpoint again, with the same weights.
    succeed("import", tmp_path / "out", "-o", tmp_path / "again.pt")
    before, after = (torch.load(tmp_path / name)["model"] for name in ("pooled.pt", "again.pt"))
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert Summarizer.from_pretrained(tmp_path / "out", "cpu").model.config.layernorm_embedding
    (found,) = Summarizer.from_pretrained(tmp_path / "bart.pt", "cpu").summarize(["Bees fly."], max_len=8, min_len=8)
    # The end, and what stands in front of every text.
    assert found.tokens == 9 and found.document_tokens == found.read_tokens > 2


def test_its_weights_are_not_replaced(bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(bart, tmp_path / "bart"))
    torch.save({"model": {}, "cfg": {}}, "model.pt")
    before = Path("model.pt").read_bytes()
    assert fail("import", ".", "-o", "model.pt") == "--out must not replace one of the inputs, but is model.pt."
    assert Path("model.pt").read_bytes() == before


def test_calibration_needs_a_scorer(bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyramidions.cli.import_model._compare", lambda *_: pytest.fail("compared"))
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"article": "Bees fly fast over roses.", "abstract": "Bees fly."}\n')
    given = ["import", bart, "-o", tmp_path / "b.pt", "--pooling-lengths", "None,8"]
    for changed in (["--scorer", "random"], ["--pooling", "mean"]):
        assert fail(*given, *changed, "--compare", pairs, "--calibrate", pairs).startswith("--calibrate needs ")


def test_logits_that_do_not_vary_are_told(bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "paper.txt").write_text("Bees fly fast over roses.")
    given = ["import", bart, "-o", tmp_path / "b.pt", "--pooling-lengths", "12,8"]
    given += ["--calibrate", tmp_path / "paper.txt"]
    calibrate = calibration.calibrate
    monkeypatch.setattr(calibration, "calibrate", lambda *given: calibrate(*given)[1:])
    done = run(*given)
    assert done.exit_code == 0 and "calibrated on 1 document: poolers.1.scorer, whose logits had" in done.stdout
    assert "not calibrated, as their logits do not vary: poolers.0.scorer\n" in done.stdout
    (tmp_path / "b.pt").unlink()
    monkeypatch.setattr(calibration, "calibrate", lambda *_: [])
    done = run(*given)
    assert done.exit_code == 1 and "poolers.0.scorer, poolers.1.scorer" in done.stderr
    assert not (tmp_path / "b.pt").exists()


def test_the_vocabulary_is_known_by_the_number_that_fairseq_computes(bart: Path) -> None:
    tokenizer: Tokenizer = import_model(bart).model.tokenizer
    dictionary = Dictionary()
    for piece in tokenizer.pieces()[4:]:
        dictionary.add_symbol(piece)
    assert fingerprint(tokenizer.pieces()) == fingerprint(dictionary.symbols)

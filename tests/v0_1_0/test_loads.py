"""What older releases trained and exported loads, and computes what it did then; make.py tells how the files arose."""

import json
import lzma
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.data import Dictionary
from fairseq_commands import TASK, USER_DIR, run
from models_of_releases import (
    EXPORTED,
    FAIRSEQ,
    FOLDER,
    GENERATED,
    MODELS,
    OF_0_1_0,
    UPDATES,
    folder_of,
    generated,
    losses,
    training,
)
from omegaconf import OmegaConf
from recorded_outputs import PREFIX, documents, outputs

from pyramidions.inference import export_model, load_model
from pyramidions.models import preset
from pyramidions.nn import Transformer
from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig

DATA = FOLDER / "data"


def recorded(name: str) -> Any:
    return json.loads((folder_of(name) / f"{name}.json").read_text())


def unpacked(name: str, folder: Path) -> Path:
    """The folder with the checkpoint of a model, as `fairseq-train` left it."""
    folder.mkdir(exist_ok=True)
    (folder / "checkpoint_last.pt").write_bytes(lzma.decompress((folder_of(name) / f"{name}.pt.xz").read_bytes()))
    return folder


def assert_same(found: dict[str, Any], expected: dict[str, Any], atol: float = 1e-5) -> None:
    assert found["padding_mask"] == expected["padding_mask"]
    for name in ("memory", "logits"):
        torch.testing.assert_close(torch.tensor(found[name]), torch.tensor(expected[name]), rtol=0, atol=atol)
    for ours, theirs in zip(found["hypotheses"], expected["hypotheses"], strict=True):
        assert [tokens for tokens, _ in ours] == [tokens for tokens, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=atol)


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_computes_what_it_did(name: str, tmp_path: Path) -> None:
    assert_same(outputs(load_model(unpacked(name, tmp_path)).transformer), recorded(name))


@pytest.mark.parametrize("name", EXPORTED)
def test_an_export_computes_what_it_did(name: str) -> None:
    assert_same(outputs(load_model(FOLDER / f"{name}.export").transformer), recorded(name))


@pytest.mark.parametrize("name", MODELS)
def test_an_export_of_today_holds_the_same_model(name: str, tmp_path: Path) -> None:
    export_model(load_model(unpacked(name, tmp_path)), tmp_path / "export", "# A model\n")
    assert_same(outputs(load_model(tmp_path / "export").transformer), recorded(name))


@pytest.mark.parametrize("name", OF_0_1_0)
def test_every_weight_counts(name: str, tmp_path: Path) -> None:
    """Else a file with two names mixed up could pass the tests above."""
    transformer = load_model(unpacked(name, tmp_path)).transformer
    expected = recorded(name)
    for key, weight in transformer.named_parameters():
        kept = weight.detach().clone()
        # A bias of all keys alike leaves every attention weight as it is.
        if "k_proj.bias" not in key:
            weight.data += torch.linspace(0.01, 0.1, weight.numel()).view_as(weight)
            with pytest.raises(AssertionError):
                assert_same(outputs(transformer), expected)
        weight.data = kept


def test_weights_of_fairseqs_transformer_compute_what_they_did(tmp_path: Path) -> None:
    words = Dictionary.load(str(DATA / "dict.txt"))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words, max_positions=lambda: (32, 12))
    sizes = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "decoder_positions": "sinusoidal"}
    config = PyramidionModelConfig(**vars(preset("vanilla", **sizes, max_source_positions=32)))
    model = PyramidionModel.build_model(OmegaConf.structured(config), task).eval()
    model.load_state_dict(torch.load(unpacked(FAIRSEQ, tmp_path) / "checkpoint_last.pt")["model"])
    tokens = documents()
    with torch.no_grad():
        logits, _ = model(tokens, tokens.ne(1).sum(1), torch.tensor([PREFIX] * len(tokens)))
    torch.testing.assert_close(logits, torch.tensor(recorded(FAIRSEQ)["logits"]), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_training_goes_on_as_it_did(name: str, tmp_path: Path) -> None:
    """The outputs after three more updates tell whether each weight met Adam's moments of its own."""
    folder = unpacked(name, tmp_path / "run")
    done = run(*training(name, DATA, folder, UPDATES + 3, USER_DIR))
    assert done.returncode == 0 and "Loaded checkpoint" in done.stdout, done.stdout
    expected = recorded(name)["resumed"]
    found = losses(done.stdout)
    assert found.keys() == expected["losses"].keys() == {"6", "7", "8"}
    for update, numbers in expected["losses"].items():
        assert [float(x) for x in found[update]] == pytest.approx([float(x) for x in numbers], abs=2e-3), update
    assert_same(outputs(load_model(folder).transformer), expected["outputs"], atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_fairseq_builds_what_computes_as_it_did(name: str, tmp_path: Path) -> None:
    """The way of fairseq-generate, -interactive, -validate and -eval-lm."""
    path = unpacked(name, tmp_path) / "checkpoint_last.pt"
    (model,), _, _ = load_model_ensemble_and_task([str(path)], {"data": str(DATA)})
    assert_same(outputs(Transformer(model.encoder.core, model.decoder.core, padding_idx=1).eval()), recorded(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_command_of_fairseq_reads_it(name: str, tmp_path: Path) -> None:
    """fairseq-train does so below."""
    path, task = unpacked(name, tmp_path) / "checkpoint_last.pt", [*TASK, "--batch-size", 2]
    search = ["--beam", 3, "--min-len", 3, "--max-len-b", 8]
    (tmp_path / "texts").write_text("neat tea\nbest banana\n")
    generate = run("fairseq-generate", DATA, *task, *search, "--path", path, "--gen-subset", "test")
    interactive = run(
        *("fairseq-interactive", DATA, *task, *search, "--path", path, "--buffer-size", 2),
        *("--input", tmp_path / "texts"),
    )
    for done, count in ((generate, 3), (interactive, 2)):
        assert done.returncode == 0 and done.stdout.count("\nH-") == count, done.stdout
    validate = run("fairseq-validate", DATA, *task, "--path", path, "--valid-subset", "valid")
    assert validate.returncode == 0 and "| loss " in validate.stdout, validate.stdout


@pytest.mark.slow
def test_fairseq_generate_writes_what_it_did(tmp_path: Path) -> None:
    found = generated(DATA, unpacked(GENERATED, tmp_path) / "checkpoint_last.pt", USER_DIR)
    expected = recorded("generated")
    assert {index: text for index, (_, text) in found.items()} == {index: text for index, (_, text) in expected.items()}
    for index, (score, _) in expected.items():
        assert found[index][0] == pytest.approx(score, abs=1e-5)

"""transformers reads what `pyramidions export` wrote, and `pyramidions` reads what transformers saved."""

import importlib
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import small_exports
import torch
from kinds_of_summarizers import TEXTS, model_of
from refusals import refused
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from pyramidions import SavedModel, Summarizer, export_model, load_model
from pyramidions.hf import PyramidionsConfig, PyramidionsForConditionalGeneration, PyramidionsTokenizer
from pyramidions.nn.reduced import in_bfloat16
from pyramidions.pretrained.export_folder import check_export

ROOT = Path(__file__).parents[2]
SHORT = {"beam": 1, "min_len": 3, "max_len": 8}


def exported(saved: SavedModel, folder: Path) -> Path:
    export_model(saved, folder, "# A model\n")
    return folder


def write_with(folder: Path) -> list[str]:
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
    batch = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    written: list[str] = tokenizer.batch_decode(
        model.generate(**batch, num_beams=1, min_length=4, max_length=10), skip_special_tokens=True
    )
    return written


@pytest.mark.parametrize("kind", ["pooled pointer", "sliding window", "deleted", "two memories", "concatenated"])
def test_auto_classes_read_an_export_and_what_they_save_is_read_again(kind: str, tmp_path: Path) -> None:
    saved = model_of(kind)
    folder, again = exported(saved, tmp_path / f"{kind} export"), tmp_path / f"{kind} again"
    assert type(AutoConfig.from_pretrained(folder)) is PyramidionsConfig
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert type(tokenizer) is PyramidionsTokenizer and type(model) is PyramidionsForConditionalGeneration
    assert not model.training
    own = saved.transformer.state_dict()
    assert model.state_dict().keys() == own.keys()
    assert all(value.equal(own[name]) for name, value in model.state_dict().items())
    model.save_pretrained(again)
    tokenizer.save_pretrained(again)
    # As in an export, a weight with several names is written once, under the same one.
    assert load_file(again / "model.safetensors").keys() == load_file(folder / "model.safetensors").keys()
    ours = [summary.text for summary in Summarizer(saved, "cpu").summarize(TEXTS, **SHORT)]
    assert [summary.text for summary in Summarizer.from_pretrained(again, "cpu").summarize(TEXTS, **SHORT)] == ours
    assert write_with(folder) == write_with(again) == ours
    assert load_model(again).config == load_model(folder).config == saved.config
    check_export(again)


def test_an_export_holds_what_transformers_needs(tmp_path: Path) -> None:
    folder = exported(model_of("pooled", prefix="summarize:"), tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("README.md", "config.json", "generation_config.json", "model.safetensors", "modeling_pyramidions.py"),
        *("sentencepiece.model", "tokenizer_config.json"),
    ]
    about = json.loads((folder / "config.json").read_text())
    assert (about["model_type"], about["architectures"]) == ("pyramidions", ["PyramidionsForConditionalGeneration"])
    assert about["auto_map"]["AutoModelForSeq2SeqLM"] == "modeling_pyramidions.PyramidionsForConditionalGeneration"
    assert json.loads((folder / "tokenizer_config.json").read_text())["source_prefix"] == "summarize:"
    assert json.loads((folder / "generation_config.json").read_text())["forced_eos_token_id"] == 2
    # An older export is replaced, and a folder that transformers saved, too.
    exported(model_of("vanilla"), folder)
    AutoModelForSeq2SeqLM.from_pretrained(folder).save_pretrained(tmp_path / "again")
    exported(model_of("vanilla"), tmp_path / "again")


def test_models_of_other_kinds_have_nothing_for_transformers(tmp_path: Path) -> None:
    folder = small_exports.extractor(tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("README.md", "config.json", "model.safetensors", "sentencepiece.model")
    ]
    assert "model_type" not in json.loads((folder / "config.json").read_text())
    with refused("`kind`"):
        PyramidionsConfig.from_pretrained(folder)


REMOTE = """
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("model", trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained("model", trust_remote_code=True)
print(tokenizer.decode(model.generate(**tokenizer("bees fly", return_tensors="pt"), num_beams=1)[0]))
model.save_pretrained("again")
tokenizer.save_pretrained("again")
"""


def test_trusted_code_finds_the_classes_without_our_import(tmp_path: Path) -> None:
    folder = exported(model_of("pooled"), tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", REMOTE],
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules"), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("</s>") and done.stdout.endswith("</s>\n")
    # No code of ours is copied.
    names = {path.name for path in folder.iterdir()} - {"README.md"}
    assert {path.name for path in (tmp_path / "again").iterdir()} == names


def test_without_pyramidions_the_trusted_code_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = exported(model_of("vanilla"), tmp_path / "model") / "modeling_pyramidions.py"
    monkeypatch.delitem(sys.modules, "pyramidions.hf")
    monkeypatch.setitem(sys.modules, "pyramidions", None)
    with refused("repository", ImportError):
        runpy.run_path(str(code))
    # Nobody owns the name on an index, so that anybody could.
    assert "pip install" not in code.read_text()
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "pyramidions.hf")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with refused("transformers"):
        importlib.import_module("pyramidions.hf")


@pytest.mark.parametrize("kind", ["pooled pointer", "sliding window", "learned segments"])
def test_weights_are_read_in_bfloat16_but_for_what_decides(kind: str, tmp_path: Path) -> None:
    folder = exported(model_of(kind), tmp_path / kind)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.bfloat16)
    wide = {name for name, weight in model.named_parameters() if weight.dtype == torch.float32}
    ours = in_bfloat16(model_of(kind).transformer)
    assert wide == {name for name, weight in ours.named_parameters() if weight.dtype == torch.float32}
    assert bool(wide) == (kind != "sliding window")
    batch = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    assert model.generate(**batch, num_beams=2, min_length=4, max_length=4).shape == (3, 4)
    # In our own format, weights are in float32 again.
    model.save_pretrained(folder)
    assert {weight.dtype for weight in load_model(folder).transformer.parameters()} == {torch.float32}


def test_an_older_export_is_written_anew_or_taken_as_a_saved_model(tmp_path: Path) -> None:
    saved = model_of("pooled pointer")
    folder = exported(saved, tmp_path / "old")
    about = json.loads((folder / "config.json").read_text())
    for name in ("model_type", "architectures", "auto_map", "vocab_size", "prefix", "marker_id", "name_end_id"):
        del about[name]
    (folder / "config.json").write_text(json.dumps(about))
    for name in ("generation_config.json", "modeling_pyramidions.py", "tokenizer_config.json"):
        (folder / name).unlink()
    with refused("vocab_size"):
        PyramidionsForConditionalGeneration.from_pretrained(folder)
    model = PyramidionsForConditionalGeneration.from_saved(load_model(folder))
    batch = PyramidionsTokenizer.from_saved(load_model(folder))(TEXTS, padding=True, return_tensors="pt")
    prefix = torch.tensor([[2, 9]] * 3)
    logits = model(**batch, decoder_input_ids=prefix).logits
    torch.testing.assert_close(logits, saved.transformer(batch["input_ids"], prefix))
    exported(load_model(folder), tmp_path / "new")
    assert type(AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "new")) is PyramidionsForConditionalGeneration


def test_transformers_compares_no_hashes_and_we_read_its_shards(tmp_path: Path) -> None:
    folder, shards = exported(model_of("vanilla"), tmp_path / "model"), tmp_path / "shards"
    weights = {name: weight + 1 for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    with refused("SHA-256"):
        load_model(folder)
    model.save_pretrained(shards, max_shard_size="10KB")
    AutoTokenizer.from_pretrained(folder).save_pretrained(shards)
    assert len(list(shards.glob("*.safetensors"))) > 1
    read = AutoModelForSeq2SeqLM.from_pretrained(shards).state_dict()
    assert all(weight.equal(read[name]) for name, weight in model.state_dict().items())
    found = load_model(shards).transformer.state_dict()
    assert all(weight.equal(found[name]) for name, weight in model.state_dict().items())


NORM = "encoder.layers.0.sublayers.feed_forward.norm.weight"


@pytest.mark.parametrize(
    ("weights", "settings", "named"),
    [
        ({"more": torch.zeros(1)}, {}, "more has no place"),
        ({NORM: None}, {}, f"{NORM} is missing"),
        ({NORM: torch.zeros(())}, {}, f"{NORM} must be (16,), but is ()"),
        ({}, {"vocab_size": 91}, "decoder.embedder.tokens.weight must be (91, 16)"),
        ({}, {"vocab_size": "many"}, "`vocab_size`"),
        ({}, {"model": [1]}, "`model`"),
        ({}, {"max_source_positions": 1}, "`max_source_positions`"),
        ({}, {"format": 9}, "format 3"),
        ({}, {"pooling_lengths": "7"}, "`pooling_lengths`"),
        ({}, {"tag_dim": 2}, "`tag_dim`"),
        ({}, {"widht": 2}, "'widht'"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_does_not_fit_is_told(
    weights: dict[str, torch.Tensor | None], settings: dict[str, object], named: str, tmp_path: Path
) -> None:
    folder = exported(model_of("vanilla"), tmp_path / "model")
    held = load_file(folder / "model.safetensors") | weights
    given = {name: weight for name, weight in held.items() if weight is not None}
    save_file(given, folder / "model.safetensors", {"format": "pt"})
    about = json.loads((folder / "config.json").read_text())
    (about if settings.keys() <= about.keys() else about["model"]).update(settings)
    (folder / "config.json").write_text(json.dumps(about))
    for options in ({}, {"ignore_mismatched_sizes": True}):
        with refused(named):
            AutoModelForSeq2SeqLM.from_pretrained(folder, **options)

"""What the hub can search in a model card: what is known, in YAML that its own library reads."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard
from small_language_models import saved as saved_language_model
from small_tokenizers import bart_bytes

from pyramidions.conversion.model_card import model_card, renamed
from pyramidions.data.corpora import KNOWN, read_corpus
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.inference import SavedExtractor, SavedModel
from pyramidions.inference.saved_model import load_language_model
from pyramidions.models import build, build_extractor, extractor_preset, preset
from pyramidions.pretrained.origin import Origin
from pyramidions.text.tokenizer import PAD, Tokenizer

SIZE = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "max_source_positions": 32}
HUB = Origin("owner/bart", "bart", "abc", "apache-2.0")


def model(origin: Origin | None = None, name: str = "pyramidion", **changes: Any) -> SavedModel:
    tokenizer = Tokenizer.from_bytes(bart_bytes())
    config = preset(name, **SIZE, **changes)
    return SavedModel(build(config, tokenizer.vocab_size, PAD), config, tokenizer, 32, 16, origin)


def fields(card: str) -> dict[str, Any]:
    _, front, _ = card.split("---\n", 2)
    found = yaml.safe_load(front)
    assert isinstance(found, dict)
    return found


def scores(folder: Path) -> Path:
    means = {"rouge1": 44.216, "rouge2": 16.95, "rougeL": 25.0, "rougeLsum": 38.8}
    ours = {name: {"mean": mean, "low": mean - 1, "high": mean + 1} for name, mean in means.items()}
    lead = {name: {"mean": 1, "low": 1, "high": 1} for name in means}
    path = folder / "scores.json"
    path.write_text(json.dumps({"signature": "rouge", "systems": {"out.jsonl": ours, "lead": lead}}))
    return path


def test_the_index_names_the_metric_of_each_figure(tmp_path: Path) -> None:
    path = scores(tmp_path)
    means = {name: {"mean": 1, "low": 1, "high": 1} for name in ("rouge1", "meteor", "density")}
    path.write_text(json.dumps({"signature": "x", "systems": {"ours": means}}))
    found = fields(model_card(model(), "my-model", scores=path, datasets=["a/b"]))
    assert found["metrics"] == ["rouge", "meteor", "coverage"]
    types = [metric["type"] for metric in found["model-index"][0]["results"][0]["metrics"]]
    assert types == ["rouge", "meteor", "coverage"]


def test_what_is_not_known_is_left_out() -> None:
    assert fields(model_card(model(), "my-model")) == {
        "library_name": "pyramidions",
        "pipeline_tag": "summarization",
        "tags": ["long-documents", "pooling"],
    }


def test_what_is_known_can_be_searched(tmp_path: Path) -> None:
    given = {"licence": "Apache 2.0", "languages": ["en", "no"], "datasets": ["ccdv/arxiv-summarization"]}
    card = model_card(model(HUB), "my-model", scores=scores(tmp_path), **given)  # type: ignore[arg-type]
    figures = [("ROUGE-1", 44.22), ("ROUGE-2", 16.95), ("ROUGE-L", 25.0), ("ROUGE-Lsum", 38.8)]
    found = fields(card)
    named = {metric["name"]: metric["value"] for metric in found["model-index"][0]["results"][0]["metrics"]}
    assert list(named.values()) == [value for _, value in figures]
    assert found | {"model-index": None} == {
        "library_name": "pyramidions",
        "pipeline_tag": "summarization",
        "tags": ["long-documents", "pooling", "bart"],
        "language": ["en", "no"],
        "license": "apache-2.0",
        "base_model": "owner/bart",
        "datasets": ["ccdv/arxiv-summarization"],
        "metrics": ["rouge"],
        "model-index": None,
    }
    # The hub's own library reads it.
    data = ModelCard(card).data
    assert data.license == "apache-2.0" and data.language == ["en", "no"]
    assert data.eval_results is not None
    assert [result.metric_value for result in data.eval_results] == [value for _, value in figures]
    assert {result.dataset_type for result in data.eval_results} == {"ccdv/arxiv-summarization"}


def test_scores_without_their_dataset_are_no_entry_of_an_index(tmp_path: Path) -> None:
    for datasets in ([], ["a/b", "a/c"]):
        found = fields(model_card(model(), "my-model", scores=scores(tmp_path), datasets=datasets))
        assert "model-index" not in found and found["metrics"] == ["rouge"]


def test_figures_without_bounds_have_three_digits(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    bleurt = {"mean": -0.5125, "low": -0.625, "high": -0.4}
    means = {"rouge1": {"mean": 44.2161, "low": 43, "high": 45}, "bleurt": bleurt}
    path.write_text(json.dumps({"signature": "x", "systems": {"ours": means}}))
    card = model_card(model(), "my-model", scores=path, datasets=["a/b"])
    assert "| ours | 44.22 [43.00, 45.00] | -0.512 [-0.625, -0.400] |" in card
    found = [metric["value"] for metric in fields(card)["model-index"][0]["results"][0]["metrics"]]
    assert found == [44.22, -0.512]


def test_an_extractor_says_that_it_extracts() -> None:
    tokenizer, config = Tokenizer.from_bytes(bart_bytes()), extractor_preset("extractor", **SIZE)
    ranker = build_extractor(config, tokenizer.vocab_size, 5, PAD)
    found = fields(model_card(SavedExtractor(ranker, config, tokenizer, 32), "my-model"))
    assert found["tags"] == ["long-documents", "extractive-summarization", "pooling"]


@pytest.mark.parametrize(
    ("licence", "found"),
    [
        ("MIT", {"license": "mit"}),
        ("CC BY-NC 4.0", {"license": "cc-by-nc-4.0"}),
        ("My own: ask me", {"license": "other", "license_name": "My own: ask me"}),
        (" ", {}),
    ],
)
def test_a_licence_has_the_name_that_the_hub_knows(licence: str, found: Mapping[str, str]) -> None:
    card = model_card(model(), "my-model", licence=licence)
    assert {name: value for name, value in fields(card).items() if "license" in name} == found


def test_the_source_and_its_licence_are_shown_and_the_models_own_is_not_guessed() -> None:
    card = model_card(model(HUB), "my-model")
    link = "[owner/bart](https://huggingface.co/owner/bart)"
    assert (
        f"## Source\n\nThe weights started from {link} at commit abc, of the family bart; its licence: apache-2.0.\n"
        in card
    )
    assert "## Licence\n\nNot said.\n" in card and "license" not in fields(card)
    card = model_card(model(Origin("my_folder", "led")), "my-model")
    assert "The weights started from the folder my_folder, of the family led; its licence: not said.\n" in card
    assert "base_model" not in fields(card)


def test_a_card_for_transformers_shows_how_they_read_it() -> None:
    card = model_card(model(name="led", self_attention="sliding_window(window=4)"), "my-model", for_transformers=True)
    assert fields(card)["library_name"] == "transformers"
    assert "model = AutoModelForSeq2SeqLM.from_pretrained('my-model')" in card and "Summarizer" not in card
    assert "The first token is global." in card and 'inputs["global_attention_mask"] = mask' in card
    assert "global" not in model_card(model(name="vanilla"), "my-model", for_transformers=True)


def test_a_card_for_transformers_puts_the_prefix_before_the_document() -> None:
    card = model_card(replace(model(name="vanilla"), source_prefix="sum: "), "my-model", for_transformers=True)
    assert "inputs = tokenizer('sum: A long document ...', truncation" in card


@pytest.mark.parametrize("text", ["no", "yes", "null", "1.0", "a: b", "# c", "é 😀", 'say "a"', "- x"])
def test_values_are_read_as_they_were(text: str) -> None:
    assert fields(model_card(model(), "my-model", licence=text))["license_name"] == text


def test_line_breaks_and_bytes_that_are_no_text_stay_on_their_line() -> None:
    card = model_card(model(), "my-model", licence="a\n---\nb \udce9\x85c")
    assert fields(card)["license_name"] == "a --- b ? c"


@pytest.mark.parametrize("mark", ["\x7f", "\x00", "\x1b", "\x9f", "\uffff"])
def test_marks_that_no_yaml_holds_are_dropped(mark: str) -> None:
    card = model_card(model(), f"my{mark}model", licence=f"Ask {mark}me")
    assert fields(card)["license_name"] == "Ask me"
    card = model_card(model(), "my-model", licence=f"é{mark}😀")
    assert fields(card)["license_name"] == "é😀"


def test_without_the_library_of_the_hub_a_card_has_no_front_matter_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_it = model_card(model(), "my-model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert with_it.endswith(f"---\n\n{model_card(model(), 'my-model')}")
    said = capsys.readouterr().err
    assert said.startswith("The front matter of the model card needs the library huggingface_hub, which is not ")
    assert said.endswith("brings it. The card is written without it.\n")


@pytest.mark.parametrize("name", ["my-model", "it's mine", 'a "b" c'])
def test_the_examples_of_a_card_take_another_name(name: str, tmp_path: Path) -> None:
    tokenizer, config = Tokenizer.from_bytes(bart_bytes()), extractor_preset("extractor", **SIZE)
    ranker = build_extractor(config, tokenizer.vocab_size, 5, PAD)
    extractor = SavedExtractor(ranker, config, tokenizer, 32)
    for found in (model(), extractor, load_language_model(saved_language_model(tmp_path, "gumbel"))):
        card = model_card(found, name)
        assert renamed(card, "me/model").split("## ")[0].count("me/model") == (
            2 if isinstance(found, SavedModel) else 1
        )
        assert renamed(renamed(card, "me/model"), name) == card


@pytest.mark.parametrize(
    ("splits", "given", "named"),
    [
        (["train", "valid"], [], ["ccdv/govreport-summarization"]),
        (["train"], ["owner/other"], ["owner/other"]),
        (["test"], [], None),
    ],
)
def test_the_corpus_of_the_data_is_named(
    splits: list[str], given: list[str], named: list[str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"article": "Bees fly fast.", "abstract": "Bees sting."}) + "\n")
    tokenizer = model().tokenizer
    about = read_corpus(KNOWN["govreport"], "document", None).about() | {"splits": splits}
    prepare(tmp_path / "data", {"train": Corpus(str(path))}, tokenizer=tokenizer, about=about)
    card = model_card(model(), "my-model", DataFolder(tmp_path / "data"), scores(tmp_path), datasets=given)
    found = fields(card)
    assert found.get("datasets") == named
    # Nobody said that the scores are on the corpus of the training data.
    assert ("model-index" in found) == bool(given)
    sentence = (
        "Documents of the corpus govreport, configuration document (ccdv/govreport-summarization on the Hugging Face "
        "hub); its licence: CC BY 4.0."
    )
    assert (sentence in card) == ("train" in splits)

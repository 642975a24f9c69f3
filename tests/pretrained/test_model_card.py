"""A model card: what the hub can search is in YAML that its own library reads; no text from outside is obeyed."""

import json
import subprocess
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

from pyramidions.base.markdown import plain, shell_word
from pyramidions.data.corpora.reading import read_corpus
from pyramidions.data.corpora.table import KNOWN
from pyramidions.data.divide import Divide
from pyramidions.data.folder import DataFolder
from pyramidions.data.pairing import Pairing
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.data.select_sentences import SelectByOracle, SelectSentences
from pyramidions.extract import Lead
from pyramidions.inference import SavedExtractor, SavedModel
from pyramidions.models import build, build_extractor, extractor_preset, preset
from pyramidions.pretrained.card_data import CardScores
from pyramidions.pretrained.model_card import model_card, renamed
from pyramidions.pretrained.origin import Origin
from pyramidions.pretrained.saved_model import load_language_model
from pyramidions.text.tokenizer import PAD, Tokenizer

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
SIZE = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "max_source_positions": 32}
HUB = Origin("owner/bart", "bart", "abc", "apache-2.0")


def model(origin: Origin | None = None, name: str = "pyramidion", **changes: Any) -> SavedModel:
    tokenizer = Tokenizer.from_bytes(bart_bytes())
    config = preset(name, **SIZE, **changes)
    return SavedModel(build(config, tokenizer.vocab_size, PAD), config, tokenizer, 32, 16, origin)


def extractor(*rules: Any) -> SavedExtractor:
    tokenizer, config = Tokenizer.from_bytes(bart_bytes()), extractor_preset("extractor", **SIZE)
    return SavedExtractor(build_extractor(config, tokenizer.vocab_size, 5, PAD), config, tokenizer, 32, *rules)


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


def test_a_card_says_what_a_model_is_and_no_more() -> None:
    found = {"library_name": "pyramidions", "pipeline_tag": "summarization", "tags": ["long-documents", "pooling"]}
    card = model_card(model(), "my-model")
    assert fields(card) == found and "; a Pyramidion Transformer (Pietruszka et al. 2022)." in card
    assert "; a Transformer without pooling." in model_card(model(name="vanilla"), "my-model")
    for given, said in (
        ((None, "none", 0.7), "at most 220 words; repetitions allowed"),
        ((150, "trigrams", 0.7), "at most 150 words, as in training; no repeated trigrams"),
        ((150, "mmr", 0.4), "at most 150 words, as in training; maximal marginal relevance, weight 0.4"),
    ):
        card = model_card(extractor(*given), "my-model")
        assert f"| {said} |" in card
        assert fields(card)["tags"] == ["long-documents", "extractive-summarization", "pooling"]


def test_what_is_known_can_be_searched(tmp_path: Path) -> None:
    given = {"licence": "Apache 2.0", "languages": ["en", "no"], "datasets": ["ccdv/arxiv-summarization"]}
    card = model_card(model(HUB), "my-model", scores=scores(tmp_path), **given)  # type: ignore[arg-type]
    figures = [("ROUGE-1", 44.22), ("ROUGE-2", 16.95), ("ROUGE-L", 25.0), ("ROUGE-Lsum", 38.8)]
    found = fields(card)
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
    results = ModelCard(card).data.eval_results or []
    assert [(each.dataset_type, each.metric_value) for each in results] == [
        ("ccdv/arxiv-summarization", value) for _, value in figures
    ]
    for datasets in ([], ["a/b", "a/c"]):
        # Scores without their dataset are no entry of an index.
        found = fields(model_card(model(), "my-model", scores=scores(tmp_path), datasets=datasets))
        assert "model-index" not in found and found["metrics"] == ["rouge"]


def test_figures_of_other_metrics_have_their_own_tables_names_and_digits(tmp_path: Path) -> None:
    means = {name: {"mean": 1.0, "low": 0.5, "high": 2.0} for name in ("meteor", *ROUGE, "coverage", "unknown")}
    means["bleurt"] = {"mean": -0.5125, "low": -0.625, "high": -0.4}
    (tmp_path / "scores.json").write_text(json.dumps({"signature": "x", "systems": {"ours": means}}))
    card = model_card(model(), "my-model", scores=tmp_path / "scores.json", datasets=["a/b"])
    _, *heads = (line for line in card.splitlines() if line.startswith("|  |"))
    assert heads == ["|  | METEOR | ROUGE-1 | ROUGE-2 | ROUGE-L | ROUGE-Lsum |", "|  | Coverage | BLEURT |"]
    assert "| ours | 1.00 [0.50, 2.00] | -0.512 [-0.625, -0.400] |" in card
    index = fields(card)["model-index"][0]["results"][0]["metrics"]
    found = {metric["type"]: metric["value"] for metric in index}
    assert found == {"rouge": 1.0, "meteor": 1.0, "bleurt": -0.512, "coverage": 1.0}


@pytest.mark.parametrize(
    ("licence", "found"),
    [
        ("CC BY-NC 4.0", {"license": "cc-by-nc-4.0"}),
        ("My own: ask me", {"license": "other", "license_name": "My own: ask me"}),
        (" ", {}),
        # Values are read as they were, but for marks that no YAML holds.
        *((text, {"license": "other", "license_name": text}) for text in ("no", "1.0", "a: b", "# c", "- x")),
        ("a\n---\nb \udce9\x85c", {"license": "other", "license_name": "a --- b ? c"}),
        ("é\x7f\x00\x1b\x9f\uffff😀", {"license": "other", "license_name": "é😀"}),
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
    card = model_card(replace(model(name="vanilla"), source_prefix="sum: "), "my-model", for_transformers=True)
    assert "inputs = tokenizer('sum: A long document ...', truncation" in card and "global" not in card


def test_without_the_library_of_the_hub_a_card_has_no_front_matter_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_it = model_card(model(), "my-model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert with_it.endswith(f"---\n\n{model_card(model(), 'my-model')}")
    assert "huggingface_hub" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["my-model", "it's mine", 'a "b" c'])
def test_the_examples_of_a_card_take_another_name(name: str, tmp_path: Path) -> None:
    for found in (model(), extractor(), load_language_model(saved_language_model(tmp_path, "gumbel"))):
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


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("CC BY-NC 4.0", "CC BY-NC 4.0"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("&lt;", "&amp;lt;"),
        ("a\n\n# b", "a # b"),
        ("# b", "\\# b"),
        ("1. b", "1\\. b"),
        ("[a](javascript:b)", "\\[a\\](javascript:b)"),
        ("__init__ *b* `c` ~d~ \\", "\\_\\_init\\_\\_ \\*b\\* \\`c\\` \\~d\\~ \\\\"),
        ("caf\udce9", "caf?"),
    ],
)
def test_markdown_and_html_are_shown_and_not_obeyed(text: str, escaped: str) -> None:
    assert plain(text) == escaped


def test_a_systems_name_stays_in_its_cell(tmp_path: Path) -> None:
    means = {key: {"mean": 1.0, "low": 0.5, "high": 2.0} for key in ROUGE}
    scores = {"signature": "rouge | n=1 <b>", "systems": {"a|b\n<i>": means}}
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    head, _, row, *_, signature = CardScores.read(tmp_path / "scores.json").tables().splitlines()
    assert head.count("|") == row.count("|") == 6 and row.startswith("| a&#124;b &lt;i> | 1.00 [0.50, 2.00] |")
    assert signature == "Means with 95% intervals. rouge | n=1 &lt;b>"


@pytest.mark.parametrize(
    ("pairing", "sentence"),
    [
        (None, None),
        (Divide(least_words=1), "use `--long sections`."),
        (SelectByOracle(20), "use `--long extract`, with `--select` and a trained extractor if you have one."),
        (SelectSentences(Lead, 20, {"method": "lead"}), "use `--long extract --select lead`."),
        (SelectSentences(Lead, 20, {"method": "model", "sha256": "abc"}), "tokenizer and length: abc)."),
    ],
)
def test_what_a_model_was_trained_on_is_said(pairing: Pairing | None, sentence: str | None, tmp_path: Path) -> None:
    record = {"article": "# Methods\n\nBees fly fast.\n\n# Results\n\nThey sting.", "abstract": "Bees sting."}
    (tmp_path / "train.jsonl").write_text(json.dumps(record))
    corpora = {"train": Corpus(str(tmp_path / "train.jsonl"))}
    pairings = {"train": pairing} if pairing else None
    prepare(tmp_path / "data", corpora, tokenizer=model().tokenizer, pairings=pairings)
    card = model_card(model(), "my-model", DataFolder(tmp_path / "data"))
    assert "\n| train |" in card
    assert f"{sentence}\n" in card if sentence else "use `--long" not in card


@pytest.mark.parametrize("name", ["it's", 'it\'s\n"b"\t\\n'])
def test_a_shell_reads_a_name_in_the_code_of_a_card_as_it_is_and_on_one_line(name: str) -> None:
    word = shell_word(name)
    assert len(word.splitlines()) == 1
    assert subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True).stdout == name

"""Explanations of models that attend in other ways: with strides, to several memories, from and to global tokens."""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import SAMPLE
from explanations import matrix, only_document

from pyramidions.conversion.model_card import model_card
from pyramidions.inference import SavedModel, Summarizer, export_model, html_page
from pyramidions.inference.explanation import trace
from pyramidions.models import build, preset

SHORT = {"beam": 2, "min_len": 4, "max_len": 12}


@pytest.fixture(scope="module")
def article() -> str:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        return json.loads(papers.readline())["article"]


@pytest.fixture(scope="module")
def saved(checkpoint: Path) -> SavedModel:
    """Two heads and three layers, of which two are followed by a pooling, to 64 and 16 vectors."""
    return Summarizer.from_pretrained(checkpoint).model


def untrained(model: SavedModel, **fields: object) -> Summarizer:
    """Return a summarizer of another shape with the same tokenizer."""
    torch.manual_seed(0)
    config = replace(model.config, **fields)
    transformer = build(config, model.tokenizer.vocab_size, 1).eval()
    return Summarizer(replace(model, config=config, transformer=transformer))


HEPOS = {"cross_attention": "hepos(stride=2)"}


def test_heads_that_read_every_second_vector_tell_of_all(saved: SavedModel, article: str) -> None:
    explanation = untrained(saved, **HEPOS).explain(article, **SHORT)
    attention = explanation.trace.attention
    assert attention.shape == (explanation.summary.tokens, 16) and (attention > 0).all()
    # The first head has all of its attention for the even vectors, the second for the odd ones.
    torch.testing.assert_close(attention[:, ::2].sum(dim=1), torch.full((len(attention),), 0.5))
    torch.testing.assert_close(attention[:, 1::2].sum(dim=1), torch.full((len(attention),), 0.5))
    assert explanation.drew_on(0, 1).sum() == pytest.approx(1, abs=1e-5)
    assert explanation.settings["cross-attention"] == "hepos(stride=2)"
    assert explanation.settings["reads of the encoder"] == "its output"
    assert all(word["links"][0]["covered"] > 0 for word in only_document(html_page(explanation, "paper"))["items"])


def test_a_head_without_a_vector_to_read_has_no_attention_to_share(saved: SavedModel) -> None:
    many = untrained(saved, num_heads=8, cross_attention="hepos(stride=8)")
    explanation = many.explain("Cells.", **SHORT)
    vectors = explanation.trace.memory
    assert vectors < 8
    torch.testing.assert_close(
        explanation.trace.attention.sum(dim=1), torch.full((explanation.summary.tokens,), vectors / 8)
    )


@pytest.mark.parametrize("cross", [{}, {"cross_attention": "full; hepos(stride=2); full"}])
def test_what_was_read_of_each_memory_is_told(saved: SavedModel, article: str, cross: dict[str, str]) -> None:
    explanation = untrained(saved, memories="3,1,last", **cross).explain(article, **SHORT)
    output, third, first = explanation.trace.memories
    assert explanation.settings["reads of the encoder"] == "layer 3, layer 1, its output"
    assert [(memory.layer, memory.vectors) for memory in (output, third, first)] == [(None, 16), (3, 64), (1, 256)]
    assert explanation.trace.further == (third, first)
    assert torch.equal(matrix(first.provenance), torch.eye(256))
    # The third layer reads what the second hands on.
    torch.testing.assert_close(matrix(third.provenance).sum(dim=0), explanation.trace.layers[1].reached)
    for memory in (output, third, first):
        torch.testing.assert_close(memory.attention.sum(dim=1), torch.ones(explanation.summary.tokens))
    alone = [explanation.drew_on(1, 3, number) for number in range(3)]
    torch.testing.assert_close(alone[2], first.attention[1:3].mean(dim=0))
    torch.testing.assert_close(explanation.drew_on(1, 3), sum(alone) / 3)


def test_the_page_has_what_each_word_drew_on_of_each_memory(saved: SavedModel, article: str) -> None:
    explanation = untrained(saved, memories="1,last").explain(article, **SHORT)
    document = only_document(html_page(explanation, "paper"))
    assert document["known"] == [True] * 3
    assert document["views"][1:] == ["the encoder's output (16 vectors)", "layer 1 (256 vectors)"]
    for word in document["items"]:
        mean, output, first = word["links"]
        assert len(mean["to"]) == 64 and output != first
    assert not only_document(html_page(untrained(saved).explain(article, **SHORT), "paper"))["views"]


def test_one_memory_is_told_where_the_other_cannot_be(saved: SavedModel, article: str) -> None:
    explanation = untrained(saved, memories="last,1", pooling="max", scorer="linear").explain(article, **SHORT)
    assert explanation.drew_on(0, 1) is None and explanation.drew_on(0, 1, 0) is None
    assert explanation.drew_on(0, 1, 1).sum() == pytest.approx(1, abs=1e-5)
    document = only_document(html_page(explanation, "paper"))
    assert document["known"] == [False, False, True]
    assert all(word["links"][:2] == [None, None] for word in document["items"])
    assert all(word["links"][2]["covered"] > 0 for word in document["items"])


WINDOWS = {"self_attention": "sliding_window(window=16)"}


def test_global_tokens_are_named_and_followed_as_others(saved: SavedModel, article: str) -> None:
    summarizer = untrained(saved, **WINDOWS, global_tokens=3, global_projections="dense")
    explanation = summarizer.explain(article, **SHORT)
    assert explanation.trace.seen_by_all.nonzero()[:, 0].tolist() == [0, 1, 2]
    assert only_document(html_page(explanation, "paper"))["marks"]["global"] == [0, 1, 2]
    assert explanation.drew_on(0, 1).sum() == pytest.approx(1, abs=1e-5)
    assert explanation.summary == summarizer.summarize([article], **SHORT)[0]
    without = untrained(saved, **WINDOWS).explain(article, **SHORT)
    assert without.trace.seen_by_all is None
    assert not only_document(html_page(without, "paper"))["marks"]["global"]


@pytest.mark.parametrize(("given", "places"), [("global_markers", [3, 6]), ("global_query", [0, 1, 2])])
def test_markers_and_the_query_are_named_where_they_are_global(given: str, places: list[int]) -> None:
    shape = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2}
    model = build(preset("vanilla", **shape, **WINDOWS, **{given: True}), 20, 1, marker_idx=4).eval()
    document = torch.tensor([9, 8, 2, 4, 7, 5, 4, 6, 2])
    found = trace(model, document, torch.tensor([5, 2]), 2)
    assert found.seen_by_all.nonzero()[:, 0].tolist() == places


def test_the_card_says_so_too(saved: SavedModel) -> None:
    card = model_card(untrained(saved, memories="3,last", **HEPOS).model, "mine")
    assert "| cross-attention | hepos(stride=2) |" in card
    assert "| reads of the encoder | layer 3, its output |" in card
    assert "reads of the encoder" not in model_card(saved, "mine")
    card = model_card(untrained(saved, decoder_self_attention="lsh(num_hashes=2)").model, "mine")
    assert "| attention among summary positions | lsh(num_hashes=2) |" in card
    assert "among summary positions" not in model_card(saved, "mine")


def test_a_decoder_without_cross_attention_tells_what_goes_to_the_document(saved: SavedModel, article: str) -> None:
    fields = {"decoder": "concatenated", "recurrence": "sru", "decoder_positions": "sinusoidal"}
    explanation = untrained(saved, **fields).explain(article, **SHORT)
    attention = explanation.trace.attention
    assert attention.shape == (explanation.summary.tokens, 16) and (attention > 0).all()
    # The first token sees the document and what the decoder starts from; later ones see what is written, too.
    assert (attention.sum(dim=1) < 1).all() and attention[-1].sum() < attention[0].sum()
    assert explanation.drew_on(0, 1).sum() == pytest.approx(float(attention[0].sum()), abs=1e-5)
    assert explanation.settings["decoder"] == "concatenated"
    assert "among the encoder's vectors" in explanation.settings["attention not followed"]
    assert all(word["links"][0]["covered"] > 0 for word in only_document(html_page(explanation, "paper"))["items"])


def test_an_export_of_one_writes_the_same(saved: SavedModel, article: str, tmp_path: Path) -> None:
    written = untrained(saved, decoder="concatenated", recurrence="sru")
    export_model(written.model, tmp_path / "export", model_card(written.model, "ours"))
    loaded = Summarizer.from_pretrained(tmp_path / "export")
    (found,), (expected,) = (each.summarize([article], **SHORT) for each in (loaded, written))
    assert found.text == expected.text and found.score == pytest.approx(expected.score, abs=1e-5)
    assert "| decoder | concatenated |" in model_card(written.model, "ours")

"""Where a summary comes from: the figures of an explanation, against what the model's own parts hand on."""

import json
import lzma
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import SAMPLE
from explanations import matrix, only_document
from refusals import refused
from tiny_presets import tiny_fields

from pyramidions.inference import Explanation, SavedModel, Summarizer, html_page
from pyramidions.inference.explanation import trace
from pyramidions.models import build, preset
from pyramidions.models.config import PyramidionConfig, config_as
from pyramidions.nn import BeamSearch
from pyramidions.pretrained.model_card import model_card
from pyramidions.text.normalization import normalize

SHORT = {"beam": 2, "min_len": 4, "max_len": 12}


@pytest.fixture(scope="module")
def article() -> str:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        return json.loads(papers.readline())["article"]


@pytest.fixture(scope="module")
def summarizer(checkpoint: Path) -> Summarizer:
    return Summarizer.from_pretrained(checkpoint)


@pytest.fixture(scope="module")
def explanation(summarizer: Summarizer, article: str) -> Explanation:
    return summarizer.explain(article, **SHORT)


def untrained(model: SavedModel, **fields: object) -> Summarizer:
    """Return a summarizer of another shape with the same tokenizer."""
    torch.manual_seed(0)
    config = replace(model.config, **fields)
    return Summarizer(replace(model, config=config, transformer=build(config, model.tokenizer.vocab_size, 1).eval()))


def test_the_summary_is_the_one_that_summarize_writes_and_the_tokens_are_the_head_of_the_document(
    summarizer: Summarizer, explanation: Explanation, article: str
) -> None:
    assert explanation.summary == summarizer.summarize([article], **SHORT)[0]
    assert "".join(explanation.written).split() == explanation.summary.text.split()
    assert len(explanation.written) == explanation.summary.tokens
    assert len(explanation.document) == explanation.summary.read_tokens == 256
    assert explanation.document[-1] == ""
    head = "".join(explanation.document).strip()
    assert len(head) > 300 and " ".join(article.split()).startswith(" ".join(head.split()))
    lines = [normalize(line) for line in article.splitlines() if line.strip()]
    *whole, last = [line for line in head.split("\n") if line]
    assert whole == lines[: len(whole)] and lines[len(whole)].startswith(last) and len(whole) > 1
    # A model that copies nothing says nothing of it.
    assert explanation.trace.copied is None and explanation.summary.copied is None
    assert "copied" not in explanation.to_dict()


@pytest.mark.parametrize("pooling_lengths", [None, "64,16,None"])
@torch.no_grad()
def test_a_word_was_copied_as_likely_as_it_was_not_generated_and_from_equal_tokens(
    summarizer: Summarizer, article: str, pooling_lengths: str | None
) -> None:
    pointing = untrained(summarizer.model, output="pointer", pooling_lengths=pooling_lengths)
    explained = pointing.explain(article, **SHORT)
    copied, transformer = explained.trace.copied, pointing.model.transformer
    assert copied is not None
    ids = torch.tensor(pointing.model.tokenizer.encode(article)[: copied.size(1) - 1] + [2])
    (hypothesis,) = BeamSearch(2, 4, 12, best=1)(transformer, ids[None])[0]
    written = hypothesis.tokens
    memories = transformer.encoder(ids[None], torch.zeros(1, len(ids), dtype=torch.bool)).memories
    prefix = torch.cat([torch.tensor([2]), written[:-1]])[None]
    decoder = transformer.decoder
    features = decoder.features(prefix, memories)
    generating = decoder.output.pointer(features, decoder.output.prepare(memories, decoder.embedder.tokens.weight))[
        1
    ].sigmoid()
    generated = generating * (features @ decoder.embedder.tokens.weight.T).softmax(-1)
    whole = decoder.logits(features, memories).exp()
    shares = (1 - generated / whole)[0].gather(1, written[:, None]).squeeze(1)
    torch.testing.assert_close(copied.sum(dim=1), shares, rtol=0, atol=1e-4)
    places = copied.nonzero()
    assert len(places) and ids[places[:, 1]].equal(written[places[:, 0]])
    assert explained.summary.copied == pytest.approx(shares.mean().item(), abs=1e-4)
    assert explained.to_dict()["copied"] == round(explained.summary.copied, 4)


def test_the_share_that_was_copied_is_told_where_it_is_asked_for_and_takes_another_pass_only_there(
    summarizer: Summarizer, article: str
) -> None:
    pointing = untrained(summarizer.model, output="pointer")
    whole_passes: list[int] = []
    layer = pointing.model.transformer.decoder.layers[0]
    layer.register_forward_pre_hook(lambda _, inputs: whole_passes.append(inputs[0].size(1)))
    (plain,) = pointing.summarize([article], **SHORT)
    assert plain.copied is None and "copied" not in plain.to_dict() and not whole_passes
    (asked,) = pointing.summarize([article], copied=True, **SHORT)
    assert asked._replace(copied=None) == plain and whole_passes == [plain.tokens]
    assert asked.copied == pytest.approx(pointing.explain(article, **SHORT).summary.copied, abs=1e-4)


def test_pieces_of_a_long_document_are_explained_in_order_and_nothing_is_left_out(
    summarizer: Summarizer, article: str
) -> None:
    text = article[:3000]
    explained = list(summarizer.explain_pieces(text, **SHORT))
    assert len(explained) > 1 and not any(x.summary.was_cut for x in explained)
    # The lines of the document are found again over the ends of pieces.
    whole = "".join(token for x in explained for token in x.document)
    assert [line.strip() for line in whole.split("\n") if line.strip()] == [
        normalize(line) for line in text.splitlines() if line.strip()
    ]
    (first,) = summarizer.summarize(["".join(explained[0].document)], **SHORT)
    assert first == explained[0].summary
    with refused("hold text"):
        next(summarizer.explain_pieces(" \n", **SHORT))


def test_an_explanation_names_the_model_and_how_it_wrote(explanation: Explanation) -> None:
    assert explanation.settings == {
        "precision": "float32",
        "architecture": "deep_pyramidion with embed_dim 16, ffn_embed_dim 32, num_heads 2, encoder_layers 3, "
        "self_attention blockwise(block_size=32), pooling_lengths None,64,16, decoder_layers 1",
        "parameters": "22,850",
        "attention": "blockwise(block_size=32)",
        "pooling": "soft_topk, scorer linear; vectors: 64 after layer 2, 16 after layer 3",
        "reads at most": "256 tokens",
        "beam": "2",
        "length of a summary": "4 to 12 tokens",
        "length penalty": "1",
        "repeated n-grams": "allowed",
    }


def test_each_layer_says_what_it_received_and_handed_on(explanation: Explanation) -> None:
    layers = explanation.trace.layers
    assert [(x.number, x.received, x.handed_on) for x in layers] == [(1, 256, 256), (2, 256, 64), (3, 64, 16)]
    assert layers[0].sharpness is None and torch.equal(layers[0].reached, torch.ones(256))
    assert layers[0].share_for_half == 0.5
    for layer in layers[1:]:
        # Four tokens, then four vectors, are mixed into one: equal shares would be a quarter.
        assert 0.25 <= layer.sharpness <= 1
        assert layer.reached.sum() == pytest.approx(layer.handed_on, rel=1e-5)
        assert layer.reached.min() >= 0 and layer.reached.max() <= 1 + 1e-5
    assert layers[-1].share_for_half < 0.5
    assert torch.equal(explanation.reached, layers[-1].reached)
    # The least share that makes up half counts the strongest tokens.
    for reached, share in (([0.0, 1.0, 0.0, 0.0], 0.25), ([0.1, 0.4, 0.2, 0.3], 0.5)):
        assert layers[0]._replace(reached=torch.tensor(reached)).share_for_half == share


def test_a_word_draws_on_tokens_by_attention_to_the_vectors_that_hold_them(explanation: Explanation) -> None:
    trace = explanation.trace
    made_of = matrix(trace.provenance)
    assert trace.memory == 16 and made_of.shape == (16, 256)
    assert trace.attention.shape == (explanation.summary.tokens, 16)
    for start, end in ((0, 1), (2, 5)):
        drew = explanation.drew_on(start, end)
        torch.testing.assert_close(drew, trace.attention[start:end].mean(0) @ made_of)
        assert drew.sum() == pytest.approx(1, abs=1e-5)
        # What did not reach the decoder was not drawn on.
        assert drew[explanation.reached == 0].eq(0).all()
    for start, end in ((-1, 1), (2, 2), (0, 1000)):
        with refused(f"{start} and {end}", IndexError):
            explanation.drew_on(start, end)


def test_where_nothing_is_pooled_every_token_reaches_the_decoder(summarizer: Summarizer, article: str) -> None:
    explanation = untrained(summarizer.model, pooling_lengths=None).explain(article, **SHORT)
    assert [layer.handed_on for layer in explanation.trace.layers] == [256] * 3
    assert torch.equal(explanation.reached, torch.ones(256))
    torch.testing.assert_close(explanation.drew_on(0, 1), explanation.trace.attention[0])
    # So it is with a document shorter than all poolings.
    explanation = summarizer.explain("Cells.", **SHORT)
    assert torch.equal(explanation.reached, torch.ones(explanation.summary.read_tokens))
    assert {layer.sharpness for layer in explanation.trace.layers} == {None}


def test_poolings_without_provenance_tell_how_many_vectors_but_not_which_tokens(
    summarizer: Summarizer, article: str
) -> None:
    explanation = untrained(summarizer.model, pooling="max", scorer="linear").explain(article, **SHORT)
    first, *others = explanation.trace.layers
    assert torch.equal(first.reached, torch.ones(256))
    known = [(x.handed_on, x.sharpness, x.reached, x.share_for_half) for x in others]
    assert known == [(64, None, None, None), (16, None, None, None)]
    assert explanation.reached is None and explanation.drew_on(0, 1) is None
    # Funnel brings all vectors back.
    funnel = untrained(summarizer.model, pooling="funnel", pooling_lengths="None,64,None")
    explanation = funnel.explain(article, **SHORT)
    assert [layer.handed_on for layer in explanation.trace.layers] == [256, 64]
    assert explanation.trace.memory == 256
    assert explanation.trace.provenance is None and explanation.drew_on(0, 1) is None
    # One memory is told where the other cannot be.
    explanation = untrained(summarizer.model, memories="last,1", pooling="max", scorer="linear").explain(
        article, **SHORT
    )
    assert explanation.drew_on(0, 1) is None and explanation.drew_on(0, 1, 0) is None
    assert explanation.drew_on(0, 1, 1).sum() == pytest.approx(1, abs=1e-5)
    document = only_document(html_page(explanation, "paper"))
    assert document["known"] == [False, False, True]
    assert all(word["links"][:2] == [None, None] for word in document["items"])
    assert all(word["links"][2]["covered"] > 0 for word in document["items"])


@pytest.mark.parametrize("kind", ["iterative_topk", "gumbel_topk"])
def test_kinds_that_mix_every_token_into_every_vector_are_traced_too(
    summarizer: Summarizer, article: str, kind: str
) -> None:
    explanation = untrained(summarizer.model, pooling=kind).explain(article, **SHORT)
    torch.testing.assert_close(matrix(explanation.trace.provenance).sum(dim=1), torch.ones(16))
    assert explanation.drew_on(0, 1).sum() == pytest.approx(1, abs=1e-4)


#: One of each kind of attention, pooling, decoder and stack.
TRACED = ("pyramidion_pointer", "discourse_pointer", "power", "funnel", "transpooler_mean", "transpooler_max")
TRACED += ("transpooler_segments", "linformer", "sinkhorn_hepos", "look_back", "reformer", "hmnet", "bart_ls")
TRACED += ("top_down", "terraformer", "terraformer_pyramidion")


@pytest.mark.parametrize("name", TRACED)
def test_every_architecture_is_traced_or_says_that_it_cannot_be(name: str) -> None:
    small = {**tiny_fields(name), "max_source_positions": 600}
    lengths = preset(name).pooling_lengths
    if lengths is not None:
        small["pooling_lengths"] = (
            lengths.replace("2048", "120").replace("1024", "40").replace("512", "40").replace("342", "40")
        )
    for kind, option in (("blockwise", "block_size"), ("sliding_window", "window")):
        if re.fullmatch(rf"{kind}\([^|]*\)", preset(name).self_attention):
            small["self_attention"] = f"{kind}({option}=60)"
    model = build(config_as(PyramidionConfig, small), 100, 1, marker_idx=4).eval()
    document = torch.randint(5, 100, (600,))
    document[::15] = 4
    found = trace(model, document, torch.randint(4, 100, (7,)), 2)
    if preset(name).pooling == "segments":
        # The text decides, within what there may be.
        assert 1 < found.memory <= 40
    else:
        assert found.memory == (600 if lengths is None or name == "funnel" or preset(name).upsampling else 40)
    if name == "terraformer":
        # Buckets do not tell weights.
        assert found.attention is None
        return
    read = found.attention.sum(dim=1)
    if preset(name).decoder.startswith("concatenated"):
        # It reads the summary with the same weights.
        assert ((read > 0) & (read < 1)).all()
    else:
        torch.testing.assert_close(read, torch.ones(7))
    if name in ("funnel", "transpooler_max"):
        assert found.provenance is None
    else:
        torch.testing.assert_close(matrix(found.provenance).sum(dim=1), torch.ones(found.memory))


HEPOS = {"cross_attention": "hepos(stride=2)"}


def test_heads_that_read_every_second_vector_tell_of_all(summarizer: Summarizer, article: str) -> None:
    explanation = untrained(summarizer.model, **HEPOS).explain(article, **SHORT)
    attention = explanation.trace.attention
    assert attention.shape == (explanation.summary.tokens, 16) and (attention > 0).all()
    # The first head has all of its attention for the even vectors, the second for the odd ones.
    torch.testing.assert_close(attention[:, ::2].sum(dim=1), torch.full((len(attention),), 0.5))
    torch.testing.assert_close(attention[:, 1::2].sum(dim=1), torch.full((len(attention),), 0.5))
    assert explanation.drew_on(0, 1).sum() == pytest.approx(1, abs=1e-5)
    assert explanation.settings["cross-attention"] == "hepos(stride=2)"
    assert explanation.settings["reads of the encoder"] == "its output"
    assert all(word["links"][0]["covered"] > 0 for word in only_document(html_page(explanation, "paper"))["items"])


def test_a_head_without_a_vector_to_read_has_no_attention_to_share(summarizer: Summarizer) -> None:
    many = untrained(summarizer.model, num_heads=8, cross_attention="hepos(stride=8)")
    explanation = many.explain("Cells.", **SHORT)
    vectors = explanation.trace.memory
    assert vectors < 8
    torch.testing.assert_close(
        explanation.trace.attention.sum(dim=1), torch.full((explanation.summary.tokens,), vectors / 8)
    )


@pytest.mark.parametrize("cross", [{}, {"cross_attention": "full; hepos(stride=2); full"}])
def test_what_was_read_of_each_memory_is_told(summarizer: Summarizer, article: str, cross: dict[str, str]) -> None:
    explanation = untrained(summarizer.model, memories="3,1,last", **cross).explain(article, **SHORT)
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
    document = only_document(html_page(explanation, "paper"))
    views = ["the encoder's output (16 vectors)", "layer 3 (64 vectors)", "layer 1 (256 vectors)"]
    assert document["known"] == [True] * 4 and document["views"][1:] == views
    for word in document["items"]:
        assert len(word["links"][0]["to"]) == 64 and word["links"][1] != word["links"][3]


WINDOWS = {"self_attention": "sliding_window(window=16)"}


def test_global_tokens_are_named_and_followed_as_others(summarizer: Summarizer, article: str) -> None:
    windowed = untrained(summarizer.model, **WINDOWS, global_tokens=3, global_projections="dense")
    explanation = windowed.explain(article, **SHORT)
    assert explanation.trace.seen_by_all.nonzero()[:, 0].tolist() == [0, 1, 2]
    assert only_document(html_page(explanation, "paper"))["marks"]["global"] == [0, 1, 2]
    assert explanation.drew_on(0, 1).sum() == pytest.approx(1, abs=1e-5)
    assert explanation.summary == windowed.summarize([article], **SHORT)[0]
    without = untrained(summarizer.model, **WINDOWS).explain(article, **SHORT)
    assert without.trace.seen_by_all is None
    assert not only_document(html_page(without, "paper"))["marks"]["global"]


@pytest.mark.parametrize(("given", "places"), [("global_markers", [3, 6]), ("global_query", [0, 1, 2])])
def test_markers_and_the_query_are_named_where_they_are_global(given: str, places: list[int]) -> None:
    shape = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2}
    model = build(preset("vanilla", **shape, **WINDOWS, **{given: True}), 20, 1, marker_idx=4).eval()
    document = torch.tensor([9, 8, 2, 4, 7, 5, 4, 6, 2])
    found = trace(model, document, torch.tensor([5, 2]), 2)
    assert found.seen_by_all.nonzero()[:, 0].tolist() == places


def test_the_card_says_so_too(summarizer: Summarizer) -> None:
    card = model_card(untrained(summarizer.model, memories="3,last", **HEPOS).model, "mine")
    assert "| cross-attention | hepos(stride=2) |" in card
    assert "| reads of the encoder | layer 3, its output |" in card
    assert "reads of the encoder" not in model_card(summarizer.model, "mine")
    card = model_card(untrained(summarizer.model, decoder_self_attention="lsh(num_hashes=2)").model, "mine")
    assert "| attention among summary positions | lsh(num_hashes=2) |" in card
    assert "among summary positions" not in model_card(summarizer.model, "mine")


def test_a_decoder_without_cross_attention_tells_what_goes_to_it(summarizer: Summarizer, article: str) -> None:
    fields = {"decoder": "concatenated", "recurrence": "sru", "decoder_positions": "sinusoidal"}
    explanation = untrained(summarizer.model, **fields).explain(article, **SHORT)
    attention = explanation.trace.attention
    assert attention.shape == (explanation.summary.tokens, 16) and (attention > 0).all()
    # The first token sees the document and what the decoder starts from; later ones see what is written, too.
    assert (attention.sum(dim=1) < 1).all() and attention[-1].sum() < attention[0].sum()
    assert explanation.drew_on(0, 1).sum() == pytest.approx(float(attention[0].sum()), abs=1e-5)
    assert explanation.settings["decoder"] == "concatenated"
    assert "among the encoder's vectors" in explanation.settings["attention not followed"]
    assert all(word["links"][0]["covered"] > 0 for word in only_document(html_page(explanation, "paper"))["items"])

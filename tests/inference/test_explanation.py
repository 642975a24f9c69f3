"""Where a summary comes from: the figures of an explanation, against what the model's own parts hand on."""

import json
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import SAMPLE
from explanations import matrix
from tables import for_each
from tiny_presets import tiny_fields

from pyramidions.base.errors import UserError
from pyramidions.inference import Explanation, SavedModel, Summarizer
from pyramidions.inference.explanation import trace
from pyramidions.models import PRESETS, build, preset
from pyramidions.models.config import PyramidionConfig, config_as
from pyramidions.nn import BeamSearch
from pyramidions.text.normalization import normalize
from pyramidions.text.tokenizer import Tokenizer

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


def test_the_summary_is_the_one_that_summarize_writes(
    summarizer: Summarizer, explanation: Explanation, article: str
) -> None:
    assert explanation.summary == summarizer.summarize([article], **SHORT)[0]
    assert "".join(explanation.written).split() == explanation.summary.text.split()
    assert len(explanation.written) == explanation.summary.tokens


def test_the_tokens_are_the_head_of_the_document_as_it_stands(explanation: Explanation, article: str) -> None:
    assert len(explanation.document) == explanation.summary.read_tokens == 256
    assert explanation.document[-1] == ""
    head = "".join(explanation.document).strip()
    assert len(head) > 300 and " ".join(article.split()).startswith(" ".join(head.split()))
    lines = [normalize(line) for line in article.splitlines() if line.strip()]
    *whole, last = [line for line in head.split("\n") if line]
    assert whole == lines[: len(whole)] and lines[len(whole)].startswith(last) and len(whole) > 1


@for_each("pooling_lengths", [None, "64,16,None", "None,32,None"])
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
    generating = decoder.output.pointer(features, decoder.output.prepare(memories))[1].sigmoid()
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


def test_a_model_that_copies_nothing_says_nothing_of_it(explanation: Explanation) -> None:
    assert explanation.trace.copied is None and explanation.summary.copied is None
    assert "copied" not in explanation.to_dict()


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
    with pytest.raises(UserError, match="must hold text, but `text` holds none"):
        next(summarizer.explain_pieces(" \n", **SHORT))


@for_each("in_pieces", [False, True])
def test_a_document_is_tokenized_once(
    summarizer: Summarizer, article: str, in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized: list[str] = []
    surfaces = Tokenizer.surfaces

    def watched(self: Tokenizer, of_windows: Iterable[str]) -> Iterator[list[str]]:
        return surfaces(self, (tokenized.append(window) or window for window in of_windows))

    monkeypatch.setattr(Tokenizer, "surfaces", watched)
    monkeypatch.setattr(Tokenizer, "encode", None)
    text = article[:3000]
    assert list(summarizer.explain_pieces(text, **SHORT) if in_pieces else [summarizer.explain(text, **SHORT)])
    assert "".join(tokenized) == text


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


def test_the_least_share_that_makes_up_half_counts_the_strongest_tokens(explanation: Explanation) -> None:
    layer = explanation.trace.layers[0]
    assert layer._replace(reached=torch.tensor([0.0, 1.0, 0.0, 0.0])).share_for_half == 0.25
    assert layer._replace(reached=torch.tensor([0.1, 0.4, 0.2, 0.3])).share_for_half == 0.5
    assert layer._replace(reached=None).share_for_half is None


def test_a_word_draws_on_tokens_by_attention_to_the_vectors_that_hold_them(explanation: Explanation) -> None:
    trace = explanation.trace
    made_of = matrix(trace.provenance)
    assert trace.memory == 16 and made_of.shape == (16, 256)
    assert trace.attention.shape == (explanation.summary.tokens, 16)
    for start, end in ((0, 1), (2, 5)):
        whole = trace.attention[start:end].mean(0) @ made_of
        drew = explanation.drew_on(start, end)
        torch.testing.assert_close(drew, whole)
        assert drew.sum() == pytest.approx(1, abs=1e-5)
        # What did not reach the decoder was not drawn on.
        assert drew[explanation.reached == 0].eq(0).all()


@for_each(("start", "end"), [(-1, 1), (2, 2), (0, 1000)])
def test_words_that_are_not_there_cannot_be_asked_for(explanation: Explanation, start: int, end: int) -> None:
    with pytest.raises(IndexError, match=f"but are {start} and {end}"):
        explanation.drew_on(start, end)


def test_where_nothing_is_pooled_every_token_reaches_the_decoder(summarizer: Summarizer, article: str) -> None:
    explanation = untrained(summarizer.model, pooling_lengths=None).explain(article, **SHORT)
    assert [layer.handed_on for layer in explanation.trace.layers] == [256] * 3
    assert torch.equal(explanation.reached, torch.ones(256))
    torch.testing.assert_close(explanation.drew_on(0, 1), explanation.trace.attention[0])


def test_a_pooling_without_provenance_tells_how_many_vectors_but_not_which_tokens(
    summarizer: Summarizer, article: str
) -> None:
    explanation = untrained(summarizer.model, pooling="max", scorer="linear").explain(article, **SHORT)
    first, *others = explanation.trace.layers
    assert torch.equal(first.reached, torch.ones(256))
    assert [(x.handed_on, x.sharpness, x.reached, x.share_for_half) for x in others] == [
        (64, None, None, None),
        (16, None, None, None),
    ]
    assert explanation.reached is None and explanation.drew_on(0, 1) is None


def test_funnel_brings_all_vectors_back_but_leaves_no_trace(summarizer: Summarizer, article: str) -> None:
    funnel = untrained(summarizer.model, pooling="funnel", pooling_lengths="None,64,None")
    explanation = funnel.explain(article, **SHORT)
    assert [layer.handed_on for layer in explanation.trace.layers] == [256, 64]
    assert explanation.trace.memory == 256
    assert explanation.trace.provenance is None and explanation.drew_on(0, 1) is None


def test_a_document_shorter_than_all_poolings_reaches_the_decoder_whole(summarizer: Summarizer) -> None:
    explanation = summarizer.explain("Cells.", **SHORT)
    assert torch.equal(explanation.reached, torch.ones(explanation.summary.read_tokens))
    assert {layer.sharpness for layer in explanation.trace.layers} == {None}


@for_each(
    ("text", "sentence"),
    [(" \n", "must hold text, but `text` holds none"), (["One."], "`text` must be a text, but is a list.")],
)
def test_what_is_no_document_is_refused(summarizer: Summarizer, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        summarizer.explain(text)
    with pytest.raises(UserError, match=sentence):
        list(summarizer.explain_pieces(text))


@for_each("kind", ["iterative_topk", "gumbel_topk"])
def test_kinds_that_mix_every_token_into_every_vector_are_traced_too(
    summarizer: Summarizer, article: str, kind: str
) -> None:
    explanation = untrained(summarizer.model, pooling=kind).explain(article, **SHORT)
    rows = matrix(explanation.trace.provenance).sum(dim=1)
    torch.testing.assert_close(rows, torch.ones(16))
    assert explanation.drew_on(0, 1).sum() == pytest.approx(1, abs=1e-4)


@for_each("name", PRESETS)
def test_every_architecture_is_traced_or_says_that_it_cannot_be(name: str) -> None:
    small = {**tiny_fields(name), "max_source_positions": 600}
    lengths = preset(name).pooling_lengths
    if lengths is not None:
        small["pooling_lengths"] = (
            lengths.replace("2048", "150").replace("1024", "40").replace("512", "40").replace("342", "40")
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

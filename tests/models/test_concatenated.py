"""Whole models whose decoder reads the encoder's output in front of the target."""

from typing import Any

import pytest
import torch
from fairseq_searches import dictionary, faced, generated, rescored
from torch import Tensor
from whole_models import LONGEST, PAD, VOCABULARY, batch, tiny

from pyramidions.nn import BeamSearch, Sampling, Transformer
from pyramidions.nn.stack import STACK
from pyramidions.nn.sublayer import LayerContext

DOCUMENTS = (LONGEST, 13, 7, 1)
FIELDS: dict[str, Any] = {"decoder": "concatenated", "normalize_before": True, "decoder_positions": "sinusoidal"}
TERRAFORMER = {
    "stack": "reversible",
    "recurrence": "sru",
    "decoder_self_attention": "lsh",
    "decoder_projections": "multiplicative_conv",
    "feed_forward": "sparse(block_size=4)",
}
#: what the preset has besides
STREAMS = {**TERRAFORMER, "decoder": "concatenated(reads_streams=True)", "output": "multiplicative"}
REVERSIBLE = {"stack": "reversible", "normalize_before": True}
models = pytest.mark.parametrize(
    ("fields", "pooling"),
    [({}, "none"), (TERRAFORMER, "soft_topk"), (STREAMS, "none"), (STREAMS, "soft_topk")],
    ids=["plain", "terraformer", "streams", "pooled streams"],
)


def model(pooling: str = "soft_topk", **overrides: Any) -> Transformer:
    if pooling != "none":
        overrides = {"pooling_lengths": "12,6,None", **overrides}
    made = tiny("full", pooling, **{**FIELDS, **overrides}).eval()
    # Untrained models find all tokens about as likely; these have an opinion.
    made.decoder.embedder.tokens.weight.data *= 4
    for bias in made.parameters():
        if bias.dim() == 1:
            # None of 0 hides a mistake.
            bias.data.add_(torch.randn_like(bias), alpha=0.1)
    return made


@models
@pytest.mark.parametrize("search", [BeamSearch(3, 2, 8), Sampling(2, 8, seeds=[1, 2, 3, 4])])
def test_what_is_written_scores_as_in_a_pass(fields: dict[str, Any], pooling: str, search: Any) -> None:
    whole, source = model(pooling, **fields), batch(*DOCUMENTS)
    for document, hypotheses in zip(source, search(whole, source), strict=True):
        for found in hypotheses:
            expected = rescored(whole, document[document != PAD], found.tokens)
            torch.testing.assert_close(found.token_scores, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("fields", "pooling"), [({}, "soft_topk"), (STREAMS, "none")], ids=["plain", "streams"])
def test_the_generator_of_fairseq_writes_the_same(fields: dict[str, Any], pooling: str) -> None:
    core, words, source = model(pooling, **fields), dictionary(VOCABULARY), batch(*DOCUMENTS)
    shape = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "max_source_positions": LONGEST}
    face = faced(core, words, **{**shape, **FIELDS, **fields})
    found = generated(face, words, source, beam_size=3, max_len_b=8, min_len=2)
    ours = BeamSearch(3, 2, 8)(core, source)
    for document, theirs, mine in zip(source, found, ours, strict=True):
        best = theirs[0]
        expected = rescored(core, document[document != PAD], best["tokens"])
        torch.testing.assert_close(best["positional_scores"], expected, rtol=0, atol=1e-4)
        assert best["tokens"].tolist() == mine[0].tokens.tolist()


@torch.no_grad()
def test_both_streams_of_the_encoder_go_on_in_the_decoder_and_no_norm_comes_between() -> None:
    whole, source, prefix = model("none", **STREAMS), batch(20), batch(5, seed=1)
    decoder = whole.decoder

    def through(layers: Any, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        for layer in layers:
            for sublayer in layer.sublayers.values():
                first, second = second, first + sublayer.branch(second, LayerContext())
        return first, second

    x = whole.encoder.embedder(source, position=None)
    target = decoder.embedder(prefix)
    joined = (torch.cat([stream, target], dim=1) for stream in through(whole.encoder.layers, x, x))
    first, second = through(decoder.layers, *joined)
    expected = decoder.logits(decoder.norm((first + second)[:, -5:] / 2))
    torch.testing.assert_close(whole(source, prefix), expected)


@pytest.mark.parametrize("stack", STACK.names)
@pytest.mark.parametrize("reads", [True, False])
def test_a_single_stream_is_normalised_and_two_that_go_on_are_not(stack: str, reads: bool) -> None:
    made = model(stack=stack, decoder=f"concatenated(reads_streams={reads})")
    assert (made.encoder.norm is None) == (reads and STACK[stack].streams == 2)
    assert made(batch(20), batch(5, seed=1)).isfinite().all()


@pytest.mark.parametrize("stack", [stack for stack in STACK.names if STACK[stack].streams == 1])
@torch.no_grad()
def test_reading_the_streams_of_one_is_reading_its_output(stack: str) -> None:
    # That of a pooling, too.
    fields = {"stack": stack, "pooling_lengths": "12,None,6"}
    source, prefix = batch(20), batch(5, seed=1)
    expected, found = (
        model(decoder=decoder, **fields)(source, prefix)
        for decoder in ("concatenated", "concatenated(reads_streams=True)")
    )
    assert torch.equal(found, expected)

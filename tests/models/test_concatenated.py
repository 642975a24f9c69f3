"""Whole models whose decoder reads the encoder's output in front of the target."""

from typing import Any

import pytest
import torch
from torch import Tensor
from whole_models import batch, tiny

from pyramidions.nn import Transformer
from pyramidions.nn.stack import STACK
from pyramidions.nn.sublayer import LayerContext

#: what the preset terraformer has
STREAMS = {
    "stack": "reversible",
    "recurrence": "sru",
    "decoder_self_attention": "lsh",
    "decoder_projections": "multiplicative_conv",
    "feed_forward": "sparse(block_size=4)",
    "decoder": "concatenated(reads_streams=True)",
    "output": "multiplicative",
}
FIELDS: dict[str, Any] = {"decoder": "concatenated", "normalize_before": True, "decoder_positions": "sinusoidal"}


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

"""Projections and recurrences in whole models: what each position reads, and what learns."""

from typing import Any

import pytest
import torch
from whole_models import batch, encode, tiny

from pyramidions.nn import Transformer
from pyramidions.nn.attention import ATTENTION, SelfAttention
from pyramidions.nn.projections import PROJECTIONS, ConvProjections, MultiplicativeProjections
from pyramidions.nn.recurrence import Recurrence
from pyramidions.nn.stack import STACK
from pyramidions.nn.sublayer import LayerContext

LAYERS = 5  # three of the encoder and two of the decoder


def model(attention: str = "full", pooling: str = "none", **overrides: Any) -> Transformer:
    """Return a model whose recurrences matter from the start."""
    made = tiny(attention, pooling, **{"recurrence": "sru(dim=3)", **overrides}).eval()
    with torch.no_grad():
        for part in made.modules():
            if isinstance(part, Recurrence):
                for weight in part.parameters():
                    weight.add_(torch.randn_like(weight), alpha=0.5)
    return made


def recurring(of: Transformer) -> list[bool]:
    layers = [*of.encoder.layers, *of.decoder.layers]
    return [any(isinstance(part, Recurrence) for part in layer.modules()) for layer in layers]


def test_every_layer_has_one_or_those_that_are_named() -> None:
    assert recurring(model()) == [True] * LAYERS
    assert recurring(tiny()) == [False] * LAYERS
    assert recurring(model(recurrence="none | sru | none | none | sru")) == [False, True, False, False, True]
    first, second = (
        layer.sublayers["feed_forward"].beside
        for part in [model(recurrence="none | sru(dim=7) | none | none | sru(layers=2)")]
        for layer in (part.encoder.layers[1], part.decoder.layers[1])
    )
    assert (first.down.out_features, len(first.units)) == (7, 1)
    assert (second.down.out_features, len(second.units)) == (32, 2)


def test_without_it_a_seed_gives_the_weights_that_it_gave() -> None:
    before, after = tiny().state_dict(), tiny(recurrence="none | none | none | none | sru").state_dict()
    assert all(after[name].equal(weight) for name, weight in before.items())
    added = after.keys() - before.keys()
    assert added and all(name.startswith("decoder.layers.1.sublayers.feed_forward.beside.") for name in added)


@torch.no_grad()
@pytest.mark.parametrize("stack", STACK.names)
def test_it_begins_anew_where_the_blocks_of_its_layer_do(stack: str) -> None:
    whole = model("blockwise(block_size=8)", stack=stack, normalize_before=True)
    tokens = batch(24)
    changed = tokens.clone()
    changed[:, 9] = 7 + (tokens[:, 9] == 7)
    before, after = (encode(whole, each)[0] for each in (tokens, changed))
    # Blocks of eight: the second alone has changed, from its second vector on.
    moved = (before - after).abs().sum(dim=-1)[0] > 1e-6
    assert moved[8:16].all() and not moved[:8].any() and not moved[16:].any()


CONVOLVE = ["conv", "multiplicative_conv"]
convolving = pytest.mark.parametrize("projections", CONVOLVE)


def test_each_field_projects_its_own_attention() -> None:
    whole = tiny(
        encoder_projections="conv", decoder_projections="multiplicative", cross_projections="multiplicative_conv"
    )
    read, written = whole.encoder.layers[0].sublayers, whole.decoder.layers[0].sublayers
    of_encoder, of_decoder, of_memory = (
        layer.function.projections
        for layer in (read["self_attention"], written["self_attention"], written["cross_attention"])
    )
    assert isinstance(of_encoder, ConvProjections) and of_encoder.out_proj.weight.shape == (1, 3, 4, 4)
    assert isinstance(of_decoder, MultiplicativeProjections)
    assert isinstance(of_memory, ConvProjections) and of_memory.memory_proj is not None


@convolving
@torch.no_grad()
def test_blocks_begin_anew_whether_the_encoder_or_attention_cuts_them(projections: str) -> None:
    torch.manual_seed(0)
    projected = PROJECTIONS.build(projections, {}, embed_dim=8, num_heads=2)
    attention = SelfAttention(projected, ATTENTION.build("blockwise", {"block_size": 4}, dropout=0.0))
    x = torch.randn(2, 10, 8)
    expected = torch.cat([attention(block, LayerContext()) for block in x.split(4, dim=1)], dim=1)
    torch.testing.assert_close(attention(x, LayerContext()), expected)
    received = torch.cat([attention.received(block) for block in x.split(4, dim=1)], dim=1)
    torch.testing.assert_close(attention.received(x), received)


@convolving
@torch.no_grad()
def test_reversible_layers_of_other_blocks_are_those_of_plain_ones(projections: str) -> None:
    fields = {"normalize_before": True, "encoder_projections": projections, "stack": "reversible"}
    fields["self_attention"] = "blockwise(block_size=4) | blockwise(block_size=8) | blockwise(block_size=4)"
    whole = tiny("blockwise", **fields).eval()
    before, changed = batch(24), batch(24)
    # Blocks of 8 hold all that a token reaches.
    changed[0, 7] = 5 + (changed[0, 7] == 5)
    differs = (encode(whole, before)[0] - encode(whole, changed)[0]).abs().amax(dim=-1)[0] > 1e-6
    assert differs.nonzero().flatten().max() < 8


def test_units_of_the_text_may_be_read_one_position_at_a_time() -> None:
    tiny("segments", encoder_projections="conv(length_kernel=1)")
    tiny("segments", encoder_projections="multiplicative")

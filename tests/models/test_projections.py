"""Kinds of projections in whole models: what each position reads, and what cannot go together."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from whole_models import batch, documents, encode, tiny

from pyramidions.nn.attention import ATTENTION, SelfAttention
from pyramidions.nn.projections import PROJECTIONS, ConvProjections, MultiplicativeProjections
from pyramidions.nn.sublayer import LayerContext

CONVOLVE = ["conv", "multiplicative_conv"]
convolving = pytest.mark.parametrize("projections", CONVOLVE)


def everywhere(projections: str) -> dict[str, Any]:
    return dict.fromkeys(("encoder_projections", "decoder_projections", "cross_projections"), projections)


@pytest.mark.parametrize(
    ("projections", "attention", "pooling"),
    [
        ("multiplicative", "full", "funnel"),
        ("multiplicative_conv", "blockwise", "soft_topk"),
        ("multiplicative_conv", "linformer", "none"),
        ("conv", "blockwise", "funnel"),
        ("conv", "lsh", "none"),
        ("conv", "sliding_window", "mean"),
    ],
)
@torch.no_grad()
def test_a_document_is_encoded_as_if_it_were_alone(projections: str, attention: str, pooling: str) -> None:
    model = tiny(attention, pooling, **everywhere(projections)).eval()
    tokens = batch(23, 9, 1)
    together = documents(*encode(model, tokens))
    for row, length in enumerate((23, 9, 1)):
        (alone,) = documents(*encode(model, tokens[row : row + 1, :length]))
        torch.testing.assert_close(together[row], alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("projections", "stack", "cross"),
    [("conv", "reversible", "hepos"), ("multiplicative", "plain", "hepos"), ("multiplicative_conv", "plain", "full")],
)
def test_every_weight_learns(projections: str, stack: str, cross: str) -> None:
    model = tiny("blockwise", stack=stack, cross_attention=cross, normalize_before=True, **everywhere(projections))
    source, target = batch(23, 9, 1), batch(6, 6, 6, seed=1)
    F.cross_entropy(model.train()(source, target).flatten(0, 1), target.flatten()).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name
        assert weight.grad.any() or "k_proj.bias" in name, name


def test_each_field_projects_its_own_attention() -> None:
    model = tiny(
        encoder_projections="conv", decoder_projections="multiplicative", cross_projections="multiplicative_conv"
    )
    read, written = model.encoder.layers[0].sublayers, model.decoder.layers[0].sublayers
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
    model = tiny("blockwise", **fields).eval()
    before, changed = batch(24), batch(24)
    # Blocks of 8 hold all that a token reaches.
    changed[0, 7] = 5 + (changed[0, 7] == 5)
    differs = (encode(model, before)[0] - encode(model, changed)[0]).abs().amax(dim=-1)[0] > 1e-6
    assert differs.nonzero().flatten().max() < 8


def test_units_of_the_text_may_be_read_one_position_at_a_time() -> None:
    tiny("segments", encoder_projections="conv(length_kernel=1)")
    tiny("segments", encoder_projections="multiplicative")


@torch.no_grad()
def test_global_tokens_see_by_the_projections_of_all_others_or_by_copies() -> None:
    window = {"attention": "sliding_window", "global_tokens": 2, "encoder_projections": "multiplicative"}
    same = tiny(**window).eval()
    apart = tiny(**window, global_projections="multiplicative").eval()
    same.load_state_dict({name: each for name, each in apart.state_dict().items() if "global_rows" not in name})
    torch.testing.assert_close(encode(apart, batch(23, 9)), encode(same, batch(23, 9)), rtol=0, atol=1e-5)


@torch.no_grad()
def test_every_option_changes_the_output() -> None:
    source, prefix = batch(23), batch(6, seed=1)
    changes = {
        "multiplicative": ["(modules=4)"],
        "conv": ["(modules=4)", "(kernel=1)", "(length_kernel=2)", "(value_kernel=3)"],
    }
    changes["multiplicative_conv"] = changes["conv"]
    for field in everywhere("dense"):
        dense = tiny()(source, prefix)
        for kind, options in changes.items():
            found = [tiny(**{field: f"{kind}{each}"})(source, prefix) for each in ("", *options)]
            assert not any(found[0].allclose(other) for other in (dense, *found[1:])), (field, kind)
    tied, *others = (
        tiny(output=output)(source, prefix) for output in ("tied", "multiplicative", "multiplicative(modules=2)")
    )
    assert not tied.allclose(others[0]) and not others[0].allclose(others[1])

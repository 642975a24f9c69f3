"""A decoder that reads several outputs of the encoder."""

from typing import Any

import pytest
import torch
from reading import PAD, small
from small_parts import token_rows
from torch import Tensor

from pyramidions.models import preset
from pyramidions.models.parse import spec_of
from pyramidions.nn import Transformer
from pyramidions.nn.attention import CrossAttention, HeposAttention
from pyramidions.nn.sublayer import Memory
from pyramidions.runs.measure import CostPart
from pyramidions.runs.measure.cost import Lengths, cost_of

TINY = {"encoder_layers": 3, "pooling_lengths": "None,6,None"}


def model(memories: str, **overrides: Any) -> Transformer:
    return small(**{**TINY, "memories": memories, **overrides})


def read(of: Transformer, tokens: Tensor) -> tuple[Memory, ...]:
    return of.encoder(tokens, tokens.eq(PAD)).memories


def test_the_output_of_a_layer_is_read_as_it_was_before_its_pooling() -> None:
    tokens = token_rows(20, 9)
    before, last = read(model("2,last"), tokens)
    assert before.x.shape == (2, 20, 16) and last.x.shape == (2, 6, 16)
    assert before.padding_mask.equal(tokens.eq(PAD)) and last.padding_mask is None
    (without,) = read(model("last"), tokens)
    assert last.x.equal(without.x)


@pytest.mark.parametrize(("memories", "lengths"), [("last,1", [6, 20]), ("1,last", [20, 6]), ("3,last,1", [6, 6, 20])])
def test_they_come_in_the_order_of_the_field(memories: str, lengths: list[int]) -> None:
    assert [memory.x.size(1) for memory in read(model(memories), token_rows(20, 9))] == lengths


@pytest.mark.parametrize(("layer", "stack"), [(1, "plain"), (1, "recomputing"), (2, "reversible")])
def test_an_output_before_the_last_changes_none_after_it(layer: int, stack: str) -> None:
    tokens, fields = token_rows(20, 9), {"stack": stack, "normalize_before": stack == "reversible"}
    found, expected = (read(model(memories, **fields), tokens)[-1].x for memories in (f"{layer},last", "last"))
    assert found.equal(expected)


def test_each_memory_of_a_pre_norm_model_has_a_norm_of_its_own() -> None:
    weights = model("1,last", normalize_before=True).state_dict()
    assert {"encoder.memory_norms.0.weight", "encoder.norm.weight"} <= weights.keys()
    assert not [name for name in model("1,last").state_dict() if "memory_norms" in name]


def test_without_what_the_second_adds_the_output_is_that_of_a_model_with_the_first() -> None:
    tokens, prefix = token_rows(20, 9), token_rows(5, 5)
    # Sublayers are run in this order.
    names = ["self_attention", "cross_attention", "cross_attention_2", "feed_forward"]
    assert list(model("1,last").decoder.layers[0].sublayers) == names
    one = model("last", normalize_before=True)
    two = model("last,1", normalize_before=True)
    missing, further = two.load_state_dict(one.state_dict(), strict=False)
    assert not further and all("cross_attention_2" in name or "memory_norms" in name for name in missing)
    assert not torch.allclose(two(tokens, prefix), one(tokens, prefix))
    for layer in two.decoder.layers:
        torch.nn.init.zeros_(layer.sublayers["cross_attention_2"].function.projections.out_proj.weight)
    torch.testing.assert_close(two(tokens, prefix), one(tokens, prefix))


def look_back() -> Transformer:
    fields = {"num_heads": 4, "self_attention": "blockwise(block_size=16)"}
    made = small("look_back", **fields, pooling_lengths="None,None,24,6,None,None")
    # Untrained models find all tokens about as likely; this one has an opinion.
    made.decoder.embedder.tokens.weight.data *= 3
    return made


def test_look_back_reads_the_pooled_vectors_whole_and_the_unpooled_ones_by_strides() -> None:
    whole = look_back()
    pooled, unpooled = read(whole, token_rows(60, 33, 2))
    assert pooled.x.shape == (3, 6, 16) and unpooled.x.shape == (3, 60, 16)
    for layer in whole.decoder.layers:
        first, second = layer.functions(CrossAttention)
        assert (first.reads, second.reads) == (0, 1)
        assert not isinstance(first.attention, HeposAttention) and isinstance(second.attention, HeposAttention)
        assert second.attention.stride == 4


def test_looking_back_costs_a_quarter_of_reading_all() -> None:
    sizes: dict[str, Any] = {"embed_dim": 64, "ffn_embed_dim": 64, "num_heads": 4}

    def memory(**fields: str) -> int:
        products = cost_of(preset("look_back", **sizes, **fields), Lengths(8192, 512)).products
        return products[CostPart.MEMORY_PROJECTIONS] + products[CostPart.CROSS_ATTENTION]

    plain = memory(memories="last", cross_attention="full")
    full = memory(cross_attention="full")
    assert memory() - plain == (full - plain) // 4


def test_kinds_may_differ_from_memory_to_memory_and_layer_to_layer() -> None:
    def kinds(**fields: Any) -> list[list[str]]:
        layers = spec_of(preset("vanilla", **TINY, memories="1,last", **fields)).layers
        return [[part.kind for part in layer.cross_attention] for layer in layers]

    assert kinds() == [["full", "full"]] * 2
    assert kinds(cross_attention="hepos") == [["hepos", "hepos"]] * 2
    assert kinds(cross_attention="full;hepos") == [["full", "hepos"]] * 2
    assert kinds(cross_attention="hepos | full; hepos") == [["hepos", "hepos"], ["full", "hepos"]]
    fields = {"cross_attention": "hepos(stride=1); hepos(stride=2) | hepos(stride=4)"}
    layers = spec_of(preset("vanilla", **TINY, memories="1,last", **fields)).layers
    assert [[part.options["stride"] for part in layer.cross_attention] for layer in layers] == [[1, 2], [1, 4]]

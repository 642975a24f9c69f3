"""The Pyramidion whose decoder also reads the vectors that were not pooled."""

import pytest
import torch
from small_parts import token_rows

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.attention import CrossAttention, HeposAttention
from pyramidions.runs.measure.cost import Lengths, cost_of
from pyramidions.runs.measure.parts import CostPart

VOCABULARY, PAD = 40, 1
TINY = {
    "embed_dim": 16,
    "ffn_embed_dim": 32,
    "num_heads": 4,
    "self_attention": "blockwise(block_size=16)",
    "pooling_lengths": "None,None,24,6,None,None",
    "max_source_positions": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}


def model() -> Transformer:
    torch.manual_seed(0)
    made = build(preset("look_back", **TINY), VOCABULARY, PAD)
    # Untrained models find all tokens about as likely; this one has an opinion.
    made.decoder.embedder.tokens.weight.data *= 3
    return made


def test_its_decoder_reads_the_pooled_vectors_whole_and_the_unpooled_ones_by_strides() -> None:
    whole, tokens = model().eval(), token_rows(60, 33, 2)
    pooled, unpooled = whole.encoder(tokens, tokens.eq(PAD)).memories
    assert pooled.x.shape == (3, 6, 16) and unpooled.x.shape == (3, 60, 16)
    for layer in whole.decoder.layers:
        first, second = layer.functions(CrossAttention)
        assert (first.reads, second.reads) == (0, 1)
        assert not isinstance(first.attention, HeposAttention) and isinstance(second.attention, HeposAttention)
        assert second.attention.stride == 4


@torch.no_grad()
def test_steps_equal_the_whole_prefix_and_a_search_is_that_of_each_document_alone() -> None:
    whole, lengths = model().eval(), (60, 33, 2)
    tokens, written = token_rows(*lengths), token_rows(5, 5, 5)
    memories, cache = whole.encoder(tokens, tokens.eq(PAD)).memories, whole.decoder.new_cache()
    steps = [whole.decoder(written[:, t : t + 1], memories, cache) for t in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole.decoder(written, memories), rtol=0, atol=1e-4)
    search = BeamSearch(3, 2, 8)
    for row, found in enumerate(search(whole, tokens)):
        (alone,) = search(whole, tokens[row : row + 1, : lengths[row]])
        assert [h.tokens.tolist() for h in found] == [h.tokens.tolist() for h in alone]
        assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-3)


def test_looking_back_costs_a_quarter_of_reading_all() -> None:
    lengths = Lengths(8192, 512)

    def memory(**fields: str) -> int:
        products = cost_of(preset("look_back", **fields), lengths).products
        return products[CostPart.MEMORY_PROJECTIONS] + products[CostPart.CROSS_ATTENTION]

    plain = memory(memories="last", cross_attention="full")
    full = memory(cross_attention="full")
    assert memory() - plain == (full - plain) // 4

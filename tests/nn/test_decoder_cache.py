"""The cache of incremental decoding, beside a forward pass over the whole prefix."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn import Decoder, DecoderCache
from pyramidions.nn.attention import ATTENTION, Feature, FullAttention, SelfAttention, supporting
from pyramidions.nn.projections import PROJECTIONS, DenseProjections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Memory

DIM, LAYERS, VOCABULARY = 16, 2, 20
#: attention by which a decoder may read what it wrote, with options that cut short texts
KINDS: dict[str, dict[str, object]] = {
    "bucketed": {"decoder_self_attention": "bucketed"},
    "full": {},
    "lsh": {
        "decoder_self_attention": "lsh(bucket_size=1, num_hashes=2, num_buckets=2, local_heads=1, local_window=2)",
    },
    "relative": {"decoder_self_attention": "relative"},
    "relative_window": {"decoder_self_attention": "relative_window(window=4, dilation=2, dilated_heads=1)"},
    "sliding_window": {"decoder_self_attention": "sliding_window(window=4, dilation=2, dilated_heads=1)"},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def _decoder(**overrides: object) -> Decoder:
    torch.manual_seed(0)
    small = {"embed_dim": DIM, "ffn_embed_dim": 24, "num_heads": 2, "decoder_layers": LAYERS, **overrides}
    return build(preset("vanilla", **small), VOCABULARY).decoder.eval()


def _step(decoder: Decoder, written: Tensor, new: int, memory: Tensor, cache: DecoderCache) -> Tensor:
    return decoder.features(written[:, written.size(1) - new :], (Memory(memory),), cache)


def test_all_kinds_that_write_token_by_token_are_tried() -> None:
    assert tuple(KINDS) == supporting(Feature.STEPS)


@kinds
@torch.no_grad()
@settings(deadline=None, max_examples=60)
@given(
    data=st.data(),
    positions=st.sampled_from(["none", "sinusoidal"]),
    projections=st.sampled_from(PROJECTIONS.names),
    crossing=st.sampled_from(PROJECTIONS.names),
)
def test_however_hypotheses_replace_each_other_the_output_is_that_of_their_own_prefix(
    kind: str, data: st.DataObject, positions: str, projections: str, crossing: str
) -> None:
    decoder = _decoder(
        decoder_positions=positions, decoder_projections=projections, cross_projections=crossing, **KINDS[kind]
    )
    memory, width = torch.randn(3, 5, DIM), data.draw(st.integers(1, 3))
    written = torch.randint(4, VOCABULARY, (3 * width, data.draw(st.integers(1, 3))))
    cache, new = decoder.new_cache(), written.size(1)
    for _ in range(data.draw(st.integers(1, 5))):
        after = _step(decoder, written, new, memory, cache)
        whole = decoder.features(written, (Memory(memory.repeat_interleave(width, dim=0)),))
        torch.testing.assert_close(after, whole[:, -new:], rtol=0, atol=1e-5)
        assert cache.length == written.size(1) and (cache.documents, cache.width) == (len(memory), width)
        # Some documents stay, with hypotheses that descend from any of their own.
        documents = torch.tensor(sorted(data.draw(st.sets(st.integers(0, len(memory) - 1), min_size=1))))
        before, width = width, data.draw(st.integers(1, 3))
        order = (documents[:, None] * before + torch.randint(before, (len(documents), width))).flatten()
        cache.reorder(order, width)
        memory, new = memory[documents], data.draw(st.integers(1, 2))
        written = torch.cat([written[order], torch.randint(4, VOCABULARY, (len(order), new))], dim=1)


@torch.no_grad()
def test_nothing_that_was_written_moves_when_hypotheses_replace_each_other_or_write_on() -> None:
    decoder, memory = _decoder(), torch.randn(1, 5, DIM)
    cache = decoder.new_cache()
    written = torch.randint(4, VOCABULARY, (2, 1))
    rooms = []
    for _ in range(100):
        decoder.features(written[:, -1:], (Memory(memory),), cache)
        cache.reorder(torch.tensor([1, 0]), 2)
        rooms.append(cache.states[0][0].attention._k._room)
    # Room doubles: 4, 12, 28, 60, 124 and 252 tokens, of which 200 are written.
    assert sum(before is not after for before, after in pairwise(rooms)) == 5


@kinds
@for_each("projections", PROJECTIONS.names)
def test_a_rollout_through_a_cache_has_gradients(projections: str, kind: str) -> None:
    projected = {"decoder_projections": projections, "cross_projections": projections}
    decoder, memory = _decoder(**projected, **KINDS[kind]), torch.randn(1, 5, DIM)
    written = torch.randint(4, VOCABULARY, (2, 4))
    cache = decoder.new_cache()
    steps = [decoder.features(written[:, t : t + 1], (Memory(memory),), cache) for t in range(4)]
    whole = decoder.features(written, (Memory(memory.expand(2, -1, -1)),))
    weights = tuple(decoder.layers[0].parameters())
    ours, plain = (torch.autograd.grad(x.square().sum(), weights) for x in (torch.cat(steps, dim=1), whole))
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_document_of_one_hypothesis_needs_no_mask() -> None:
    cache = DecoderCache([])
    assert [cache.advance(2, 1, 1, torch.device("cpu")) for _ in range(3)] == [None, None, None]
    assert cache.lineage.belongs is not None
    assert cache.lineage.belongs.all() and cache.lineage.belongs.shape == (2, 1, 3)
    cache.reorder(torch.tensor([0, 0, 1, 1]), 2)
    assert cache.advance(2, 2, 1, torch.device("cpu")) is not None


def test_what_a_decoder_cannot_do_is_refused() -> None:
    decoder = _decoder()
    with pytest.raises(ValueError, match=r"`tokens` \(3 rows\) must be divisible by the number of documents \(2\)"):
        decoder.features(torch.ones(3, 2, dtype=torch.long), (Memory(torch.randn(2, 5, DIM)),))
    with pytest.raises(ValueError, match="goes on from what was written, but is BlockwiseAttention"):
        SelfAttention(DenseProjections(DIM, 2), ATTENTION.build("blockwise", {}, dropout=0.0), is_causal=True)


def test_lineage_of_two_hypotheses_by_hand() -> None:
    cache = DecoderCache([])
    first = cache.advance(1, 2, 1, torch.device("cpu"))
    assert first.tolist() == [[[False, True], [True, False]]]
    cache.reorder(torch.tensor([1, 1]), 2)  # both go on from the second
    second = cache.advance(1, 2, 2, torch.device("cpu"))
    assert second.int().tolist() == [
        [
            [1, 0, 0, 1, 1, 1],
            [1, 0, 0, 0, 1, 1],
            [1, 0, 1, 1, 0, 1],
            [1, 0, 1, 1, 0, 0],
        ]
    ]
    assert cache.length == 3


def test_an_empty_cache_has_nothing_to_reorder() -> None:
    cache = DecoderCache([])
    cache.reorder(torch.tensor([0]), 1)
    assert (cache.documents, cache.width, cache.length) == (0, 0, 0)


@torch.no_grad()
def test_a_kind_that_masks_by_query_hides_from_each_query_what_its_row_says() -> None:
    q, k, v = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 6)
    hidden = torch.rand(2, 4, 5) < 0.5
    hidden[..., 0] = False
    kinds = supporting(Feature.QUERY_MASKS)
    assert kinds == ("full",)
    for kind in kinds:
        out = ATTENTION.build(kind, {}, dropout=0.0)(q, k, v, LayerContext(hidden))
        logits = (q @ k.transpose(2, 3) / 6**0.5).masked_fill(hidden[:, None], -torch.inf)
        torch.testing.assert_close(out, logits.softmax(dim=-1) @ v)


@torch.no_grad()
def test_the_mask_of_the_memory_is_made_once_and_follows_the_documents() -> None:
    decoder, memory = _decoder(), torch.randn(3, 5, DIM)
    cache = decoder.new_cache()
    padding = torch.arange(5) >= torch.tensor([[5], [2], [0]])
    written = torch.randint(4, VOCABULARY, (3, 3))
    decoder.features(written[:, :1], (Memory(memory, padding),), cache)
    made = cache.memory_masks[0]
    assert made is not None and made.shape == (3, 1, 1, 5) and made.stride(2) == 16
    # Of a document of nothing but padding all is seen.
    assert made.isneginf().sum(dim=(1, 2, 3)).tolist() == [0, 3, 0]
    decoder.features(written[:, 1:2], (Memory(memory, padding),), cache)
    assert cache.memory_masks[0] is made
    kept = torch.tensor([1, 2])
    cache.reorder(kept, 1)
    after = decoder.features(written[kept, 2:], (Memory(memory[kept], padding[kept]),), cache)
    whole = decoder.features(written[kept], (Memory(memory[kept], padding[kept]),))
    torch.testing.assert_close(after, whole[:, 2:], rtol=0, atol=1e-5)


@torch.no_grad()
@for_each("dtype", [torch.bfloat16, torch.float16])
def test_masks_have_the_type_of_queries(dtype: torch.dtype) -> None:
    decoder, memory = _decoder(), torch.randn(2, 5, DIM)
    cache = decoder.new_cache()
    padding = torch.arange(5) >= torch.tensor([[5], [2]])
    with torch.autocast("cpu", dtype):
        decoder.features(torch.randint(4, VOCABULARY, (2, 1)), (Memory(memory, padding),), cache)
    (mask,) = cache.memory_masks
    assert mask is not None and mask.dtype == dtype


class PlainMasks(FullAttention):
    """A kind that takes masks of padding alone."""

    supports = FullAttention.supports - {Feature.QUERY_MASKS}

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        assert context.padding_mask is not None and context.padding_mask.dtype == torch.bool
        return super().forward(q, k, v, context)


@torch.no_grad()
def test_cross_attention_that_takes_no_bias_gets_the_mask_of_the_memory_itself() -> None:
    decoder, memory = _decoder(), torch.randn(2, 5, DIM)
    for layer in decoder.layers:
        layer.sublayers["cross_attention"].function.attention = PlainMasks()
    padding, written = torch.arange(5) >= torch.tensor([[5], [2]]), torch.randint(4, VOCABULARY, (2, 3))
    cache = decoder.new_cache()
    steps = [decoder.features(written[:, t : t + 1], (Memory(memory, padding),), cache) for t in range(3)]
    whole = decoder.features(written, (Memory(memory, padding),))
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-5)

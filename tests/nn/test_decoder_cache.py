"""The cache of incremental decoding, beside a forward pass over the whole prefix."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from noise import add_noise
from small_parts import ends_after
from whole_models import STACKS

from pyramidions.base.notation import Part
from pyramidions.base.notation import written as written_as
from pyramidions.models import build, preset
from pyramidions.nn import Decoder, DecoderCache
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.sublayer import Memory

DIM, LAYERS, VOCABULARY = 16, 2, 20
#: attention by which a decoder may read what it wrote, with options that cut short texts
KINDS: dict[str, dict[str, object]] = {
    "bucketed": {"decoder_self_attention": "bucketed"},
    "full": {},
    "lsh": {"decoder_self_attention": "lsh(bucket_size=1, num_hashes=2, num_buckets=2, local_heads=1, local_window=2)"},
    "relative": {"decoder_self_attention": "relative"},
    "relative_window": {"decoder_self_attention": "relative_window(window=4, dilation=2, dilated_heads=1)"},
    "sliding_window": {"decoder_self_attention": "sliding_window(window=4, dilation=2, dilated_heads=1)"},
}
kinds = pytest.mark.parametrize("kind", KINDS)
#: attention to a memory, with options that cut it
CROSSING = {kind: written_as(Part(kind, ATTENTION[kind].narrow)) for kind in supporting(Feature.OTHERS)}
#: decoders, by what they read
READING: dict[str, dict[str, object]] = {
    "one memory": {},
    "two memories": {"memories": "1,last", "pooling_lengths": "4,None"},
    "in front": {"decoder": "concatenated", "max_source_positions": 64},
    "streams in front": {
        "decoder": "concatenated(reads_streams=True)",
        "max_source_positions": 64,
        "stack": "reversible",
        "normalize_before": True,
    },
}


def _decoder(**overrides: object) -> Decoder:
    torch.manual_seed(0)
    small = {"embed_dim": DIM, "ffn_embed_dim": 24, "num_heads": 2, "decoder_layers": LAYERS, **overrides}
    return build(preset("vanilla", **small), VOCABULARY, marker_idx=4).decoder.eval()


def test_all_kinds_that_write_token_by_token_are_tried() -> None:
    assert tuple(KINDS) == supporting(Feature.STEPS)


@kinds
@torch.no_grad()
@settings(deadline=None, max_examples=25)
@given(
    data=st.data(),
    reading=st.sampled_from(sorted(READING)),
    positions=st.sampled_from(["none", "sinusoidal"]),
    recurrence=st.sampled_from(["none", "sru", "sru(dim=5, layers=2)"]),
    projections=st.sampled_from(PROJECTIONS.names),
    crossing=st.sampled_from(PROJECTIONS.names),
    cross=st.sampled_from(sorted(CROSSING)),
    stack=st.sampled_from(sorted(STACKS)),
    lengths=st.sampled_from([None, (5, 2, 0), (4, 4, 1)]),
)
def test_however_hypotheses_replace_each_other_the_output_is_that_of_their_own_prefix(
    kind: str, data: st.DataObject, reading: str, lengths: tuple[int, ...] | None, **parts: str
) -> None:
    fields = {**KINDS[kind], **READING[reading], "decoder_positions": parts["positions"]}
    fields |= {} if "stack" in fields else STACKS[parts["stack"]]
    if "decoder" not in fields:
        fields |= {"cross_projections": parts["crossing"], "cross_attention": CROSSING[parts["cross"]]}
    decoder = _decoder(recurrence=parts["recurrence"], decoder_projections=parts["projections"], **fields)
    add_noise(decoder, 0.1)
    padding, dim = None if lengths is None else ends_after(*lengths, width=5), DIM * (1 + ("streams" in reading))
    memories = tuple(Memory(torch.randn(3, 5, dim), padding) for _ in range(1 + ("memories" in fields)))
    width = data.draw(st.integers(1, 3))
    written = torch.randint(4, VOCABULARY, (3 * width, data.draw(st.integers(1, 3))))
    cache, new = decoder.new_cache(), written.size(1)
    for _ in range(data.draw(st.integers(1, 5))):
        after = decoder.features(written[:, written.size(1) - new :], memories, cache)
        rows = torch.arange(len(written)) // width
        whole = decoder.features(written, tuple(memory.select(rows) for memory in memories))
        torch.testing.assert_close(after, whole[:, -new:], rtol=0, atol=1e-5)
        count = len(memories[0].x)
        assert cache.length == written.size(1) and (cache.documents, cache.width) == (count, width)
        # Some documents stay, with hypotheses that descend from any of their own.
        documents = torch.tensor(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))))
        before, width = width, data.draw(st.integers(1, 3))
        order = (documents[:, None] * before + torch.randint(before, (len(documents), width))).flatten()
        cache.reorder(order, width)
        memories, new = tuple(memory.select(documents) for memory in memories), data.draw(st.integers(1, 2))
        written = torch.cat([written[order], torch.randint(4, VOCABULARY, (len(order), new))], dim=1)


@kinds
def test_a_rollout_through_a_cache_has_gradients(kind: str) -> None:
    convolved = {"decoder_projections": "conv", "cross_projections": "conv"} if kind == "full" else {}
    decoder, memory = _decoder(**convolved, **KINDS[kind]), torch.randn(1, 5, DIM)
    written = torch.randint(4, VOCABULARY, (2, 4))
    cache = decoder.new_cache()
    steps = [decoder.features(written[:, t : t + 1], (Memory(memory),), cache) for t in range(4)]
    whole = decoder.features(written, (Memory(memory.expand(2, -1, -1)),))
    weights = tuple(decoder.layers[0].parameters())
    ours, plain = (torch.autograd.grad(x.square().sum(), weights) for x in (torch.cat(steps, dim=1), whole))
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_document_of_one_hypothesis_needs_no_mask() -> None:
    cache = DecoderCache([])
    assert [cache.advance(2, 1, 1, torch.device("cpu")) for _ in range(3)] == [None, None, None]
    assert cache.lineage.belongs is not None
    assert cache.lineage.belongs.all() and cache.lineage.belongs.shape == (2, 1, 3)
    cache.reorder(torch.tensor([0, 0, 1, 1]), 2)
    assert cache.advance(2, 2, 1, torch.device("cpu")) is not None


@torch.no_grad()
def test_the_mask_of_the_memory_is_made_once_in_the_type_of_queries_and_follows_the_documents() -> None:
    decoder, memory = _decoder(), torch.randn(3, 5, DIM)
    cache = decoder.new_cache()
    padding = torch.arange(5) >= torch.tensor([[5], [2], [0]])
    written = torch.randint(4, VOCABULARY, (3, 3))
    decoder.features(written[:, :1], (Memory(memory, padding),), cache)
    made = cache.states[0][1].mask
    assert made is not None and made.shape == (3, 1, 1, 5) and made.stride(2) == 16
    # Of a document of nothing but padding all is seen.
    assert made.isneginf().sum(dim=(1, 2, 3)).tolist() == [0, 3, 0]
    decoder.features(written[:, 1:2], (Memory(memory, padding),), cache)
    assert cache.states[0][1].mask is made
    kept = torch.tensor([1, 2])
    cache.reorder(kept, 1)
    after = decoder.features(written[kept, 2:], (Memory(memory[kept], padding[kept]),), cache)
    whole = decoder.features(written[kept], (Memory(memory[kept], padding[kept]),))
    torch.testing.assert_close(after, whole[:, 2:], rtol=0, atol=1e-5)
    half = decoder.new_cache()
    with torch.autocast("cpu", torch.bfloat16):
        decoder.features(written[:, :1], (Memory(memory, padding),), half)
    assert half.states[0][1].mask is not None and half.states[0][1].mask.dtype == torch.bfloat16

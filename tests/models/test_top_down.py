"""Encoders whose last layers read the tokens again, and by cross-attention what was pooled in between."""

from typing import Any

import pytest
import torch
from reading import PAD, memory, small
from small_parts import ends_after, layer, token_rows, vectors

from pyramidions.models import preset
from pyramidions.models.parse import spec_of
from pyramidions.nn import Transformer
from pyramidions.nn.pooling import MeanPooler
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.stack import STACK
from pyramidions.nn.stage import Stage
from pyramidions.nn.sublayer import LayerContext, Memory
from pyramidions.nn.upsampling import TopDownUpsampler

BLOCKS: dict[str, Any] = {
    "num_heads": 4,
    "encoder_layers": 4,
    "self_attention": "blockwise(block_size=8) | full | blockwise(block_size=8) | blockwise(block_size=4)",
    "pooling": "mean",
    "pooling_lengths": "8,None,None,None",
    "upsampling": "top_down(layers=2)",
    "max_source_positions": 32,
}


def model(**fields: Any) -> Transformer:
    return small(**{**BLOCKS, **fields})


@pytest.mark.parametrize(("norm", "kind"), [("layer", torch.nn.LayerNorm), ("rms", torch.nn.RMSNorm)])
def test_pooled_vectors_are_normalised_as_all_others_are(norm: str, kind: type[torch.nn.Module]) -> None:
    (upsampler,) = model(norm=norm, normalize_before=True).encoder.upsamplers.values()
    assert isinstance(upsampler, TopDownUpsampler) and type(upsampler.norm) is kind


@pytest.mark.parametrize("stack", ["plain", "recomputing"])
@torch.no_grad()
def test_tokens_attend_locally_and_then_to_the_segments_of_their_document(stack: str) -> None:
    torch.manual_seed(0)
    local: dict[str, Any] = {"kind": "blockwise", "block_size": 4}
    first, top = layer(**local), layer()
    last = [layer("self_attention", "cross_attention", "feed_forward", **local) for _ in range(2)]
    lengths = (13, 7, 1)
    given = Sequence(vectors(3, 13, 8), ends_after(*lengths), lengths=list(lengths))
    composed = STACK.build(stack, {})
    found = Stage([first], MeanPooler(3), (Stage([top]),), TopDownUpsampler())(given, composed).sequence
    found = Stage(last)(found, composed).sequence
    assert found.lengths == given.lengths
    for row, length in enumerate(lengths):
        # blocks on their own, means of threes that see each other, blocks again that all see these
        blocks = torch.cat([first(block[None], LayerContext())[0] for block in given.x[row, :length].split(4)])
        means = torch.stack([part.mean(0) for part in blocks.split(3)])
        read = LayerContext(memories=(Memory(top(means[None], LayerContext())),))
        for each in last:
            blocks = torch.cat([each(block[None], read)[0] for block in blocks.split(4)])
        torch.testing.assert_close(found.x[row, :length], blocks, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "fields"),
    [
        ("adaptive_mean(overlap=2)", {"normalize_before": True}),
        ("soft_topk", {"normalize_before": True, "stack": "reversible"}),
        ("max", {}),
        ("markers", {"normalize_before": True, "stack": "reversible"}),
        ("delete_gate", {}),
    ],
)
def test_the_decoder_reads_tokens_that_know_of_the_whole_document(pooling: str, fields: dict[str, Any]) -> None:
    whole, tokens = model(**fields, pooling=pooling).train(), token_rows(30, 17)
    encoded = whole.encoder(tokens, tokens.eq(PAD))
    assert encoded.sequence.x.shape == (2, 30, 16) and encoded.sequence.padding_mask.equal(tokens.eq(PAD))
    torch.testing.assert_close(memory(whole, tokens[1:, :17])[0], encoded.sequence.x[1, :17], rtol=0, atol=1e-5)
    # Blocks do not reach from the first token to the last; segments do.
    other = tokens.clone()
    other[0, 1] = 5 + (other[0, 1] == 5)
    assert not torch.allclose(memory(whole, other)[0, -1], encoded.sequence.x[0, -1], atol=1e-6)
    whole(tokens, tokens[:, :5]).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in whole.parameters())


def test_several_poolings_are_undone_at_once() -> None:
    fields = {"encoder_layers": 5, "self_attention": "full", "pooling_lengths": "16,8,None,None,None"}
    spec = spec_of(preset("vanilla", **{**BLOCKS, **fields})).encoder
    assert [len(stage.layers) for stage in spec.all_stages()] == [1, 1, 1, 2]
    assert [stage.longest for stage in spec.all_stages()] == [32, 16, 8, 32] and spec.handed_on == 32
    whole, tokens = model(**fields), token_rows(30, 17)
    encoded = whole.encoder(tokens, tokens.eq(PAD))
    assert encoded.sequence.above is not None and encoded.sequence.above.x.shape == (2, 8, 16)
    assert encoded.sequence.x.shape == (2, 30, 16)


def test_a_pointer_points_to_the_tokens_themselves() -> None:
    whole, tokens = model(output="pointer", pooling="max"), token_rows(30, 17)
    origins = whole.encoder(tokens, tokens.eq(PAD)).memories[0].origins
    assert origins is not None and origins.made_of.weights.shape == (*tokens.shape, 1)
    assert origins.tokens.gather(1, origins.places).equal(tokens)

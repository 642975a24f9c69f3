"""Searches over a model with HEPOS, beside the same model with a dense mask for each head, and beside no cache."""

from typing import Any

import pytest
import torch
from fairseq_searches import dictionary, faced, generated, rescored
from torch import Tensor
from whole_models import LONGEST, PAD, VOCABULARY, batch, tiny

from pyramidions.nn import BeamSearch, Hypothesis, Sampling, Transformer
from pyramidions.nn.attention import CoreAttention, CrossAttention, Feature
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Memory

HEADS = 4
#: the last three are shorter than a stride of 4, or pooled to less
DOCUMENTS = (LONGEST, 13, 7, 3, 2, 1)
# Vectors of single tokens, of windows, and of segments of which there may be few
poolings = pytest.mark.parametrize("pooling", ["none", "soft_topk", "mean", "segments"])


class DenseMask(CoreAttention):
    """HEPOS as its formula says it, a softmax over a mask of heads times positions; for the memory as a whole."""

    supports = frozenset({Feature.OTHERS})

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def keys_values(self, projections: Projections, memory: Memory) -> tuple[Tensor, Tensor, Tensor | None]:
        padding_mask = memory.padding_mask
        k, v = projections.keys_values(memory.x)
        heads, positions = torch.arange(k.size(1))[:, None], torch.arange(k.size(2))
        unread = ((positions - heads) % self.stride != 0).expand(len(k), -1, -1)
        return k, v, unread if padding_mask is None else unread | padding_mask[:, None]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        assert context.padding_mask is not None
        logits = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(context.padding_mask[:, :, None], -torch.inf)
        return logits.softmax(dim=-1).nan_to_num(0.0) @ v


def hepos(pooling: str = "none", stride: int = 4, **overrides: Any) -> Transformer:
    options = {"cross_attention": f"hepos(stride={stride})", **overrides}
    model = tiny("full", pooling, num_heads=HEADS, **{"decoder_positions": "sinusoidal", **options}).eval()
    # Untrained models find all tokens about as likely; these have an opinion.
    model.decoder.embedder.tokens.weight.data *= 4
    return model


def dense(pooling: str = "none", stride: int = 4) -> Transformer:
    model = hepos(pooling, stride)
    for part in model.decoder.modules():
        if isinstance(part, CrossAttention):
            part.attention = DenseMask(stride)
    return model


def check(found: list[list[Hypothesis]], expected: list[list[Hypothesis]], source: Tensor, model: Transformer) -> None:
    for document, mine, other in zip(source, found, expected, strict=True):
        assert [one.tokens.tolist() for one in mine] == [one.tokens.tolist() for one in other]
        for one, same in zip(mine, other, strict=True):
            assert one.score == pytest.approx(same.score, abs=1e-4)
            # Nor does a cache, or a longer document beside it, change what a document's own pass says.
            own = rescored(model, document[document.ne(PAD)], one.tokens)
            torch.testing.assert_close(one.token_scores, own, rtol=0, atol=1e-4)


@poolings
def test_beam_search_finds_what_it_finds_by_a_dense_mask(pooling: str) -> None:
    stride = 2 if pooling == "none" else 4
    model, source, search = hepos(pooling, stride), batch(*DOCUMENTS), BeamSearch(3, min_len=2, max_len=9)
    check(search(model, source), search(dense(pooling, stride), source), source, model)


def test_samples_are_those_of_a_dense_mask() -> None:
    model, source, search = hepos(), batch(*DOCUMENTS), Sampling(2, 9, seeds=range(len(DOCUMENTS)))
    check(search(model, source), search(dense(), source), source, model)


def test_fairseqs_search_finds_what_it_finds_by_a_dense_mask() -> None:
    words, source = dictionary(VOCABULARY), batch(*DOCUMENTS)
    shape = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": HEADS, "max_source_positions": LONGEST}
    faces = [faced(core, words, **shape) for core in (hepos("soft_topk"), dense("soft_topk"))]
    found = [generated(face, words, source, beam_size=3, min_len=2, max_len_b=9) for face in faces]
    own = BeamSearch(3, min_len=2, max_len=9)(hepos("soft_topk"), source)
    for mine, other, ours in zip(*found, own, strict=True):
        assert mine[0]["tokens"].tolist() == other[0]["tokens"].tolist() == ours[0].tokens.tolist()
        assert mine[0]["score"].item() == pytest.approx(ours[0].score, abs=1e-4)

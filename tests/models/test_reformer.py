"""The preset that puts LSH attention, reversible layers, chunks and axial positions together."""

import pytest
import torch
import torch.nn.functional as F
from whole_models import MARKER, PAD, VOCABULARY, batch

from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.nn.beam_search import BeamSearch
from pyramidions.nn.positions import AxialPositions

SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 1}
BUCKETS = {"self_attention": "lsh(bucket_size=4, num_hashes=2, local_heads=0)"}
CHUNKS = {"feed_forward": "dense(chunk_size=5)"}


def make(**overrides: object) -> Transformer:
    torch.manual_seed(0)
    return build(preset("reformer", **{**SMALL, **BUCKETS, **CHUNKS, **overrides}), VOCABULARY, PAD, MARKER)


def test_it_has_positions_for_16384_tokens_whose_widths_sum_to_768() -> None:
    with torch.device("meta"):
        positions = build(preset("reformer", max_source_positions=16384), 50).encoder.embedder.positions
    assert isinstance(positions, AxialPositions)
    assert [tuple(weight.shape) for weight in positions.parameters()] == [(128, 192), (128, 576)]


@pytest.mark.parametrize("pooling", [{}, {"pooling_lengths": "None,16,8"}])
def test_a_small_one_learns_and_writes(pooling: dict[str, str]) -> None:
    model = make(**pooling).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    source, target = batch(40, 23, 9), batch(5, 5, 5, seed=1)
    prefix = F.pad(target[:, :-1], (1, 0), value=2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(source, prefix).flatten(0, 1), target.flatten())
        loss.backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    for found in BeamSearch(beam=2, min_len=2, max_len=4)(model.eval(), source):
        assert len(found) == 2 and all(found[0].tokens)

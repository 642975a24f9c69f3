"""What pooled vectors are made of, through all poolings, against products of whole matrices."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.models import PyramidionConfig, build
from pyramidions.nn import Encoded
from pyramidions.nn.pooling import POOLING, Pooled
from pyramidions.nn.provenance import identity, provenance, through

TELLS_NOTHING = {kind for kind in POOLING.names if not POOLING[kind].has_provenance}


def pooled(sources: list[list[int]], weights: list[list[float]]) -> Pooled:
    x, w = torch.zeros(1, len(sources), 2), torch.tensor([weights])
    return Pooled(x, w.sum(-1) == 0, torch.tensor([sources]), w)


def encoded(kind: str, length: int, **fields: object) -> Encoded:
    config = PyramidionConfig(
        embed_dim=8, ffn_embed_dim=16, num_heads=2, encoder_layers=3, decoder_layers=1, max_source_positions=40,
        pooling=kind, pooling_lengths="None,5,None" if kind == "funnel" else "20,5,None",
    )  # fmt: skip
    torch.manual_seed(0)
    model = build(replace(config, **fields), 50, 1, marker_idx=4).eval()
    tokens = torch.randint(4, 8, (1, length))
    with torch.no_grad():
        return model.encoder(tokens, tokens.eq(1))


def matrix(one: Pooled, length: int) -> Tensor:
    """Write a pooling down as a whole matrix (K, L), entry by entry."""
    assert one.sources is not None and one.weights is not None
    found = torch.zeros(one.sources.size(1), length)
    for row, (sources, weights) in enumerate(zip(one.sources[0], one.weights[0], strict=True)):
        for source, weight in zip(sources.tolist(), weights.tolist(), strict=True):
            found[row, source] += weight
    return found


def test_two_poolings_multiply() -> None:
    first = pooled([[0, 1], [2, 3]], [[0.75, 0.25], [0.5, 0.5]])
    second = pooled([[1, 0]], [[0.9, 0.1]])
    found = provenance({0: first, 2: second}, 4)
    assert sorted(found) == [0, 2]
    torch.testing.assert_close(found[0].to_dense(), torch.tensor([[0.75, 0.25, 0, 0], [0, 0, 0.5, 0.5]]))
    torch.testing.assert_close(found[2].to_dense(), torch.tensor([[0.075, 0.025, 0.45, 0.45]]))


def test_a_source_named_twice_counts_twice_and_padding_for_nothing() -> None:
    found = provenance({0: pooled([[1, 1], [0, 0]], [[0.5, 0.5], [0.0, 0.0]])}, 3)
    assert found[0].to_dense().tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("kept", [0.05, 1.0])
def test_weights_of_vectors_are_carried_back_to_tokens(kept: float) -> None:
    torch.manual_seed(0)
    weights, made_of = torch.rand(3, 7), torch.rand(7, 40) * (torch.rand(7, 40) < kept)
    torch.testing.assert_close(through(weights, made_of.to_sparse()), weights @ made_of)


def test_tokens_that_nothing_has_pooled_are_made_of_themselves() -> None:
    assert torch.equal(identity(3).to_dense(), torch.eye(3))
    assert provenance({}, 3) == {}


def test_from_a_pooling_without_provenance_on_nothing_is_known() -> None:
    silent = Pooled(torch.zeros(1, 2, 2), torch.zeros(1, 2, dtype=torch.bool))
    found = provenance({0: pooled([[0], [1]], [[1.0], [1.0]]), 1: silent, 2: pooled([[0]], [[1.0]])}, 2)
    assert found[0] is not None and found[1] is None and found[2] is None


@pytest.mark.parametrize("kind", [kind for kind in POOLING.names if kind not in TELLS_NOTHING])
@settings(deadline=None, max_examples=15)
@given(length=st.integers(1, 40))
def test_every_kept_vector_is_wholly_made_of_tokens(kind: str, length: int) -> None:
    out = encoded(kind, length)
    found = provenance(out.pooled, length)
    first = matrix(out.pooled[0], length)
    for layer, whole in ((0, first), (1, matrix(out.pooled[1], len(first)) @ first)):
        torch.testing.assert_close(found[layer].to_dense(), whole)
        kept = ~out.pooled[layer].padding_mask[0]
        torch.testing.assert_close(found[layer].to_dense().sum(1), kept.float())


@pytest.mark.parametrize("kind", sorted(TELLS_NOTHING))
def test_the_kinds_without_provenance_are_these(kind: str) -> None:
    assert set(provenance(encoded(kind, 30).pooled, 30).values()) == {None}

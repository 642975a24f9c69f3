"""What pooled vectors are made of, through all poolings, against products of whole matrices."""

import torch
from torch import Tensor

from pyramidions.nn.pooling import Pooled
from pyramidions.nn.provenance import Provenance


def pooled(sources: list[list[int]], weights: list[list[float]]) -> Pooled:
    x, w = torch.zeros(1, len(sources), 2), torch.tensor([weights])
    return Pooled(x, w.sum(-1) == 0, torch.tensor([sources]), w)


def tokens(length: int) -> Provenance:
    return Provenance.of_positions(torch.zeros(1, length, dtype=torch.bool))


def after(before: Provenance, one: Pooled) -> Provenance:
    assert one.sources is not None and one.weights is not None
    return before.pooled(one.sources, one.weights)


def dense(made_of: Provenance) -> Tensor:
    return made_of.of(torch.eye(made_of.weights.size(1))[None])[0]


def test_two_poolings_multiply() -> None:
    first = after(tokens(4), pooled([[0, 1], [2, 3]], [[0.75, 0.25], [0.5, 0.5]]))
    torch.testing.assert_close(dense(first), torch.tensor([[0.75, 0.25, 0, 0], [0, 0, 0.5, 0.5]]))
    assert dense(Provenance.of_positions(torch.tensor([[False, True]]))).tolist() == [[1, 0], [0, 0]]
    second = after(first, pooled([[1, 0]], [[0.9, 0.1]]))
    torch.testing.assert_close(dense(second), torch.tensor([[0.075, 0.025, 0.45, 0.45]]))


def test_a_source_named_twice_counts_twice_and_padding_for_nothing() -> None:
    found = after(tokens(3), pooled([[1, 1], [0, 0]], [[0.5, 0.5], [0.0, 0.0]]))
    assert dense(found).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_pooling_that_mixes_all_vectors_takes_no_more_than_one_that_mixes_two() -> None:
    everything = torch.arange(64).expand(1, 8, 64)
    mixed = tokens(64).pooled(everything, torch.full((1, 8, 64), 1 / 64))
    again = mixed.pooled(torch.arange(8).expand(1, 4, 8), torch.full((1, 4, 8), 1 / 8))
    assert again.weights.shape == (1, 4, 64)
    torch.testing.assert_close(again.weights, torch.full((1, 4, 64), 1 / 64))


def test_the_documents_that_stay_keep_what_their_vectors_are_made_of() -> None:
    torch.manual_seed(0)
    for members in (2, 40):
        both = Provenance.of_positions(torch.zeros(2, 40, dtype=torch.bool))
        both = both.pooled(torch.randint(40, (2, 20, members)), torch.rand(2, 20, members))
        attention = torch.rand(2, 3, 20)
        found = both.select(torch.tensor([1])).of(attention[1:])
        torch.testing.assert_close(found, both.of(attention)[1:])

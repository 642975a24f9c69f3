"""Pooling at markers: which vectors are handed on."""

import pytest
import torch
from small_parts import DIM, ends_after, vectors

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.pooling import MarkersPooler, Pooled
from pyramidions.nn.sequence import Sequence

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("markers ask for no attention"))


def sequence(*marked: str, real: tuple[int, ...] | None = None) -> Sequence:
    """Return documents of a position per letter, "|" where a unit starts; of each the first ``real`` are no padding."""
    length = len(marked[0])
    starts = torch.tensor([[letter == "|" for letter in one] for one in marked])
    mask = ends_after(*(real or [length] * len(marked)), width=length)
    position = torch.arange(length).expand(len(marked), -1)
    return Sequence(vectors(len(marked), length, DIM), mask, position, marked=starts)


def pool(k: int, given: Sequence) -> Pooled:
    return MarkersPooler(k)(given, NO_CONTEXT)


def test_vectors_at_starts_are_handed_on_as_they_are_and_in_their_order() -> None:
    given = sequence("|..|.|")
    pooled = pool(4, given)
    assert pooled.x.equal(given.x[:, [0, 3, 5]])
    assert pooled.sources is not None and pooled.sources.tolist() == [[[0], [3], [5]]]
    assert pooled.weights is not None and pooled.weights.tolist() == [[[1.0], [1.0], [1.0]]]
    assert pooled.lengths == [3]


def test_of_more_starts_than_k_the_first_are_kept() -> None:
    pooled = pool(2, sequence("|..|.|"))
    assert pooled.sources is not None and pooled.sources.squeeze().tolist() == [0, 3]
    assert pooled.lengths == [2]


def test_documents_of_fewer_units_are_padded_with_zeros() -> None:
    pooled = pool(4, sequence("|.||.|", "|..|..", "|.||.|", real=(6, 5, 3)))
    assert pooled.lengths == [4, 2, 2]
    assert pooled.padding_mask.tolist() == [[False] * 4, [False, False, True, True], [False, False, True, True]]
    assert not pooled.x[pooled.padding_mask].any()


def test_a_document_in_which_nothing_is_marked_hands_on_its_first_vector() -> None:
    given = sequence(".....", "..|..", real=(5, 2))
    pooled = pool(4, given)
    assert pooled.lengths == [1, 1] and not pooled.padding_mask.any()
    assert pooled.x.equal(given.x[:, :1])


def test_after_another_pooling_a_vector_is_marked_if_its_strongest_member_was() -> None:
    given = sequence("|..|..")
    mixed = Pooled(
        vectors(1, 3, DIM),
        ends_after(3),
        sources=torch.tensor([[[0, 1], [2, 3], [5, 3]]]),
        weights=torch.tensor([[[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]]),
    )
    after = mixed.sequence(given, [3])
    assert after.marked is not None and after.marked.tolist() == [[True, True, False]]
    assert pool(4, after).x.equal(mixed.x[:, :2])


def test_after_a_pooling_without_provenance_nothing_is_known() -> None:
    after = Pooled(vectors(1, 3, DIM), ends_after(3)).sequence(sequence("|..|.."), [3])
    assert after.marked is None
    with pytest.raises(ValueError, match="needs a sequence that says where units start, but this one does not."):
        pool(4, after)


def test_a_k_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="`k` must be at least 1, but is 0."):
        MarkersPooler(0)

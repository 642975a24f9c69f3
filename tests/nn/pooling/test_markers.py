"""Pooling at markers: which vectors are handed on."""

import pytest
import torch
from small_parts import DIM, ends_after, vectors

from pyramidions.nn.pooling import MarkersPooler, Pooled
from pyramidions.nn.sequence import PoolingContext, Sequence

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("markers ask for no attention"))


def sequence(*units: str, real: tuple[int, ...] | None = None) -> Sequence:
    """Return documents of a position per digit, the number of its unit; of each the first ``real`` are no padding."""
    length = len(units[0])
    mask = ends_after(*(real or [length] * len(units)), width=length)
    unit = torch.tensor([[int(digit) for digit in one] for one in units]).masked_fill(mask, -1)
    position = torch.arange(length).expand(len(units), -1)
    return Sequence(vectors(len(units), length, DIM), mask, position, unit=unit)


def pool(k: int, given: Sequence) -> Pooled:
    return MarkersPooler(k)(given, NO_CONTEXT)


@pytest.mark.parametrize(
    ("units", "real", "k", "firsts"),
    [
        ("000112", 6, 4, [0, 3, 5]),
        # Of more units than k the first are kept.
        ("000112", 6, 2, [0, 3]),
        # A pooling tore units apart.
        ("0101202", 6, 4, [0, 1, 4]),
    ],
)
def test_the_first_vector_of_each_unit_is_handed_on_as_it_is(units: str, real: int, k: int, firsts: list[int]) -> None:
    given = sequence(units, real=(real,))
    pooled, count = pool(k, given), len(firsts)
    assert pooled.lengths == [count] and pooled.x[:, :count].equal(given.x[:, firsts])
    assert pooled.sources is not None and pooled.sources[0, :count].flatten().tolist() == firsts
    assert pooled.weights is not None and pooled.weights[0, :count].eq(1).all()


def test_documents_of_fewer_units_are_padded_with_zeros() -> None:
    pooled = pool(4, sequence("001223", "000111", "001223", real=(6, 5, 3)))
    assert pooled.lengths == [4, 2, 2]
    assert pooled.padding_mask.tolist() == [[False] * 4, [False, False, True, True], [False, False, True, True]]
    assert not pooled.x[pooled.padding_mask].any()


def test_after_another_pooling_a_vector_belongs_to_the_unit_of_its_strongest_member() -> None:
    given = sequence("000111222")
    mixed = Pooled(
        vectors(1, 5, DIM),
        ends_after(4, width=5),
        sources=torch.tensor([[[1, 0], [2, 3], [5, 3], [0, 7], [0, 0]]]),
        weights=torch.tensor([[[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8], [0.0, 0.0]]]),
    )
    after = mixed.sequence(given, [4])
    assert after.unit is not None and after.unit.tolist() == [[0, 1, 1, 2, -1]]
    # The start of unit 0 was dropped, and so was unit 2's: their first vectors are others.
    assert pool(4, after).x.equal(mixed.x[:, [0, 1, 3]])


def test_a_unit_of_which_no_vector_is_left_is_left_out() -> None:
    picked = Pooled(vectors(1, 1, DIM), ends_after(1), torch.tensor([[[4]]]), torch.ones(1, 1, 1))
    after = picked.sequence(sequence("000111222"), [1])
    assert pool(4, after).lengths == [1] and pool(4, after).sequence(after, [1]).unit.tolist() == [[1]]


def test_after_a_pooling_without_provenance_nothing_is_known() -> None:
    after = Pooled(vectors(1, 3, DIM), ends_after(3)).sequence(sequence("000111"), [3])
    assert after.unit is None
    with pytest.raises(ValueError, match="unit"):
        pool(4, after)

"""Units of a text: their segments, the places of their positions, and who speaks in them."""

import torch
from small_parts import vectors
from torch import Tensor, nn

from pyramidions.nn.attention import SegmentsAttention
from pyramidions.nn.pooling import MarkersPooler
from pyramidions.nn.roles import Roles
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.nn.sublayer import LayerContext
from pyramidions.nn.units import Units

DIM, MARKER = 8, 9
# The first unit has no marker in front of it; the last has nothing else.
TOKENS = torch.tensor([[2, 3, 4, MARKER, 5, MARKER, 6, 7, 8, MARKER], [4, 4, MARKER, 3, 1, 1, 1, 1, 1, 1]])
UNIT = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2, 3], [0, 0, 1, 1, *[-1] * 6]])


def table() -> nn.Embedding:
    embedding = nn.Embedding(10, DIM)
    embedding.weight.data.copy_(vectors(10, DIM))
    return embedding


def mean(embedding: nn.Embedding, *tokens: int) -> Tensor:
    return embedding.weight[list(tokens)].mean(dim=0) if tokens else torch.zeros(DIM)


def test_a_role_is_the_mean_of_the_first_tokens_behind_the_marker_or_of_the_name_there() -> None:
    embedding = table()
    found = Roles(TOKENS, UNIT, embedding, MARKER)(torch.tensor([[0, 1, 2, 3], [0, 1, -1, -1]]), 2)
    expected = [(2, 3), (5,), (6, 7), (), (4, 4), (3,), (), ()]
    torch.testing.assert_close(found.flatten(0, 1), torch.stack([mean(embedding, *tokens) for tokens in expected]))
    # A role ends where a name ends, and a turn without a name has none.
    end = 8
    tokens = torch.tensor([[MARKER, 2, end, 3, MARKER, 4, 5, MARKER, 6, 7, 4, end, 5]])
    unit = torch.tensor([[0] * 4 + [1] * 3 + [2] * 6])
    found = Roles(tokens, unit, embedding, MARKER, end)(torch.tensor([[0, 1, 2]]), 2)
    expected = [mean(embedding, 2), mean(embedding), mean(embedding, 6, 7)]
    torch.testing.assert_close(found[0], torch.stack(expected))


def sequence(embedding: nn.Embedding) -> Sequence:
    x, mask = vectors(*TOKENS.shape, DIM, seed=1), UNIT < 0
    return Sequence(x, mask, unit=UNIT, roles=Roles(TOKENS, UNIT, embedding, MARKER))


def pooled(pooler: MarkersPooler, given: Sequence) -> Tensor:
    return pooler(given, PoolingContext(lambda: vectors(0))).x


def test_training_begins_as_without_roles_and_their_gradients_change_that() -> None:
    torch.manual_seed(0)
    embedding = table()
    given, pooler = sequence(embedding), MarkersPooler(4, DIM, role_tokens=2)
    torch.testing.assert_close(pooled(pooler, given), pooled(MarkersPooler(4), given))
    pooled(pooler, given).square().sum().backward()
    assert pooler.joined is not None and pooler.joined.weight.grad is not None
    assert pooler.joined.weight.grad[:, DIM:].abs().sum() > 0
    with torch.no_grad():
        pooler.joined.weight[:, DIM:] = torch.eye(DIM)
    role = Roles(TOKENS, UNIT, embedding, MARKER)(UNIT[:, [0, 3, 5, 9]], 2)
    difference = pooled(pooler, given) - pooled(MarkersPooler(4), given)
    torch.testing.assert_close(difference[0], role[0])
    torch.testing.assert_close(difference[1, :2], torch.stack([mean(embedding, 4, 4), mean(embedding, 3)]))
    pooled(pooler, given).sum().backward()
    assert embedding.weight.grad is not None and embedding.weight.grad[2].abs().sum() > 0


def test_numbers_tell_units_of_the_same_vectors_apart() -> None:
    given = sequence(table())
    same = given._replace(x=torch.ones_like(given.x))
    alike, told = (pooled(MarkersPooler(4, DIM, numbers=numbers), same)[0] for numbers in (False, True))
    assert alike[0].equal(alike[3])
    assert all(not told[one].allclose(told[other]) for one in range(4) for other in range(one))


def units(*texts: str) -> Units:
    """Return units from a digit per position, the number of its unit; "." is padding."""
    width = max(map(len, texts))
    return Units(
        torch.tensor([[-1 if digit == "." else int(digit) for digit in text.ljust(width, ".")] for text in texts])
    )


def test_units_of_like_length_share_a_batch_and_none_is_padded_to_more_than_twice_its_length() -> None:
    unit = torch.arange(60).repeat_interleave(torch.arange(1, 61))[None]
    rows = Units(unit).segments(64).rows
    shapes = [batch.shape for batch in rows]
    assert shapes == [(16, 16), (16, 32), (28, 60)]
    assert sum(count * width for count, width in shapes) < 1.5 * unit.numel()
    assert max(width for batch in Units(unit).segments(32).rows for width in batch.shape[1:]) == 32
    (filled,) = units("000011112222").segments(4).rows
    assert filled.shape == (3, 4) and filled.padding_mask is None
    # Nothing but padding is nothing to attend to.
    x, nothing = vectors(1, 2, 5, 4), units(".....")
    assert SegmentsAttention()(x, x, x, LayerContext(nothing.unit < 0, units=nothing)).isfinite().all()


def test_places_count_from_the_start_of_each_unit() -> None:
    places = units("0001122223", "0011......").places
    assert places[0].tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3, 0]
    assert places[1, :4].tolist() == [0, 1, 0, 1] and places.max() < 10

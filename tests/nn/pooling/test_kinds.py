"""Each kind of pooling by hand."""

import math

import pytest
import torch
from small_parts import DIM, ends_after, layer, vectors
from torch import Tensor

from pyramidions.nn.pooling import AdaptiveMeanPooler, FunnelPooler, MarkersPooler, Pooled, SegmentsPooler
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.nn.sublayer import LayerContext, Memory

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("nothing asks for attention"))


class Rated(Scorer):
    """Rates vectors by their first value."""

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return sequence.x[..., 0].detach().abs()


@pytest.mark.parametrize(("stride", "overlap"), [(3, 0), (3, 1), (2, 5), (24, 8)])
def test_each_window_is_the_mean_of_its_members_weighted_by_their_scores(stride: int, overlap: int) -> None:
    lengths = (13, 7, 1)
    x = vectors(3, 13, DIM)
    pooled = AdaptiveMeanPooler(stride, Rated(), overlap)(Sequence(x, ends_after(*lengths)), NO_CONTEXT)
    for row, length in enumerate(lengths):
        # A window that would read nothing but the overlap of the one before is none.
        starts = range(0, max(length - overlap, 1), stride)
        windows = [x[row, start : min(start + stride + overlap, length)] for start in starts]
        means = [(each[:, :1].abs() * each).sum(0) / each[:, 0].abs().sum() for each in windows]
        torch.testing.assert_close(pooled.x[row, : len(means)], torch.stack(means))
        assert pooled.padding_mask[row].tolist() == [place >= len(means) for place in range(pooled.x.size(1))]


def test_a_document_has_as_many_windows_as_in_the_paper() -> None:
    pooler = AdaptiveMeanPooler(24, Rated(), overlap=8)
    assert list(map(pooler.kept, (0, 1, 8, 32, 33, 8192))) == [0, 1, 1, 1, 2, 341]


def test_scores_of_zero_are_equal() -> None:
    x = vectors(1, 6, DIM)
    x[..., 0] = 0.0
    pooled = AdaptiveMeanPooler(3, Rated())(Sequence(x, ends_after(6)), NO_CONTEXT)
    torch.testing.assert_close(pooled.x[0], torch.stack([x[0, :3].mean(0), x[0, 3:].mean(0)]))


def sequence(*units: str, real: tuple[int, ...] | None = None) -> Sequence:
    """Return documents of a position per digit, the number of its unit; of each the first ``real`` are no padding."""
    length = len(units[0])
    mask = ends_after(*(real or [length] * len(units)), width=length)
    unit = torch.tensor([[int(digit) for digit in one] for one in units]).masked_fill(mask, -1)
    position = torch.arange(length).expand(len(units), -1)
    return Sequence(vectors(len(units), length, DIM), mask, position, unit=unit)


def marked(k: int, given: Sequence) -> Pooled:
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
    pooled, count = marked(k, given), len(firsts)
    assert pooled.lengths == [count] and pooled.x[:, :count].equal(given.x[:, firsts])
    assert pooled.sources is not None and pooled.sources[0, :count].flatten().tolist() == firsts
    assert pooled.weights is not None and pooled.weights[0, :count].eq(1).all()


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
    assert marked(4, after).x.equal(mixed.x[:, [0, 1, 3]])


def test_a_unit_of_which_no_vector_is_left_is_left_out() -> None:
    picked = Pooled(vectors(1, 1, DIM), ends_after(1), torch.tensor([[[4]]]), torch.ones(1, 1, 1))
    after = picked.sequence(sequence("000111222"), [1])
    assert marked(4, after).lengths == [1] and marked(4, after).sequence(after, [1]).unit.tolist() == [[1]]


def test_after_a_pooling_without_provenance_nothing_is_known() -> None:
    after = Pooled(vectors(1, 3, DIM), ends_after(3)).sequence(sequence("000111"), [3])
    assert after.unit is None


class Given(torch.nn.Module):
    """Predicts given logits."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits


def split(k: int, *logits: list[float], real: tuple[int, ...] | None = None) -> tuple[Pooled, Sequence, SegmentsPooler]:
    """Pool documents whose boundaries have these logits; of each the first ``real`` positions are no padding."""
    length = len(logits[0])
    pooler = SegmentsPooler(k, 4, DIM, 16).eval()
    pooler.boundaries.predictor = Given(torch.tensor(logits))
    mask = ends_after(*(real or [length] * len(logits)), width=length)
    given = Sequence(vectors(len(logits), length, DIM), mask)
    return pooler(given, NO_CONTEXT), given, pooler


@pytest.mark.parametrize(
    ("k", "logits", "starts"),
    [
        (4, [-1.0, 2.0, -1.0, -1.0, 1.0, 0.5], [0, 2, 5]),
        # Boundaries that are all unlikely, 0.27 each but one, still end segments: 2.3 in all.
        (4, [-1.0, -1.0, -0.5, -1.0, -1.0, -1.0, -1.0, -1.0], [0, 3]),
        # The end of the text ends a segment however unlikely.
        (4, [2.0, -9.0, -9.0, -9.0], [0]),
        # Of more than k the most probable stay.
        (2, [1.0, 3.0, 2.0, 2.5, -1.0], [0, 2]),
        (1, [1.0, 3.0, 2.0], [0]),
        # A boundary at the end of the text does not take the place of another.
        (2, [1.0, -1.0, 9.0], [0, 1]),
    ],
)
def test_as_many_segments_as_probabilities_sum_to_end_at_the_most_probable_positions(
    k: int, logits: list[float], starts: list[int]
) -> None:
    pooled, given, _ = split(k, logits)
    ends = [*starts[1:], len(logits)]
    expected = torch.stack([given.x[0, start:end].mean(0) for start, end in zip(starts, ends, strict=True)])
    torch.testing.assert_close(pooled.x[0], expected)
    assert pooled.lengths == [len(starts)]


def test_documents_of_fewer_segments_are_padded_with_zeros() -> None:
    pooled, _, _ = split(4, [2.0, 2.0, 2.0], [-1.0, -1.0, 5.0], [5.0, 5.0, 5.0], real=(3, 2, 0))
    assert pooled.lengths == [3, 1, 0]
    assert pooled.padding_mask.tolist() == [[False] * 3, [False, True, True], [True] * 3]
    assert not pooled.x[pooled.padding_mask].any()
    assert pooled.sources is not None and pooled.weights is not None
    assert pooled.sources[1, 0].tolist() == [0, 1] and pooled.weights[1, 0].tolist() == [0.5, 0.5]
    assert not pooled.weights[pooled.padding_mask].any()


def test_a_dropped_boundary_learns_nothing_and_a_position_without_one_does() -> None:
    torch.manual_seed(0)
    pooler = SegmentsPooler(2, 4, DIM, 16)
    # So sure that noise changes none.
    predictor = pooler.boundaries.predictor = Given(torch.tensor([[6.0, 8.0, -6.0, 7.0, -6.0]]))
    pooler(Sequence(vectors(1, 5, DIM), ends_after(5, width=5)), NO_CONTEXT).x.square().sum().backward()
    grad = predictor.logits.grad
    assert grad is not None
    assert (grad[0] != 0).tolist() == [False, True, True, False, False]


def test_training_begins_with_as_many_boundaries_as_the_prior_asks_for() -> None:
    pooler = SegmentsPooler(64, 8, DIM, 16)
    assert pooler.boundaries.predictor.fc2.bias.sigmoid().item() == pytest.approx(1 / 8)


def test_the_prior_of_a_training_pass_is_told_once_in_nats_for_each_position() -> None:
    torch.manual_seed(0)
    pooler = SegmentsPooler(3, 4, DIM, 16, prior=0.25)
    pooler.boundaries.predictor = Given(torch.tensor([[9e9, -9e9, -9e9, -9e9], [9e9, 9e9, 9e9, 9e9]]))
    pooler(Sequence(vectors(2, 4, DIM), ends_after(4, 2, width=4)), NO_CONTEXT)
    one_of_four, two_of_two = 4 * 0.25 * 0.75**3, 0.25**2
    expected = (-math.log(one_of_four) / 4 - math.log(two_of_two) / 2) / 2
    loss = pooler.regulariser()
    assert loss is not None and loss.item() == pytest.approx(expected)
    assert pooler.regulariser() is None
    # There is none of evaluation.
    assert split(2, [1.0, 2.0])[2].regulariser() is None


@pytest.mark.parametrize("normalize_before", [False, True])
def test_a_funnel_attends_from_the_means_of_windows_to_their_block_whatever_the_batch(normalize_before: bool) -> None:
    around = layer("cross_attention", "feed_forward", normalize_before=normalize_before)
    x, lengths = vectors(3, 32, DIM), (32, 19, 7)
    given = Sequence(x, ends_after(*lengths), lengths=list(lengths))
    pooled = FunnelPooler(4, around, confined_to=8)(given, NO_CONTEXT)
    for row, length in enumerate(lengths):
        found = []
        for block in x[row, :length].split(8):
            queries = torch.stack([window.mean(0) for window in block.split(4)])
            # Keys are normalised as queries are.
            keys = around.sublayers["cross_attention"].entering(block)
            found.append(around(queries[None], LayerContext(memories=(Memory(keys[None]),)))[0])
        expected = torch.cat(found)
        torch.testing.assert_close(pooled.x[row, : len(expected)], expected)
        assert pooled.padding_mask[row].tolist() == [place >= len(expected) for place in range(8)]

"""What everything that marks boundaries promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, ends_after, vectors

from pyramidions.nn.boundaries import BOUNDARIES, Boundaries, HiddenStates, Segmentation, SupervisedBoundaries

kinds = pytest.mark.parametrize("kind", BOUNDARIES.names)
TOKENS = torch.tensor([[5, 3, 6, 7, 3, 3, 8], [3, 4, 9, 9, 3, 5, 3]])


def make(kind: str, **options: object) -> Boundaries:
    torch.manual_seed(0)
    return BOUNDARIES.build(kind, options, **SETTING, space_idx=3)


def mark(kind: Boundaries, scale: float = 1.0, padded: bool = False) -> Segmentation:
    return kind(HiddenStates(vectors(2, 7, DIM) * scale, TOKENS, ends_after(7, 4) if padded else None))


@kinds
def test_boundaries_are_exactly_zero_or_one_and_none_is_at_padding(kind: str) -> None:
    for training in (True, False):
        found = mark(make(kind).train(training), scale=30, padded=True)
        assert set(found.boundaries.flatten().tolist()) == {0.0, 1.0}
        assert not found.boundaries[1, 4:].any()
        assert found.closed.tolist() == found.boundaries.sum(1).tolist() and found.lengths.tolist() == [7, 4]
    assert mark(make(kind)).lengths.tolist() == [7, 7]


@kinds
def test_probabilities_are_those_of_the_logits_in_full_precision(kind: str) -> None:
    made = make(kind).to(torch.float16)
    found = made(HiddenStates(vectors(2, 7, DIM).half(), TOKENS))
    assert found.boundaries.dtype == torch.float32
    assert (found.logits is not None) == (found.probabilities is not None) == made.predicts
    assert made.predicts == bool([*made.parameters()])
    if found.logits is not None and found.probabilities is not None:
        assert found.logits.shape == (2, 7) and found.logits.dtype == torch.float32
        assert found.probabilities.equal(found.logits.sigmoid())


@kinds
def test_gradients_reach_boundaries_where_the_kind_says_so_and_the_loss_reaches_all_weights(kind: str) -> None:
    made = make(kind)
    found = mark(made, padded=True)
    assert found.boundaries.requires_grad == made.learns_from_segments
    targets = TOKENS == 3 if isinstance(made, SupervisedBoundaries) else None
    loss = made.loss(found, targets)
    assert (loss is None) == (not list(made.parameters()))
    if loss is not None:
        assert loss.shape == (2,) and loss.isfinite().all()
        loss.sum().backward()
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in made.parameters())


def test_kinds_that_mark_segments_need_no_tokens() -> None:
    for kind in BOUNDARIES.names:
        if BOUNDARIES[kind].marks_segments:
            assert make(kind)(HiddenStates(vectors(2, 7, DIM))).boundaries.shape == (2, 7)

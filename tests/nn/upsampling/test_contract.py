"""What every upsampler promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, ends_after, vectors

from pyramidions.nn.sequence import Sequence
from pyramidions.nn.upsampling import UPSAMPLING, Upsampler

kinds = pytest.mark.parametrize("kind", UPSAMPLING.names)
windows = pytest.mark.parametrize(("length", "window"), [(8, 4), (7, 4), (9, 2), (3, 4), (1, 3)])


def make(kind: str, window: int) -> Upsampler:
    torch.manual_seed(0)
    return UPSAMPLING.build(kind, {}, **SETTING, window=window)


def before(length: int, batch: int = 2) -> Sequence:
    return Sequence(vectors(batch, length, DIM), ends_after(*range(length, length - batch, -1)))


@kinds
@windows
def test_the_length_comes_back(kind: str, length: int, window: int) -> None:
    unpooled, x = before(length), vectors(2, -(-length // window), DIM, seed=1)
    assert make(kind, window)(x, unpooled).shape == unpooled.x.shape


@kinds
def test_with_a_window_of_one_position_both_are_added(kind: str) -> None:
    unpooled, x = before(5), vectors(2, 5, DIM, seed=1)
    assert make(kind, 1)(x, unpooled).equal(x + unpooled.x)


@kinds
@windows
def test_every_position_reads_the_vector_that_it_was_pooled_to(kind: str, length: int, window: int) -> None:
    unpooled, x = before(length), vectors(2, -(-length // window), DIM, seed=1)
    upsampler = make(kind, window)
    found = upsampler(x, unpooled)
    for vector in range(x.size(1)):
        changed = x.clone()
        changed[:, vector] += 1
        moved = (upsampler(changed, unpooled) != found).all(dim=-1)
        assert moved[0].nonzero().flatten().tolist() == list(
            range(vector * window, min(length, vector * window + window))
        )


@kinds
@windows
def test_gradients_reach_what_was_pooled_and_what_was_there_before(kind: str, length: int, window: int) -> None:
    unpooled, x = before(length), vectors(2, -(-length // window), DIM, seed=1).requires_grad_()
    unpooled.x.requires_grad_()
    upsampler = make(kind, window)
    upsampler(x, unpooled).square().sum().backward()
    for grad in (x.grad, unpooled.x.grad, *(weight.grad for weight in upsampler.parameters())):
        assert grad is not None and grad.isfinite().all() and (grad.abs().sum(dim=-1) > 0).all()


@kinds
def test_a_document_does_not_depend_on_its_batch_or_padding(kind: str) -> None:
    upsampler, unpooled, x = make(kind, 3), before(8), vectors(2, 3, DIM, seed=1)
    whole = upsampler(x, unpooled)
    alone = upsampler(x[1:, :2], Sequence(unpooled.x[1:, :5], unpooled.padding_mask[1:, :5]))
    torch.testing.assert_close(alone[0], whole[1, :5])


@kinds
def test_an_unknown_option_is_an_error_that_names_the_class(kind: str) -> None:
    with pytest.raises(ValueError, match=rf"{UPSAMPLING[kind].__name__} .* has no option 'factor'"):
        UPSAMPLING.build(kind, {"factor": 2}, **SETTING, window=2)

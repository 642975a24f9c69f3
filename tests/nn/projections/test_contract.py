"""What every kind of projections promises; a new kind is held to it by being registered."""

import pytest
import torch
from noise import add_noise
from small_parts import DIM, HEADS, SETTING, vectors

from pyramidions.nn.projections import PROJECTIONS, Projections
from pyramidions.nn.sublayer import LayerContext

kinds = pytest.mark.parametrize("kind", PROJECTIONS.names)
# Kinds whose rows are made of three tokens.
CONVOLVE = ("conv", "multiplicative_conv")
shared = pytest.mark.parametrize("shares_query_key", [False, True])


def make(kind: str, shares_query_key: bool = False) -> Projections:
    torch.manual_seed(0)
    made = PROJECTIONS.build(kind, {}, **SETTING, shares_query_key=shares_query_key)
    add_noise(made, 0.1)
    return made


@kinds
@shared
def test_all_three_at_once_equal_each_on_its_own(kind: str, shares_query_key: bool) -> None:
    projections, x = make(kind, shares_query_key), vectors(2, 5, DIM)
    heads = projections(x)
    assert [tuple(one.shape) for one in heads] == [(2, HEADS, 5, DIM // HEADS)] * 3
    for found, expected in zip(heads, (projections.queries(x), *projections.keys_values(x)), strict=True):
        torch.testing.assert_close(found, expected)
    # Queries may be fewer than keys.
    torch.testing.assert_close(projections.queries(x[:, :3]), heads[0][:, :, :3])


@kinds
def test_heads_may_read_every_other_position_alone(kind: str) -> None:
    projections, x = make(kind), vectors(2, 5, DIM)
    for strided, whole in zip(projections.strided_keys_values(x, 2), projections.keys_values(x), strict=True):
        for head in range(HEADS):
            own = whole[:, head, head % 2 :: 2]
            torch.testing.assert_close(strided[:, head, : own.size(1)], own)


@kinds
def test_keys_are_queries_where_both_are_one_projection(kind: str) -> None:
    x = vectors(2, 5, DIM)
    for shares_query_key in (False, True):
        q, k, v = make(kind, shares_query_key)(x)
        assert q.equal(k) == shares_query_key and not v.equal(q)
    weights = [sum(weight.numel() for weight in make(kind, shares).parameters()) for shares in (True, False)]
    # Or both are the mean of two.
    assert weights[0] < weights[1] or kind in CONVOLVE


@kinds
@shared
def test_a_position_reads_itself_and_as_many_before_it_as_it_says(kind: str, shares_query_key: bool) -> None:
    projections, x = make(kind, shares_query_key), vectors(2, 7, DIM)
    assert projections.look_back == (2 if kind in CONVOLVE else 0)
    changed = x.clone()
    changed[:, 2] = 1e3
    read = [place for place in range(7) if 2 <= place <= 2 + projections.look_back]
    others = [place for place in range(7) if place not in read]
    for before, after in zip(projections(x), projections(changed), strict=True):
        assert after[:, :, others].equal(before[:, :, others])
        assert all(not after[:, :, place].equal(before[:, :, place]) for place in read)
    # An output is of one position.
    mixed = vectors(2, HEADS, 7, DIM // HEADS)
    before, after = projections.output(mixed), projections.output(mixed.index_fill(2, torch.tensor(2), 1e3))
    assert before.shape == x.shape and (before != after).any(2).nonzero()[:, 1].unique().tolist() == [2]


@kinds
@pytest.mark.parametrize(("steps", "shares_query_key"), [((1, 1, 1, 1, 1), False), ((3, 2), False), ((1, 4), True)])
@torch.no_grad()
def test_steps_of_several_hypotheses_are_what_each_makes_of_the_whole(
    kind: str, steps: tuple[int, ...], shares_query_key: bool
) -> None:
    projections, x, three = make(kind, shares_query_key), vectors(6, 5, DIM), LayerContext(hypotheses=3)
    state, of_queries, found, asked = projections.new_state(), projections.new_state(), [], []
    # Two documents of three hypotheses each: (BW, T, D) -> (B, WT, D), and (B, H, WT, E) -> (BW, H, T, E)
    for new in x.split(steps, dim=1):
        rows = new.reshape(2, -1, DIM)
        heads = (*projections.step(rows, three, state), projections.step_queries(rows, three, of_queries))
        parts = [each.unflatten(2, (3, -1)).transpose(1, 2).flatten(0, 1) for each in heads]
        found.append(parts[:3])
        asked.append(parts[3])
    for stepped, whole in zip(zip(*found, strict=True), projections(x), strict=True):
        torch.testing.assert_close(torch.cat(stepped, dim=2), whole)
    torch.testing.assert_close(torch.cat(asked, dim=2), projections.queries(x))


@kinds
@torch.no_grad()
def test_a_state_follows_its_hypotheses(kind: str) -> None:
    projections, x, two = make(kind), vectors(4, 4, DIM), LayerContext(hypotheses=2)
    state = projections.new_state()
    projections.step(x[:, :3].reshape(2, -1, DIM), two, state)
    # The first document leaves; both hypotheses of the second go on from its last.
    order = torch.tensor([3, 3])
    if state is not None:
        state.reorder(order, torch.tensor([1]))
    new = projections.step(x[order, 3:].reshape(1, -1, DIM), two, state)
    for stepped, whole in zip(new, projections(x[order]), strict=True):
        torch.testing.assert_close(stepped[0].transpose(0, 1), whole[:, :, 3])


@kinds
@torch.no_grad()
def test_padding_in_front_of_a_step_is_not_read(kind: str) -> None:
    projections, x = make(kind), vectors(1, 5, DIM)
    hidden = torch.tensor([[True, True, False, False, False]])
    step = projections.step(x, LayerContext(new_padding_mask=hidden), projections.new_state())
    for stepped, alone in zip(step, projections(x[:, 2:]), strict=True):
        torch.testing.assert_close(stepped[:, :, 2:], alone)


@kinds
@shared
def test_gradients_reach_the_input_and_every_parameter(kind: str, shares_query_key: bool) -> None:
    projections, x = make(kind, shares_query_key), vectors(2, 5, DIM).requires_grad_()
    q, k, v = projections(x)
    projections.output(q + 2 * k + 3 * v).square().sum().backward()
    assert x.grad is not None and (x.grad.abs().sum(dim=-1) > 0).all()
    for name, weight in projections.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all() and weight.grad.any(), name


@kinds
@shared
def test_what_reads_vectors_itself_is_what_reads_keys_and_values(kind: str, shares_query_key: bool) -> None:
    projections, rows, x = make(kind, shares_query_key), vectors(2, 3, DIM), vectors(2, 5, DIM)
    scores = projections.scores(rows, x)
    torch.testing.assert_close(scores, Projections.scores(projections, rows, x))
    # Dropped weights need not sum to 1.
    weights = torch.rand(scores.shape)
    torch.testing.assert_close(projections.mixed(weights, x), Projections.mixed(projections, weights, x))

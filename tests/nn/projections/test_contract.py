"""What every kind of projections promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, HEADS, SETTING, vectors

from pyramidions.nn.projections import PROJECTIONS, Projections

kinds = pytest.mark.parametrize("kind", PROJECTIONS.names)
shared = pytest.mark.parametrize("shares_query_key", [False, True])


def make(kind: str, shares_query_key: bool = False) -> Projections:
    torch.manual_seed(0)
    return PROJECTIONS.build(kind, {}, **SETTING, shares_query_key=shares_query_key)


@kinds
@shared
def test_heads_have_their_shapes_and_come_back_as_vectors(kind: str, shares_query_key: bool) -> None:
    projections, x = make(kind, shares_query_key), vectors(2, 5, DIM)
    heads = projections(x)
    assert [tuple(one.shape) for one in heads] == [(2, HEADS, 5, DIM // HEADS)] * 3
    assert all(projections.output(one).shape == x.shape for one in heads)
    # Queries may be more or fewer than keys.
    assert projections.queries(x[:, :3]).shape == (2, HEADS, 3, DIM // HEADS)


@kinds
@shared
def test_all_three_at_once_equal_each_on_its_own(kind: str, shares_query_key: bool) -> None:
    projections, x = make(kind, shares_query_key), vectors(2, 5, DIM)
    for found, expected in zip(projections(x), (projections.queries(x), *projections.keys_values(x)), strict=True):
        torch.testing.assert_close(found, expected)


@kinds
def test_keys_are_queries_where_both_are_one_projection(kind: str) -> None:
    x = vectors(2, 5, DIM)
    for shares_query_key in (False, True):
        q, k, v = make(kind, shares_query_key)(x)
        assert q.equal(k) == shares_query_key and not v.equal(q)
    weights = [sum(weight.numel() for weight in make(kind, shares).parameters()) for shares in (True, False)]
    assert weights[0] < weights[1]


@kinds
@shared
def test_a_position_reads_itself_alone(kind: str, shares_query_key: bool) -> None:
    projections, x = make(kind, shares_query_key), vectors(2, 5, DIM)
    changed = x.clone()
    changed[:, 2] = 1e3
    others = [0, 1, 3, 4]
    for before, after in zip(projections(x), projections(changed), strict=True):
        assert after[:, :, others].equal(before[:, :, others]) and not after[:, :, 2].equal(before[:, :, 2])
        out, other = projections.output(before), projections.output(after)
        assert other[:, others].equal(out[:, others]) and not other[:, 2].equal(out[:, 2])


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
def test_a_width_that_heads_cannot_share_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"`embed_dim` \(8\) must be divisible by `num_heads` \(3\)."):
        PROJECTIONS.build(kind, {}, **{**SETTING, "num_heads": 3})


@kinds
def test_an_unknown_option_is_an_error_that_names_the_class(kind: str) -> None:
    with pytest.raises(ValueError, match=rf"{PROJECTIONS[kind].__name__} .* has no option 'rank'"):
        PROJECTIONS.build(kind, {"rank": 1}, **SETTING)


@kinds
@shared
def test_what_reads_vectors_itself_is_what_reads_keys_and_values(kind: str, shares_query_key: bool) -> None:
    projections, rows, x = make(kind, shares_query_key), vectors(2, 3, DIM), vectors(2, 5, DIM)
    scores = projections.scores(rows, x)
    torch.testing.assert_close(scores, Projections.scores(projections, rows, x))
    # Dropped weights need not sum to 1.
    weights = torch.rand(scores.shape)
    torch.testing.assert_close(projections.mixed(weights, x), Projections.mixed(projections, weights, x))

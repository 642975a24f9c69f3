"""What every kind of projections promises; a new kind is held to it by being registered."""

import pytest
import torch
from noise import add_noise
from small_parts import DIM, HEADS, SETTING, vectors

from pyramidions.nn.projections import PROJECTIONS, Projections, dense

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


@shared
def test_a_gpu_has_one_product_for_all_unless_something_hangs_on_a_layer(
    shares_query_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    projections, x, called = make("dense", shares_query_key), vectors(2, DIM, DIM), []
    expected = projections(x)
    monkeypatch.setattr(dense, "waits_for_host", lambda x: True)
    monkeypatch.setattr(dense.HeadsLinear, "forward", lambda *_: called.append(1))
    torch.testing.assert_close(projections(x), expected)
    assert not called
    monkeypatch.undo()
    monkeypatch.setattr(dense, "waits_for_host", lambda x: True)
    projections.get_submodule("v_proj").register_forward_hook(lambda *_: called.append(1))
    torch.testing.assert_close(projections(x), expected)
    assert called == [1]


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
@shared
def test_what_reads_vectors_itself_is_what_reads_keys_and_values(kind: str, shares_query_key: bool) -> None:
    projections, rows, x = make(kind, shares_query_key), vectors(2, 3, DIM), vectors(2, 5, DIM)
    scores = projections.scores(rows, x)
    torch.testing.assert_close(scores, Projections.scores(projections, rows, x))
    # Dropped weights need not sum to 1.
    weights = torch.rand(scores.shape)
    torch.testing.assert_close(projections.mixed(weights, x), Projections.mixed(projections, weights, x))

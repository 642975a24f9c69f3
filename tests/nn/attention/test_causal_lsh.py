"""LSH attention that looks backwards only, beside loops over its definition."""

import math

import pytest
import torch
from hashing import hashed
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import LSHAttention
from pyramidions.nn.decoder.cache import Lineage
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.sublayer import LayerContext

OPTIONS = {"bucket_size": 3, "num_hashes": 3, "local_heads": 1, "local_window": 4, "num_buckets": 4}
CHOICES = ("bucket_size", "num_hashes", "seed", "local_heads", "local_window", "num_buckets", "hash_factors")


def lsh(**options: int) -> LSHAttention:
    return LSHAttention(**{**OPTIONS, **options}).eval()


def inputs(length: int, batch: int = 1, heads: int = 3, dim: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q, v = (torch.randn(batch, heads, length, dim, generator=generator) for _ in range(2))
    return q, v


def seen(q: Tensor, attention: LSHAttention, is_local: bool) -> list[list[int]]:
    """List what each position of one head sees, as often as it does: (L, E) -> L lists of positions."""
    length = len(q)
    half = math.ceil(1024 / attention.bucket_size) if attention.num_buckets is None else attention.num_buckets // 2
    if is_local:
        rounds, reach = [[0] * length], attention.local.side
    else:
        rounds, reach = hashed(q, attention, half), attention.bucket_size
    found: list[list[int]] = []
    for i in range(length):
        keys: list[int] = []
        for buckets in rounds:
            earlier = [j for j in range(i) if buckets[j] == buckets[i]]
            keys += earlier[-reach:]
        found.append(keys or [i])
    return found


def dense(q: Tensor, v: Tensor, attention: LSHAttention) -> Tensor:
    """One document without padding, by an explicit list of keys of each query: (H, L, E) -> (H, L, E)."""
    out = torch.empty_like(v)
    for head in range(len(q)):
        unit = q[head] / q[head].norm(dim=1, keepdim=True)
        scores = q[head] @ unit.T
        for i, keys in enumerate(seen(q[head], attention, head < attention.local.count)):
            out[head, i] = scores[i, keys].softmax(0) @ v[head, keys]
    return out


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    bucket_size=st.integers(1, 5),
    num_hashes=st.integers(1, 3),
    local_heads=st.integers(0, 4),
    local_window=st.sampled_from([2, 4, 6, 8, 10]),
    num_buckets=st.sampled_from([None, 2, 4, 6]),
    hash_factors=st.sampled_from([1, 2]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_it_equals_loops_over_its_definition_wherever_padding_stands(
    lengths: list[int], seed: int, data: st.DataObject, **options: int
) -> None:
    attention, size = lsh(**options), max(lengths) + data.draw(st.integers(1, 4))
    q, v = inputs(size, batch=len(lengths), seed=seed)
    mask = torch.ones(len(lengths), size, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, data.draw(st.permutations(range(size)))[:length]] = False
    out = attention(q, q, v, LayerContext(mask, is_causal=True))
    assert out.isfinite().all()
    for row, real in enumerate(~mask):
        expected = dense(q[row, :, real], v[row, :, real], attention)
        torch.testing.assert_close(out[row, :, real], expected)


@for_each("length", [1, 2, 7])
def test_without_padding_no_mask_is_needed(length: int) -> None:
    q, v = inputs(length, batch=2)
    out = lsh()(q, q, v, LayerContext(is_causal=True))
    for row in range(2):
        torch.testing.assert_close(out[row], dense(q[row], v[row], lsh()))


def test_the_first_position_sees_itself() -> None:
    q, v = inputs(9)
    torch.testing.assert_close(lsh()(q, q, v, LayerContext(is_causal=True))[:, :, 0], v[:, :, 0])


@for_each("place", [1, 5, 20, 39])
def test_a_position_changes_nothing_before_it(place: int) -> None:
    q, v = inputs(40)
    before = lsh()(q, q, v, LayerContext(is_causal=True))
    other, others = inputs(40, seed=1)
    q[:, :, place:], v[:, :, place:] = other[:, :, place:], others[:, :, place:]
    after = lsh()(q, q, v, LayerContext(is_causal=True))
    torch.testing.assert_close(after[:, :, :place], before[:, :, :place], rtol=0, atol=1e-6)
    assert not torch.isclose(after[:, :, place:], before[:, :, place:]).all()


def test_no_later_position_has_a_gradient() -> None:
    q, v = (x.requires_grad_() for x in inputs(30))
    lsh()(q, q, v, LayerContext(is_causal=True))[:, :, 11].sum().backward()
    for x in (q, v):
        assert x.grad is not None and x.grad[:, :, :12].any() and not x.grad[:, :, 12:].any()


def test_whoever_hashes_alike_is_in_reach_however_far_away() -> None:
    # Three of one direction among many of another.
    q = torch.tensor([[-9.0, 0.0, 9.0, 0.0]]).repeat(200, 1)
    q[[0, 100, 199]] = torch.tensor([9.0, 9.0, 0.0, 0.0])
    v = torch.zeros(200, 4)
    v[[0, 100]] = 1.0
    out = lsh(local_heads=0, num_buckets=16)(q[None, None], q[None, None], v[None, None], LayerContext(is_causal=True))
    torch.testing.assert_close(out[0, 0, 199], torch.ones(4))
    # Of the others only the latest three.
    assert not out[0, 0, 150].any()


@pytest.mark.parametrize("option", CHOICES)
def test_every_option_changes_the_output(option: str) -> None:
    q, v = inputs(40)
    twice = lsh(**{option: 2 * {"seed": 1, "hash_factors": 1, **OPTIONS}[option]})
    assert not torch.allclose(
        lsh()(q, q, v, LayerContext(is_causal=True)), twice(q, q, v, LayerContext(is_causal=True))
    )


@for_each(("options", "number"), [({}, 684), ({"max_length": 40}, 28), ({"max_length": 40, "chunk_buckets": 1}, 14)])
def test_there_are_two_buckets_per_chunk_of_the_longest_text_unless_a_number_is_given(
    options: dict[str, int], number: int
) -> None:
    q, v = inputs(40)
    given = lsh(num_buckets=number)(q, q, v, LayerContext(is_causal=True))
    assert lsh(num_buckets=None, **options)(q, q, v, LayerContext(is_causal=True)).equal(given)


def stepped(attention: LSHAttention, q: Tensor, v: Tensor, steps: tuple[int, ...]) -> Tensor:
    """Attend step by step, of one hypothesis for each document."""
    lineage, state, found, start = Lineage(), attention.new_state(), [], 0
    for new in steps:
        blocked = lineage.extend(len(q), 1, new, q.device)
        part = slice(start, start := start + new)
        bias = None if blocked is None else as_bias(blocked, q)
        found.append(attention.step(q[:, :, part], q[:, :, part], v[:, :, part], bias, state))
    return torch.cat(found, dim=2)


@for_each("steps", [(1,) * 23, (23,), (1, 9, 1, 12)])
@for_each("options", [{}, {"local_heads": 0}, {"local_heads": 9}, {"bucket_size": 1}, {"hash_factors": 2}])
def test_steps_equal_a_whole_pass_and_so_do_their_gradients(steps: tuple[int, ...], options: dict[str, int]) -> None:
    attention = lsh(**options)
    q, v = (x.requires_grad_() for x in inputs(23, batch=2))
    whole, found = attention(q, q, v, LayerContext(is_causal=True)), stepped(attention, q, v, steps)
    torch.testing.assert_close(found, whole)
    ours, plain = (torch.autograd.grad(x.square().sum(), (q, v)) for x in (found, whole))
    torch.testing.assert_close(ours, plain)


def test_while_training_all_steps_of_a_text_hash_alike() -> None:
    attention, (q, v) = lsh().train(), inputs(23)
    torch.manual_seed(1)
    whole = attention(q, q, v, LayerContext(is_causal=True))
    torch.manual_seed(1)
    torch.testing.assert_close(stepped(attention, q, v, (1,) * 23), whole)
    assert not torch.allclose(attention(q, q, v, LayerContext(is_causal=True)), whole)


@pytest.mark.parametrize("local_heads", [0, 3])
def test_dropout_acts_in_whole_passes_and_in_steps(local_heads: int) -> None:
    q, v = inputs(23)
    for steps in ((), (9, 14)):
        found = []
        for dropout in (0.0, 0.5):
            attention = LSHAttention(**{**OPTIONS, "local_heads": local_heads}, dropout=dropout).train()
            torch.manual_seed(1)  # of the rotations, which come first
            found.append(stepped(attention, q, v, steps) if steps else attention(q, q, v, LayerContext(is_causal=True)))
        assert not torch.allclose(*found)


@for_each("length", [1, 4, 5, 40])
def test_in_an_encoder_the_number_of_buckets_may_be_given_too(length: int) -> None:
    # Of 40 tokens there are 28 buckets, two per chunk of 3, unless told otherwise; what fits into a chunk has one.
    q, v = inputs(length)
    follows = lsh(num_buckets=None)(q, q, v)
    assert lsh(num_buckets=28)(q, q, v).equal(follows) == (length in (1, 40))
    assert lsh(num_buckets=4)(q, q, v).equal(follows) == (length in (1, 4, 5))


@pytest.mark.parametrize("hash_factors", [1, 2])
def test_padding_comes_after_more_buckets_than_there_are_positions(hash_factors: int) -> None:
    attention, (q, v) = lsh(num_buckets=600, hash_factors=hash_factors), inputs(17)
    mask = torch.arange(17)[None] >= 9
    for is_causal in (False, True):
        alone = attention(q[:, :, :9], q[:, :, :9], v[:, :, :9], LayerContext(is_causal=is_causal))
        torch.testing.assert_close(attention(q, q, v, LayerContext(mask, is_causal=is_causal))[:, :, :9], alone)

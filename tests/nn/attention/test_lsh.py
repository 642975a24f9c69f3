"""LSH attention beside loops over its definition, position by position, and beside the Reformer of transformers."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import ends_after
from torch import Tensor

from pyramidions.nn.attention import LSHAttention
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.sublayer import LayerContext, Lineage

CAUSAL = LayerContext(is_causal=True)


def lsh(**options: Any) -> LSHAttention:
    return LSHAttention(**{"bucket_size": 4, "num_hashes": 3, "local_heads": 0, **options}).eval()


def causal(**options: Any) -> LSHAttention:
    """Return attention with local heads, whose number of buckets does not depend on the longest text."""
    return lsh(**{"bucket_size": 3, "local_heads": 1, "local_window": 4, "num_buckets": 4, **options})


def inputs(length: int, batch: int = 1, heads: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q, v = (torch.randn(batch, heads, length, 8, generator=generator) for _ in range(2))
    return q, v


def hashed(q: Tensor, attention: LSHAttention, length: int) -> list[list[int]]:
    """Return the bucket of each position of one head in each round, as for a text of that length: (L, E) -> R lists."""
    half = math.ceil(attention.chunk_buckets * length / (2 * attention.bucket_size))
    half = half if attention.num_buckets is None else attention.num_buckets // 2
    factors = [half]
    if attention.hash_factors == 2:
        factors = [math.ceil(math.sqrt(half / 2))]
        factors.append(0 if factors[0] >= half else math.ceil(half / factors[0] / 2))
    rotations = attention.rotations(q.size(1), max(factors), q.device)
    rounds = []
    for number in range(attention.num_hashes):
        found = torch.zeros(len(q), dtype=torch.long)
        for factor, columns in enumerate(factors):
            turned = q @ rotations[number * len(factors) + factor, :, :columns]
            if columns:
                found = found * 2 * columns + torch.cat([turned, -turned], dim=1).argmax(dim=1)
        rounds.append(found.tolist())
    return rounds


def seen_locally(length: int, side: int, is_causal: bool) -> list[list[int]]:
    return [
        [j for j in range(max(0, i - side), i if is_causal else min(length, i + side + 1)) if j != i]
        for i in range(length)
    ]


def seen_causally(rounds: list[list[int]], reach: int) -> list[list[int]]:
    """Return the last positions of its bucket before each position, of all rounds."""
    places = range(len(rounds[0]))
    return [[j for of in rounds for j in [j for j in range(i) if of[j] == of[i]][-reach:]] for i in places]


def seen_in_chunks(rounds: list[list[int]], attention: LSHAttention) -> list[list[int]]:
    """Return whom each position sees in its chunk and the neighbours, sorted by buckets, of all rounds."""
    length, size = len(rounds[0]), attention.bucket_size
    seen: list[list[int]] = [[] for _ in range(length)]
    for buckets in rounds:
        order = sorted(range(length), key=lambda i: (buckets[i], i))
        for rank, i in enumerate(order):
            start = rank // size * size
            end = start + (1 + attention.chunks_after) * size
            seen[i] += [j for j in order[max(0, start - size) : end] if j != i]
    return seen


def naive(q: Tensor, v: Tensor, attention: LSHAttention, is_causal: bool = False) -> Tensor:
    """All heads of one document without padding, word by word after the paper: (H, L, E) -> (H, L, E)."""
    out, length = [], q.size(1)
    for head, (queries, values) in enumerate(zip(q, v, strict=True)):
        if head < attention.local.count:
            seen = seen_locally(length, attention.local.side, is_causal)
        elif is_causal:
            seen = seen_causally(hashed(queries, attention, attention.max_length), attention.bucket_size)
        elif length <= attention.bucket_size:
            seen = seen_in_chunks([[0] * length] * attention.num_hashes, attention)
        else:
            seen = seen_in_chunks(hashed(queries, attention, length), attention)
        scale = queries.size(1) ** 0.5 if attention.is_flat else 1.0
        scores = queries @ torch.nn.functional.normalize(queries, dim=1).T / scale
        # Who sees nothing else sees itself; a pair that met in several rounds is listed as often.
        listed = [keys or [i] for i, keys in enumerate(seen)]
        out.append(torch.stack([scores[i, keys].softmax(0) @ values[keys] for i, keys in enumerate(listed)]))
    return torch.stack(out)


@pytest.mark.parametrize(
    ("lengths", "options"),
    [
        ((1, 2, 3), {"bucket_size": 1}),
        ((4, 5, 9), {"bucket_size": 2, "hash_factors": 2}),
        ((8, 13, 40), {"bucket_size": 3, "chunks_after": 1, "seed": 2}),
        ((8, 13, 40), {"bucket_size": 8, "chunks_after": 1, "hash_factors": 2}),
        ((150, 16, 7), {"bucket_size": 8}),
        ((150, 16, 7), {"bucket_size": 3, "hash_factors": 2}),
        ((40, 4, 0), {"num_buckets": 4}),
        ((40, 17, 1), {"chunk_buckets": 1, "is_flat": True, "num_hashes": 2}),
        ((40, 41, 5), {"bucket_size": 64}),
    ],
)
def test_it_equals_a_naive_reference_wherever_padding_stands(lengths: tuple[int, ...], options: dict[str, int]) -> None:
    attention, size = lsh(**options), max(lengths) + 1
    q, v = inputs(size, batch=3)
    generator = torch.Generator().manual_seed(1)
    mask = torch.stack([torch.randperm(size, generator=generator) >= length for length in lengths])
    out = attention(q, q, v, LayerContext(mask))
    for row, real in enumerate(~mask):
        if real.any():
            expected = naive(q[row, :, real], v[row, :, real], attention)
            torch.testing.assert_close(out[row, :, real], expected)


def test_the_first_heads_see_their_neighbours_but_not_themselves() -> None:
    attention, (q, v) = lsh(local_heads=1, local_window=4), inputs(40, batch=2, heads=3)
    out = attention(q, q, v, LayerContext(ends_after(40, 1)))
    torch.testing.assert_close(out[0], naive(q[0], v[0], attention))
    # A position alone sees itself.
    torch.testing.assert_close(out[1, :, 0], v[1, :, 0])


@pytest.mark.parametrize("after", [0, 1])
def test_it_is_the_reformer_of_transformers_with_the_same_rotations(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import LSHSelfAttention

    heads, dim, rounds, length = 2, 8, 2, 64
    config = ReformerConfig(
        hidden_size=heads * dim,
        num_attention_heads=heads,
        attention_head_size=dim,
        lsh_attn_chunk_length=4,
        lsh_num_chunks_after=after,
        num_hashes=rounds,
        num_buckets=None,
        lsh_attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    theirs, x = LSHSelfAttention(config, 0).double().eval(), 3 * torch.randn(2, length, heads * dim).double()
    ours = lsh(bucket_size=4, num_hashes=rounds, chunks_after=after)
    # (R, E, N) -> (H, E, R, N): 32 buckets follow from 64 positions.
    rotations = ours.rotations(dim, 16, x.device).transpose(0, 1).expand(heads, -1, -1, -1).double()
    with torch.no_grad(), monkeypatch.context() as patched:
        patched.setattr(torch, "randn", lambda shape, **_: rotations if shape == rotations.shape else None)
        # What they add to a mean square before they divide by its root would be seen in the sixth digit.
        patched.setattr(theirs, "_len_norm", partial(theirs._len_norm, epsilon=0.0))
        found = theirs(x)
    # (B, H, R, L), where positions stand in the order of a round; at its ends theirs go on in another round.
    place = found.buckets.argsort(dim=-1, stable=True).argsort(dim=-1)
    inside = ((place >= 4) & (place < length - 4 * after)).all(dim=2)
    q, v = (part(x).unflatten(-1, (heads, dim)).transpose(1, 2) for part in (theirs.query_key, theirs.value))
    expected = found.hidden_states.unflatten(-1, (heads, dim)).transpose(1, 2)
    assert inside.float().mean() > 0.7
    torch.testing.assert_close(ours(q, q, v)[inside], expected[inside], rtol=0, atol=1e-6)


def test_evaluation_leaves_the_generator_alone_and_training_draws_rotations_anew() -> None:
    attention, (q, v) = lsh(), inputs(40)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    evaluated = attention(q, q, v)
    assert torch.equal(torch.get_rng_state(), before)
    attention.train()
    first, second = attention(q, q, v), attention(q, q, v)
    assert not torch.allclose(first, second)
    torch.manual_seed(1)
    assert torch.equal(attention(q, q, v), first)
    assert torch.equal(attention.eval()(q, q, v), evaluated)


def test_longer_documents_begin_with_the_same_rotations() -> None:
    attention, device = lsh(), torch.device("cpu")
    most = attention.rotations(8, 200, device)
    for columns in (0, 64, 65):
        assert torch.equal(attention.rotations(8, columns, device), most[..., :columns])


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
def test_causal_it_equals_loops_over_its_definition_wherever_padding_stands(
    lengths: list[int], seed: int, data: st.DataObject, **options: int
) -> None:
    attention, size = lsh(**options), max(lengths) + data.draw(st.integers(1, 4))
    q, v = inputs(size, batch=len(lengths), heads=3, seed=seed)
    mask = torch.ones(len(lengths), size, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, data.draw(st.permutations(range(size)))[:length]] = False
    out = attention(q, q, v, LayerContext(mask, is_causal=True))
    assert out.isfinite().all()
    for row, real in enumerate(~mask):
        if real.any():
            expected = naive(q[row, :, real], v[row, :, real], attention, is_causal=True)
            torch.testing.assert_close(out[row, :, real], expected)


@pytest.mark.parametrize(
    ("options", "number"), [({}, 684), ({"max_length": 40}, 28), ({"max_length": 40, "chunk_buckets": 1}, 14)]
)
def test_there_are_two_buckets_per_chunk_of_the_longest_text_unless_a_number_is_given(
    options: dict[str, int], number: int
) -> None:
    q, v = inputs(40)
    assert causal(num_buckets=None, **options)(q, q, v, CAUSAL).equal(causal(num_buckets=number)(q, q, v, CAUSAL))


def stepped(attention: LSHAttention, q: Tensor, v: Tensor, steps: tuple[int, ...]) -> Tensor:
    """Attend step by step, of one hypothesis for each document."""
    lineage, state, found, start = Lineage(), attention.new_state(), [], 0
    for new in steps:
        blocked = lineage.extend(len(q), 1, new, q.device)
        part = slice(start, start := start + new)
        bias = None if blocked is None else as_bias(blocked, q)
        found.append(attention.step(q[:, :, part], q[:, :, part], v[:, :, part], bias, state))
    return torch.cat(found, dim=2)


def test_while_training_all_steps_of_a_text_hash_alike() -> None:
    attention, (q, v) = causal(hash_factors=2).train(), inputs(23, heads=3)
    torch.manual_seed(1)
    whole = attention(q, q, v, CAUSAL)
    torch.manual_seed(1)
    torch.testing.assert_close(stepped(attention, q, v, (1,) * 23), whole)
    assert not torch.allclose(attention(q, q, v, CAUSAL), whole)


@pytest.mark.parametrize("local_heads", [0, 3])
def test_dropout_acts_in_hashed_and_in_local_heads_in_whole_passes_and_in_steps(local_heads: int) -> None:
    q, v = inputs(23, heads=3)
    runs: list[Callable[[LSHAttention], Tensor]] = [
        lambda made: made(q, q, v),
        lambda made: made(q, q, v, CAUSAL),
        lambda made: stepped(made, q, v, (9, 14)),
    ]
    for run in runs:
        found = []
        for dropout in (0.0, 0.5):
            torch.manual_seed(1)  # of the rotations, which come first
            found.append(run(causal(local_heads=local_heads, dropout=dropout).train()))
        assert not torch.allclose(*found)


@pytest.mark.parametrize("hash_factors", [1, 2])
def test_padding_comes_after_more_buckets_than_there_are_positions(hash_factors: int) -> None:
    attention, (q, v) = causal(num_buckets=600, hash_factors=hash_factors), inputs(17, heads=3)
    mask = torch.arange(17)[None] >= 9
    for is_causal in (False, True):
        alone = attention(q[:, :, :9], q[:, :, :9], v[:, :, :9], LayerContext(is_causal=is_causal))
        torch.testing.assert_close(attention(q, q, v, LayerContext(mask, is_causal=is_causal))[:, :, :9], alone)

import math
from functools import partial

import pytest
import torch
from hashing import hashed
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, LSHAttention
from pyramidions.nn.sublayer import LayerContext

OPTIONS = {"bucket_size": 4, "num_hashes": 3, "local_heads": 0}


def lsh(**options: int) -> LSHAttention:
    return LSHAttention(**{**OPTIONS, **options}).eval()


def inputs(length: int, batch: int = 1, heads: int = 2, dim: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q, v = (torch.randn(batch, heads, length, dim, generator=generator) for _ in range(2))
    return q, v


def naive(q: Tensor, v: Tensor, attention: LSHAttention) -> Tensor:
    """One head of one document without padding, word by word after the paper: (L, E), (L, E) -> (L, E)."""
    length, size = len(q), attention.bucket_size
    half = 0 if length <= size else math.ceil(length / size)
    scores = (q @ (q / q.norm(dim=1, keepdim=True)).T).tolist()
    seen: list[list[int]] = [[] for _ in range(length)]
    for buckets in hashed(q, attention, half) if half else [[0] * length] * attention.num_hashes:
        order = sorted(range(length), key=lambda i: (buckets[i], i))
        for rank, i in enumerate(order):
            start = rank // size * size
            end = start + (1 + attention.chunks_after) * size
            seen[i] += [j for j in order[max(0, start - size) : end] if j != i]
    out = []
    for i in range(length):
        # a pair that met in several rounds is listed as often
        keys = seen[i] or [i]
        out.append(torch.tensor([scores[i][j] for j in keys]).softmax(0) @ v[keys])
    return torch.stack(out)


@for_each("length", [2, 3, 16, 64])
def test_with_one_chunk_it_is_full_attention_to_all_other_positions(length: int) -> None:
    q, v = inputs(length)
    scores = q @ torch.nn.functional.normalize(q, dim=-1).transpose(-1, -2)
    expected = scores.masked_fill(torch.eye(length).bool(), -torch.inf).softmax(-1) @ v
    torch.testing.assert_close(lsh(bucket_size=64)(q, q, v), expected)


@for_each("bucket_size", [1, 4, 64])
def test_a_position_alone_sees_itself(bucket_size: int) -> None:
    q, v = inputs(5)
    mask = torch.arange(5)[None] >= 1
    torch.testing.assert_close(lsh(bucket_size=bucket_size)(q, q, v, LayerContext(mask))[:, :, 0], v[:, :, 0])


@for_each("options", [{}, {"hash_factors": 2}, {"chunks_after": 1}])
@for_each("bucket_size", [1, 2, 3, 8])
@for_each("lengths", [(1, 2, 3), (4, 5, 9), (8, 13, 40), (150, 16, 7)])
def test_it_equals_a_naive_reference_document_by_document(
    lengths: tuple[int, ...], bucket_size: int, options: dict[str, int]
) -> None:
    attention = lsh(bucket_size=bucket_size, **options)
    q, v = inputs(max(lengths) + 1, batch=3)
    mask = torch.arange(q.size(2)) >= torch.tensor(lengths)[:, None]
    out = attention(q, q, v, LayerContext(mask))
    for row, length in enumerate(lengths):
        for head in range(2):
            expected = naive(q[row, head, :length], v[row, head, :length], attention)
            torch.testing.assert_close(out[row, head, :length], expected)


@for_each("after", [0, 1])
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


def test_padding_may_stand_anywhere() -> None:
    q, v = inputs(30)
    mask = torch.zeros(1, 30, dtype=torch.bool)
    mask[0, [0, 1, 7, 8, 9, 20, 29]] = True
    out = lsh()(q, q, v, LayerContext(mask))[:, :, ~mask[0]]
    q, v = q[:, :, ~mask[0]], v[:, :, ~mask[0]]
    torch.testing.assert_close(out, lsh()(q, q, v))


@for_each(
    "option",
    [
        *({"bucket_size": 8}, {"num_hashes": 2}, {"seed": 2}, {"local_heads": 1}, {"num_buckets": 4}),
        *({"hash_factors": 2}, {"chunk_buckets": 1}, {"chunks_after": 1}, {"is_flat": True}),
    ],
)
def test_every_option_changes_the_output(option: dict[str, int]) -> None:
    q, v = inputs(40)
    assert not torch.allclose(lsh()(q, q, v), lsh(**option)(q, q, v))


def test_the_first_heads_see_their_neighbours_but_not_themselves() -> None:
    q, v = inputs(40, heads=3)
    out = lsh(local_heads=1, local_window=4)(q, q, v)
    distance = (torch.arange(40)[:, None] - torch.arange(40)).abs()
    scores = q[:, :1] @ torch.nn.functional.normalize(q[:, :1], dim=-1).transpose(-1, -2)
    expected = scores.masked_fill((distance == 0) | (distance > 2), -torch.inf).softmax(-1) @ v[:, :1]
    torch.testing.assert_close(out[:, :1], expected)
    assert torch.equal(out[:, 1:], lsh()(q[:, 1:], q[:, 1:], v[:, 1:]))


def test_a_local_head_of_a_position_alone_sees_itself() -> None:
    q, v = inputs(5)
    mask = torch.arange(5)[None] >= 1
    torch.testing.assert_close(lsh(local_heads=2, local_window=4)(q, q, v, LayerContext(mask))[:, :, 0], v[:, :, 0])


def test_evaluation_is_deterministic_and_leaves_the_generator_alone() -> None:
    q, v = inputs(40)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = lsh()(q, q, v)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(lsh()(q, q, v), first)


def test_training_draws_rotations_anew_and_again_under_a_seed() -> None:
    attention, (q, v) = lsh().train(), inputs(40)
    torch.manual_seed(1)
    first, second = attention(q, q, v), attention(q, q, v)
    assert not torch.allclose(first, second)
    torch.manual_seed(1)
    assert torch.equal(attention(q, q, v), first)


def test_dropout_acts_in_hashed_heads() -> None:
    # one chunk: no rotations whose change could pass for dropout
    q, v = inputs(4)
    assert torch.equal(LSHAttention(**OPTIONS).train()(q, q, v), lsh()(q, q, v))
    assert not torch.allclose(LSHAttention(**OPTIONS, dropout=0.5).train()(q, q, v), lsh()(q, q, v))


def test_longer_documents_begin_with_the_same_rotations() -> None:
    attention, device = lsh(), torch.device("cpu")
    most = attention.rotations(8, 200, device)
    for columns in (0, 1, 64, 65, 199):
        assert torch.equal(attention.rotations(8, columns, device), most[..., :columns])


def test_neighbours_of_one_direction_meet_across_the_text() -> None:
    # two directions, each at 16 places, and chunks of 16: whoever hashes alike is in reach, wherever it stands
    q = torch.tensor([[9.0, 9.0, 0.0, 0.0], [-9.0, 0.0, 9.0, 0.0]])[torch.arange(32) % 2].expand(1, 1, 32, 4)
    v = torch.tensor([1.0, -1.0])[torch.arange(32) % 2].expand(4, 32).T[None, None]
    out = lsh(bucket_size=16)(q, q, v)
    assert torch.equal(out.sign(), v)


def test_it_works_under_autocast() -> None:
    q, v = (x.requires_grad_() for x in inputs(40))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = lsh()(q, q, v)
    out.float().sum().backward()
    torch.testing.assert_close(out.float(), lsh()(q, q, v), atol=3e-2, rtol=3e-2)
    assert q.grad is not None and q.grad.isfinite().all()


def test_queries_and_keys_are_one_projection() -> None:
    assert ATTENTION["lsh"].shares_query_key

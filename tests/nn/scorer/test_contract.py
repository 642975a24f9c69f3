"""What every scorer promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor

from pyramidions.nn.marks import Marks
from pyramidions.nn.scorer import SCORER, Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

kinds = pytest.mark.parametrize("kind", SCORER.names)
# What hands on how much attention was received is held to the contract of attention.
own = pytest.mark.parametrize("kind", [kind for kind in SCORER.names if not SCORER[kind].reads_attention])
NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("nothing asks for attention"))


def make(kind: str, **options: object) -> Scorer:
    torch.manual_seed(0)
    return SCORER.build(kind, options, **SETTING, stride=3).eval()


def context() -> PoolingContext:
    return PoolingContext(received=lambda: torch.arange(10.0).view(2, 5))


def sequence(x: Tensor, padding: Tensor | None = None) -> Sequence:
    """Return vectors of which the first is a query."""
    padding = torch.zeros(x.shape[:2], dtype=torch.bool) if padding is None else padding
    query = torch.zeros_like(padding)
    query[:, 0] = True
    return Sequence(x, padding, query=Marks(query, 2))


@kinds
def test_scores_are_finite_and_one_per_vector(kind: str) -> None:
    scores = make(kind)(sequence(vectors(2, 5, DIM) * 1e4), context())
    assert scores.shape == (2, 5) and scores.isfinite().all()


@kinds
def test_half_precision_vectors_get_float32_scores(kind: str) -> None:
    scorer, x = make(kind).bfloat16(), vectors(2, 5, DIM).bfloat16()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        assert scorer(sequence(x), context()).dtype == torch.float32


@own
def test_a_document_scores_the_same_alone_and_in_a_longer_batch(kind: str) -> None:
    scorer, x = make(kind), vectors(1, 5, DIM)
    together = scorer(sequence(torch.cat([x, vectors(1, 2000, DIM, seed=1)], dim=1)), NO_CONTEXT)
    torch.testing.assert_close(together[:, :5], scorer(sequence(x), NO_CONTEXT), rtol=0, atol=1e-6)


@own
def test_values_at_padding_never_change_a_real_score(kind: str) -> None:
    scorer, x, padding = make(kind), vectors(2, 5, DIM), ends_after(5, 2)
    before = scorer(sequence(x, padding), NO_CONTEXT)
    after = scorer(sequence(x.masked_fill(padding[..., None], 1e4), padding), NO_CONTEXT)
    assert after[~padding].equal(before[~padding])


@own
def test_a_seed_repeats_scores_in_training(kind: str) -> None:
    scorer, found = make(kind).train(), []
    for _ in range(2):
        torch.manual_seed(4)
        found.append(scorer(sequence(vectors(2, 5, DIM)), NO_CONTEXT))
    assert torch.equal(*found)


@kinds
def test_a_gradient_reaches_every_parameter_and_is_finite_whatever_is_scored(kind: str) -> None:
    scorer, x = make(kind).train(), vectors(2, 5, DIM)
    x[0] *= 1e4
    scores = scorer(sequence(x.requires_grad_()), context())
    parameters = dict(scorer.named_parameters())
    assert scores.requires_grad or not parameters
    if scores.requires_grad:
        grads = torch.autograd.grad(scores.sum(), [x, *parameters.values()])
        assert all(grad.isfinite().all() and grad.any() for grad in grads)

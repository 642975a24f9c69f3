"""What every scorer promises, a new kind by being registered, and what each of them computes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from noise import add_noise
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


def without_query(x: Tensor) -> Sequence:
    return Sequence(x, torch.zeros(x.shape[:2], dtype=torch.bool))


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
def test_a_document_scores_the_same_alone_and_in_a_longer_batch_whatever_its_padding(kind: str) -> None:
    scorer, x, padding = make(kind), vectors(2, 5, DIM), ends_after(5, 2)
    before = scorer(sequence(x, padding), NO_CONTEXT)
    other = x.masked_fill(padding[..., None], 1e4)
    assert scorer(sequence(other, padding), NO_CONTEXT)[~padding].equal(before[~padding])
    alone, longer = x[:1], torch.cat([x[:1], vectors(1, 2000, DIM, seed=1)], dim=1)
    together = scorer(sequence(longer), NO_CONTEXT)
    torch.testing.assert_close(together[:, :5], scorer(sequence(alone), NO_CONTEXT), rtol=0, atol=1e-6)


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


def of_logits(logits: Tensor) -> Tensor:
    return logits.sigmoid() + 1e-5


#: kind, options, and its scores of vectors by its formula
FORMULAS: list[tuple[str, dict[str, Any], Callable[[Any, Tensor], Tensor]]] = [
    ("linear", {}, lambda made, x: of_logits(x @ made.linear.weight[0] + made.linear.bias)),
    ("linear", {"layer_norm": True}, lambda made, x: of_logits(made.linear(made.norm(x)).squeeze(-1))),
    # RoBERTa's head
    ("nonlinear", {}, lambda made, x: of_logits(made.linear(made.dense(x).tanh()).squeeze(-1))),
    ("embedding", {"coordinate": 3}, lambda made, x: of_logits(x[..., 3])),
    ("index", {}, lambda made, x: torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0]] * 2)),
    ("attention", {}, lambda made, x: context().received()),
]


@pytest.mark.parametrize(("kind", "options", "formula"), FORMULAS)
def test_scores_are_those_of_the_formula(
    kind: str, options: dict[str, Any], formula: Callable[[Any, Tensor], Tensor]
) -> None:
    scorer, x = make(kind, **options), vectors(2, 5, DIM) * 3
    add_noise(scorer, 0.3)
    torch.testing.assert_close(scorer(without_query(x), context()), formula(scorer, x))


@pytest.mark.parametrize(("kind", "options"), [("random", {}), ("nonlinear", {"dropout": 0.5})])
def test_what_is_drawn_is_drawn_anew_in_training_alone(kind: str, options: dict[str, Any]) -> None:
    scorer, x = make(kind, **options), without_query(vectors(2, 5, DIM))
    for training in (False, True):
        scorer.train(training)
        assert torch.equal(scorer(x, NO_CONTEXT), scorer(x, NO_CONTEXT)) != training
    assert not torch.equal(make("random")(x, NO_CONTEXT), make("random", seed=9)(x, NO_CONTEXT))

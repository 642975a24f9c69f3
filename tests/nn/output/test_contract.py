"""What every output layer promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, VOCABULARY, vectors
from torch import Tensor

from pyramidions.nn.output import OUTPUT, Output
from pyramidions.nn.provenance import Origins
from pyramidions.nn.sublayer import Memory

kinds = pytest.mark.parametrize("kind", OUTPUT.names)


def make(kind: str) -> Output:
    torch.manual_seed(0)
    return OUTPUT.build(kind, {}, **SETTING)


def scored(output: Output, features: Tensor, embedding: Tensor) -> Tensor:
    """Return logits; an output that copies may copy two tokens."""
    tokens = torch.tensor([[3, 5]]).expand(len(features), -1)
    origins = Origins.of_tokens(tokens, tokens.eq(1), features.dtype)
    memory = Memory(vectors(1, 2, DIM, seed=2).expand(len(features), -1, -1), None, origins)
    return output(features, embedding, output.prepare((memory,), embedding))


@kinds
def test_every_token_of_the_vocabulary_is_scored_at_each_position(kind: str) -> None:
    logits = scored(make(kind), vectors(2, 5, DIM), vectors(VOCABULARY, DIM, seed=1))
    assert logits.shape == (2, 5, VOCABULARY) and logits.isfinite().all()
    assert logits.flatten(0, 1).unique(dim=0).size(0) == 10


@kinds
def test_a_position_is_scored_by_its_own_features(kind: str) -> None:
    output, features, embedding = make(kind), vectors(2, 5, DIM), vectors(VOCABULARY, DIM, seed=1)
    whole = scored(output, features, embedding)
    torch.testing.assert_close(scored(output, features[1:, 2:3], embedding), whole[1:, 2:3])


@pytest.mark.parametrize("kind", [kind for kind in OUTPUT.names if not OUTPUT[kind].points])
def test_gradients_reach_the_features_and_either_the_embedding_or_weights_of_its_own(kind: str) -> None:
    output, features = make(kind), vectors(2, 5, DIM).requires_grad_()
    embedding = vectors(VOCABULARY, DIM, seed=1).requires_grad_()
    output(features, embedding).square().sum().backward()
    assert features.grad is not None and (features.grad.abs().sum(dim=-1) > 0).all()
    own = [weight.grad for weight in output.parameters()]
    tied = embedding.grad is not None
    assert tied != bool(own)
    for grad in [embedding.grad] if tied else own:
        # Every token was scored.
        assert grad is not None and grad.isfinite().all() and grad.flatten(1).any(dim=1).all()


def test_tied_logits_are_products_with_the_embeddings() -> None:
    features, embedding = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, -1.0]])
    assert OUTPUT.build("tied", {})(features, embedding).tolist() == [[[1.0, 2.0, 1.0]]]


def test_untied_logits_do_not_depend_on_the_embeddings() -> None:
    output, features = make("untied"), vectors(2, 5, DIM)
    (weight,) = output.parameters()
    assert weight.shape == (VOCABULARY, DIM)
    for seed in (1, 2):
        torch.testing.assert_close(output(features, vectors(VOCABULARY, DIM, seed=seed)), features @ weight.T)


# Of three modules, twenty tokens are seven, seven and six.
@pytest.mark.parametrize("modules", [1, 3, 4])
def test_tokens_belong_to_multiplicative_modules_in_their_order(modules: int) -> None:
    output, features = OUTPUT.build("multiplicative", {"modules": modules}, **SETTING), vectors(2, 5, DIM)
    within = output.multiplicative.within
    within = within if len(within) == -(-20 // modules) else within.mT
    weight = (output.multiplicative.across[:, None] * within).flatten(0, 1)
    torch.testing.assert_close(output(features, features), features @ weight[:20].T)

"""A pointer to members finds a token only through the vector that it is in."""

import pytest
import torch

from lab.members import MemberOutput, summed_by_vector
from pyramidions.nn.provenance import Origins, Provenance
from pyramidions.nn.sublayer import Memory

TOKENS = torch.tensor([[5, 7, 5, 9, 6, 1]])  # the last is padding


def pooled(whole: bool) -> Origins:
    """Two vectors of three tokens and of two, and one of padding; as lists of members or as a whole matrix."""
    origins = Origins.of_tokens(TOKENS, TOKENS == 1, torch.float64)
    sources = torch.tensor([[[0, 1, 2], [3, 4, 4], [5, 5, 5]]])
    weights = torch.tensor([[[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.0, 0.0, 0.0]]], dtype=torch.float64)
    found = origins.pooled(sources, weights)
    if whole:
        shares = found.made_of.of(torch.eye(3, dtype=torch.float64)[None])
        found = found._replace(made_of=Provenance(shares, None, 6))
    return found


@pytest.mark.parametrize("whole", [False, True])
@torch.no_grad()
def test_a_vector_is_chosen_by_its_key_and_then_one_of_its_members_by_its_embedding(whole: bool) -> None:
    torch.manual_seed(1)
    output = MemberOutput(8, 10, token_dim=4).double()
    embedding, features, x = (torch.randn(shape, dtype=torch.float64) for shape in ((10, 8), (1, 2, 8), (1, 3, 8)))
    padding = torch.tensor([[False, False, True]])
    memory = output.prepare((Memory(x, padding, origins=pooled(whole)),), embedding)
    pointed, _ = output.pointer(features, memory)
    attention, _, _ = output.pointer.read(features, memory)
    shares = memory.origins.made_of.of(torch.eye(3, dtype=torch.float64)[None])[0]
    for step in range(2):
        asked = output.pointer.member_query(features[0, step])
        found = []
        for token in TOKENS[0].tolist():
            normed = torch.nn.functional.layer_norm(embedding[token], (8,))
            found.append(float(asked @ output.pointer.token_key(normed)) / 2)
        for place in range(5):
            expected = 0.0
            for vector in range(2):
                inside = sum(float(w) * torch.tensor(s).exp() for w, s in zip(shares[vector], found, strict=True))
                share = float(shares[vector, place]) * torch.tensor(found[place]).exp() / inside
                expected += float(attention[0, step, vector] * share)
            assert float(pointed[0, step, place]) == pytest.approx(expected, rel=1e-6)
    assert pointed.sum(-1).tolist()[0] == pytest.approx([1.0, 1.0]) and float(pointed[..., 5].max()) == 0.0
    assert output(features, embedding, memory).exp().sum(-1).tolist()[0] == pytest.approx([1.0, 1.0])


@torch.no_grad()
def test_a_vector_whose_members_all_score_far_below_another_is_pointed_to_all_the_same() -> None:
    torch.manual_seed(1)
    output = MemberOutput(8, 10, token_dim=4).double()
    output.pointer.member_query.weight.mul_(1e4)
    embedding, features, x = (torch.randn(shape, dtype=torch.float64) for shape in ((10, 8), (1, 2, 8), (1, 3, 8)))
    memory = output.prepare((Memory(x, torch.tensor([[False, False, True]]), origins=pooled(False)),), embedding)
    pointed, _ = output.pointer(features, memory)
    attention, _, _ = output.pointer.read(features, memory)
    by_vector = torch.stack([pointed[..., :3].sum(-1), pointed[..., 3:].sum(-1)], -1)
    torch.testing.assert_close(by_vector, attention[..., :2])


def test_weights_go_to_vectors_and_back_by_one_matrix() -> None:
    x = torch.randn(1, 2, 6, dtype=torch.float64)
    lists, matrix = pooled(False).made_of, pooled(True).made_of
    torch.testing.assert_close(summed_by_vector(lists, x), summed_by_vector(matrix, x))
    y = torch.randn(1, 2, 3, dtype=torch.float64)
    assert float((summed_by_vector(lists, x) * y).sum()) == pytest.approx(float((x * lists.of(y)).sum()))


def test_gradients_are_finite_where_a_vector_holds_none_of_the_best_tokens() -> None:
    torch.manual_seed(1)
    output = MemberOutput(8, 10, token_dim=4)
    with torch.no_grad():
        output.pointer.member_query.weight.mul_(1e4)
    x, origins = torch.randn(1, 3, 8), pooled(False)
    made_of = origins.made_of._replace(weights=origins.made_of.weights.float())
    memory = Memory(x, torch.tensor([[False, False, True]]), origins=origins._replace(made_of=made_of))
    embedding = torch.randn(10, 8)
    output(torch.randn(1, 2, 8), embedding, output.prepare((memory,), embedding)).sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in output.parameters())

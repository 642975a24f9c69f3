"""Where a query stands, what its scorer computes, and that poolings hand it on."""

import math

import pytest
import torch
from torch import Tensor

from pyramidions.nn.marks import Marks, query_marks
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import SCORER, QueryScorer
from pyramidions.nn.sequence import PoolingContext, Sequence

PAD, END = 1, 2
CONTEXT = PoolingContext(received=lambda: pytest.fail("nothing asks for attention"))


def marked(*rows: list[int]) -> list[list[bool]]:
    tokens = torch.tensor(rows)
    return query_marks(tokens, tokens.eq(PAD), END).marked.tolist()


def test_a_query_ends_with_the_first_separator_that_something_follows() -> None:
    assert marked([7, 8, END, 9, 9, END]) == [[True, True, True, False, False, False]]
    assert marked([7, 8, 9, 9, END, PAD]) == [[False] * 6]
    assert marked([7, END, 9, END, PAD, PAD], [7, 8, 9, 9, 9, 9]) == [[True, True, *[False] * 4], [False] * 6]
    assert marked([7, END, 9, END, 9, END]) == [[True, True, *[False] * 4]]


def scorer(**options: int) -> QueryScorer:
    torch.manual_seed(0)
    found = QueryScorer(4, **options)
    with torch.no_grad():
        found.bilinear.weight.copy_(torch.randn(4, 4))
    return found.eval()


def sequence(x: Tensor, query: int, padding: int = 0) -> Sequence:
    mask = torch.zeros(x.shape[:2], dtype=torch.bool)
    mask[:, x.size(1) - padding :] = True
    places = torch.zeros_like(mask)
    places[:, :query] = True
    return Sequence(x, mask, query=Marks(places, query))


def test_the_score_is_that_of_the_linear_part_and_of_the_query_vector_that_matches_best() -> None:
    rates, x = scorer(), torch.randn(1, 5, 4)
    scores = rates(sequence(x, 2), CONTEXT)[0]
    for place in (2, 3, 4):
        matches = [float(rates.bilinear(x[0, place]) @ x[0, asked]) / math.sqrt(4) for asked in (0, 1)]
        logit = float(rates.linear(x[0, place])) + max(matches)
        assert float(scores[place]) == pytest.approx(1 / (1 + math.exp(-logit)) + 1e-5)


def test_a_new_scorer_prefers_what_resembles_the_query() -> None:
    rates = QueryScorer(4)
    torch.nn.init.zeros_(rates.linear.weight)
    x = torch.tensor([[1.0, 0, 0, 0], [0, 3, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0]])[None]
    assert rates(sequence(x, 1), CONTEXT)[0, 1:].argsort(descending=True).tolist() == [1, 0, 2]


def test_a_document_without_a_query_has_the_scores_of_the_linear_part() -> None:
    rates, x = scorer(), torch.randn(2, 5, 4)
    linear = SCORER.build("linear", {}, embed_dim=4)
    linear.load_state_dict(rates.linear.state_dict(prefix="linear."))
    plain = Sequence(x, torch.zeros(2, 5, dtype=torch.bool))
    assert rates(plain, CONTEXT).equal(linear(plain, CONTEXT))
    places = torch.zeros(2, 5, dtype=torch.bool)
    places[1, 0] = True
    # The first of the two has none, and a longer query in the batch changes no other score.
    assert rates(plain._replace(query=Marks(places, 1)), CONTEXT)[0].equal(linear(plain, CONTEXT)[0])
    places = torch.tensor([[True, False, False, False, False], [True, True, True, False, False]])
    both = rates(plain._replace(query=Marks(places, 3)), CONTEXT)
    torch.testing.assert_close(both[:1], rates(sequence(x[:1], 1), CONTEXT))


def test_the_query_scores_above_all_others_up_to_half_of_what_is_handed_on() -> None:
    x = torch.randn(1, 8, 4) * 100
    scores = scorer(k=4)(sequence(x, 3), CONTEXT)[0]
    assert scores[:2].tolist() == [2.0, 2.0] and scores[2:].max() < 1.001


def test_two_poolings_in_a_row_hand_the_query_on() -> None:
    for kind in ("soft_topk", "hard_topk"):
        at = sequence(torch.randn(2, 40, 4), 3, padding=5)
        for k in (16, 8):
            pooler = POOLING.build(kind, {}, k=k, scorer=scorer(k=k)).eval()
            at = pooler(at, CONTEXT).sequence(at, None)
            assert at.query is not None and at.query.marked.tolist() == [[True] * 3 + [False] * (k - 3)] * 2

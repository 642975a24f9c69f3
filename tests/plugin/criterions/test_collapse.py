"""Training warns when a scorer rates all vectors alike."""

import logging
from types import SimpleNamespace

import pytest
import torch

from pyramidions.nn.pooling import POOLING, Pooled
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.plugin.criterions.collapse import CollapseWatch
from pyramidions.plugin.criterions.pooled_cross_entropy import _spread


def pooled(kind: str = "soft_topk", scorer: str = "linear", size: float = 1.0, k: int = 4) -> Pooled:
    torch.manual_seed(0)
    made = POOLING.build(kind, {}, k=k, scorer=SCORER.build(scorer, {}, embed_dim=8, stride=2))
    x, mask = size * torch.randn(2, 8, 8), torch.zeros(2, 8).bool()
    mask[1, 3:] = True
    return made(Sequence(x, mask), PoolingContext(received=lambda: x.sum(-1)))


def look(*spreads: float) -> CollapseWatch:
    watch = CollapseWatch()
    for spread in spreads:
        watch.look([_spread("spread_2", SimpleNamespace(spread=torch.tensor([spread])))])
    return watch


def test_the_spread_is_of_documents_that_are_shortened() -> None:
    # The second document has 3 vectors, and all are handed on.
    spread = pooled().spread
    assert 0.1 < spread[0] < 1 and spread[1].isnan()
    log = _spread("spread_2", pooled())
    assert (log["spread_2_sum"].item(), log["spread_2_count"].item()) == (pytest.approx(spread[0].item()), 1)


def test_a_scorer_that_does_not_learn_has_no_spread() -> None:
    for scorer in ("random", "index", "attention"):
        assert pooled(scorer=scorer).spread is None and _spread("spread_2", pooled(scorer=scorer)) == {}, scorer


def test_scores_of_tiny_vectors_collapse() -> None:
    for kind in ("soft_topk", "iterative_topk", "gumbel_topk"):
        assert pooled(kind, size=1e-3).spread[0] < 0.01, kind


def test_a_collapse_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        look(0.5, 0.011, float("nan"))
        assert not caplog.records
        look(0.5, 0.0099, 0.0001)
    (record,) = caplog.records
    told = "the scorer behind encoder layer 2 rates all vectors of a document alike: its scores lie within 0.0099 of"
    assert record.getMessage().startswith(told)

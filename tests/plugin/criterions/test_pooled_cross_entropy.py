"""The loss of models that pool, how sharply they do, and the warning where a scorer rates all vectors alike."""

import copy
import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics

from pyramidions.nn.pooling import POOLING, Pooled
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.sequence import PoolingContext, Sequence
from pyramidions.plugin.criterions.collapse import CollapseWatch
from pyramidions.plugin.criterions.pooled_cross_entropy import PooledCrossEntropyCriterion, _sharpness, _spread

TASK = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: 1))


class Model:
    """Hands out fixed logits, and what a pooler after the second layer handed on."""

    def __init__(
        self, weights: list[list[list[float]]], padding: list[list[bool]], sources: list[list[list[int]]]
    ) -> None:
        self.logits = torch.randn(2, 3, 11, generator=torch.Generator().manual_seed(0))
        w = torch.tensor(weights)
        self.pooled = {1: Pooled(torch.zeros(*w.shape[:2], 4), torch.tensor(padding), torch.tensor(sources), w)}

    def __call__(self, **unused: Any) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.logits, {"pooled": self.pooled}

    def get_normalized_probs(self, output: Any, log_probs: bool) -> torch.Tensor:
        return output[0].log_softmax(-1)

    def get_targets(self, sample: Any, output: Any) -> torch.Tensor:
        return sample["target"]


SAMPLE = {"net_input": {}, "target": torch.tensor([[4, 5, 2], [6, 2, 1]]), "ntokens": 5}
HALF_SHARP = Model(
    [[[0.5, 0.5], [0.9, 0.1]], [[1.0, 0.0], [1.0, 0.0]]],
    [[False, False], [False, False]],
    [[[0, 1], [2, 3]], [[0, 0], [1, 1]]],
)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_fairseqs_label_smoothed_cross_entropy(smoothing: float) -> None:
    ours = PooledCrossEntropyCriterion(TASK, False, smoothing)(HALF_SHARP, SAMPLE)
    theirs = LabelSmoothedCrossEntropyCriterion(TASK, False, smoothing)(HALF_SHARP, SAMPLE)
    assert torch.equal(ours[0], theirs[0])
    assert ours[1] == theirs[1] == 5
    torch.testing.assert_close(ours[2]["nll_loss"], theirs[2]["nll_loss"])


@pytest.mark.parametrize(
    ("weights", "padding", "sources", "expected"),
    [
        # The second document has one member a vector, as a short one has whose vectors meet only padding.
        (None, None, None, (1.4, 2)),
        # No padding counts.
        ([[[0.5, 0.5], [0.0, 0.0]]] * 2, [[False, True]] * 2, [[[0, 1], [2, 3]]] * 2, (1.0, 2)),
        # A hard selection is sharp even where the losers' weight vanishes.
        ([[[1.0, 0.0]]] * 2, [[False]] * 2, [[[0, 1]]] * 2, (2.0, 2)),
    ],
)
def test_sharpness_counts_vectors_of_several_members(
    weights: Any, padding: Any, sources: Any, expected: tuple[float, int]
) -> None:
    model = HALF_SHARP if weights is None else Model(weights, padding, sources)
    log = PooledCrossEntropyCriterion(TASK, False, 0.0)(model, SAMPLE)[2]
    assert (log["sharpness_2_sum"].item(), log["sharpness_2_count"].item()) == pytest.approx(expected)


def test_sharpness_of_more_vectors_than_half_precision_counts_is_finite() -> None:
    pooled = Pooled(torch.zeros(1), torch.zeros(1, 70_000).bool(), torch.arange(2).expand(1, 70_000, 2))
    log = _sharpness("sharpness_2", pooled._replace(weights=torch.tensor([1.0, 0.0]).half().expand(1, 70_000, 2)))
    assert log["sharpness_2_sum"].item() == log["sharpness_2_count"].item() == 70_000


def test_without_smoothing_only_the_targets_probability_is_read() -> None:
    model = copy.copy(HALF_SHARP)
    model.logits = HALF_SHARP.logits.clone()
    model.logits[..., 9] = -math.inf  # no target: a sum over the vocabulary would be infinite, times 0
    for reduce in (True, False):
        loss = PooledCrossEntropyCriterion(TASK, False, 0.0)(model, SAMPLE, reduce)[0]
        assert loss.isfinite().all() and loss.shape == (() if reduce else (6, 1))


def test_means_are_over_all_workers_and_plain_floats() -> None:
    criterion = PooledCrossEntropyCriterion(TASK, False, 0.0)
    logs = [criterion(HALF_SHARP, SAMPLE)[2], criterion(HALF_SHARP, SAMPLE)[2]]
    logs[1]["sharpness_2_sum"], logs[1]["sharpness_2_count"] = torch.tensor(6.0), torch.tensor(8)
    with metrics.aggregate(new_root=True) as found:
        PooledCrossEntropyCriterion.reduce_metrics(logs)
    values = found.get_smoothed_values()
    assert values["sharpness_2"] == pytest.approx(0.74)
    nll = HALF_SHARP.logits.log_softmax(-1)
    expected = -sum(nll[0, i, t].item() for i, t in enumerate([4, 5, 2])) - nll[1, 0, 6].item() - nll[1, 1, 2].item()
    assert values["nll_loss"] == pytest.approx(expected / 5 / math.log(2), abs=1e-3)
    assert all(type(meter.avg) is float for key, meter in found.items() if hasattr(meter, "avg") and key != "ppl")


# Training warns when a scorer rates all vectors alike.


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

"""The loss of language models, by hand, and what is logged of it."""

import copy
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.logging import metrics
from refusals import refused
from small_language_models import PAD, SPACE, small, texts

from pyramidions.nn import LanguageModel
from pyramidions.nn.boundaries import GumbelBoundaries, Segmentation
from pyramidions.plugin.criterions.boundary_cross_entropy import BoundaryCrossEntropyCriterion

TASK = SimpleNamespace(
    model_does="predicts characters", target_dictionary=SimpleNamespace(pad=lambda: PAD, indices={"▁": SPACE})
)


class Model:
    """A language model as fairseq calls it; its boundaries may be replaced."""

    def __init__(self, core: LanguageModel, boundaries: list[list[int]] | None = None) -> None:
        self.core = core
        self.boundaries = boundaries

    def __call__(self, src_tokens: torch.Tensor, **unused: Any) -> tuple[torch.Tensor, dict[str, Any]]:
        found = self.core.features(src_tokens)
        segmentations = found.segmentations
        if self.boundaries is not None:
            given = torch.tensor(self.boundaries).float()
            segmentations = (Segmentation(given, None, src_tokens.eq(PAD)),)
        return self.core.logits(found.x), {"segmentations": segmentations}


def batch(tokens: torch.Tensor, **more: Any) -> dict[str, Any]:
    target = torch.cat([tokens[:, 1:], tokens.new_full((len(tokens), 1), PAD)], dim=1)
    return {"net_input": {"src_tokens": tokens}, "target": target, "ntokens": int((target != PAD).sum()), **more}


def criterion(weight: float = 1.0, sentence_avg: bool = False) -> BoundaryCrossEntropyCriterion:
    return BoundaryCrossEntropyCriterion(TASK, weight, sentence_avg)


def logged(*logs: dict[str, Any]) -> dict[str, float]:
    with metrics.aggregate() as found:
        BoundaryCrossEntropyCriterion.reduce_metrics(list(logs))
    return dict(found.get_smoothed_values())


def test_without_anything_to_learn_boundaries_from_the_loss_is_cross_entropy() -> None:
    for kind in ("vanilla", "whitespace"):
        model, sample = Model(small(kind)), batch(texts(9, 5))
        loss, size, log = criterion()(model, sample)
        logits = model(**sample["net_input"])[0]
        expected = F.cross_entropy(logits.flatten(0, 1), sample["target"].flatten(), ignore_index=PAD, reduction="sum")
        torch.testing.assert_close(loss, expected)
        assert size == 8 + 4 and criterion(sentence_avg=True)(model, sample)[1] == 2
        assert "boundary_loss" not in log


def test_the_prior_of_gumbel_is_added_for_each_text() -> None:
    core, sample = small("gumbel"), batch(texts(9, 5))
    (kind,) = core.boundaries
    assert isinstance(kind, GumbelBoundaries)
    (found,) = core.features(sample["net_input"]["src_tokens"]).segmentations
    prior = kind.loss(found)
    assert prior is not None
    for weight in (0.0, 0.5):
        loss, _, log = criterion(weight)(Model(core), sample)
        torch.testing.assert_close(log["boundary_loss"], prior.sum().detach())
        torch.testing.assert_close(loss.detach(), log["nll_loss"] + weight * prior.sum().detach())


def test_unigram_learns_from_the_boundaries_of_the_batch() -> None:
    core, tokens = small("unigram"), texts(9, 5)
    marked = tokens == SPACE
    _, _, log = criterion()(Model(core), batch(tokens, boundaries=marked))
    (found,) = core.features(tokens).segmentations
    each = F.binary_cross_entropy_with_logits(found.logits, marked.float(), reduction="none")
    torch.testing.assert_close(log["boundary_loss"], each[tokens != PAD].sum().detach())
    with refused("unigram learns from the ends of pieces"):
        criterion()(Model(core), batch(tokens))


def test_entropy_learns_from_its_own_predictions() -> None:
    core, tokens = small("entropy"), texts(9, 9)
    _, _, log = criterion()(Model(core), batch(tokens))
    shares = core(tokens).softmax(-1)
    entropy = -(shares * shares.log()).sum(-1)
    marked = torch.tensor(
        [[all(row[t] > row[t - back] for back in (1, 2) if back <= t) for t in range(9)] for row in entropy]
    )
    assert marked[:, 0].all()
    (found,) = core.features(tokens).segmentations
    expected = F.binary_cross_entropy_with_logits(found.logits, marked.float(), reduction="sum")
    torch.testing.assert_close(log["boundary_loss"], expected.detach())


def test_bits_and_factors_are_counted_by_hand() -> None:
    tokens = torch.tensor([[5, SPACE, 6, 7, SPACE, 8], [5, 6, 7, 8, PAD, PAD]])
    model = Model(small("whitespace"), [[0, 1, 0, 1, 1, 0], [0, 0, 0, 1, 0, 0]])
    _, _, log = criterion()(model, batch(tokens))
    values = logged(log)
    # 10 characters in 4 segments; both rows have room for 6 characters, and for 3 segments behind the null group.
    assert values["shortening_factor"] == 2.5 and values["shortening_of_longest"] == 1.5
    # Two spaces, four boundaries, two of them at spaces.
    assert values["spaces_f1"] == pytest.approx(2 * 2 / (4 + 2), abs=1e-4)
    assert values["bpc"] == pytest.approx(log["nll_loss"].item() / 8 / math.log(2), abs=1e-4)
    assert values["loss"] == pytest.approx(values["bpc"], abs=1e-3)
    # Of two batches all is summed before it is divided.
    other = Model(small("whitespace"), [[1, 1, 1, 1]])
    _, _, second = criterion()(other, batch(torch.tensor([[5, 5, 5, 5]])))
    both = logged(log, second)
    assert both["shortening_factor"] == 14 / 8 and both["shortening_of_longest"] == pytest.approx(16 / 13, abs=1e-3)


def test_agreement_with_what_supervises_is_logged() -> None:
    core, tokens = small("unigram"), torch.full((1, 6), 5)
    torch.nn.init.zeros_(core.boundaries[0].predictor.fc2.weight)
    torch.nn.init.constant_(core.boundaries[0].predictor.fc2.bias, 9.0)
    marked = torch.tensor([[1, 0, 0, 1, 0, 1]])
    values = logged(criterion()(Model(core), batch(tokens, boundaries=marked))[2])
    assert values["targets_f1"] == pytest.approx(2 * 3 / (6 + 3), abs=1e-4)
    # Boundaries, but no spaces.
    assert values["spaces_f1"] == 0 and values["shortening_factor"] == 1


def test_texts_without_any_boundary_have_no_factor_and_finite_values() -> None:
    core = small("whitespace")
    for weight in core.output.parameters():
        torch.nn.init.zeros_(weight)
    values = logged(criterion()(Model(core), batch(torch.full((2, 6), 5)))[2])
    assert "shortening_factor" not in values and values["shortening_of_longest"] == 6
    assert all(math.isfinite(value) for value in values.values())
    # A uniform model scores the logarithm of the vocabulary.
    assert values["bpc"] == pytest.approx(math.log2(12), abs=1e-4)


def test_an_hourglass_within_another_has_factors_of_its_own() -> None:
    tokens = torch.tensor([[5, SPACE, 6, SPACE, 7, SPACE, 8]])
    values = logged(criterion()(Model(small("nested")), batch(tokens))[2])
    # Three words; the null group and these in twos.
    assert values["shortening_factor"] == pytest.approx(7 / 3, abs=1e-3) and values["shortening_factor_2"] == 2


def test_logs_of_workers_can_be_summed() -> None:
    model, sample = Model(small("gumbel")), batch(texts(9, 5))
    log = criterion()(model, sample)[2]
    summed = {key: value + copy.copy(value) for key, value in log.items()}
    assert logged(summed) == logged(log, log)
    assert BoundaryCrossEntropyCriterion.logging_outputs_can_be_summed()


def test_other_models_are_refused() -> None:
    class Other:
        def __call__(self, **unused: Any) -> tuple[torch.Tensor, dict[str, Any]]:
            return torch.zeros(2, 9, 12), {"attn": None}

    with refused("--criterion boundary_cross_entropy is for models of --arch hourglass_"):
        criterion()(Other(), batch(texts(9, 5)))

"""Scorers that are scaled on documents."""

from pathlib import Path
from typing import Any

import pytest
import torch
from small_pretrained import model_of, save
from torch import Tensor

from pyramidions.nn.sequence import Sequence
from pyramidions.pretrained.calibration import calibrate
from pyramidions.pretrained.importing import import_model
from pyramidions.pretrained.saved_model import SavedModel

TEXTS = ["Bees fly fast over roses and back, twice a day.", "A rose is red.", "The fast bees of May."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save(model_of(name), tmp_path_factory.mktemp(name)) for name in ("bart", "pegasus")}


def imported(folder: Path, **changes: Any) -> SavedModel:
    return import_model(folder, changes={"pooling_lengths": "12,6", **changes}).model


def logits_of(model: SavedModel, number: str) -> Tensor:
    """Return the logits of all vectors that a scorer rates in the texts, one document a batch."""
    encoder, found = model.transformer.encoder, []
    scorer = encoder.poolers[number].scorer

    def collect(_: object, given: tuple[Sequence, object]) -> None:
        hidden = given[0].x if not hasattr(scorer, "dense") else torch.tanh(scorer.dense(given[0].x))
        found.append(scorer.linear(hidden)[0, :, 0])

    handle = scorer.register_forward_pre_hook(collect)
    for text in TEXTS:
        tokens = torch.tensor([model.tokenizer.framed(model.tokenizer.encode(text)[:38])])
        with torch.no_grad():
            encoder(tokens, tokens.eq(model.tokenizer.pad))
    handle.remove()
    return torch.cat(found)


@pytest.mark.parametrize(("family", "scorer"), [("bart", "nonlinear"), ("pegasus", "linear")])
def test_logits_of_every_scorer_have_mean_0_and_variance_2(folders: dict[str, Path], family: str, scorer: str) -> None:
    model = imported(folders[family], scorer=scorer)
    before = logits_of(model, "0")
    first, second = calibrate(model, TEXTS)
    assert (first.name, second.name) == ("poolers.0.scorer", "poolers.1.scorer")
    assert first.mean == pytest.approx(before.mean().item(), abs=1e-4)
    assert first.variance == pytest.approx(before.var(correction=0).item(), rel=1e-4)
    for number in ("0", "1"):
        logits = logits_of(model, number)
        assert logits.mean().item() == pytest.approx(0, abs=1e-4)
        assert logits.var(correction=0).item() == pytest.approx(2, rel=1e-4)


def test_the_order_of_scores_and_all_other_weights_stay(folders: dict[str, Path]) -> None:
    model = imported(folders["pegasus"])
    order = logits_of(model, "0").argsort()
    before = {name: value.clone() for name, value in model.transformer.state_dict().items()}
    calibrate(model, TEXTS)
    assert torch.equal(logits_of(model, "0").argsort(), order)
    changed = {name for name, value in model.transformer.state_dict().items() if not torch.equal(before[name], value)}
    assert changed == {f"encoder.poolers.{n}.scorer.linear.{part}" for n in (0, 1) for part in ("weight", "bias")}


def test_what_has_no_last_layer_is_left_alone_and_so_are_logits_that_do_not_vary(folders: dict[str, Path]) -> None:
    for changes in ({"scorer": "random"}, {"pooling": "mean"}):
        assert calibrate(imported(folders["bart"], **changes), TEXTS) == []
    model = imported(folders["bart"])
    weight = model.transformer.encoder.poolers["0"].scorer.linear.weight
    torch.nn.init.zeros_(weight)
    assert [scorer.name for scorer in calibrate(model, TEXTS)] == ["poolers.1.scorer"] and not weight.any()

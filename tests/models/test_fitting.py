"""What weights must have to fit a model."""

import pytest
import torch
from torch import Tensor, nn

from pyramidions.models.fitting import refuse_architecture
from pyramidions.nn.scorer import LinearScorer, RandomScorer


class Pools(nn.Module):
    """A layer, and scorers of three poolings, of which one has no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.first, self.second, self.third = LinearScorer(3), LinearScorer(3), RandomScorer()


def without(model: nn.Module, *names: str) -> dict[str, Tensor]:
    """Return zeros for a model's weights, but for some of them."""
    given = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    assert given.keys() >= {*names}
    return {name: weight for name, weight in given.items() if name not in names}


def names_of(model: nn.Module, scorer: str) -> list[str]:
    return [name for name in model.state_dict() if name.startswith(f"{scorer}.")]


def test_a_scorer_that_weights_lack_keeps_its_own_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    model = Pools()
    own = {name: weight.clone() for name, weight in model.state_dict().items()}
    given = without(model, *names_of(model, "second"))
    refuse_architecture(given, model, may_add_parts=True)
    model.load_state_dict(given)
    after = model.state_dict()
    assert all(torch.equal(after[name], own[name]) for name in names_of(model, "second"))
    assert all(not after[name].any() for name in (*names_of(model, "first"), *names_of(model, "layer")))
    assert caplog.messages == ["The checkpoint lacks these parts, which begin at random: second."]


def test_nothing_is_said_where_all_scorers_are_there(caplog: pytest.LogCaptureFixture) -> None:
    refuse_architecture(without(Pools()), Pools(), may_add_parts=True)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("missing", "may_add_parts"),
    [(["layer.weight"], True), (["first.linear.bias"], True), (["first.linear.weight", "first.linear.bias"], False)],
    ids=["no scorer", "a part of one", "not allowed"],
)
def test_whatever_else_weights_lack_is_refused(missing: list[str], may_add_parts: bool) -> None:
    model = Pools()
    with pytest.raises(ValueError, match=missing[0]):
        refuse_architecture(without(model, *missing), model, may_add_parts=may_add_parts)

"""What every selector promises, a new kind by being registered, and a pointer beside its equations."""

import pytest
import torch
from small_parts import DIM, SETTING, vectors
from torch import Tensor, nn

from pyramidions.nn.reduced import in_bfloat16, in_int8
from pyramidions.nn.selector import SELECTOR, PointerSelector, Selector, draw

kinds = pytest.mark.parametrize("kind", SELECTOR.names)
KNOWN = torch.arange(6) < torch.tensor([[6], [3], [0]])


def make(kind: str, seed: int = 0) -> Selector:
    torch.manual_seed(seed)
    made = SELECTOR.build(kind, {}, **SETTING)
    for weight in made.parameters():
        weight.data += torch.randn_like(weight)
    return made.eval()


@kinds
@torch.no_grad()
def test_each_unit_has_a_score_but_unknown_ones(kind: str) -> None:
    scores = make(kind)(vectors(3, 6, DIM), KNOWN)
    assert scores.shape == (3, 6) and scores[~KNOWN].eq(-torch.inf).all()
    # A selection is never empty where something is known.
    assert scores.isfinite().any(dim=1).tolist() == [True, True, False]


@kinds
@torch.no_grad()
def test_what_is_unknown_and_other_documents_change_nothing(kind: str) -> None:
    selector, x = make(kind), vectors(3, 6, DIM)
    scores = selector(x.masked_fill(~KNOWN[..., None], torch.nan), KNOWN)
    for row, number in enumerate((6, 3)):
        alone = selector(x[row : row + 1, :number], KNOWN[row : row + 1, :number])
        torch.testing.assert_close(scores[row, :number], alone[0])


@kinds
@torch.no_grad()
def test_reduced_precision_decides_in_float32(kind: str) -> None:
    for seed in range(4):
        model, x = nn.ModuleList([make(kind, seed)]), vectors(3, 6, DIM, seed=seed)
        for reduce in (in_bfloat16, in_int8):
            # There must be a layer that int8 can replace.
            reduced = reduce(nn.ModuleList([*model, nn.Linear(DIM, 64)]))
            torch.testing.assert_close(reduced[0](x, KNOWN), model[0](x, KNOWN))


def selector(max_units: int = 60, seed: int = 0) -> PointerSelector:
    torch.manual_seed(seed)
    made = PointerSelector(DIM, max_units).double()
    for weight in made.parameters():
        weight.data.normal_()
    return made


def units(number: int, seed: int = 1) -> Tensor:
    return vectors(1, number, DIM, seed=seed).double()


def attended(attention: torch.nn.Module, h: list[Tensor], z: Tensor) -> list[Tensor]:
    """Return v · tanh(W_k h + W_q z) for each unit."""
    (key, query, bias, score) = (
        attention.key.weight,
        attention.query.weight,
        attention.query.bias,
        attention.score.weight,
    )
    return [score[0] @ torch.tanh(key @ each + query @ z + bias) for each in h]


@torch.no_grad()
def naive(made: PointerSelector, x: Tensor) -> tuple[list[int], list[list[float]]]:
    """Return what is chosen of one document, and the probabilities of all units and the end, step by step."""
    h = [*x, made.end]
    state = torch.zeros(1, DIM, dtype=x.dtype), torch.zeros(1, DIM, dtype=x.dtype)
    read, chosen, probabilities = made.start, [], []
    while not chosen or chosen[-1] != len(x):
        state = made.recurrence(read[None], state)
        z = state[0][0]
        weights = torch.stack(attended(made.glimpse, h, z)).softmax(0)
        e = sum(weight * (made.glimpse.key.weight @ each) for weight, each in zip(weights, h, strict=True))
        scores = torch.stack(attended(made.point, h, e))
        scores[chosen] = -torch.inf
        probabilities.append(scores.softmax(0).tolist())
        ends = (probabilities[-1][-1] >= made.stop_threshold and chosen) or len(chosen) == len(x)
        chosen.append(len(x) if ends else int(scores[:-1].argmax()))
        read = h[chosen[-1]]
    return chosen, probabilities


@torch.no_grad()
def test_each_step_is_that_of_the_equations() -> None:
    lengths = set()
    for seed in range(8):
        made, x = selector(seed=seed), units(5, seed)
        chosen, probabilities = naive(made, x[0])
        steps = made.steps(x, torch.ones(1, 5, dtype=torch.bool), made.best)
        assert steps.chosen[0].tolist() == chosen and steps.real.all()
        torch.testing.assert_close(steps.log_probs[0].exp(), torch.tensor(probabilities, dtype=torch.float64))
        lengths.add(len(chosen))
        # Scores are in the order of choice, and what is not chosen has none.
        scores = made(x, torch.ones(1, 5, dtype=torch.bool))[0]
        assert scores.argsort(descending=True, stable=True)[: len(chosen) - 1].tolist() == chosen[:-1]
        assert scores.isfinite().sum() == len(chosen) - 1
    assert len(lengths) > 2


@torch.no_grad()
def test_what_must_not_be_selected_is_not_and_the_most_units_end_it() -> None:
    x = units(9)
    known = torch.ones(1, 9, dtype=torch.bool).index_fill(1, torch.tensor([2, 4]), False)
    for seed in range(8):
        assert selector(seed=seed)(x, known)[0, [2, 4]].eq(-torch.inf).all()
        made = selector(2, seed)
        steps = made.steps(x, known, made.best)
        assert steps.chosen.size(1) <= 3 and steps.chosen[0, -1] == 9


@torch.no_grad()
def test_selections_are_drawn_with_their_probabilities() -> None:
    made, x = selector(), units(2).expand(20_000, -1, -1)
    torch.manual_seed(0)
    steps = made.steps(x, torch.ones(20_000, 2, dtype=torch.bool), draw)
    firsts = torch.stack([(steps.chosen[:, 0] == unit).double().mean() for unit in range(3)])
    torch.testing.assert_close(firsts, steps.log_probs[0, 0].exp(), atol=0.015, rtol=0)

"""What every selector promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, vectors
from torch import nn

from pyramidions.nn.reduced import in_bfloat16, in_int8
from pyramidions.nn.selector import SELECTOR, Selector

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

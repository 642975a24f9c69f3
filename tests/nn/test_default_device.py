"""Where a model computes, its inputs say, and not torch's default device."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from covering import covering
from torch import Tensor
from whole_models import PAD, batch, combinations, tiny

from pyramidions.nn import BeamSearch
from pyramidions.nn.functional.attention import scaled_dot_product_attention

LENGTHS = (24, 7, 13)


def both(compute: Callable[[], list[Tensor]]) -> None:
    """Compare what is computed with what comes out where all that names no device is on another one."""
    found = []
    for default in ("cpu", "meta"):
        torch.manual_seed(2)
        with torch.device(default):
            found.append(compute())
    assert len(found[0]) == len(found[1])
    for expected, ours in zip(*found, strict=True):
        assert ours.equal(expected)


@pytest.mark.parametrize(("attention", "pooling", "scorer"), covering(combinations(), strength=1))
def test_a_step_does_not_depend_on_it(attention: str, pooling: str, scorer: str) -> None:
    dropouts = {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}
    model = tiny(attention, pooling, scorer, **dropouts, decoder_positions="sinusoidal").train()
    source, target = batch(*LENGTHS), batch(5, 3, 4, seed=1)

    def step() -> list[Tensor]:
        loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten(), ignore_index=PAD)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        return [loss, *gradients]

    both(step)


@torch.no_grad()
def test_decoding_does_not_depend_on_it() -> None:
    model, source = tiny(pooling="soft_topk").eval(), batch(*LENGTHS)
    search = BeamSearch(beam=2, min_len=2, max_len=4, no_repeat_ngram=2)
    both(lambda: [hypothesis.tokens for found in search(model, source) for hypothesis in found])


def test_causal_attention_with_dropout_does_not_depend_on_it() -> None:
    q, k, v = torch.randn(3, 2, 1, 5, 4)
    both(lambda: [scaled_dot_product_attention(q, k, v, dropout=0.2, is_causal=True)])

"""Whole models with a recurrence beside the feed-forward parts of their layers."""

from typing import Any

import pytest
import torch
from whole_models import batch, documents, encode, tiny

from pyramidions.nn import Transformer
from pyramidions.nn.recurrence import Recurrence
from pyramidions.nn.stack import STACK

LAYERS = 5  # three of the encoder and two of the decoder


def model(attention: str = "full", pooling: str = "none", **overrides: Any) -> Transformer:
    """Return a model whose recurrences matter from the start."""
    made = tiny(attention, pooling, **{"recurrence": "sru(dim=3)", **overrides}).eval()
    with torch.no_grad():
        for part in made.modules():
            if isinstance(part, Recurrence):
                for weight in part.parameters():
                    weight.add_(torch.randn_like(weight), alpha=0.5)
    return made


def recurring(of: Transformer) -> list[bool]:
    layers = [*of.encoder.layers, *of.decoder.layers]
    return [any(isinstance(part, Recurrence) for part in layer.modules()) for layer in layers]


def test_every_layer_has_one_or_those_that_are_named() -> None:
    assert recurring(model()) == [True] * LAYERS
    assert recurring(tiny()) == [False] * LAYERS
    assert recurring(model(recurrence="none | sru | none | none | sru")) == [False, True, False, False, True]
    first, second = (
        layer.sublayers["feed_forward"].beside
        for part in [model(recurrence="none | sru(dim=7) | none | none | sru(layers=2)")]
        for layer in (part.encoder.layers[1], part.decoder.layers[1])
    )
    assert (first.down.out_features, len(first.units)) == (7, 1)
    assert (second.down.out_features, len(second.units)) == (32, 2)


def test_without_it_a_seed_gives_the_weights_that_it_gave() -> None:
    before, after = tiny().state_dict(), tiny(recurrence="none | none | none | none | sru").state_dict()
    assert all(after[name].equal(weight) for name, weight in before.items())
    added = after.keys() - before.keys()
    assert added and all(name.startswith("decoder.layers.1.sublayers.feed_forward.beside.") for name in added)


@torch.no_grad()
@pytest.mark.parametrize(
    ("stack", "attention", "pooling"),
    [
        ("plain", "sliding_window", "markers"),
        ("recomputing", "full", "none"),
        ("reversible", "blockwise", "soft_topk"),
        ("reversible", "blockwise", "funnel"),
    ],
)
def test_a_document_alone_equals_itself_in_a_batch(stack: str, attention: str, pooling: str) -> None:
    whole, tokens = model(attention, pooling, stack=stack, normalize_before=True), batch(23, 9, 1)
    together = documents(*encode(whole, tokens))
    for row, length in enumerate((23, 9, 1)):
        (alone,) = documents(*encode(whole, tokens[row : row + 1, :length]))
        torch.testing.assert_close(together[row], alone, rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("stack", STACK.names)
def test_it_begins_anew_where_the_blocks_of_its_layer_do(stack: str) -> None:
    whole = model("blockwise(block_size=8)", stack=stack, normalize_before=True)
    tokens = batch(24)
    changed = tokens.clone()
    changed[:, 9] = 7 + (tokens[:, 9] == 7)
    before, after = (encode(whole, each)[0] for each in (tokens, changed))
    # Blocks of eight: the second alone has changed, from its second vector on.
    moved = (before - after).abs().sum(dim=-1)[0] > 1e-6
    assert moved[8:16].all() and not moved[:8].any() and not moved[16:].any()

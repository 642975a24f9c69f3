"""A captured step is the step it was captured from, at any length, to the last bit."""

import copy
import pickle
from typing import Any

import pytest
import torch
from tiny_presets import marked_documents, tiny_model

from pyramidions.models import PRESETS
from pyramidions.nn import BeamSearch, Hypothesis, Transformer
from pyramidions.nn.reduced import in_bfloat16, in_int8

PAD = 1
#: presets whose decoders differ in their steps: attention to the text and to what is written, products, outputs, stacks
OTHER_STEPS = (
    *("vanilla", "pyramidion_pointer", "discourse_pointer", "lsh_hepos", "look_back", "reformer", "hmnet", "scaling"),
    *("toy_terraformer", "terraformer"),
)
NIGHTLY = pytest.mark.nightly


def written(model: Transformer, patience: int, beam: int = 3) -> list[Hypothesis]:
    """Return the best summary of each document, by a search that captures a step after so many."""
    model.decoder.captured_steps.patience = patience
    return [best for best, *_ in BeamSearch(beam, 20, 30)(model, marked_documents())]


def graphs(model: Transformer) -> int:
    return len(model.decoder.captured_steps.graphs)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in OTHER_STEPS else NIGHTLY) for name in PRESETS])
def test_every_preset_writes_the_same(name: str) -> None:
    model = tiny_model(name)
    expected = written(model, 1000)
    assert not graphs(model)
    found = written(model, 3)
    assert bool(graphs(model)) == all(layer.steps_alike for layer in model.decoder.layers)
    for mine, other in zip(found, expected, strict=True):
        assert torch.equal(mine.tokens, other.tokens) and torch.equal(mine.token_scores, other.token_scores)
    # The second time, all steps but the first are replayed.
    again = written(model, 3)
    assert [each.tokens.tolist() for each in again] == [each.tokens.tolist() for each in expected]


def test_only_kinds_that_hash_or_look_back_a_window_take_other_steps() -> None:
    for name, alike in (("deep_pyramidion", True), ("led", True), ("pointer_generator", True), ("scaling", True)):
        assert all(layer.steps_alike for layer in tiny_model(name).decoder.layers) == alike
    for name in ("terraformer", "discourse_pointer"):
        assert not all(layer.steps_alike for layer in tiny_model(name).decoder.layers)


@pytest.mark.parametrize(("name", "reduced"), [("deep_pyramidion", in_bfloat16), ("scaling", in_int8)])
def test_steps_with_fewer_bits_are_captured(name: str, reduced: Any) -> None:
    model = reduced(tiny_model(name))
    expected, found = (written(model, patience) for patience in (1000, 3))
    assert graphs(model)
    for mine, other in zip(found, expected, strict=True):
        assert torch.equal(mine.tokens, other.tokens) and torch.equal(mine.token_scores, other.token_scores)


def test_a_captured_step_reads_the_weights_of_today() -> None:
    model = tiny_model("scaling")
    written(model, 3)
    before = graphs(model)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    found = written(model, 3)
    assert graphs(model) == before
    fresh = tiny_model("scaling")
    fresh.load_state_dict(model.state_dict())
    expected = written(fresh, 1000)
    assert [each.tokens.tolist() for each in found] == [each.tokens.tolist() for each in expected]
    # Other parameters are captured anew.
    model.load_state_dict(tiny_model("scaling").state_dict(), assign=True)
    found, expected = written(model, 3), written(tiny_model("scaling"), 1000)
    assert [each.tokens.tolist() for each in found] == [each.tokens.tolist() for each in expected]


def test_copies_and_pickles_know_no_captured_steps() -> None:
    model = tiny_model("pyramidion")
    written(model, 3)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert graphs(model) and not graphs(other)


def test_steps_with_gradients_or_dropout_are_not_captured() -> None:
    model = tiny_model("pyramidion")
    model.decoder.captured_steps.patience = 0
    memories = model.encoder(marked_documents(), marked_documents().eq(PAD)).memories
    cache = model.decoder.new_cache()
    for _ in range(4):
        logits = model.decoder(torch.full((3, 1), 7), memories, cache)
    assert logits.requires_grad and not graphs(model)
    with torch.no_grad():
        cache = model.train().decoder.new_cache()
        for _ in range(4):
            model.decoder(torch.full((3, 1), 7), memories, cache)
    assert not graphs(model)

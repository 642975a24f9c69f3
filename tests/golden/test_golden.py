"""Every preset and every file of configs/ is the model that it was when golden.json.xz was recorded (make.py)."""

import json
import lzma
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from golden_models import cost, entries, fields_of, outputs, shapes, small

GOLDEN = json.loads(lzma.decompress((Path(__file__).parent / "golden.json.xz").read_bytes()))
MODELS = GOLDEN["models"]
NAMES = {key: name for name, key in reversed(GOLDEN["names"].items())}  # one for each model
#: one name for all models with the same weights
SHAPED = {json.dumps(MODELS[key]["shapes"]): name for key, name in NAMES.items()}.values()
ENTRIES = entries()


def choices(key: str) -> set[Any]:
    """Return which kinds of parts, without their options, and which switches a model's fields name."""
    kind, fields, _ = json.loads(key)
    named = {
        (kind, name, part.strip())
        for name, value in fields.items()
        if isinstance(value, str) and name not in ("layers", "memories", "pooling_lengths")
        for part in re.split(r"[|;]", re.sub(r"\(.*?\)", "", value))
    }
    return named | {(kind, name) for name, value in fields.items() if isinstance(value, bool)}


def weights(key: str) -> int:
    return sum(map(math.prod, MODELS[key]["shapes"].values()))


def one_a_family() -> Iterator[Any]:
    """Yield each model; nightly are those whose kinds of parts all are in smaller ones."""
    met: set[Any] = set()
    for key, name in sorted(NAMES.items(), key=lambda model: weights(model[0])):
        new, met = choices(key) - met, met | choices(key)
        yield pytest.param(name, marks=() if new else pytest.mark.nightly)


def test_no_preset_or_file_has_come_or_gone() -> None:
    assert ENTRIES.keys() == GOLDEN["names"].keys()


@pytest.mark.parametrize("name", ENTRIES)
def test_a_preset_or_file_has_the_same_fields_and_weights(name: str) -> None:
    entry = ENTRIES[name]()
    key = json.dumps([type(entry.config).__name__, fields_of(entry.config), entry.lengths], sort_keys=True)
    assert key == GOLDEN["names"][name]
    assert fields_of(small(entry)[0]) == MODELS[key]["small"]["fields"]
    if name in SHAPED:
        assert shapes(entry) == MODELS[key]["shapes"]


@pytest.mark.parametrize("name", list(one_a_family()))
def test_a_model_computes_the_same(name: str) -> None:
    config, lengths = small(ENTRIES[name]())
    logits = torch.tensor(outputs(config, lengths))
    expected = torch.tensor(MODELS[GOLDEN["names"][name]]["small"]["logits"])
    if "lsh(" in str(getattr(config, "self_attention", "")) and "reversible" in str(config.stack):
        # Streams of many layers meet random hashes: where rounding moves a vector to another bucket, what reads it
        # differs. Processors round differently.
        assert logits.isclose(expected, rtol=1e-5, atol=1e-5).float().mean() > 0.3
    else:
        # Processors round differently: by 3e-5 in 14 layers.
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES.values())
def test_a_model_costs_the_same(name: str) -> None:
    assert json.loads(json.dumps(cost(ENTRIES[name]()))) == MODELS[GOLDEN["names"][name]]["cost"]

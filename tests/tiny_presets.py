"""Presets with sizes at which a pass takes milliseconds; layers and kinds are the preset's own."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from covering import covering

from pyramidions.models import PRESETS, PyramidionConfig

WIDTH, HIDDEN, HEADS = 16, 32, 4


def tiny_fields(name: str) -> dict[str, Any]:
    """Return the fields of a preset that is 16 wide and has at most 14 layers."""
    fields = {**PRESETS[name], "embed_dim": WIDTH, "ffn_embed_dim": HIDDEN, "num_heads": HEADS}
    if "sparse" in fields.get("feed_forward", ""):
        fields["feed_forward"] = "sparse(block_size=8)"
    for name in {"decoder_projections", "cross_projections"} & fields.keys():
        # without options: as many modules as heads
        fields[name] = fields[name].partition("(")[0]
    return fields | {name: min(fields[name], 14) for name in ("encoder_layers", "decoder_layers") if name in fields}


def covering_presets(names: Iterable[str] = PRESETS) -> list[Any]:
    """Return presets for `parametrize`, marked where all of their kinds of parts are in those before."""
    defaults, names = vars(PyramidionConfig()), list(names)
    axes = [name for name, value in defaults.items() if isinstance(value, str) and not name.endswith("_args")]
    # Without options
    kinds = [[re.sub(r"\(.*?\)", "", PRESETS[name].get(axis, defaults[axis])) for axis in axes] for name in names]
    return [pytest.param(name, marks=one.marks) for name, one in zip(names, covering(kinds, strength=1), strict=True)]

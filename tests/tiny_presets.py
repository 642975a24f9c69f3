"""Presets with sizes at which a pass takes milliseconds; layers and kinds are the preset's own."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from covering import covering
from torch import Tensor

from pyramidions.models import PRESETS, PyramidionConfig, build, preset
from pyramidions.models.config import config_as
from pyramidions.nn import Transformer
from pyramidions.runs.measure import Lengths, shrink

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


def tiny_model(name: str, **changes: object) -> Transformer:
    """Build a preset of `tiny_fields` that reads 600 tokens of 100, in evaluation mode."""
    torch.manual_seed(0)
    fields = {**tiny_fields(name), "max_source_positions": 600, **changes}
    return build(config_as(PyramidionConfig, fields), 100, 1, marker_idx=4).eval()


def marked_documents() -> Tensor:
    """Return three documents of 64 tokens with markers, the second one shorter."""
    tokens = torch.randint(5, 100, (3, 64), generator=torch.Generator().manual_seed(1))
    tokens[:, ::15] = 4
    tokens[1, 50:] = 1
    return tokens


#: in training
DROPOUTS = {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}


def shrunk(name: str, **overrides: Any) -> Transformer:
    """Build a preset without dropout that reads 128 tokens of 60, on the CPU and in training mode."""
    config, _ = shrink(preset(name, max_source_positions=2048), Lengths(2048, 112))
    torch.manual_seed(1)
    fields = {**vars(config), "max_source_positions": 128, **dict.fromkeys(DROPOUTS, 0.0), **overrides}
    return build(preset(name, **fields), 60, marker_idx=4).train()


def covering_presets(names: Iterable[str] = PRESETS) -> list[Any]:
    """Return presets for `parametrize`, marked where all of their kinds of parts are in those before."""
    defaults, names = vars(PyramidionConfig()), list(names)
    axes = [name for name, value in defaults.items() if isinstance(value, str) and not name.endswith("_args")]
    # Without options
    kinds = [[re.sub(r"\(.*?\)", "", PRESETS[name].get(axis, defaults[axis])) for axis in axes] for name in names]
    return [pytest.param(name, marks=one.marks) for name, one in zip(names, covering(kinds, strength=1), strict=True)]

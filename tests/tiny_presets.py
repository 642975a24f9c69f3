"""Presets with sizes at which a pass takes milliseconds; layers and kinds are the preset's own."""

from typing import Any

from pyramidions.models import PRESETS

WIDTH, HIDDEN, HEADS = 16, 32, 4


def tiny_fields(name: str) -> dict[str, Any]:
    """Return the fields of a preset that is 16 wide and has at most 12 layers."""
    fields = {**PRESETS[name], "embed_dim": WIDTH, "ffn_embed_dim": HIDDEN, "num_heads": HEADS}
    if fields.get("feed_forward") == "sparse":
        fields["feed_forward_args"] = '{"block_size": 8}'
    # As many modules as heads
    fields |= {name: "{}" for name in ("decoder_projections_args", "cross_projections_args") if name in fields}
    return fields | {name: min(fields[name], 12) for name in ("encoder_layers", "decoder_layers") if name in fields}

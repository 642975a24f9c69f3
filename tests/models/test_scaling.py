"""Models with all lengths and widths divided."""

from typing import Any

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models import PyramidionConfig, preset
from pyramidions.models.same_parts import changed_part
from pyramidions.models.scaling import scaled_field
from pyramidions.models.spec import Part


@for_each(
    ("name", "value", "expected"),
    [
        ("embed_dim", 512, 64),
        ("max_source_positions", 8192, 2048),
        ("decoding_min_length", 0, 0),
        ("pooling_lengths", "None,2048,512,None", "None,512,128,None"),
        ("pooling_lengths", "[2048, 512]", "512,128"),
        ("self_attention", "blockwise(block_size=512) | full", "blockwise(block_size=128) | full"),
        ("self_attention", "lsh(bucket_size=64, num_hashes=4)", "lsh(bucket_size=16, num_hashes=4)"),
        # These are no lengths of a text.
        ("num_heads", 8, 8),
        ("encoder_positions", "learned(length=16384)", "learned(length=16384)"),
        ("max_source_positions", "${task.max_source_positions}", "${task.max_source_positions}"),
        ("pooling_lengths", None, None),
        ("layernorm_embedding", True, True),
    ],
)
def test_lengths_are_divided_by_four_and_widths_by_eight(name: str, value: Any, expected: Any) -> None:
    assert scaled_field(PyramidionConfig, name, value, lengths=4, widths=8) == expected


def test_a_length_never_becomes_none() -> None:
    with pytest.raises(UserError, match="^`self_attention` must be at least 4 at this scale, but is 2.$"):
        scaled_field(PyramidionConfig, "self_attention", "sliding_window(window=2)", lengths=4, widths=8)


def test_a_config_is_changed_and_scaled_as_a_whole() -> None:
    deep = preset("deep_blockwise").replace(
        self_attention=Part("blockwise", {"block_size": 256}), pooling_lengths=(None, 2048, 512, None, None, None)
    )
    assert deep == preset(
        "deep_blockwise", self_attention="blockwise(block_size=256)", pooling_lengths="None,2048,512,None,None,None"
    )
    small = deep.scaled(lengths=4, widths=8)
    assert (small.embed_dim, small.ffn_embed_dim, small.encoder_layers) == (96, 384, 6)
    assert (small.self_attention, small.pooling_lengths) == ("blockwise(block_size=64)", "None,512,128,None,None,None")
    with pytest.raises(UserError, match="^The model has no field 'poling'; did you mean 'pooling'"):
        deep.replace(poling="mean")


def test_lengths_are_the_same_however_they_are_spelled() -> None:
    model = preset("pyramidion", pooling_lengths="[null, 512]")
    assert model.pooling_lengths == "None,512"
    assert changed_part({"pooling_lengths": "(None,512)"}, model) is None
    assert changed_part({"pooling_lengths": "None,256"}, model) == "pooling_lengths"

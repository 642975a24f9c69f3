"""Configs: their values, what weights mean in another one, and all lengths and widths divided."""

from typing import Any

import pytest

from pyramidions.base.notation import Part
from pyramidions.models import preset
from pyramidions.models.checkpoints import changed_part
from pyramidions.models.config import PyramidionConfig, config_as
from pyramidions.models.fields import scaled_field
from pyramidions.models.stages import parse_pooling_lengths


def test_lengths_are_read_by_layer() -> None:
    assert parse_pooling_lengths("None,2048,512,None,None,None", 6) == {1: 2048, 2: 512}
    assert parse_pooling_lengths(" none, 8 ", 2) == {1: 8}
    assert parse_pooling_lengths(None, 3) == {}


def test_a_whole_number_is_a_float_and_null_is_a_value_where_there_may_be_none() -> None:
    assert config_as(PyramidionConfig, {"dropout": 0, "pooling_lengths": None}).dropout == 0


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ({"self_attention": "full | lsh"}, {"self_attention": "full | lsh(num_hashes=2)"}, None),
        ({"self_attention": "full | lsh"}, {"self_attention": "lsh | full"}, "self_attention"),
        ({"self_attention": "full"}, {"self_attention": "full | full"}, None),
        ({"self_attention": "lsh(is_flat=True)"}, {"self_attention": "lsh"}, "self_attention"),
        ({"self_attention": "lsh(is_flat=False)"}, {"self_attention": "lsh"}, None),
        ({"recurrence": "sru(scaled=False)"}, {"recurrence": "sru"}, "recurrence"),
        ({"stack": "plain", "upsampling": None}, {"stack": "recomputing"}, None),
        ({"stack": "plain"}, {"stack": "reversible"}, "stack"),
        ({"pooling_lengths": "[None, 4]"}, {"pooling_lengths": "None,4"}, None),
        ({"pooling_lengths": "None,8"}, {"pooling_lengths": "None,4"}, "pooling_lengths"),
        (
            {"memories": "1,last", "cross_attention": "full; full"},
            {"memories": "1,last", "cross_attention": "full"},
            None,
        ),
    ],
)
def test_kinds_of_parts_are_compared_with_options_that_weights_depend_on(
    before: dict[str, Any], now: dict[str, Any], changed: str | None
) -> None:
    assert changed_part(before, config_as(PyramidionConfig, now)) == changed


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("embed_dim", 512, 64),
        ("max_source_positions", 8192, 2048),
        ("decoding_min_length", 0, 0),
        ("pooling_lengths", "[2048, null, 512]", "512,None,128"),
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

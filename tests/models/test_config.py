"""Configs: how fields are read, changed and scaled, and the files and presets that hold them."""

from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from pyramidions.base.notation import Part
from pyramidions.models import preset
from pyramidions.models.config import PyramidionConfig, config_as
from pyramidions.models.experiment import read_experiment, with_lengths
from pyramidions.models.fields import scaled_field
from pyramidions.models.fitting import changed_part
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
        (
            {"pooling": "mean", "pooling_lengths": "None,4", "max_source_positions": 16},
            {"pooling": "mean", "pooling_lengths": "None,4", "max_source_positions": 32},
            "max_source_positions",
        ),
        (
            {"pooling": "soft_topk", "pooling_lengths": "None,4", "max_source_positions": 16},
            {"pooling": "soft_topk", "pooling_lengths": "None,4", "max_source_positions": 32},
            None,
        ),
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


CONFIGS = Path(__file__).parents[2] / "configs"
ROW = str(CONFIGS / "table3" / "deep_pyramidion.yaml")


def test_a_file_is_named_after_its_table_and_a_preset_after_itself() -> None:
    assert read_experiment(ROW).name == "table3/deep_pyramidion"
    assert read_experiment(str(CONFIGS / "base.yaml")).name == "base"
    assert read_experiment("vanilla").name == "vanilla" and read_experiment("vanilla").run == {}


def test_overrides_are_composed_as_hydra_does() -> None:
    found = read_experiment(ROW, ("model.embed_dim=64", "task.max_source_positions=512"))
    assert found.model.embed_dim == 64 and found.max_source_positions == found.model.max_source_positions == 512


def test_any_number_of_modules_may_share_a_vocabulary_that_is_not_known_yet() -> None:
    overrides = ("model.output=multiplicative(modules=37)",)
    assert read_experiment("vanilla", overrides).model.output == "multiplicative(modules=37)"


def test_a_preset_takes_the_overrides_of_a_file() -> None:
    overrides = (
        *("model.embed_dim=64", "model.dropout=0", "model.normalize_before=true", "model.pooling_lengths=64,null"),
        *("model.self_attention=blockwise(block_size=8)", "task.max_source_positions=128"),
        "task.max_target_positions=16",
    )
    found = read_experiment("pyramidion", overrides)
    model = found.model
    assert (model.embed_dim, model.dropout, model.normalize_before) == (64, 0, True)
    assert (model.pooling_lengths, model.self_attention) == ("64,None", "blockwise(block_size=8)")
    assert (found.max_source_positions, model.max_source_positions, found.max_target_positions) == (128, 128, 16)
    assert model.encoder_layers == 2
    # As Hydra has a value that holds a comma.
    assert read_experiment("pyramidion", ('model.pooling_lengths="64,8"',)).model.pooling_lengths == "64,8"
    assert read_experiment("pyramidion", ("model.pooling_lengths=null",)).model.pooling_lengths is None


def test_a_preset_is_made_for_documents_of_any_length_and_a_file_says_its_longest() -> None:
    preset = with_lengths(read_experiment("vanilla"), 20_000, 2_000)
    assert preset.max_source_positions == preset.model.max_source_positions == 20_000
    assert preset.max_target_positions == 2_000
    row = read_experiment(ROW)
    for longest in (4096, 8192):
        file = with_lengths(row, longest, None)
        assert (file.max_source_positions, file.model.max_source_positions) == (longest, 8192)
    with refused("--source-tokens"):
        with_lengths(row, 8193, None)


def test_a_base_without_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("task: {}\n")
    with refused("`model`"):
        read_experiment(str(tmp_path / "base.yaml"))

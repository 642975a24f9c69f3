from pathlib import Path

import pytest
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.models.experiment import read_experiment, with_lengths

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


@pytest.mark.parametrize(
    ("config", "overrides", "named"),
    [
        ("nowhere.yaml", (), "'nowhere.yaml'"),
        ("vanilla", ("model.embed_dim=x",), "vanilla: `embed_dim` must be a whole number, but is 'x'."),
        ("vanilla", ("task.max_source_positions=1",), "vanilla: `max_source_positions`"),
        ("vanilla", ("optimization.lr=[1]",), "but is 'optimization.lr=[1]'."),
        (ROW, ("+model.ffn_dim=8",), "no field 'ffn_dim'; did you mean 'ffn_embed_dim'?"),
        (ROW, ("model.normalize_before=1",), "`normalize_before` must be True or False, but is 1."),
        # Files of one's own, by their text.
        ("hello: [\n", (), "row.yaml cannot be composed: "),
        ("a: &a\n  b: *a\n", (), "row.yaml cannot be composed: it refers to itself"),
        ("model: [1]\n", (), "row.yaml cannot be composed: In 'own/row': ConfigTypeError raised"),
        ("task: {max_source_positions: 1000000000000000}\n", (), "but is 1000000000000000."),
        ("task:\n  max_source_positions: ${nothing}\n", (), "row.yaml cannot be composed: Interpolation key 'nothing'"),
        ("\udcff\udcfe\udcff", (), "row.yaml cannot be composed: "),
    ],
)
def test_what_is_wrong_with_a_config_is_one_sentence(
    config: str, overrides: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    if "\n" in config or not config.isascii():
        (tmp_path / "own").mkdir()
        (tmp_path / "base.yaml").write_text((CONFIGS / "base.yaml").read_text())
        text = f"# @package _global_\n{config}".encode(errors="surrogateescape")
        (tmp_path / "own" / "row.yaml").write_bytes(text)
        config = str(tmp_path / "own" / "row.yaml")
    with pytest.raises(UserError) as error:
        read_experiment(config, overrides)
    assert named in str(error.value) and "\n" not in str(error.value)


def test_a_base_without_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("task: {}\n")
    with refused("`model`"):
        read_experiment(str(tmp_path / "base.yaml"))

from pathlib import Path

import pytest

from pyramidions.models.experiment import read_experiment

CONFIGS = Path(__file__).parents[2] / "configs"
ROW = str(CONFIGS / "table3" / "deep_pyramidion.yaml")


def test_a_file_is_named_after_its_table_and_a_preset_after_itself() -> None:
    assert read_experiment(ROW).name == "table3/deep_pyramidion"
    assert read_experiment(str(CONFIGS / "base.yaml")).name == "base"
    assert read_experiment("vanilla").name == "vanilla" and read_experiment("vanilla").run == {}


def test_overrides_are_composed_as_hydra_does() -> None:
    found = read_experiment(ROW, ("model.embed_dim=64", "task.max_source_positions=512"))
    assert found.model.embed_dim == 64 and found.max_source_positions == found.model.max_source_positions == 512


@pytest.mark.parametrize(
    ("config", "overrides", "message"),
    [
        ("nowhere.yaml", (), "The config must be a preset .* but is 'nowhere.yaml'."),
        ("vanilla", ("model.embed_dim=64",), "Overrides need a file of configs/, but 'vanilla' is a preset."),
        (ROW, ("+model.ffn_dim=8",), "the model has no field 'ffn_dim'; did you mean 'ffn_embed_dim'?"),
        (ROW, ("model.embed_dim=abc",), "`embed_dim` must be of type int, as 512 is, but is 'abc'."),
        (ROW, ("model.normalize_before=1",), "`normalize_before` must be of type bool, as False is, but is 1."),
    ],
)
def test_what_is_wrong_with_a_config_is_one_sentence(config: str, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read_experiment(config, overrides)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "base.yaml").write_text((CONFIGS / "base.yaml").read_text())
    (tmp_path / "own" / "row.yaml").write_text("hello: [\n")
    with pytest.raises(ValueError, match="row.yaml cannot be composed: ") as error:
        read_experiment(str(tmp_path / "own" / "row.yaml"))
    assert "\n" not in str(error.value)

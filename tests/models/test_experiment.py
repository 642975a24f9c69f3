from pathlib import Path

import pytest

from pyramidions.errors import UserError
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
        (ROW, ("+model.ffn_dim=8",), "The model has no field 'ffn_dim'; did you mean 'ffn_embed_dim'?"),
        (ROW, ("model.embed_dim=abc",), "`embed_dim` must be of type int, but is 'abc'."),
        (ROW, ("model.normalize_before=1",), "`normalize_before` must be of type bool, but is 1."),
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


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: &a\n  b: *a\n", "row.yaml cannot be composed: it refers to itself, or is nested too deeply."),
        ("model: [1]\n", "row.yaml cannot be composed: In 'own/row': ConfigTypeError raised"),
        ("task: {max_source_positions: 1000000000000000}\n", "from 2 to 16,777,216, but is 1000000000000000."),
        ("task:\n  max_source_positions: ${nothing}\n", "row.yaml cannot be composed: Interpolation key 'nothing'"),
        (b"\xff\xfe\xff", "row.yaml cannot be composed: "),
    ],
)
def test_a_file_that_no_run_can_have_is_one_sentence(text: str | bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "base.yaml").write_text((CONFIGS / "base.yaml").read_text())
    head = b"# @package _global_\n"
    (tmp_path / "own" / "row.yaml").write_bytes(head + (text.encode() if isinstance(text, str) else text))
    with pytest.raises(UserError) as error:
        read_experiment(str(tmp_path / "own" / "row.yaml"))
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_a_base_without_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("task: {}\n")
    with pytest.raises(UserError) as error:
        read_experiment(str(tmp_path / "base.yaml"))
    assert str(error.value) == f"{tmp_path / 'base.yaml'} must have a group `model`, but has none."

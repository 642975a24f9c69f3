"""Every file of configs/ composes, equals its preset, builds small and trains a step."""

from dataclasses import asdict
from pathlib import Path

import pytest
from fairseq_commands import run
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from pyramidions.data.folder import DataFolder
from pyramidions.models import PyramidionConfig, preset

CONFIGS = Path(__file__).parent.parent / "configs"
ROWS = sorted(f"{path.parent.name}={path.stem}" for path in CONFIGS.glob("*/*.yaml"))
PRESET_OF = {"table3=deep_pyramidion": "deep_pyramidion"}
SMALL = [
    *("model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "common.cpu=true"),
    *("task.max_source_positions=64", "task.max_target_positions=80", "dataset.batch_size=4"),
    *("optimization.max_update=1", "optimization.update_freq=[1]", "dataset.disable_validation=true"),
    "task.stopping_patience=0",
]


def composed(*overrides: str) -> dict[str, object]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.1"):
        return OmegaConf.to_container(compose("base", overrides=list(overrides)))  # type: ignore[return-value]


def test_the_base_model_is_the_default_config() -> None:
    model = composed()["model"]
    assert isinstance(model, dict)
    assert model.pop("_name") == "pyramidion"
    assert model.pop("max_source_positions") == "${task.max_source_positions}"
    assert {**model, "max_source_positions": None} == asdict(PyramidionConfig())


def test_every_row_is_checked_against_a_preset() -> None:
    assert set(PRESET_OF) == set(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_equals_its_preset(row: str) -> None:
    model = composed(f"+{row}")["model"]
    assert isinstance(model, dict)
    apart = {"_name": None, "max_source_positions": None}
    assert {**model, **apart} == {**asdict(preset(PRESET_OF[row])), **apart}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_holds_only_differences(row: str) -> None:
    path = CONFIGS / f"{row.replace('=', '/')}.yaml"
    lines = path.read_text().splitlines()
    assert lines[0] == "# @package _global_" and len(lines) <= 20
    changed = OmegaConf.to_container(OmegaConf.load(path))
    base = composed()
    assert isinstance(changed, dict)
    for group, fields in changed.items():
        for name, value in fields.items():
            assert base[group][name] != value, f"{group}.{name} is what the base says"  # type: ignore[index]


@pytest.mark.parametrize("row", [None, *ROWS])
def test_a_config_trains_a_step(row: str | None, data: DataFolder, tmp_path: Path) -> None:
    user_dir = run("pyramidions", "user-dir").stdout.strip()
    done = run(
        *("fairseq-hydra-train", "--config-dir", CONFIGS, "--config-name", "base", *([f"+{row}"] if row else [])),
        *(f"common.user_dir={user_dir}", f"task.data={data.path}", f"checkpoint.save_dir={tmp_path / 'run'}", *SMALL),
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "run" / "checkpoint_last.pt").exists()
    assert "num_updates 1 " in done.stdout
    assert not list(Path.cwd().glob("*.log"))


def test_a_wrong_key_or_value_is_an_error(data: DataFolder, tmp_path: Path) -> None:
    user_dir = run("pyramidions", "user-dir").stdout.strip()
    common = [
        *("fairseq-hydra-train", "--config-dir", CONFIGS, "--config-name", "base", f"common.user_dir={user_dir}"),
        *(f"task.data={data.path}", f"checkpoint.save_dir={tmp_path / 'run'}", *SMALL),
    ]
    for override, message in (
        ("model.embed_dims=3", "Key 'embed_dims' is not in struct"),
        ("model.self_attention=blockwse", "but is 'blockwse'."),
    ):
        done = run(*common, override)
        assert done.returncode != 0 and message in done.stdout

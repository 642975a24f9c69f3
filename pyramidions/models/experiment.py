"""Read what a file of configs/ describes, without running it."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from pyramidions.errors import UserError
from pyramidions.models.builder import build, preset
from pyramidions.models.config import (
    MAX_SOURCE_POSITIONS,
    MAX_TARGET_POSITIONS,
    PyramidionConfig,
    check_lengths,
    config_of,
)
from pyramidions.models.presets import PRESETS


class Experiment(NamedTuple):
    """A model and the lengths of its texts.

    Attributes:
        name: of the preset, or of the file as "table2/03_vanilla_8k".
        model: its shape.
        max_source_positions: tokens of the longest document.
        max_target_positions: tokens of the longest summary.
        run: every group of the config, as plain values; empty for a preset.
    """

    name: str
    model: PyramidionConfig
    max_source_positions: int
    max_target_positions: int
    run: dict[str, Any]


def read_experiment(config: str, overrides: tuple[str, ...] = ()) -> Experiment:
    """Return the experiment of a preset ("deep_pyramidion") or of a file ("configs/table3/deep_pyramidion.yaml").

    A file lies in a folder beside which base.yaml is, and is composed with it by Hydra, as fairseq-hydra-train does.

    Args:
        config: the preset's name, or the path of the file or of base.yaml itself.
        overrides: in Hydra's words, e.g. "model.embed_dim=64"; for files only.

    Raises:
        UserError: neither a preset nor such a file, or overrides of a preset, or a config that breaks a rule.
    """
    path = Path(config)
    if config in PRESETS:
        if overrides:
            raise UserError(f"Overrides need a file of configs/, but {config!r} is a preset.")
        model = preset(config, max_source_positions=MAX_SOURCE_POSITIONS)
        return Experiment(config, model, MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS, {})
    folder = path.parent if path.name == "base.yaml" else path.parent.parent
    if path.suffix != ".yaml" or not path.is_file() or not (folder / "base.yaml").is_file():
        raise UserError(
            f"The config must be a preset ({', '.join(PRESETS)}) or a .yaml file in a folder beside base.yaml, "
            f"but is {config!r}."
        )
    # Imported late: models are built and run without Hydra, which comes with fairseq.
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    is_base = path.name == "base.yaml"
    name = path.stem if is_base else f"{path.parent.name}/{path.stem}"
    row = () if is_base else (f"+{path.parent.name}={path.stem}",)
    try:
        with initialize_config_dir(str(folder.resolve()), version_base="1.1"):
            run: Any = OmegaConf.to_container(compose("base", overrides=[*row, *overrides]), resolve=True)
    except RecursionError:
        raise UserError(f"{config} cannot be composed: it refers to itself, or is nested too deeply.") from None
    except (HydraException, OmegaConfBaseException, YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{config} cannot be composed: {' '.join(str(error).split())}") from None
    for group in ("model", "task"):
        if not isinstance(run, dict) or not isinstance(run.get(group), dict):
            raise UserError(f"{config} must have a group `{group}`, but has none.")
    lengths = (run["task"].get("max_source_positions"), run["task"].get("max_target_positions"))
    try:
        check_lengths(*lengths)
        model = config_of({key: value for key, value in run["model"].items() if key != "_name"})
        # The parts know their own rules; without memory, they are told at once.
        with torch.device("meta"):
            build(model, vocab_size=8)
    except UserError as error:
        raise UserError(f"{config}: {error}") from None
    return Experiment(name, model, *lengths, run)

"""Read what a file of configs/ describes, without running it."""

from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.models.builder import preset
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS, PyramidionConfig
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
        ValueError: neither a preset nor such a file, or overrides of a preset, or a config that breaks a rule.
    """
    path = Path(config)
    if config in PRESETS:
        if overrides:
            raise ValueError(f"Overrides need a file of configs/, but {config!r} is a preset.")
        model = preset(config, max_source_positions=MAX_SOURCE_POSITIONS)
        return Experiment(config, model, MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS, {})
    folder = path.parent if path.name == "base.yaml" else path.parent.parent
    if path.suffix != ".yaml" or not path.is_file() or not (folder / "base.yaml").is_file():
        raise ValueError(
            f"The config must be a preset ({', '.join(PRESETS)}) or a .yaml file in a folder beside base.yaml, "
            f"but is {config!r}."
        )
    # Imported late: models are built and run without Hydra, which comes with fairseq.
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from yaml import YAMLError

    is_base = path.name == "base.yaml"
    name = path.stem if is_base else f"{path.parent.name}/{path.stem}"
    row = () if is_base else (f"+{path.parent.name}={path.stem}",)
    try:
        with initialize_config_dir(str(folder.resolve()), version_base="1.1"):
            run: Any = OmegaConf.to_container(compose("base", overrides=[*row, *overrides]), resolve=True)
    except (HydraException, YAMLError) as error:
        raise ValueError(f"{config} cannot be composed: {' '.join(str(error).split())}") from None
    values = {key: value for key, value in run["model"].items() if key != "_name"}
    _check(config, values)
    model = replace(PyramidionConfig(), **values)
    task = run["task"]
    return Experiment(name, model, task["max_source_positions"], task["max_target_positions"], run)


def _check(config: str, values: dict[str, Any]) -> None:
    """Refuse a model's field that does not exist, or a value of another type than its default's."""
    known = {field.name: field.default for field in fields(PyramidionConfig)}
    for name, value in values.items():
        if name not in known:
            near = "".join(f"; did you mean {other!r}?" for other in get_close_matches(name, known, 1))
            raise ValueError(f"{config}: the model has no field {name!r}{near or '.'}")
        default = known[name]
        kinds = (int, float) if isinstance(default, float) else (type(default),)
        if default is not None and type(value) not in kinds:
            kind = type(default).__name__
            raise ValueError(f"{config}: `{name}` must be of type {kind}, as {default!r} is, but is {value!r}.")

"""Read what a file of configs/ describes, without running it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from pyramidions.base.arguments import fits
from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_part
from pyramidions.base.strict_json import parse_json
from pyramidions.models.builder import build, shapes_alone
from pyramidions.models.config import (
    LONGEST_TEXT,
    MAX_SOURCE_POSITIONS,
    MAX_TARGET_POSITIONS,
    PyramidionConfig,
    check_lengths,
    config_as,
)
from pyramidions.models.presets import PRESETS


class Experiment(NamedTuple):
    """A model and the lengths of its texts."""

    name: str  # of the preset, or of the file as "table2/03_vanilla_8k"
    model: PyramidionConfig  # its shape
    max_source_positions: int  # tokens of the longest document
    max_target_positions: int  # tokens of the longest summary
    run: dict[str, Any]  # every group of the config, as plain values; empty for a preset


def read_experiment(config: str, overrides: tuple[str, ...] = ()) -> Experiment:
    """Return the experiment of a preset ("deep_pyramidion") or of a file ("configs/table3/deep_pyramidion.yaml").

    A file lies in a folder beside which base.yaml is, and is composed with it by Hydra, as fairseq-hydra-train does.

    Args:
        config: the preset's name, or the path of the file or of base.yaml itself.
        overrides: in Hydra's syntax, e.g. "model.embed_dim=64"; a preset has the group `model` and the two lengths of
            the group `task`.

    Raises:
        UserError: neither a preset nor such a file, an override of what a preset does not have, or a config that breaks
            a rule.
    """
    path = Path(config)
    if config in PRESETS:
        return _read_preset(config, overrides)
    folder = path.parent if path.name == "base.yaml" else path.parent.parent
    if path.suffix != ".yaml" or not path.is_file() or not (folder / "base.yaml").is_file():
        raise UserError(
            f"The config must be one of {', '.join(PRESETS)}, or a .yaml file in a folder beside base.yaml, "
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
        fields = {key: value for key, value in run["model"].items() if key != "_name"}
        model = _checked(fields, lengths[1])
    except UserError as error:
        raise UserError(f"{config}: {error}") from None
    return Experiment(name, model, *lengths, run)


def _read_preset(name: str, overrides: tuple[str, ...]) -> Experiment:
    lengths: dict[str, Any] = {
        "max_source_positions": MAX_SOURCE_POSITIONS,
        "max_target_positions": MAX_TARGET_POSITIONS,
    }
    changes = {}
    for override in overrides:
        key, _, text = override.partition("=")
        group, _, field = key.partition(".")
        if group == "model":
            changes[field] = _parsed(text, get_type_hints(PyramidionConfig).get(field))
        elif group == "task" and field in lengths:
            lengths[field] = _parsed(text, int)
        else:
            raise UserError(
                "An override of a preset must be model.FIELD=VALUE, task.max_source_positions=N or "
                f"task.max_target_positions=N, but is {override!r}."
            )
    try:
        source, target = lengths.values()
        check_lengths(source, target)
        model = _checked({"max_source_positions": source, **PRESETS[name], **changes}, target)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    return Experiment(name, model, source, target, {})


def _checked(fields: dict[str, Any], max_target_positions: int) -> PyramidionConfig:
    """Let the parts check a config, since they know their own rules; on the meta device that takes no memory."""
    config = config_as(PyramidionConfig, fields)
    # Nobody knows the vocabulary yet; modules of an output layer are at most its tokens.
    modules = parse_part("output", config.output).options.get("modules", 1)
    vocab_size = 8 * modules if isinstance(modules, int) and modules > 0 else 8
    with shapes_alone():
        build(config, vocab_size, marker_idx=4, max_target_positions=max_target_positions)
    return config


def _parsed(text: str, kind: Any) -> Any:
    """Return a value as Hydra would read it if it has the type ``kind``; else the text, which may be wrong."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("\\'", "'")
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if kind is not None and fits(value, kind) else text


def with_lengths(experiment: Experiment, source: int | None, target: int | None) -> Experiment:
    """Return an experiment with documents and summaries of so many tokens; None keeps its own lengths.

    A preset is made for documents of any length. A file says what its model's longest are.

    Raises:
        UserError: more tokens than a file's, or than any model has.
    """
    lengths = {
        "--source-tokens": (source, experiment.max_source_positions),
        "--target-tokens": (target, experiment.max_target_positions),
    }
    for option, (tokens, most) in lengths.items():
        if experiment.run and tokens is not None and tokens > most:
            raise UserError(f"{option} must be at most {most}, as {experiment.name} says, but is {tokens}.")
        if tokens is not None and not 2 <= tokens <= LONGEST_TEXT:
            raise UserError(f"{option} must be from 2 to {LONGEST_TEXT:,}, but is {tokens}.")
    documents, summaries = (tokens or most for tokens, most in lengths.values())
    model = experiment.model if experiment.run else replace(experiment.model, max_source_positions=documents)
    return experiment._replace(model=model, max_source_positions=documents, max_target_positions=summaries)

"""What every preset and every file of configs/ is, has, computes and costs, as plain values."""

import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from recorded_outputs import numbers
from torch import nn

from pyramidions.models import (
    EXTRACTOR_PRESETS,
    LANGUAGE_MODEL_PRESETS,
    PRESETS,
    ExtractorConfig,
    PyramidionConfig,
    build,
    build_extractor,
    build_language_model,
    extractor_preset,
    language_model_preset,
)
from pyramidions.models.config import LanguageModelConfig
from pyramidions.models.experiment import read_experiment
from pyramidions.runs.measure import Lengths, cost_of, shrink

CONFIGS = Path(__file__).parents[1] / "configs"
MARKER, SPACE, PAD, END = 3, 4, 1, 2
_TINY = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 4}
_UNDROPPED = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)


class Entry(NamedTuple):
    """A model by the name of its preset or file.

    Attributes:
        config: its flat config.
        lengths: tokens of the longest document and summary.
    """

    config: Any
    lengths: tuple[int, int]


def entries() -> dict[str, Callable[[], Entry]]:
    """Return how to read each preset and each file."""
    files = [*CONFIGS.glob("*/*.yaml")]
    found: dict[str, Callable[[], Entry]] = {name: lambda name=name: _experiment(name) for name in PRESETS}
    found |= {name: lambda name=name: Entry(extractor_preset(name), (8192, 0)) for name in EXTRACTOR_PRESETS}
    found |= {name: lambda name=name: Entry(language_model_preset(name), (512, 0)) for name in LANGUAGE_MODEL_PRESETS}
    for path in sorted(files):
        if path.parent.name not in ("corpus", "dynamic_pooling"):
            found[f"{path.parent.name}/{path.stem}"] = lambda path=path: _experiment(str(path))
    for path in sorted(CONFIGS.glob("dynamic_pooling/*.yaml")):
        found[f"dynamic_pooling/{path.stem}"] = lambda path=path: _language_model(path)
    return found


def _experiment(name: str) -> Entry:
    read = read_experiment(name)
    return Entry(read.model, (read.max_source_positions, read.max_target_positions))


def _language_model(path: Path) -> Entry:
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import OmegaConf

    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.1"):
        run: Any = OmegaConf.to_container(compose("dynamic_pooling", overrides=[f"+dynamic_pooling={path.stem}"]))
    fields = {name: value for name, value in run["model"].items() if name != "_name"}
    return Entry(LanguageModelConfig(**fields), (run["task"].get("tokens_per_sample", 512), 0))


def fields_of(config: Any) -> dict[str, Any]:
    """Return the fields of a config that differ from the defaults of its kind."""
    default = asdict(type(config)())
    return {name: value for name, value in asdict(config).items() if value != default[name]}


def shapes(entry: Entry) -> dict[str, list[int]]:
    """Return the shape of each tensor of the model at full size."""
    with torch.device("meta"):
        model = _built(entry.config, 32768, max(entry.lengths[1], 1024))
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


def cost(entry: Entry) -> dict[str, Any] | None:
    """Return what a batch of full length costs, or None for a kind of model that is not counted."""
    if not isinstance(entry.config, PyramidionConfig):
        return None
    return cost_of(entry.config, Lengths(entry.lengths[0], min(entry.lengths[1], 512))).as_json()


def small(entry: Entry) -> tuple[Any, tuple[int, int]]:
    """Return a config with the same parts in a small size, and the tokens of its document and summary."""
    config = entry.config
    if isinstance(config, PyramidionConfig):
        config, lengths = shrink(config, Lengths(entry.lengths[0], 64))
        return config, (lengths.source, 6)
    if isinstance(config, ExtractorConfig):
        return replace(config, **_TINY, **_UNDROPPED), (96, 0)
    return replace(config, **_TINY, **_UNDROPPED), (48, 0)


@torch.no_grad()
def outputs(config: Any, lengths: tuple[int, int]) -> Any:
    """Return what a model answers to two documents of different length, its weights drawn by their names.

    In float64: the last digits of float32 differ from processor to processor, and choices of a model may hang on them.
    """
    source, target = lengths
    model = _built(config, 64, 1024).eval().double()
    _fill(model)
    torch.manual_seed(0)  # learned boundaries may be sampled, in evaluation, too
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(5, 64, (2, source), generator=generator)
    tokens[:, ::7] = MARKER
    tokens[:, 3::5] = SPACE
    tokens[0, -1], tokens[1, source * 3 // 4 - 1], tokens[1, source * 3 // 4 :] = END, END, PAD
    if isinstance(config, PyramidionConfig):
        prefix = torch.randint(5, 64, (2, target), generator=generator)
        prefix[:, 0] = END
        return numbers(model(tokens, prefix)[:, -2:, :12])
    if isinstance(config, ExtractorConfig):
        return numbers(model(tokens)[:, :12])
    return numbers(model(tokens[:, :source])[:, -14:-10, :12])


def _built(config: Any, vocab_size: int, longest: int) -> nn.Module:
    if isinstance(config, PyramidionConfig):
        return build(config, vocab_size, PAD, MARKER, longest, END)
    if isinstance(config, ExtractorConfig):
        return build_extractor(config, vocab_size, MARKER, PAD)
    return build_language_model(config, vocab_size, PAD, SPACE)


def _fill(model: nn.Module) -> None:
    """Draw each parameter from a generator seeded by its name, so that the order of construction does not matter.

    Sums of whole numbers are the same on every processor, and weights that neither shrink nor blow up what they are
    multiplied with keep small differences small.
    """
    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        drawn = torch.randint(-(2**20), 2**20, (3, *parameter.shape), generator=generator).sum(0).double() / 2**20
        fan_in = parameter.shape[-1] if parameter.dim() > 1 else 4
        parameter.copy_(1 + drawn / 10 if name.endswith("norm.weight") else drawn / fan_in**0.5)

"""The paper's size, and a small one at which every row takes half a minute on a CPU."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.errors import UserError
from pyramidions.files.atomic import write_file


class Scale(NamedTuple):
    """How large models, texts and timings are.

    Attributes:
        name: "paper" or "tiny".
        lengths: divisor of every number of tokens.
        widths: divisor of every width of a model.
        documents: per update, over all GPUs.
        train_batch: documents in a timed training step.
        decode_tokens: numbers of tokens that stand for the paper's 256 and 512.
        timing: further flags of `pyramidions time`.
        operators: flags of benchmarks/topk.py.
        vocabulary: pieces of a corpus that is prepared.
    """

    name: str
    lengths: int
    widths: int
    documents: int
    train_batch: int
    decode_tokens: tuple[int, int]
    timing: tuple[str, ...]
    operators: tuple[str, ...]
    vocabulary: int


#: Table 10: training batch 64, inference batch 8. The paper does not state the length of summaries in training.
_PAPER_TIMING = ("--decode-batch", "8", "--target-tokens", "512")
_TINY_TIMING = (
    *("--decode-batch", "2", "--target-tokens", "32", "--vocab-size", "2000"),
    *("--repeats", "2", "--warmup", "1"),
)
_TINY_OPERATORS = ("--n", "256", "1024", "--k", "32", "128", "--batch", "2", "--repeats", "1")
SCALES = {
    "paper": Scale("paper", 1, 1, 256, 64, (256, 512), _PAPER_TIMING, (), 32768),
    "tiny": Scale("tiny", 16, 8, 8, 4, (16, 32), _TINY_TIMING, _TINY_OPERATORS, 2000),
}

_WIDTHS = ("model.embed_dim", "model.ffn_embed_dim")
_LENGTHS = (
    *("task.max_source_positions", "task.max_target_positions", "model.pooling_lengths"),
    *("model.decoding_min_length", "model.decoding_max_length"),
)
_TINY_RUN = {
    "dataset.validate_interval": 1,
    "optimization.max_epoch": 1,
    "optimization.lr": [0.003],
    "common.log_interval": 5,
    "lr_scheduler.warmup_updates": 5,
    "checkpoint.save_interval_updates": 10,
    "checkpoint.keep_interval_updates": 1,
}


def scaled_configs(configs: Path, out: Path, scale: Scale) -> Path:
    """Return a folder with the configs at a scale: ``configs`` itself, or ``out`` with smaller ones.

    Every file keeps its name and place, so that all commands are the same at any scale.

    Raises:
        UserError: a length that cannot be divided.
    """
    if scale.lengths == 1:
        return configs
    from omegaconf import OmegaConf

    numbers = _numbers()
    for path in sorted((*configs.glob("*.yaml"), *configs.glob("*/*.yaml"))):
        fields: Any = OmegaConf.to_container(OmegaConf.load(path))
        for group, values in fields.items():
            if isinstance(values, dict):
                for name, value in values.items():
                    values[name] = _scaled(f"{group}.{name}", value, scale, numbers)
        if path.name == "base.yaml":
            for key, value in _TINY_RUN.items():
                group, name = key.split(".")
                fields[group][name] = value
        target = out / path.relative_to(configs)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, f"# @package _global_\n{OmegaConf.to_yaml(OmegaConf.create(fields))}".encode())
    return out


def _numbers() -> dict[str, str]:
    """Return what is divided in each field, as a pattern."""
    from pyramidions.models.config import options_that_are_lengths

    found = dict.fromkeys((*_WIDTHS, *_LENGTHS), r"\b\d+\b")
    for field, options in options_that_are_lengths().items():
        found[f"model.{field}"] = "|".join(rf'(?<="{option}": )\d+' for option in options)
    return found


def _scaled(field: str, value: Any, scale: Scale, numbers: Mapping[str, str]) -> Any:
    by = scale.widths if field in _WIDTHS else scale.lengths

    def divided(found: re.Match[str]) -> str:
        if 0 < int(found[0]) < by:
            raise UserError(f"`{field}` must be at least {by} at this scale, but is {found[0]}.")
        return str(int(found[0]) // by)

    if field in _TINY_RUN:
        return _TINY_RUN[field]
    if field not in numbers or value is None:
        return value
    text = re.sub(numbers[field], divided, str(value))
    return int(text) if isinstance(value, int) else text

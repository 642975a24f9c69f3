"""The paper's size, and a small one at which every row takes half a minute on a CPU."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.errors import UserError
from pyramidions.files.atomic import atomic_file


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

_LENGTHS = (
    *("task.max_source_positions", "task.max_target_positions"),
    *("model.decoding_min_length", "model.decoding_max_length"),
)
_WIDTHS = ("model.embed_dim", "model.ffn_embed_dim")
# Lengths in a text, which the second group matches: those between commas, and options of attention kinds.
_TEXTS = {
    "model.pooling_lengths": r"()(\d+)",
    "model.self_attention_args": r'("(?:block_size|bucket_size|window)": *)(\d+)',
}
_TINY_RUN = {
    "dataset.validate_interval": 1,
    "optimization.max_epoch": 1,
    "optimization.lr": [0.003],
    "common.log_interval": 5,
    "lr_scheduler.warmup_updates": 5,
    "checkpoint.save_interval_updates": 10,
    "checkpoint.keep_interval_updates": 1,
}


def scaled_configs(configs: Path, out: Path, scale: Scale, *, write: bool = True) -> Path:
    """Return a folder with the configs at a scale: ``configs`` itself, or ``out`` with smaller ones.

    Every file keeps its name and place, so that all commands are the same at any scale. Unless ``write``, only the
    folder's name is returned.

    Raises:
        UserError: a length that cannot be divided.
    """
    if scale.lengths == 1:
        return configs
    if not write:
        return out
    from omegaconf import OmegaConf

    for path in sorted((configs / "base.yaml", *configs.glob("*/*.yaml"))):
        fields: Any = OmegaConf.to_container(OmegaConf.load(path))
        for group, values in fields.items():
            if isinstance(values, dict):
                for name, value in values.items():
                    values[name] = _scaled(f"{group}.{name}", value, scale)
        if path.name == "base.yaml":
            for key, value in _TINY_RUN.items():
                group, name = key.split(".")
                fields[group][name] = value
        target = out / path.relative_to(configs)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as file:
            file.write(f"# @package _global_\n{OmegaConf.to_yaml(OmegaConf.create(fields))}".encode())
    return out


def _scaled(field: str, value: Any, scale: Scale) -> Any:
    def divided(length: re.Match[str]) -> str:
        return f"{length[1]}{_divided(field, int(length[2]), scale.lengths)}"

    if field in _TINY_RUN:
        return _TINY_RUN[field]
    if field in _LENGTHS and isinstance(value, int):
        return _divided(field, value, scale.lengths)
    if field in _WIDTHS:
        return _divided(field, value, scale.widths)
    if field in _TEXTS and value is not None:
        return re.sub(_TEXTS[field], divided, str(value))
    return value


def _divided(field: str, value: int, by: int) -> int:
    if value < by:
        raise UserError(f"`{field}` must be at least {by} at this scale, but is {value}.")
    return value // by

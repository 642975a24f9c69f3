"""The paper's size, a small one to compare rows on a CPU, and a tiny one at which a row takes half a minute."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.files.atomic import write_file


class Scale(NamedTuple):
    """How large models, texts and timings are.

    Attributes:
        name: "paper", "small" or "tiny".
        lengths: divisor of every number of tokens.
        widths: divisor of every width of a model.
        documents: per update, over all GPUs.
        train_batch: documents in a timed training step.
        decode_tokens: numbers of tokens that stand for the paper's 256 and 512.
        timing: further flags of `python -m lab time`.
        operators: flags of lab/benchmarks/topk.py.
        vocabulary: pieces of a corpus that is prepared.
        run: values by key that replace those of all configs.
        without: keys that are taken out of them.
        seeds: each row is trained for each of them, as it is from its first update: none starts from another row. Empty
            for one training with the config's seed.
        checkpoint: the file of a training that the next steps read.
        batch_size: documents at a time on a GPU; None for the config's.
        loss_documents: how many documents the loss is measured on.
        overrides: what the trainings of all rows change in their configs, in Hydra's syntax.
        sample: whether the sample papers stand for a corpus that is not given.
        of_characters: values by key of the runs of language models, besides; their depth is that of the paper.
        limits: flags of `pyramidions prepare --characters`.
        most_pieces: of a Unigram model.
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
    run: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    checkpoint: str = "checkpoint_best.pt"
    batch_size: int | None = None
    loss_documents: int = 100
    overrides: tuple[str, ...] = ()
    sample: bool = False
    of_characters: Mapping[str, str] = {}
    limits: tuple[str, ...] = ()
    most_pieces: int | None = None

    @property
    def is_papers(self) -> bool:
        """Whether it is the paper's size, which may take weeks and wants GPUs."""
        return self.name == "paper"

    def with_updates(self, updates: int) -> "Scale":
        """Return the scale with another number of updates for each row."""
        if "optimization.max_update" not in self.run:
            raise UserError(f"--updates applies only to --scale small, but the scale is {self.name}.")
        return self._replace(overrides=(f"optimization.max_update={updates}",))


#: Table 10: training batch 64, inference batch 8. The paper does not state the length of summaries in training.
_PAPER_TIMING = ("--decode-batch", "8", "--target-tokens", "512")
_SMALL_TIMING = (
    *("--decode-batch", "4", "--target-tokens", "128", "--vocab-size", "4000"),
    *("--repeats", "3", "--warmup", "1"),
)
_SMALL_OPERATORS = ("--n", "1024", "4096", "--k", "64", "256", "--batch", "2", "--repeats", "3")
_TINY_TIMING = (
    *("--decode-batch", "2", "--target-tokens", "32", "--vocab-size", "2000"),
    *("--repeats", "2", "--warmup", "1"),
)
_TINY_OPERATORS = ("--n", "256", "1024", "--k", "32", "128", "--batch", "2", "--repeats", "1")
_TINY_RUN = {
    "dataset.validate_interval": 1,
    "optimization.max_epoch": 1,
    "optimization.lr": [0.003],
    "common.log_interval": 5,
    "lr_scheduler.warmup_updates": 5,
    "checkpoint.save_interval_updates": 10,
    "checkpoint.keep_interval_updates": 1,
}
#: Every row reads as many documents, most of them once, so there is no dropout; and the last checkpoint counts, so the
#: loss is all that is validated, on the first documents. With a recurrence in each layer a model learns to copy within
#: 200 updates; without it, 600 are too few.
_SMALL_RUN = {
    "optimization.max_update": 600,
    "optimization.max_epoch": 0,
    "optimization.lr": [0.001],
    "optimizer.adam_betas": "(0.9, 0.98)",
    "optimizer.weight_decay": 0.0,
    "lr_scheduler._name": "fixed",
    "lr_scheduler.warmup_updates": 100,
    "criterion.label_smoothing": 0.0,
    "model.num_heads": 4,
    "model.recurrence": "sru",
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "model.activation_dropout": 0.0,
    "task.eval_rouge": False,
    "task.stopping_patience": 0,
    "checkpoint.best_checkpoint_metric": "loss",
    "checkpoint.maximize_best_checkpoint_metric": False,
    "checkpoint.save_interval_updates": 200,
    "checkpoint.keep_interval_updates": 1,
    "dataset.validate_interval": 1000,
    "dataset.max_valid_steps": 12,
    "common.log_interval": 20,
}


def _of_characters(width: int, heads: int, window: int, batch: int, updates: int) -> dict[str, str]:
    shape = {"embed_dim": width, "ffn_embed_dim": 4 * width, "num_heads": heads}
    return {
        **{f"model.{name}": str(value) for name, value in shape.items()},
        "task.tokens_per_sample": str(window),
        "dataset.batch_size": str(batch),
        "optimization.max_update": str(updates),
        "optimization.lr": "[0.001]",
        "lr_scheduler.warmup_updates": str(updates // 20),
        "checkpoint.save_interval_updates": str(updates // 2),
    }


def _limits(train: int, others: int) -> tuple[str, ...]:
    return ("--train-characters", str(train), "--valid-characters", str(others), "--test-characters", str(others))


SCALES = {
    "paper": Scale("paper", 1, 1, 256, 64, (256, 512), _PAPER_TIMING, (), 32768),
    "small": Scale(
        *("small", 4, 4, 8, 8, (64, 128), _SMALL_TIMING, _SMALL_OPERATORS, 4000),
        run=_SMALL_RUN,
        without=("lr_scheduler.total_num_update",),
        seeds=(1, 2, 3),
        checkpoint="checkpoint_last.pt",
        batch_size=8,
        loss_documents=200,
        of_characters=_of_characters(128, 4, 512, 4, 2000),
        limits=_limits(10_000_000, 200_000),
    ),
    "tiny": Scale(
        *("tiny", 16, 8, 8, 4, (16, 32), _TINY_TIMING, _TINY_OPERATORS, 2000),
        run=_TINY_RUN,
        sample=True,
        of_characters=_of_characters(16, 2, 64, 4, 20),
        limits=_limits(20_000, 2_000),
        most_pieces=100,
    ),
}


def scaled_configs(configs: Path, out: Path, scale: Scale) -> Path:
    """Return a folder with the configs at a scale: ``configs`` itself, or ``out`` with smaller ones.

    Every file keeps its name and place, so that all commands are the same at any scale.
    """
    if scale.lengths == 1:
        return configs
    from omegaconf import OmegaConf

    from pyramidions.models.config import PyramidionConfig
    from pyramidions.models.fields import scaled_field

    for path in sorted((*configs.glob("*.yaml"), *configs.glob("*/*.yaml"))):
        fields: Any = OmegaConf.to_container(OmegaConf.load(path)) or {}
        # Those of language models stay as they are: `of_characters` says what changes.
        of_documents = "dynamic_pooling" not in (path.stem, path.parent.name)
        for group, values in fields.items():
            if isinstance(values, dict) and of_documents:
                kept = {name: of for name, of in values.items() if f"{group}.{name}" not in scale.without}
                for name, value in kept.items():
                    if group in ("model", "task"):
                        value = scaled_field(PyramidionConfig, name, value, scale.lengths, scale.widths)
                    kept[name] = scale.run.get(f"{group}.{name}", value)
                fields[group] = kept
        if path.name == "base.yaml":
            for key, value in scale.run.items():
                group, name = key.split(".")
                fields[group][name] = value
        target = out / path.relative_to(configs)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, f"# @package _global_\n{OmegaConf.to_yaml(OmegaConf.create(fields))}".encode())
    return out

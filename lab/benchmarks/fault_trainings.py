"""Trainings of the campaign of faults: of every preset, in a size at which an update takes milliseconds."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fault_materials import PLUGIN, Materials
from fault_subjects import Call, Subject, checkpoints_whole, same_weights
from tiny_presets import HEADS, HIDDEN, WIDTH, tiny_fields

from pyramidions.models import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS, PyramidionConfig
from pyramidions.runs.recipe import model_flags

BEGINS = "num_updates="  # in the line that is logged after each update
_LEARNING = [
    *("--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed", "--batch-size", "4", "--seed", "1", "--cpu"),
    *("--num-workers", "0", "--log-format", "simple", "--log-interval", "1"),
]
# Two epochs. Saves in mid-epoch and at their ends, the best one by validation.
_SAVING = [
    *("--max-update", "12", "--save-interval-updates", "4", "--keep-interval-updates", "2"),
    *("--keep-last-epochs", "2"),
]
# Saves are killed at their first call and later, when there is something to lose.
_SAVES: tuple[Call, ...] = (
    *(("kill", "open", "*.pt.tmp", n) for n in (1, 3)),
    *(("kill", "os.rename", "*.pt.tmp", n) for n in (1, 4)),
    ("kill", "shutil.copyfile", "*checkpoint_best.pt", 1),
    ("kill-in-copy", "shutil.copyfile", "*checkpoint_best.pt", 1),
    *(("kill", "shutil.copyfile", "*checkpoint_last.pt", n) for n in (1, 3)),
    *(("kill-in-copy", "shutil.copyfile", "*checkpoint_last.pt", n) for n in (1, 2, 4)),
    ("kill", "os.remove", "*checkpoint_*.pt", 1),
)
#: calls at which one training is harmed besides
EVERY_CALL: tuple[Call, ...] = (
    *_SAVES,
    ("kill", "shutil.copyfile", "*checkpoint_best.pt", 3),
    ("kill-in-copy", "shutil.copyfile", "*checkpoint_best.pt", 3),
    *(("full-a-second", "open", "*.pt.tmp", n) for n in (1, 3)),
    *(("nearly-full", "open", "*.pt.tmp", n) for n in (1, 3)),
    *(("nearly-full", "shutil.copyfile", "*checkpoint_last.pt", n) for n in (1, 3)),
)
LANGUAGE_MODELS, EXTRACTORS, SPARSE, POOLED, OTHERS, TASKS = FAMILIES = (
    "language models",
    "extractors",
    "Scaling Transformers and Terraformers",
    "pooled summarizers",
    "other summarizers",
    "other starts and tasks",
)
_TOY = [
    *("--task", "toy_sequences", "--shortest", "3", "--longest", "6", "--test-shortest", "8", "--test-longest", "9"),
    *("--examples", "24", "--test-examples", "8"),
]
_LONG = {"max_source_positions": 256, "max_target_positions": 48}
_SHORTER = 32  # times: pooling lengths and blocks, so that 256 tokens are pooled and cut as 8,192 are


def trainings(materials: Materials) -> list[Subject]:
    """Return a training of each preset, of one in depth, of other tasks, and from an imported model."""
    summarize = ["--task", "long_document_summarization"]
    cross_entropy = ["--criterion", "pooled_cross_entropy"]
    deep = model_flags(_tiny("deep_pyramidion"))
    every = [
        _training(
            *("fairseq-train", POOLED, materials, "data", [*summarize, "--arch", "deep_pyramidion", *deep]),
            [*cross_entropy, "--max-update", "24"],
            EVERY_CALL,
        )
    ]
    for name, fields in PRESETS.items():
        data = {"hat": "labelled", "hmnet": "turns"}.get(name, "data")
        flags = ["--arch", name, *model_flags(_tiny(name))]
        every.append(_training(name, _family(fields), materials, data, [*summarize, *flags], cross_entropy))
    sizes = ["--embed-dim", str(WIDTH), "--ffn-embed-dim", str(HIDDEN), "--num-heads", str(HEADS)]
    for name in EXTRACTOR_PRESETS:
        flags = ["--task", "extractive_summarization", "--arch", name, *sizes, "--max-source-positions", "512"]
        every.append(
            _training(name, EXTRACTORS, materials, "labelled", flags, ["--criterion", "extractive_summarization"])
        )
    for name in LANGUAGE_MODEL_PRESETS:
        flags = ["--task", "character_language_modeling", "--arch", name, *sizes, "--layers", "1,2,1"]
        flags += ["--tokens-per-sample", "256", "--piece-boundaries"]
        learned = ["--criterion", "boundary_cross_entropy", "--best-checkpoint-metric", "bpc"]
        every.append(_training(name, LANGUAGE_MODELS, materials, "characters", flags, learned))
    every += [
        _training(
            *("span_denoising", TASKS, materials, "data"),
            *(["--task", "span_denoising", "--arch", "deep_pyramidion", *deep], cross_entropy),
        ),
        _training(
            *("toy_sequences", TASKS, materials, None),
            *([*_TOY, "--arch", "toy_terraformer", *model_flags(tiny_fields("toy_terraformer"))], cross_entropy),
        ),
        _training("finetune", TASKS, materials, "imported", summarize, cross_entropy),
    ]
    return every


def _training(
    name: str,
    family: str,
    materials: Materials,
    data: str | None,
    model: Sequence[str],
    learning: Sequence[str],
    calls: tuple[Call, ...] = (),
) -> Subject:
    """Return a training.

    Args:
        name: by which it is chosen.
        family: its group.
        materials: what it reads.
        data: the data folder: one of DATA, "characters", "imported" (which also starts from the imported model), or
            None for a task that makes its own.
        model: flags of the task and the model.
        learning: flags of the criterion, which win over those that all trainings share.
        calls: at which it is harmed.
    """

    def command(out: Path) -> list[str]:
        folder: list[str] = []
        start: list[str] = []
        if data == "imported":
            folder, start = [str(materials.imported_data)], _started(materials)
        elif data is not None:
            folder = [str(materials.characters if data == "characters" else materials.data(data))]
        save = ["--user-dir", PLUGIN, "--save-dir", str(out / "checkpoints")]
        return ["fairseq-train", *folder, *model, *start, *_LEARNING, *_SAVING, *learning, *save]

    return Subject(
        *(name, family, command, ("checkpoints",), same_weights, checkpoints_whole),
        calls=calls,
        drawn=() if calls else _SAVES,
        begins=BEGINS,
        twice=False,
    )


def _started(materials: Materials) -> list[str]:
    """Return the flags of the imported model's architecture, and the one that starts from it."""
    from pyramidions.inference import load_model

    model = load_model(materials.imported)
    lengths = {"max_source_positions": model.max_source_positions, "max_target_positions": model.max_target_positions}
    default = asdict(PyramidionConfig())
    fields = {name: value for name, value in asdict(model.config).items() if value != default[name]}
    start = ["--finetune-from-model", str(materials.imported), "--arch", "vanilla"]
    return [*start, *model_flags({**fields, **lengths})]


def _tiny(name: str) -> dict[str, Any]:
    """Return the fields of a preset that is narrow, and pools and cuts documents of 256 tokens all the same."""
    fields = {**tiny_fields(name), **_LONG}
    if pooled := fields.get("pooling_lengths"):
        fields["pooling_lengths"] = re.sub(r"\d+", lambda length: str(int(length[0]) // _SHORTER), pooled)
    if fields.get("self_attention") == "blockwise(block_size=512)":
        fields["self_attention"] = f"blockwise(block_size={512 // _SHORTER})"
    return fields


def _family(fields: dict[str, Any]) -> str:
    if "sparse" in fields.get("feed_forward", ""):
        return SPARSE
    return POOLED if fields.get("pooling_lengths") else OTHERS

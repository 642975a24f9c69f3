"""Commands and trainings that the campaign of faults harms: what each makes, and the calls at which it is harmed.

A new command is one more `_command` in `commands`.
"""

import filecmp
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from fault_subjects import (
    COMMANDS,
    PLUGIN,
    Call,
    Materials,
    Subject,
    absent_or_like,
    at_ends,
    checkpoints_whole,
    import_bart,
    prepare_characters,
    run,
    same,
    same_weights,
)
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
        name: chooses it.
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


_SHORT = ["--beam", "1", "--max-len", "20"]
_LINES = "summaries.jsonl"
_METHODS = ("hiporank", "textrank", "lead", "oracle")
_MODELS = {"model": "fairseq-train", "extractor": "extractor", "language model": "hourglass_unigram"}


def commands(materials: Materials) -> list[Subject]:
    """Return the commands that are harmed."""
    return [_generate(materials), *_preparing(materials), *_reading(materials), *_extracting(materials)]


def _command(
    name: str, words: Callable[[Path], list[str]], *made: str, calls: tuple[Call, ...] | None = None
) -> Subject:
    """Return a command of ours whose results are the same bytes each time, and appear whole or not at all."""
    calls = at_ends(*made) if calls is None else calls
    return Subject(
        name, COMMANDS, lambda out: ["pyramidions", *words(out)], made, same=same, whole=absent_or_like, calls=calls
    )


def _preparing(materials: Materials) -> list[Subject]:
    ways = {
        "prepare": [],
        "prepare-labels": ["--labels"],
        "prepare-divide": ["--divide", "sections"],
        "prepare-select": ["--select", "hiporank", "--budget", "256"],
    }

    def prepare(flags: list[str], out: Path) -> list[str]:
        return ["prepare", str(materials.corpus), "--out", str(out / "data"), "--vocab-size", "800", *flags]

    return [
        *(_command(name, partial(prepare, flags), "data") for name, flags in ways.items()),
        _command("prepare-characters", lambda out: prepare_characters(materials, out / "data"), "data"),
        _command("import", lambda out: import_bart(materials, out), "bart.pt"),
    ]


def _reading(materials: Materials) -> list[Subject]:
    def model(kind: str = "model") -> str:
        return str(_trained(materials, kind))

    def summarize(out: Path) -> list[str]:
        return ["summarize", model(), str(materials.papers), "--json", *_SHORT, "-o", str(out / "summary.jsonl")]

    def resumed(out: Path) -> list[str]:
        corpus = str(materials.corpus / "train.jsonl")
        return ["summarize", model(), corpus, *_SHORT, "--batch-size", "1", "-o", str(out / _LINES), "--resume"]

    def segments(out: Path) -> list[str]:
        return [
            "segments",
            model("language model"),
            str(materials.text / "texts.jsonl"),
            "--explain",
            str(out / "p.html"),
        ]

    def score(out: Path) -> list[str]:
        pages = ["--json", str(out / "scores.json"), "--html", str(out / "scores.html"), "--workers", "1"]
        return ["score", str(materials.summaries), "--data", str(materials.data()), *pages]

    return [
        _command("summarize", summarize, "summary.jsonl"),
        _command("summarize-resume", resumed, _LINES, calls=at_ends(f"{_LINES}.partial", f"{_LINES}.progress")),
        _command(
            *("explain", lambda out: [*summarize(out), "--explain", str(out / "page.html")]),
            *("summary.jsonl", "page.html"),
        ),
        _command("segments", segments, "p.html"),
        _command("export", lambda out: ["export", model(), str(out / "export")], "export"),
        _command("average", lambda out: ["average", model(), "-o", str(out / "averaged.pt")], "averaged.pt"),
        _command("score", score, "scores.json", "scores.html"),
    ]


def _extracting(materials: Materials) -> list[Subject]:
    def extract(method: str, out: Path) -> list[str]:
        words = ["extract", str(materials.papers), "--words", "60", "-o", str(out / "extracts.jsonl")]
        page = ["--explain", str(out / "page.html")]
        if method == "trained":
            return [*words, "--method", str(_trained(materials, "extractor")), *page]
        if method == "oracle":
            return [*words, "--method", method, "--reference-field", "abstract"]
        return [*words, "--method", method, *(page if method == "hiporank" else [])]

    made = {"trained": ("extracts.jsonl", "page.html"), "hiporank": ("extracts.jsonl", "page.html")}
    return [
        _command(f"extract-{method}", partial(extract, method), *made.get(method, ("extracts.jsonl",)))
        for method in (*_METHODS, "trained")
    ]


def _generate(materials: Materials) -> Subject:
    """Return fairseq-generate, a part of whose output is refused by `score`."""

    def generate(out: Path) -> list[str]:
        task = ["--user-dir", PLUGIN, "--task", "long_document_summarization", "--cpu", "--gen-subset", "test"]
        decoding = ["--beam", "1", "--max-len-b", "20", "--min-len", "1", "--batch-size", "2"]
        model = ["--path", str(_trained(materials, "model"))]
        return ["fairseq-generate", str(materials.data()), *task, *model, *decoding, "--results-path", str(out)]

    def refused_or_whole(path: Path, whole: Path) -> str | None:
        if not path.exists() or filecmp.cmp(path, whole, shallow=False):
            return None
        scored = run(["pyramidions", "score", str(path), "--data", str(materials.data())])
        return None if scored.status else f"a part of {path.name} is scored like the whole"

    written = "*generate-test.txt"
    calls = (("kill", "open", written, 1), ("full", "open", written, 1))
    made = ("generate-test.txt",)
    return Subject("fairseq-generate", COMMANDS, generate, made, same, refused_or_whole, calls, twice=False)


def _trained(materials: Materials, kind: str) -> Path:
    """Return a checkpoint of one of the trainings."""
    (training,) = (each for each in trainings(materials) if each.name == _MODELS[kind])
    return materials.model(kind.replace(" ", "-"), training.command)

"""Commands of the campaign of faults, beside trainings: each with what it makes and the calls at which it is harmed.

A new command is one more `_command` in `commands`.
"""

import filecmp
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fault_materials import PLUGIN, Materials, import_bart, prepare_characters
from fault_runs import run
from fault_subjects import COMMANDS, Call, Subject, absent_or_like, at_ends, same
from fault_trainings import trainings

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

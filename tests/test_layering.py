"""Imports go one way: parts, then models, then fairseq's face, then the commands."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "pyramidions").rglob("*.py"))
FAIRSEQ_FACE = (
    *("models/architectures.py", "models/pyramidion.py", "models/pyramidion_extractor.py"),
    "models/pyramidion_lm.py",
    *("tasks/", "criterions/", "scoring/fairseq_scorer.py"),
)
# What each layer may import of ours; the longest prefix of a module's name decides.
MAY_IMPORT = {
    "pyramidions": ("optional",),
    "pyramidions.__main__": ("cli",),
    "pyramidions.plugin": ("criterions", "models", "scoring", "tasks"),
    "pyramidions.errors": (),
    "pyramidions.strict_json": ("arguments", "errors"),
    "pyramidions.markdown": (),
    "pyramidions.arguments": ("errors",),
    "pyramidions.registry": ("arguments",),
    "pyramidions.nn.functional": ("nn.functional",),
    # Parts.
    "pyramidions.nn.block_layout": ("nn.functional",),
    "pyramidions.nn.ngram": (),
    "pyramidions.nn.marks": (),
    "pyramidions.nn.regularised": (),
    "pyramidions.nn.memory": (),
    "pyramidions.nn.units": ("nn.functional",),
    "pyramidions.nn.roles": (),
    "pyramidions.nn.sequence": ("nn.marks", "nn.roles"),
    "pyramidions.nn.sublayer": ("nn.marks", "nn.memory", "nn.units"),
    "pyramidions.nn.context": (),
    "pyramidions.nn.positions": ("registry", "nn.functional", "nn.positions"),
    "pyramidions.nn.multiplicative": ("nn.functional",),
    "pyramidions.nn.output": ("registry", "nn.multiplicative", "nn.output"),
    "pyramidions.nn.projections": (
        *("registry", "nn.functional", "nn.multiplicative", "nn.sublayer"),
        "nn.projections",
    ),
    "pyramidions.nn.upsampling": ("registry", "nn.functional", "nn.sequence", "nn.upsampling"),
    "pyramidions.nn.boundaries": ("registry", "nn.functional", "nn.boundaries"),
    "pyramidions.nn.segments": ("registry", "nn.functional", "nn.sublayer", "nn.segments"),
    "pyramidions.nn.attention": (
        *("registry", "nn.functional", "nn.marks", "nn.sublayer", "nn.projections", "nn.units"),
        *("nn.regularised", "nn.attention"),
    ),
    "pyramidions.nn.recurrence": ("registry", "nn.functional", "nn.sublayer", "nn.recurrence"),
    "pyramidions.nn.feed_forward": ("registry", "nn.functional", "nn.sublayer", "nn.feed_forward"),
    "pyramidions.nn.scorer": ("registry", "nn.functional", "nn.sequence", "nn.marks", "nn.context", "nn.scorer"),
    "pyramidions.nn.tags": (),
    "pyramidions.nn.embedding": ("nn.functional", "nn.positions", "nn.tags"),
    "pyramidions.nn.layer": ("nn.functional", "nn.sublayer"),
    "pyramidions.nn.pooling": (
        *("registry", "nn.functional", "nn.block_layout", "nn.sequence", "nn.context", "nn.sublayer", "nn.scorer"),
        *("nn.layer", "nn.memory", "nn.positions"),
        *("nn.boundaries", "nn.regularised", "nn.pooling"),
    ),
    # What composes them.
    "pyramidions.nn.stack": ("registry", "nn.functional", "nn.sublayer", "nn.layer", "nn.stack"),
    "pyramidions.nn.stage": (
        *("nn.block_layout", "nn.sequence", "nn.sublayer", "nn.context", "nn.attention", "nn.layer", "nn.pooling"),
        *("nn.units", "nn.upsampling", "nn.stack"),
    ),
    "pyramidions.nn.encoder": (
        *("nn.attention", "nn.block_layout", "nn.sequence", "nn.embedding", "nn.layer", "nn.marks", "nn.pooling"),
        *("nn.memory", "nn.roles", "nn.stack", "nn.stage", "nn.units"),
    ),
    "pyramidions.nn.sentence_ranker": ("nn.encoder", "nn.scorer"),
    "pyramidions.nn.hourglass_state": ("nn.functional", "nn.sublayer"),
    "pyramidions.nn.hourglass": (
        *("nn.boundaries", "nn.functional", "nn.hourglass_state", "nn.layer", "nn.segments", "nn.stack"),
        "nn.sublayer",
    ),
    "pyramidions.nn.language_model": (
        *("nn.attention", "nn.boundaries", "nn.embedding", "nn.hourglass", "nn.hourglass_state", "nn.output"),
        "nn.stack",
    ),
    "pyramidions.nn.decoder": (
        *("registry", "nn.functional", "nn.sublayer", "nn.embedding", "nn.attention", "nn.layer", "nn.stack"),
        *("nn.memory", "nn.output", "nn.decoder"),
    ),
    "pyramidions.nn": ("nn", "registry"),
    "pyramidions.models": ("arguments", "errors", "nn", "optional", "registry", "strict_json", "models"),
    "pyramidions.environment": (),
    "pyramidions.measure": ("environment", "errors", "nn", "models", "measure"),
    "pyramidions.files": ("errors", "files"),
    "pyramidions.pages": ("pages",),
    "pyramidions.optional": ("errors",),
    "pyramidions.device": ("errors",),
    "pyramidions.results": (),
    "pyramidions.hub": ("errors", "files", "hub", "optional"),
    "pyramidions.text": ("arguments", "errors", "optional", "strict_json", "text"),
    "pyramidions.pretrained": (
        *("arguments", "data.readers", "errors", "files", "hub", "inference", "models", "nn", "pretrained", "registry"),
        *("strict_json", "text"),
    ),
    "pyramidions.extract": ("arguments", "errors", "extract", "hub", "registry", "results", "text"),
    "pyramidions.documents": ("documents", "errors", "files", "strict_json", "text"),
    "pyramidions.data": ("data", "documents", "errors", "extract", "files", "strict_json", "text"),
    "pyramidions.scoring": (
        *("data", "device", "documents", "errors", "extract.oracle", "files", "hub", "optional", "pages", "registry"),
        *("strict_json", "text"),
        "scoring",
    ),
    "pyramidions.corpora": ("corpora", "data", "documents", "errors", "files", "hub"),
    "pyramidions.criterions": (
        *("criterions", "data.labels", "errors", "nn.boundaries", "nn.pooling", "text.tokenizer"),
    ),
    "pyramidions.tasks": (
        "arguments",
        "criterions.collapse",
        "data",
        "errors",
        "extract.selection",
        "files",
        "text",
        "nn.ngram",
        "nn.regularised",
        "nn.scorer",
        "models.config",
        "models.older_fields",
        "models.fields",
        "models.freezing",
        "models.older_releases",
        "models.pooling_warmup",
        "models.same_parts",
        "registry",
        "scoring",
        "strict_json",
        "tasks",
    ),
    "pyramidions.inference": (
        "arguments",
        "data",
        "device",
        "documents",
        "errors",
        "extract",
        "files",
        "hub",
        "text",
        "markdown",
        "models",
        "nn",
        "optional",
        "pages",
        "registry",
        "results",
        "scoring",
        "strict_json",
        "inference",
    ),
    "pyramidions.training": (
        "curves",
        "data",
        "documents",
        "errors",
        "extract",
        "files",
        "inference",
        "measure",
        "strict_json",
        "text",
        "training",
    ),
    "pyramidions.curves": ("errors",),
    "pyramidions.cli.options": ("criterions", "errors", "models", "tasks"),
    "pyramidions.cli": (
        "arguments",
        "corpora",
        "curves",
        "data",
        "device",
        "documents",
        "environment",
        "errors",
        "extract",
        "files",
        "hub",
        "text",
        "inference",
        "measure",
        "models",
        "optional",
        "pretrained",
        "scoring",
        "strict_json",
        "training",
        "cli",
    ),
}
STANDARD_AND_TORCH = {"torch"}


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(str(node.module))
    return found


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


IMPORTS = {path: imports(path) for path in FILES}


def test_no_import_runs_back() -> None:
    back = []
    for path, imported in IMPORTS.items():
        name = module(path)
        layer = max((layer for layer in MAY_IMPORT if is_in(name, layer)), key=len)
        allowed = [f"pyramidions.{other}" for other in MAY_IMPORT[layer]]
        # `lab` and `benchmarks` lie outside the wheel.
        ours = (one for one in imported if one.startswith(("pyramidions.", "lab")))
        back += [f"{name} imports {one}" for one in ours if not any(is_in(one, other) for other in allowed)]
    assert not back


def test_only_the_face_knows_fairseq() -> None:
    knowing = [path for path, imported in IMPORTS.items() if any(is_in(name, "fairseq") for name in imported)]
    inside = [str(path.relative_to(ROOT / "pyramidions")) for path in knowing]
    assert [path for path in inside if not path.startswith(FAIRSEQ_FACE)] == []


def test_parts_need_torch_only() -> None:
    names = {name.split(".")[0] for path, imported in IMPORTS.items() if "nn" in path.parts for name in imported}
    assert names - {"pyramidions"} - sys.stdlib_module_names <= STANDARD_AND_TORCH

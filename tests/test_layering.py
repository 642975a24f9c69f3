"""Imports go one way: parts, then models, then fairseq's face, then the commands."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "pyramidions").rglob("*.py"))
# What each layer may import of ours; the longest prefix of a module's name decides.
ALLOWED = {
    "pyramidions": "base",
    "pyramidions.__main__": "cli",
    "pyramidions.base": "base",
    "pyramidions.nn.functional": "base nn.functional",
    # Parts.
    "pyramidions.nn.block_layout": "nn.functional",
    "pyramidions.nn.ngram": "",
    "pyramidions.nn.options": "base",
    "pyramidions.nn.marks": "base",
    "pyramidions.nn.regularised": "",
    "pyramidions.nn.provenance": "base nn.functional",
    "pyramidions.nn.units": "base nn.functional",
    "pyramidions.nn.structure": "base nn.marks",
    "pyramidions.nn.roles": "",
    "pyramidions.nn.sequence": "nn.marks nn.provenance nn.roles nn.sublayer",
    "pyramidions.nn.sublayer": "nn.marks nn.provenance nn.units",
    "pyramidions.nn.positions": "base nn.options nn.functional nn.positions",
    "pyramidions.nn.multiplicative": "nn.functional",
    "pyramidions.nn.output": "base nn.options nn.functional nn.sublayer nn.multiplicative nn.provenance nn.output",
    "pyramidions.nn.projections": "base nn.options nn.functional nn.multiplicative nn.sublayer nn.projections",
    "pyramidions.nn.upsampling": "base nn.options nn.sequence nn.sublayer nn.upsampling",
    "pyramidions.nn.boundaries": "base nn.options nn.functional nn.boundaries",
    "pyramidions.nn.segment_pooling": "base nn.functional nn.sublayer nn.boundaries nn.segment_pooling",
    "pyramidions.nn.attention": (
        "base nn.options nn.functional nn.marks nn.sublayer nn.projections nn.units nn.regularised nn.attention"
    ),
    "pyramidions.nn.recurrence": "base nn.options nn.functional nn.sublayer nn.recurrence",
    "pyramidions.nn.feed_forward": "base nn.options nn.functional nn.sublayer nn.feed_forward",
    "pyramidions.nn.scorer": "base nn.options nn.functional nn.sequence nn.marks nn.scorer",
    "pyramidions.nn.embedding": "nn.functional nn.positions",
    "pyramidions.nn.layer": "nn.functional nn.sublayer",
    "pyramidions.nn.pooling": (
        "base nn.options nn.functional nn.block_layout nn.sequence nn.sublayer nn.scorer nn.layer nn.positions "
        "nn.boundaries nn.regularised nn.pooling"
    ),
    # What composes them.
    "pyramidions.nn.stack": "base nn.options nn.functional nn.sublayer nn.layer nn.stack",
    "pyramidions.nn.stage": (
        "nn.block_layout nn.sequence nn.sublayer nn.attention nn.layer nn.marks nn.pooling nn.units nn.upsampling "
        "nn.stack"
    ),
    "pyramidions.nn.encoder": (
        "nn.attention nn.block_layout nn.sequence nn.embedding nn.layer nn.pooling nn.sublayer nn.provenance nn.roles "
        "nn.stack nn.stage nn.structure nn.units"
    ),
    "pyramidions.nn.selector": "base nn.options nn.functional nn.scorer nn.selector",
    "pyramidions.nn.sentence_ranker": "nn.encoder nn.selector",
    "pyramidions.nn.hourglass": "nn.boundaries nn.functional nn.layer nn.segment_pooling nn.stack nn.sublayer",
    "pyramidions.nn.language_model": "nn.attention nn.boundaries nn.embedding nn.hourglass nn.output nn.stack",
    "pyramidions.nn.decoder": (
        "base nn.options nn.functional nn.sublayer nn.embedding nn.attention nn.layer nn.stack nn.output nn.decoder"
    ),
    "pyramidions.nn": "nn base",
    "pyramidions.models": "base nn models",
    "pyramidions.files": "base files",
    "pyramidions.pages": "base pages text",
    "pyramidions.text": "base text",
    "pyramidions.extract": "base files.hub text extract",
    "pyramidions.documents": "base files text documents",
    "pyramidions.data": "base documents extract files text data",
    "pyramidions.scoring": "base data documents extract.oracle files pages text scoring",
    "pyramidions.inference": "base data documents extract files models nn pages text pretrained inference",
    # The face that transformers sees; nothing of ours imports it.
    "pyramidions.hf": "base models nn pretrained text hf",
    "pyramidions.pretrained": "base data extract files models nn scoring text pretrained",
    "pyramidions.runs.measure": "base models nn runs.measure",
    "pyramidions.runs": "base data documents extract files inference models pretrained text runs",
    # fairseq's face; nothing of ours imports it.
    "pyramidions.plugin.criterions": (
        "base data.labels pretrained.saved_model inference.summarizer nn.boundaries nn.pooling nn.selector text "
        "plugin.criterions plugin.hooks"
    ),
    "pyramidions.plugin": "base data extract files models nn scoring text plugin",
    "pyramidions.serve": "base documents extract files inference serve",
    "pyramidions.cli": (
        "base data documents extract files inference models pages pretrained runs scoring serve text cli"
    ),
}
MAY_IMPORT = {layer: names.split() for layer, names in ALLOWED.items()}
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
        # `lab` lies outside the wheel.
        ours = (one for one in imported if one.startswith(("pyramidions.", "lab")))
        back += [f"{name} imports {one}" for one in ours if not any(is_in(one, other) for other in allowed)]
    assert not back


@pytest.mark.parametrize(("library", "rooms"), [("fairseq", ("plugin/",)), ("transformers", ("hf/", "scoring/"))])
def test_only_some_rooms_know_a_library(library: str, rooms: tuple[str, ...]) -> None:
    knowing = [path for path, imported in IMPORTS.items() if any(is_in(name, library) for name in imported)]
    inside = [str(path.relative_to(ROOT / "pyramidions")) for path in knowing]
    assert inside and [path for path in inside if not path.startswith(rooms)] == []


def test_parts_need_torch_only() -> None:
    of_nn = (imported for path, imported in IMPORTS.items() if path.is_relative_to(ROOT / "pyramidions" / "nn"))
    names = {name.split(".")[0] for imported in of_nn for name in imported}
    assert names - {"pyramidions"} - sys.stdlib_module_names <= STANDARD_AND_TORCH

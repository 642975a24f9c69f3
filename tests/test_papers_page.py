"""docs/papers.md names every preset, metric, corpus and table that is here, and nothing that is not."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pyramidions.nn
from lab.catalogue import read_catalogue
from pyramidions.base.registry import Registry
from pyramidions.cli import main
from pyramidions.data.corpora.table import KNOWN
from pyramidions.data.corpora.texts import TEXTS
from pyramidions.extract.methods import known_methods
from pyramidions.models import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS
from pyramidions.scoring import METRICS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
#: What stands in backticks in the column `here` of any table
NAMED = {
    name
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("|---")
    for name in re.findall(r"`([^`]+)`", line.split(" | ")[1])
}
TABLES = {row.table for row in read_catalogue(ROOT / "configs")} | {"table10"}
GROUPS: dict[str, set[str]] = {
    "presets": {*PRESETS, *EXTRACTOR_PRESETS, *LANGUAGE_MODEL_PRESETS},
    "metrics": {*METRICS.names},
    "corpora": {*KNOWN, *TEXTS},
    "tables": TABLES,
}


def kinds_of_parts() -> set[str]:
    """Return the names in all registries of `pyramidions.nn`."""
    packages = (found.name for found in pkgutil.iter_modules(pyramidions.nn.__path__, "pyramidions.nn."))
    parts: list[Any] = [value for name in packages for value in vars(importlib.import_module(name)).values()]
    return {name for part in parts if isinstance(part, Registry) for name in part.names}


def test_all_of_each_group_are_named() -> None:
    assert {group: names - NAMED for group, names in GROUPS.items() if names - NAMED} == {}


def test_what_is_named_is_there() -> None:
    names = set().union(*GROUPS.values(), kinds_of_parts(), known_methods())
    for name in NAMED - names:
        program, _, rest = name.partition(" ")
        if program == "pyramidions":
            command, *flags = rest.split()
            known = {flag for option in main.get_command(None, command).params for flag in option.opts}  # type: ignore[arg-type, union-attr]
            assert known.issuperset(flags), name
        else:
            assert (ROOT / name).is_file(), name

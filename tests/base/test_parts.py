"""Modules with parts of a user's own."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refused

from pyramidions.base import parts
from pyramidions.base.parts import import_installed, load_parts, loaded
from pyramidions.base.registry import Registry

REGISTRY: Registry[object] = Registry("axis")
CODE = """
import sys

from pyramidions.base.registry import Registry

@sys.modules["pyramidions.base.some_axis"].REGISTRY.register("some")
class Some:
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a part, whose module is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "pyramidions.base.some_axis", SimpleNamespace(REGISTRY=REGISTRY))  # type: ignore[arg-type]
    folder = tmp_path / "parts_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(CODE)
    yield folder
    sys.modules.pop(folder.name, None)
    loaded[:] = []
    REGISTRY._makers.clear()


def test_a_folder_is_imported_once_and_remembered_for_other_processes(folder: Path) -> None:
    load_parts(folder)
    load_parts(folder.parent / "other" / ".." / folder.name)
    assert REGISTRY.names == ("parts_of_a_test.some",) and loaded == [str(folder)]


def test_what_is_installed_is_imported_when_a_name_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(parts, "entry_points", lambda group: [SimpleNamespace(load=lambda: load_parts(folder))])
    import_installed.cache_clear()
    asked += ["parts_of_a_test.other" in REGISTRY, "parts_of_a_test.some" in REGISTRY]
    import_installed.cache_clear()
    assert asked == [False, True]


def test_a_folder_that_is_no_package_or_has_the_name_of_another_module_is_refused(folder: Path) -> None:
    with refused("`user_dir` must be a folder with __init__.py"):
        load_parts(folder.parent)
    (folder.parent / "json").mkdir()
    (folder.parent / "json" / "__init__.py").touch()
    with refused("`user_dir` must have a name that no other module has"):
        load_parts(folder.parent / "json")

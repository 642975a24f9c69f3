"""When the package registers itself with fairseq."""

import importlib
import subprocess
import sys

import fairseq
import pytest

import pyramidions


def test_it_registers_itself_where_fairseq_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fairseq
    monkeypatch.delitem(sys.modules, "pyramidions.plugin", raising=False)
    monkeypatch.delattr(pyramidions, "plugin", raising=False)
    importlib.reload(pyramidions)
    assert "pyramidions.plugin" in sys.modules


def test_whatever_the_program_is_called_it_imports_neither_fairseq_nor_torch() -> None:
    program = "import sys, pyramidions; print({'fairseq', 'torch'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

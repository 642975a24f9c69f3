"""The environment that scripts/setup.sh makes, and the commit that outputs name."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lab.environment import commit


def test_the_commit_is_of_code_that_git_tracks(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@y.z"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert commit(package) == "unknown"
    git("init")
    git("commit", "--allow-empty", "-m", "somebody else's")
    assert commit(package) == "unknown"
    git("add", ".")
    git("commit", "-m", "ours")
    head = git("rev-parse", "HEAD").strip()
    assert commit(package) == head
    (package / "__init__.py").write_text("changed = True")
    assert commit(package) == f"{head}-dirty"


def test_the_torchaudio_that_breaks_transformers_is_not_installed() -> None:
    assert find_spec("torchaudio") is None


@pytest.mark.nightly
def test_transformers_can_be_imported_and_pip_misses_only_torchaudio() -> None:
    code = "from transformers import LEDForConditionalGeneration"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    found = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, timeout=300)
    assert found.stdout == "fairseq-fixed 0.12.3.1 requires torchaudio, which is not installed.\n"

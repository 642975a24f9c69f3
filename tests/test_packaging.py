"""What the package promises to pip, and what the set-up script says when it cannot go on."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import setuptools
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted([*ROOT.glob("scripts/*.sh"), ROOT / ".ci" / "run"])

Requirements = dict[str, list[Requirement]]

# The machine of somebody who did not ask for [train]: no finder knows these packages.
WITHOUT_TRAIN = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"fairseq", "hydra", "omegaconf", "rouge_score", "datasets", "pyarrow"}:
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""

# setup.py itself is asked, not the metadata of the last installation.
PRINT_REQUIREMENTS = """
import json, runpy, setuptools
declared = {}
setuptools.setup = lambda **arguments: declared.update(arguments)
runpy.run_path("setup.py")
print(json.dumps({"": declared["install_requires"], **declared["extras_require"]}))
"""


def run(
    *command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    words = [str(part) for part in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, env=env, cwd=cwd)


@pytest.fixture(scope="module")
def requirements() -> Requirements:
    """The requirements that setup.py declares, by extra; "" is the base install."""
    done = run(sys.executable, "-c", PRINT_REQUIREMENTS, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return {extra: [Requirement(line) for line in lines] for extra, lines in json.loads(done.stdout).items()}


@pytest.mark.parametrize(
    "module",
    ["pyramidions", "pyramidions.nn", "pyramidions.models.builder", "pyramidions.data", "pyramidions.cli"],
)
def test_the_base_install_imports_without_fairseq(module: str) -> None:
    done = run(sys.executable, "-c", f"{WITHOUT_TRAIN}\nimport {module}")
    assert done.returncode == 0, done.stderr


def test_importing_the_plugin_leaves_the_root_logger_alone() -> None:
    code = "import logging, pyramidions, fairseq; print(logging.root.level, logging.root.handlers)"
    done = run(sys.executable, "-c", code)
    assert done.stdout.splitlines()[-1] == "30 []", done.stderr


def test_every_requirement_is_bounded_above(requirements: Requirements) -> None:
    far_away = Version("1000000")
    for extra, declared in requirements.items():
        for requirement in declared:
            assert far_away not in requirement.specifier, f"[{extra}] {requirement}"


def test_what_is_installed_here_satisfies_every_requirement(requirements: Requirements) -> None:
    for requirement in {str(one): one for declared in requirements.values() for one in declared}.values():
        assert distribution(requirement.name).version in requirement.specifier, requirement


def test_the_base_install_needs_neither_fairseq_nor_a_compiler(requirements: Requirements) -> None:
    names = {one.name for one in requirements[""]}
    assert names.isdisjoint({"fairseq", "fairseq-fixed", "torchaudio", "cython"})


def test_dev_brings_all_of_train(requirements: Requirements) -> None:
    assert {str(one) for one in requirements["train"]} <= {str(one) for one in requirements["dev"]}


def test_scripts_and_metadata_agree_on_fairseq_and_torch(requirements: Requirements) -> None:
    setup = (ROOT / "scripts" / "setup.sh").read_text()
    fairseq = next(one for one in requirements["train"] if one.name == "fairseq-fixed")
    assert f'fairseq="{fairseq}"' in setup
    torch = next(one for one in requirements[""] if one.name == "torch")
    found = re.search(r"torch_version=(\S+)", setup)
    assert found is not None
    assert found[1] in torch.specifier


def test_the_python_range_is_the_one_fairseq_names() -> None:
    supported = SpecifierSet(distribution("pyramidions").metadata["Requires-Python"])
    assert [minor for minor in range(8, 20) if f"3.{minor}.0" in supported] == [11, 12]


def test_every_folder_with_code_is_packaged() -> None:
    folders = {path.parent for path in (ROOT / "pyramidions").rglob("*.py")}
    missing = [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()]
    assert missing == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what pip reads, in a folder with a space, so that no build file lands in the repository."""
    folder = tmp_path / "a copy"
    shutil.copytree(ROOT / "pyramidions", folder / "pyramidions", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("setup.py", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def would_install(python: Path | str, target: str, folder: Path) -> set[str]:
    """Return the names that pip would install into the environment of ``python``."""
    report = folder / "report.json"
    done = run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python),
        *("install", "--dry-run", "--quiet", "--no-build-isolation", "--report", report, target),
    )
    assert done.returncode == 0, done.stderr
    return {item["metadata"]["name"].lower() for item in json.loads(report.read_text())["install"]}


@pytest.mark.parametrize("extra", ["", "[train]"])
def test_beside_the_torch_that_is_here_nothing_is_fetched(source: Path, tmp_path: Path, extra: str) -> None:
    assert would_install(sys.executable, f"{source}{extra}", tmp_path) == {"pyramidions"}


def test_a_clean_environment_with_torch_gets_no_second_torch(source: Path, tmp_path: Path) -> None:
    python = tmp_path / "clean" / "bin" / "python"
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean").returncode == 0
    folder = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    # To pip, torch is installed where its metadata lie: its 700 MB need not be copied.
    for name in ("torch", "setuptools"):
        metadata = Path(str(distribution(name)._path))
        shutil.copytree(metadata, Path(folder) / metadata.name)
    for package in ("setuptools", "_distutils_hack"):
        shutil.copytree(Path(setuptools.__file__).parents[1] / package, Path(folder) / package)

    names = would_install(python, str(source), tmp_path)
    assert {"pyramidions", "numpy", "sentencepiece"} <= names
    assert not [name for name in names if re.match("torch|nvidia|cuda|triton|fairseq", name)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_executable_and_parses(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert run("bash", "-n", script).returncode == 0


def fake(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return path


def tools_only(folder: Path) -> Path:
    """A PATH with the few tools that the set-up calls, and neither Python nor compiler."""
    folder.mkdir()
    for name in ["bash", "env", "cat", "cksum", "dirname", "grep", "head", "mkdir", "mktemp", "rm", "tail", "touch"]:
        tool = shutil.which(name)
        assert tool is not None
        (folder / name).symlink_to(tool)
    return folder


def refusal(source: Path, **env: str) -> str:
    """Run the set-up, which must fail before it makes anything, and return what it says."""
    done = run(source / "scripts" / "setup.sh", env={"PATH": os.environ["PATH"], **env})
    assert done.returncode == 1
    assert done.stdout == ""
    assert not (source / ".venv").exists()
    return done.stderr


def test_setup_refuses_too_old_a_python(source: Path, tmp_path: Path) -> None:
    old = fake(tmp_path / "bin", "python3.10", "echo 3.10")
    assert refusal(source, PYTHON=str(old)) == (
        f"setup: pyramidions needs Python 3.11 or 3.12, but PYTHON={old} is Python 3.10.\n"
    )


def test_setup_refuses_a_machine_with_an_old_python_only(source: Path, tmp_path: Path) -> None:
    tools = tools_only(tmp_path / "bin")
    fake(tools, "python3", "echo 3.9")
    assert refusal(source, PATH=str(tools)) == (
        "setup: pyramidions needs Python 3.11 or 3.12, but python3 is Python 3.9; "
        "install one, or name it with PYTHON=/path/to/python3.11.\n"
    )


def test_setup_refuses_a_python_that_does_not_run(source: Path) -> None:
    said = refusal(source, PYTHON="/nowhere/python")
    assert said == "setup: PYTHON=/nowhere/python is not a Python that runs.\n"


@pytest.mark.parametrize("compiler", ["missing", "broken"])
def test_setup_refuses_a_machine_without_a_working_compiler(source: Path, tmp_path: Path, compiler: str) -> None:
    tools = tools_only(tmp_path / "bin")
    if compiler == "broken":
        fake(tools, "g++", "exit 1")
    assert refusal(source, PATH=str(tools), PYTHON=sys.executable) == (
        "setup: fairseq is compiled here and no C++ compiler works (tried g++, c++, clang++); "
        "install one (Debian, Ubuntu: g++; macOS: xcode-select --install).\n"
    )


def test_setup_refuses_an_extra_that_does_not_exist(source: Path) -> None:
    done = run(source / "scripts" / "setup.sh", "everything")
    assert done.returncode == 1
    assert done.stderr == "setup: the extra must be train or dev, but it is 'everything'.\n"

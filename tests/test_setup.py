"""What scripts/setup.sh installs on which machine, and what it says when it cannot go on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GPU = "NVIDIA H100 80GB HBM3"
CPU_BUILD, CUDA_BUILD = "torch==2.13.0+cpu", "torch==2.13.0"

# A Python of which only the venv module and pip are called: it notes what pip installs, and pretends to have it.
PYTHON = """
[[ $1 == -I ]] && shift
case "$1 $2" in
    "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo "#!$3/bin/python" >"$3/bin/pip" ;;
    "-m pip")
        shift 3
        if [[ $* == *--dry-run* ]]; then echo "${NO_CPU_BUILD:-}"; exit; fi
        echo "$*" >>"$INSTALLED"
        [[ $2 == torch* ]] && echo "${2#torch==}" >"${0%/*}/torch"
        touch "${0%/*}"/{pyramidions,fairseq-train}
        chmod +x "${0%/*}"/{pyramidions,fairseq-train} ;;
    *version_info*) echo "${VERSION:-3.13}" ;;
    *is_available*) echo "$(<"${0%/*}/torch") ${CUDA_WORKS:-False}" ;;
    *importlib.metadata*) echo "torch==$(<"${0%/*}/torch")" ;;
esac
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what the set-up reads, in a folder with a space."""
    folder = tmp_path / "a copy"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("setup.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def run(*command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)


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


def test_setup_names_what_it_lacks(source: Path, tmp_path: Path) -> None:
    assert refusal(source, PYTHON="/nowhere/python").endswith(" is not a Python that runs.\n")
    tools = tools_only(tmp_path / "bin")
    asked = "the set-up needs Python 3.11, 3.12 or 3.13, but"
    fake(tools, "python3", "echo 3.9")
    assert f"{asked} python3 is Python 3.9; install one" in refusal(source, PATH=str(tools))
    for version in ("3.1", "3.10", "3.14"):
        python = fake(tmp_path / "named", "python", f"echo {version}")
        assert f"{asked} PYTHON={python} is Python {version}.\n" in refusal(source, PYTHON=str(python))
    for compiler in ("missing", "broken"):
        if compiler == "broken":
            fake(tools, "g++", "exit 1")
        said = refusal(source, PATH=str(tools), PYTHON=sys.executable)
        assert "no C++ compiler works (tried g++, c++, clang++)" in said
    done = run(source / "scripts" / "setup.sh", "everything")
    assert done.returncode == 1 and "must be train or dev, but it is 'everything'" in done.stderr


class Machine:
    """A machine whose Python, compiler and GPU are pretended; its disk is real."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source = source
        self.tools = folder / "tools"
        self.installed = folder / "installed"
        self.installed.touch()
        fake(self.tools, "python3.13", PYTHON)
        fake(self.tools, "g++", "exit 0")
        fake(self.tools, "nvidia-smi", f"echo 'GPU 0: {GPU} (UUID: GPU-1)'; echo 'GPU 1: {GPU} (UUID: GPU-2)'")

    def without_gpu(self) -> "Machine":
        fake(self.tools, "nvidia-smi", "echo 'No devices were found'; exit 6")
        return self

    def set_up(self, **env: str) -> str:
        """Run the set-up to its end; return what it says."""
        python = str(self.tools / "python3.13")
        path = f"{self.tools}:{os.environ['PATH']}"
        known = {"PATH": path, "PYTHON": python, "INSTALLED": str(self.installed)}
        done = run(self.source / "scripts" / "setup.sh", env={**known, **env})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def torch(self) -> list[str]:
        """Every torch that was installed, one after the other."""
        words = [line.split()[1:] for line in self.installed.read_text().splitlines()]
        return [" ".join(one) for one in words if one[0].startswith("torch")]


@pytest.fixture
def machine(source: Path, tmp_path: Path) -> Machine:
    """A machine with two GPUs."""
    return Machine(source, tmp_path)


def test_a_machine_with_a_gpu_gets_the_cuda_build_and_hears_whether_it_works(machine: Machine) -> None:
    said = machine.set_up(CUDA_WORKS="True")
    assert f"torch is the CUDA build, several GB, for the GPU ({GPU}) (TORCH=... chooses another)." in said
    assert said.endswith(f"  torch 2.13.0 computes on the GPU ({GPU}).\n")
    assert machine.torch == [CUDA_BUILD]
    # A torchaudio of another torch does not stay.
    assert machine.installed.read_text().splitlines()[-1] == "uninstall --yes torchaudio"
    assert f"torch 2.13.0 cannot use the GPU ({GPU}), perhaps because its driver is too old" in machine.set_up()


def test_a_machine_without_a_gpu_gets_the_cpu_build_where_the_index_has_one(machine: Machine) -> None:
    said = machine.without_gpu().set_up(NO_CPU_BUILD="ERROR: No matching distribution found for torch")
    assert "The package index has no torch==2.13.0+cpu, so torch==2.13.0 is taken instead" in said
    shutil.rmtree(machine.source / ".venv")
    assert "torch is the CPU build (TORCH=... chooses another)." in machine.set_up()
    assert machine.torch == [CUDA_BUILD, CPU_BUILD]


def test_a_finished_environment_keeps_its_torch_beside_a_gpu_and_says_how_to_change_it(machine: Machine) -> None:
    with_gpu = (machine.tools / "nvidia-smi").read_text()
    machine.without_gpu().set_up()
    (machine.tools / "nvidia-smi").write_text(with_gpu)
    said = machine.set_up()
    assert f"torch 2.13.0+cpu does not use the GPU ({GPU}): TORCH=torch==2.13.0 scripts/setup.sh train installs" in said
    assert machine.torch == [CPU_BUILD]
    machine.set_up(TORCH="torch==2.13.0")
    assert machine.torch == [CPU_BUILD, CUDA_BUILD]


def test_the_torch_that_was_asked_for_once_is_kept_by_later_runs(machine: Machine) -> None:
    assert "with Python 3.11, 3 to 5 minutes" in machine.set_up(TORCH="torch==2.12.0 --pre", VERSION="3.11")
    machine.without_gpu().set_up()
    assert machine.torch == ["torch==2.12.0 --pre"]
    # Broken, it is made anew with the same torch.
    (machine.source / ".venv" / "bin" / "pyramidions").unlink()
    assert "made anew" in machine.set_up()
    assert machine.torch == ["torch==2.12.0 --pre"] * 2

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


def test_setup_refuses_a_machine_with_an_old_python_only(source: Path, tmp_path: Path) -> None:
    tools = tools_only(tmp_path / "bin")
    fake(tools, "python3", "echo 3.9")
    assert refusal(source, PATH=str(tools)) == (
        "setup: the set-up needs Python 3.11, 3.12 or 3.13, but python3 is Python 3.9; "
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


def test_a_machine_with_a_gpu_gets_the_cuda_build_and_hears_of_it(machine: Machine) -> None:
    said = machine.set_up(CUDA_WORKS="True")
    assert f"torch is the CUDA build, several GB, for the GPU ({GPU}) (TORCH=... chooses another)." in said
    assert said.endswith(f"  torch 2.13.0 computes on the GPU ({GPU}).\n")
    assert machine.torch == [CUDA_BUILD]


def test_a_machine_without_a_gpu_gets_the_cpu_build(machine: Machine) -> None:
    said = machine.without_gpu().set_up()
    assert "torch is the CPU build (TORCH=... chooses another)." in said
    assert said.endswith("/bin/activate` puts its commands on the path.\n")
    assert machine.torch == [CPU_BUILD]


def test_a_torchaudio_of_another_torch_does_not_stay(machine: Machine) -> None:
    said = machine.set_up()
    assert machine.installed.read_text().splitlines()[-1] == "uninstall --yes torchaudio"
    assert "torchaudio, which no text needs, taken out again; pip check will miss it" in said


def test_an_index_without_a_cpu_build_gives_the_plain_one_and_the_user_hears_of_it(machine: Machine) -> None:
    said = machine.without_gpu().set_up(NO_CPU_BUILD="ERROR: No matching distribution found for torch")
    assert "The package index has no torch==2.13.0+cpu, so torch==2.13.0 is taken instead" in said
    assert machine.torch == [CUDA_BUILD]


def test_a_gpu_that_torch_cannot_use_is_told(machine: Machine) -> None:
    assert f"torch 2.13.0 cannot use the GPU ({GPU}), perhaps because its driver is too old" in machine.set_up()


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
    machine.set_up(TORCH="torch==2.12.0 --pre")
    machine.without_gpu().set_up()
    assert machine.torch == ["torch==2.12.0 --pre"]
    # Broken, it is made anew with the same torch.
    (machine.source / ".venv" / "bin" / "pyramidions").unlink()
    assert "made anew" in machine.set_up()
    assert machine.torch == ["torch==2.12.0 --pre"] * 2


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_setup_takes_every_python_that_was_tried(machine: Machine, version: str) -> None:
    assert f"with Python {version}, 3 to 5 minutes" in machine.set_up(VERSION=version)


@pytest.mark.parametrize("version", ["3.1", "3.10", "3.14"])
def test_setup_refuses_a_python_that_was_not_tried(source: Path, tmp_path: Path, version: str) -> None:
    python = fake(tmp_path / "bin", "python", f"echo {version}")
    assert refusal(source, PYTHON=str(python)) == (
        f"setup: the set-up needs Python 3.11, 3.12 or 3.13, but PYTHON={python} is Python {version}.\n"
    )

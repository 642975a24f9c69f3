"""What computes: commit, versions and hardware, and why torch finds no GPU."""

import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from pyramidions import base


def versions() -> dict[str, str]:
    """Return the versions of Python, torch and pyramidions, and of fairseq where it is installed."""
    known = {"python": platform.python_version(), "torch": torch.__version__, "pyramidions": base.__version__}
    try:
        return {**known, "fairseq": version("fairseq-fixed")}
    except PackageNotFoundError:
        return known


def commit(folder: Path = Path(base.__file__).parent) -> str:
    """Return the commit of a package's code, with "-dirty" if files were changed since; "unknown" outside git."""
    # The package may lie in the repository of somebody else, who does not track it.
    ours = _git(folder, "ls-files", "--error-unmatch", "__init__.py")
    return (ours and _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")) or "unknown"


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def hardware(device: str) -> dict[str, Any]:
    """Return what computes: the device's name, threads of the CPU, and how torch multiplies float32 matrices."""
    if device == "cuda":
        name = torch.cuda.get_device_name()
    else:
        cpus = Path("/proc/cpuinfo")
        found = re.search(r"^model name\s*: *(.*\S)", cpus.read_text() if cpus.exists() else "", re.MULTILINE)
        name = found[1] if found else platform.processor() or platform.machine()
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def why_no_gpu() -> str:
    """Return why torch finds no GPU, in words that go on after a colon, and what helps."""
    name = _first_gpu()
    if name is None:
        return "torch finds no GPU"
    if torch.version.cuda is None:
        plain = torch.__version__.partition("+")[0]
        return (
            f"torch {torch.__version__} is built without CUDA and cannot use this machine's GPU ({name}); "
            f"TORCH=torch=={plain} scripts/setup.sh installs a build that can"
        )
    return (
        f"torch {torch.__version__} finds none, though this machine has a GPU ({name}): its driver may be too old for "
        f"CUDA {torch.version.cuda}, or CUDA_VISIBLE_DEVICES may hide it"
    )


def _first_gpu() -> str | None:
    """Return the name of the first NVIDIA GPU that the driver lists."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^GPU \d+: (.*) \(UUID", listed, re.MULTILINE)
    return found[1] if found else None

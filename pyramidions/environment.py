"""What figures were computed with: commit, versions and hardware."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from pyramidions import __version__


def versions() -> dict[str, str]:
    """Return the versions of Python, torch and pyramidions, and of fairseq where it is installed."""
    known = {"python": platform.python_version(), "torch": torch.__version__, "pyramidions": __version__}
    try:
        return {**known, "fairseq": version("fairseq-fixed")}
    except PackageNotFoundError:
        return known


def commit(folder: Path = Path(__file__).parent) -> str:
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
        lines = cpus.read_text().splitlines() if cpus.exists() else []
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else platform.processor() or platform.machine()
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }

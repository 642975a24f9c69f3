"""Why torch finds no GPU: there is none, or this torch cannot use the one that is there."""

import re
import subprocess

import torch


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

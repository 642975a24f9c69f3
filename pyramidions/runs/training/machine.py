"""What a run computes on."""

import os
import subprocess
import sys
from typing import NamedTuple

from pyramidions.base.errors import UserError

_GPU_BYTES = "import torch; print(min(torch.cuda.get_device_properties(i).total_memory for i in range({})))"


class Machine(NamedTuple):
    """What a run computes on.

    Attributes:
        gpus: number of GPUs; 0 for the CPU.
        memory: bytes of each GPU, or of the CPU, that a training may take.
    """

    gpus: int
    memory: float

    @property
    def workers(self) -> int:
        """Processes that train together."""
        return max(self.gpus, 1)

    @property
    def flags(self) -> tuple[str, ...]:
        """How fairseq is told."""
        return ("--distributed-world-size", str(self.gpus)) if self.gpus else ("--cpu",)

    @property
    def name(self) -> str:
        """In words."""
        return "the CPU" if not self.gpus else "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"


def find_machine(gpus: int | None) -> Machine:
    """Return this machine.

    Args:
        gpus: to take; 0 for the CPU, None for all that there are.

    Raises:
        UserError: there are fewer.
    """
    if gpus == 0:
        return Machine(0, _cpu_bytes())
    import torch

    found = torch.cuda.device_count()
    if gpus is not None and gpus > found:
        raise UserError(f"--gpus must be at most {found}, the number of GPUs that torch finds, but is {gpus}.")
    if not found:
        return Machine(0, _cpu_bytes())
    gpus = gpus or found
    # Asked by another process: this one would hold some of the memory as long as it runs.
    done = subprocess.run([sys.executable, "-c", _GPU_BYTES.format(gpus)], capture_output=True, text=True, check=True)
    return Machine(gpus, 0.8 * float(done.stdout))


def _cpu_bytes() -> float:
    return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

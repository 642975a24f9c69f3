"""The memory that work takes at its peak, each measurement in a process of its own."""

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

# On its own the C library keeps freed tensors of up to 32 MB, and the peak is then partly its own. The vectors of a few
# hundred segments have less than a megabyte.
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "100000"}
_OUT_OF_MEMORY = ("OutOfMemoryError", "MemoryError", "DefaultCPUAllocator")


def _bytes(name: str) -> int:
    """Return a figure of /proc/self/status, in bytes: VmRSS is in memory now, VmHWM the most there was.

    getrusage's figure will not do: a process begins with its parent's.
    """
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"Linux must say {name} in /proc/self/status, but does not.")
    return int(found[1]) * 1024


class _Mallinfo(ctypes.Structure):
    """What the C library says of its memory (man 3 mallinfo; glibc 2.33)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "_")
    ]


def allocated() -> int:
    """Return the bytes that this process has asked the C library for and not given back: tensors, and what is beside.

    It is exact to kilobytes, where `peak` counts to about a megabyte.
    """
    read = ctypes.CDLL(None).mallinfo2
    read.restype = _Mallinfo
    found = read()
    # In the heap, and in pages of their own.
    return int(found.uordblks + found.hblkhd)


def peak(work: Callable[[], object], device: str = "cpu") -> float:
    """Return what ``work`` takes at its peak beyond what this process holds before it, in 10^6 bytes."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    # The most there was is from here on counted anew (man 5 proc).
    Path("/proc/self/clear_refs").write_text("5")
    before = _bytes("VmRSS")
    work()
    return (_bytes("VmHWM") - before) / 1e6


def peak_of_process(arguments: Sequence[object]) -> float | None:
    """Run this program again with other arguments, and return the peak that it prints; None if memory did not suffice.

    A process that fails for another reason ends this one, too.
    """
    lines, sufficed = _run(arguments)
    return float(lines[-1]) if sufficed else None


def peaks_of_process(arguments: Sequence[object]) -> list[float]:
    """Run this program as `peak_of_process` does; return all peaks that it prints, one a line, until memory ran out."""
    return [float(line) for line in _run(arguments)[0]]


def _run(arguments: Sequence[object]) -> tuple[list[str], bool]:
    """Return the lines that the process prints, and whether memory sufficed."""
    done = subprocess.run(
        [sys.executable, sys.argv[0], *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **_ENVIRONMENT},
    )
    # A process that the kernel kills for its memory says nothing.
    ran_out = done.returncode == -signal.SIGKILL or any(word in done.stderr for word in _OUT_OF_MEMORY)
    if done.returncode and not ran_out:
        sys.exit(done.stderr)
    return done.stdout.splitlines(), not ran_out

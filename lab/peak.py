"""Peak memory of a training: of its process on a CPU, and what it allocated on a GPU."""

import re
from pathlib import Path
from typing import Any

_RESIDENT = "# peak memory of the process: {} B\n"
_TOLD = re.compile(r"^# peak memory of the process: (\d+) B$", re.MULTILINE)
_TOTAL = re.compile(r"total memory = ([\d.]+) GB")
_FREE = re.compile(r"gb_free[\": =]+([\d.]+)")  # of --log-format json, and of simple before 0.3.0


def resident_peak(pid: int) -> int:
    """Return the bytes that a process had in memory at most so far; 0 where the system does not say, or it has ended.

    The peak never falls, so that asking once near the end is enough.
    """
    try:
        status = Path("/proc", str(pid), "status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def told(peak: int) -> bytes:
    """Return the line by which a log tells of the peak of a process, in bytes; nothing if it is not known."""
    return _RESIDENT.format(peak).encode() if peak else b""


def training_memory(log: Path, gpus: int) -> dict[str, Any] | None:
    """Return the peak memory of a training, over all runs that it took; None if its log does not tell.

    Args:
        log: of the training.
        gpus: that it used. On a GPU the peak is what the first process allocated, which fairseq logs to 0.1 GiB.

    Returns:
        "bytes", and "of": "process" or "gpu".
    """
    text = log.read_text(errors="replace")
    if not gpus:
        peaks = [int(peak) for peak in _TOLD.findall(text)]
        return {"bytes": max(peaks), "of": "process"} if peaks else None
    total, free = ([float(number) for number in of.findall(text)] for of in (_TOTAL, _FREE))
    return {"bytes": round((max(total) - min(free)) * 2**30), "of": "gpu"} if total and free else None

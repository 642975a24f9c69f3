"""Runs a program of the environment and harms it at a chosen call.

    python lab/benchmarks/fault_injection.py kill-in-copy shutil.copyfile '*checkpoint_last.pt' 2 fairseq-train ...

A line on standard error says that the fault has come. The call is an audit event of Python (`open`, `os.rename`,
`os.remove`, `shutil.copyfile`, ...) one of whose arguments is a path that matches the pattern, for the n-th time. The
program itself is not changed.

    kill            SIGKILL in place of the call
    kill-in-copy    SIGKILL when half of the file is copied
    full            the disk stays full
    nearly-full     the disk stays full but for a part of a checkpoint
    full-a-second   the same, but for one second

A disk is filled by a file where it is small (a tmpfs that the campaign has mounted). Elsewhere a limit on the size of
the program's files stands in for it.
"""

import fnmatch
import os
import resource
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

SMALL_DISK = 64 * 2**20  # bytes; a larger disk is not filled
ROOM = 200_000  # bytes that a nearly full disk has left, or that a file may have in its place
FILLER, STRUCK = "filler", "The fault has come."
FAULTS = ("kill", "kill-in-copy", "full", "nearly-full", "full-a-second")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_in_copy(source: str, target: str) -> None:
    content = Path(source).read_bytes()
    Path(target).write_bytes(content[: len(content) // 2])
    _die()


def _fill(folder: Path, room: int) -> Callable[[], None]:
    """Fill the disk of a folder but for ``room`` bytes; return what makes room again."""
    disk = os.statvfs(folder)
    if disk.f_blocks * disk.f_frsize > SMALL_DISK:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    filler = next(each for each in (folder, *folder.parents) if each.is_mount()) / FILLER
    filler.write_bytes(bytes(max(0, disk.f_bavail * disk.f_frsize - room)))
    return filler.unlink


def _fill_for_a_second(folder: Path) -> None:
    timer = threading.Timer(1.0, _fill(folder, ROOM))
    timer.daemon = True
    timer.start()


def harm(fault: str, event: str, pattern: str, number: int) -> None:
    """Wait, in this process and its children, for the n-th such call."""
    seen = 0

    def hook(name: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if name != event or seen >= number:
            return
        paths = [os.fsdecode(each) for each in arguments if isinstance(each, str | bytes | os.PathLike)]
        # Of opened files only those that are written.
        if event == "open" and not (isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")):
            return
        place = next((path for path in paths if fnmatch.fnmatch(path, pattern)), None)
        if place is None:
            return
        seen += 1
        if seen < number:
            return
        os.write(2, f"{STRUCK}\n".encode())
        if fault == "kill":
            _die()
        elif fault == "kill-in-copy":
            _die_in_copy(paths[0], paths[1])
        elif fault == "full-a-second":
            _fill_for_a_second(Path(place).parent)
        else:
            _fill(Path(place).parent, ROOM if fault == "nearly-full" else 0)

    sys.addaudithook(hook)


def main() -> None:
    """Run the program with the fault."""
    if len(sys.argv) < 6 or sys.argv[1] not in FAULTS:
        sys.exit(str(__doc__))
    fault, event, pattern, number, program = sys.argv[1:6]
    script = Path(sys.executable).parent / program
    sys.argv = [str(script), *sys.argv[6:]]
    harm(fault, event, pattern, int(number))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()

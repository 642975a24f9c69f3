import multiprocessing
import os
import signal
import subprocess
import sys

import pytest
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.base.notes import listening, note
from pyramidions.files.parallel import KilledError, chunks, in_process, ordered_map


def _square(x):
    return x * x


def _process(_):
    return os.getpid()


def _fail_at_three(x):
    if x == 3:
        raise ValueError("three")
    return x


def _die_at_three(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items_and_errors_reach_the_caller(workers):
    assert list(ordered_map(_square, range(50), workers)) == [x * x for x in range(50)]
    # One worker is this process.
    assert (os.getpid() in set(ordered_map(_process, range(4), workers))) == (workers == 1)
    with pytest.raises(ValueError):
        list(ordered_map(_fail_at_three, range(10), workers))
    if workers > 1:
        with refused("--workers"):
            list(ordered_map(_die_at_three, range(10), workers))


def test_items_are_read_only_as_far_as_needed():
    read = []
    results = ordered_map(_square, (read.append(x) or x for x in range(1000)), 2)
    next(results)
    assert len(read) <= 9
    results.close()
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (lambda: signal.raise_signal(signal.SIGUSR1), KilledError, "ended by SIGUSR1"),
        (lambda: signal.raise_signal(signal.SIGKILL), KilledError, "was killed, perhaps for lack of memory"),
        (lambda: sys.exit(3), KilledError, "ended with exit status 3"),
        (lambda: lambda: 1, Exception, "ickle"),
        (lambda: _raise(ValueError(lambda: 1)), RuntimeError, "ValueError(<function"),
        (lambda: _raise(MemoryError("x")), MemoryError, "x"),
    ],
)
def test_a_process_tells_how_it_ended(work, error, message):
    with refused(message, error):
        in_process(work)
    # A daemon process can start no other.
    with multiprocessing.get_context("fork").Pool(1) as pool, pytest.raises(UserError):
        pool.apply(in_process, (os.getpid,))


def _raise(error):
    raise error


LIMITED = """if True:
    import resource
    from pyramidions.files.parallel import in_process

    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS)
    for kind, most in zip(kinds, (40, 2**32)):
        resource.setrlimit(kind, (most, most))
    for seconds, memory in ((60, 2**34), (20, 2**20)):
        cpu, space = in_process(lambda: list(map(resource.getrlimit, kinds)), seconds=seconds, memory=memory)
        print(cpu, space[0] <= 2**32, space == (2**32, 2**32))
"""


def test_a_process_keeps_the_limits_that_a_shell_has_set_where_they_are_lower() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["(40, 40) True True", "(20, 20) True False"], done.stderr


MASKS = """if True:
    import os, signal
    from pyramidions.files.parallel import ordered_map

    def waits(_=None):
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    os.register_at_fork(after_in_child=lambda: os.write(1, b"born waiting\\n" if waits() else b"born open\\n"))
    assert list(ordered_map(waits, [1, 2], 2)) == [False, False] and not waits()
"""


def test_signals_wait_until_a_worker_is_set_up() -> None:
    # A worker that is interrupted before would take the pool's lock with it, and the pool would never end.
    done = subprocess.run([sys.executable, "-c", MASKS], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "born waiting\n" * 2


STOPPED = """if True:
    import os, signal, sys, threading, time
    from concurrent.futures import process
    from pyramidions.files.parallel import ordered_map

    class Stopped(BaseException):
        pass

    def stop(*_):
        raise Stopped

    class Manager(process._ExecutorManagerThread):
        def __init__(self, *args):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
            super().__init__(*args)

    process._ExecutorManagerThread = Manager
    signal.signal(signal.SIGTERM, stop)
    # As the thread of a progress bar: the system hands it the signal that the main thread blocks.
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    try:
        list(ordered_map(abs, [1, 2], 2))
    except Stopped:
        print("stopped")
"""


def test_a_signal_while_the_workers_start_ends_them_too() -> None:
    # The pool has workers but no thread that feeds them yet: the process waited for them at its end.
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "stopped\n"


def test_the_notes_of_a_process_reach_who_listens(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        note("Two.")
        raise UserError("no")

    heard: list[str] = []
    with listening(heard.append):
        in_process(lambda: note("One."))
        with pytest.raises(UserError):
            in_process(fails)
    assert heard == ["One.", "Two."] and capsys.readouterr().err == ""
    in_process(lambda: note("Three."))
    assert capsys.readouterr().err == "Three.\n"

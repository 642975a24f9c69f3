import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from full_disk import files_of_at_most

from pyramidions.base.errors import UserError
from pyramidions.files import atomic
from pyramidions.files.atomic import atomic_file, atomic_folder, hold_folder, write_file, written_together
from pyramidions.files.parallel import KilledError


def test_files_and_folders_appear_when_they_are_whole_and_an_error_leaves_the_old_ones(tmp_path):
    path = tmp_path / "out.json"
    with atomic_file(path) as file:
        file.write(b"new")
        assert not path.exists()
    with pytest.raises(KeyError), atomic_file(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]
    path = tmp_path / "deep" / "data"
    left = tmp_path / "deep" / ".data.partial"
    # What a killed run left is removed.
    (left / "folder").mkdir(parents=True)
    (left / "a").write_text("half")
    with atomic_folder(path) as partial:
        assert list(partial.glob("[!.]*")) == []
        (partial / "a").write_text("new")
        assert not path.exists()
    with pytest.raises(KeyError), atomic_folder(path) as partial:
        (partial / "a").write_text("half")
        raise KeyError
    assert (path / "a").read_text() == "new" and list(path.parent.iterdir()) == [path]


def _interrupt(path, key, error=KeyboardInterrupt):
    with pytest.raises(error), atomic_folder(path, key) as partial:
        (partial / "a").write_text("half")
        raise error("stop")


def test_what_an_interrupted_run_left_is_there_for_the_next_one_with_its_key(tmp_path):
    for error in (KeyboardInterrupt, SystemExit, KilledError):
        _interrupt(tmp_path / "data", "one", error)
        with pytest.raises(SystemExit), atomic_folder(tmp_path / "data", "one") as partial:
            assert (partial / "a").read_text() == "half"
            (partial / "a").unlink()
            raise SystemExit
    _interrupt(tmp_path / "data", "one")
    with atomic_folder(tmp_path / "data", "one") as partial:
        (partial / ".hidden").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["a"]


def test_an_error_an_interruption_without_a_key_and_the_run_of_another_leave_nothing(tmp_path):
    for key, error in (("one", KeyError), ("one", OSError), (None, KeyboardInterrupt)):
        _interrupt(tmp_path / "data", key, error)
        assert list(tmp_path.iterdir()) == []
    for key in ("two", None):
        _interrupt(tmp_path / "data", "one")
        with atomic_folder(tmp_path / "data", key) as partial:
            assert not (partial / "a").exists()


def test_a_folder_moved_aside_comes_back_and_leaves_what_an_interrupted_run_left(tmp_path):
    _interrupt(tmp_path / "data", "one")
    aside = tmp_path / ".data.replaced"
    for replaced in (False, True):
        aside.mkdir()
        (aside / "a").write_text("old")
        atomic.recover_folder(tmp_path / "data")
        # One that was replaced is removed.
        assert (tmp_path / "data" / "a").read_text() == ("new" if replaced else "old") and not aside.exists()
        (tmp_path / "data" / "a").write_text("new")
    assert (tmp_path / ".data.partial" / "a").read_text() == "half"


def _hold(path, ready):
    with atomic_folder(path):
        ready.set()
        time.sleep(60)


@contextmanager
def _other_process(work, path):
    """A process that is killed at the end."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    other = context.Process(target=work, args=(path, ready))
    other.start()
    try:
        assert ready.wait(30)
        yield
    finally:
        other.kill()
        other.join()


def _hold_with_a_worker(path, pipe):
    with atomic_folder(path, "one"):
        worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        worker.start()
        pipe.send(worker.pid)
        time.sleep(60)


def test_two_processes_do_not_write_one_folder_and_a_worker_of_a_killed_one_keeps_no_other_out(tmp_path):
    another = pytest.raises(UserError)
    with _other_process(_hold, tmp_path / "data"), another, atomic_folder(tmp_path / "data"):
        pass
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    killed = context.Process(target=_hold_with_a_worker, args=(tmp_path / "data", sender))
    killed.start()
    worker = receiver.recv()
    try:
        killed.kill()
        killed.join()
        os.kill(worker, 0)
        with atomic_folder(tmp_path / "data", "one"):
            pass
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_link_stays_and_a_pipe_is_written_as_it_is(tmp_path):
    (tmp_path / "target").write_text("before")
    (tmp_path / "link").symlink_to("target")
    write_file(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "after"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(tmp_path / "pipe", b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo() and len(list(tmp_path.iterdir())) == 3


def _write_and_wait(path, ready):
    with atomic_file(path) as file:
        file.write(b"half")
        ready.set()
        time.sleep(60)


@pytest.mark.parametrize("write", [_write_and_wait, _hold])
def test_what_a_killed_process_left_goes_with_the_next_write_in_the_folder(tmp_path, write):
    with _other_process(write, tmp_path / "killed"):
        write_file(tmp_path / "first", b"")
        # Its process is still there.
        assert len(list(tmp_path.glob(".killed.partial*"))) == 1
    write_file(tmp_path / "second", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_leftovers_of_another_machine_and_of_a_run_that_can_go_on_stay(tmp_path):
    names = [".a.partial-elsewhere-00000000", f".a.partial-{atomic._HOST}-more-00000000", ".a.partial", "a.partial"]
    for name in names:
        (tmp_path / name).touch()
    _interrupt(tmp_path / "data", "one")
    with atomic_folder(tmp_path / "other"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, ".data.partial", "other"])


def test_a_file_that_another_process_took_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    lock, removed = atomic.fcntl.flock, []

    def remove_first(file, kind):
        if not removed:
            removed.append(next(tmp_path.iterdir()))
            removed[0].unlink()
        lock(file, kind)

    monkeypatch.setattr(atomic.fcntl, "flock", remove_first)
    with atomic_file(tmp_path / "out") as file:
        file.write(b"whole")
    assert removed and (tmp_path / "out").read_bytes() == b"whole"


@pytest.mark.parametrize("links", [("loop",), ("loop", "other")])
def test_a_link_that_leads_back_to_itself_is_named_and_stays(tmp_path, links):
    for link, leads_to in zip(links, (*links[1:], links[0]), strict=True):
        (tmp_path / link).symlink_to(leads_to)
    with pytest.raises(OSError) as caught, atomic_file(tmp_path / "loop"):
        raise AssertionError
    assert caught.value.filename == str(tmp_path / "loop")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_symlink()) == [*links]


@pytest.mark.parametrize("sizes", [(9, 10, 5000), (5000, 9, 10)])
def test_of_files_that_are_written_together_all_appear_or_none(tmp_path, sizes):
    paths = [tmp_path / name for name in "abc"]
    paths[1].write_bytes(b"old")

    def write():
        with written_together():
            for path, size in zip(paths, sizes, strict=True):
                write_file(path, b"x" * size)
                assert path.read_bytes() == b"old" if path == paths[1] else not path.exists()

    with files_of_at_most(1000), pytest.raises(OSError) as caught:
        write()
    assert caught.value.filename == str(paths[sizes.index(5000)])
    assert list(tmp_path.iterdir()) == [paths[1]] and paths[1].read_bytes() == b"old"
    write()
    assert [path.stat().st_size for path in paths] == [*sizes] and len(list(tmp_path.iterdir())) == 3


def test_a_generator_that_writes_beside_another_file_keeps_neither_back(tmp_path):
    def lines():
        with atomic_file(tmp_path / "page") as file:
            yield b"line"
            file.write(b"page")

    with atomic_file(tmp_path / "out") as file:
        file.writelines(lines())
    assert (tmp_path / "page").read_bytes() == b"page" and (tmp_path / "out").read_bytes() == b"line"


def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in ("/dev/full", "/sys/new", f"{tmp_path}/nowhere/out.json", f"{tmp_path}/folder"):
        with pytest.raises(OSError) as caught:
            write_file(path, b"text")
        assert caught.value.filename == path and "partial" not in str(caught.value)
    with pytest.raises(OSError) as caught, atomic_folder("/sys/new"):
        raise AssertionError
    assert caught.value.filename == "/sys/new"
    (tmp_path / "folder").rmdir()
    with files_of_at_most(10), pytest.raises(OSError) as caught, atomic_folder(tmp_path / "data") as partial:
        write_file(partial / "train.bin", b"x" * 11)
    assert caught.value.filename == str(tmp_path / "data" / "train.bin") and list(tmp_path.iterdir()) == []


def _is_held(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_a_held_folder_is_free_when_its_process_is_killed_even_if_a_child_lives_on(tmp_path):
    code = """
import os, sys, time
from pathlib import Path
from pyramidions.files.atomic import hold_folder
hold_folder(Path(sys.argv[1]))
hold_folder(Path(sys.argv[1]))
if not os.fork():
    print(os.getpid(), flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    try:
        assert _is_held(tmp_path)
        with pytest.raises(BlockingIOError):
            hold_folder(tmp_path)
        process.kill()
        process.wait()
        assert not _is_held(tmp_path)
        os.kill(child, 0)
    finally:
        process.kill()
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_a_folder_that_is_missing_or_has_no_locks_is_not_held(tmp_path, monkeypatch):
    hold_folder(tmp_path / "missing")

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    hold_folder(tmp_path)
    with atomic_folder(tmp_path / "made") as partial:
        (partial / "file").touch()
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["file"]
    monkeypatch.undo()
    assert not _is_held(tmp_path)

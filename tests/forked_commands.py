"""fairseq's commands in processes that begin with all imports done: for tests that run dozens of them."""

import importlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile

import torch

# A server, which only imports: a fork of the tests' own process would take its threads for running ones.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["pyramidions.plugin", "fairseq_cli.train", "fairseq_cli.eval_lm", "fairseq_cli.interactive"]
)


def run(*command: object, kill_at: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of fairseq's commands to its end; return what it printed, both of its streams in one.

    Args:
        command: its name and arguments, as `fairseq_commands.run` takes them.
        kill_at: the update after whose line in the log `fairseq-train` is killed; None for never.
    """
    words = [str(word) for word in command]
    with tempfile.NamedTemporaryFile("r") as printed:
        process = _SERVER.Process(target=_command, args=(words, printed.name, kill_at))
        process.start()
        process.join()
        return subprocess.CompletedProcess(words, process.exitcode or 0, printed.read())


def _command(words: list[str], printed: str, kill_at: int | None) -> None:
    output = os.open(printed, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    # One thread: sums in another order would differ in their last digits.
    torch.set_num_threads(1)
    if kill_at is not None:
        logging.root.addHandler(_Kill(kill_at))
    sys.argv = words
    importlib.import_module(f"fairseq_cli.{words[0].removeprefix('fairseq-').replace('-', '_')}").cli_main()


class _Kill(logging.Handler):
    """Kills this process when it logs an update."""

    def __init__(self, update: int) -> None:
        super().__init__()
        self.wanted = f"num_updates={update},"

    def emit(self, record: logging.LogRecord) -> None:
        if self.wanted in record.getMessage():
            os.kill(os.getpid(), signal.SIGKILL)

"""fairseq's commands and ours as tests run them: for real, each in a process of its own, on tiny models."""

import atexit
import importlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyramidions.plugin  # noqa: F401  (registers with fairseq, which may be imported later than pyramidions)
from pyramidions.data.folder import DataFolder

USER_DIR = Path(__file__).parent.parent / "pyramidions"

#: sizes at which a step takes milliseconds
TINY = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
    *("--encoder-layers", "3", "--decoder-layers", "1"),
    *("--self-attention", "blockwise(block_size=32)"),
    *("--pooling-lengths", "None,64,16"),
    *("--max-source-positions", "256", "--max-target-positions", "48"),
]
#: the same for an extractor
TINY_EXTRACTOR = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
    *("--encoder-layers", "2", "--self-attention", "blockwise(block_size=32) | full"),
    *("--pooling-lengths", "64,None", "--max-source-positions", "512"),
]
TASK = ["--user-dir", str(USER_DIR), "--task", "long_document_summarization", "--cpu"]
EXTRACTION = ["--user-dir", str(USER_DIR), "--task", "extractive_summarization", "--cpu"]


# A server, which only imports, since that takes longer than most of what tests run. A fork of the tests' own process
# would take its threads for running ones.
os.environ["OMP_NUM_THREADS"] = "1"  # Sums in another order would differ in their last digits.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        *("pyramidions.plugin", "pyramidions.cli.commands", "pyramidions.inference"),
        *("fairseq_cli.train", "fairseq_cli.generate", "fairseq_cli.interactive", "fairseq_cli.eval_lm"),
        *("fairseq_cli.validate", "torch._dynamo", "hydra.core.plugins", "antlr4", "nltk"),
    ]
)


def start(*command: object, folder: Path | None = None, **environment: str) -> subprocess.Popen[str]:
    """Start a command of the environment that runs the tests, both of its streams in one."""
    program = Path(sys.executable).parent / str(command[0])
    return subprocess.Popen(
        [program, *map(str, command[1:])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )


def run(
    *command: object, folder: Path | None = None, kill_at: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; return what it printed.

    Commands of fairseq and ours begin with all imports done.

    Args:
        command: its name and arguments.
        folder: where it runs.
        kill_at: the update after whose line in the log `fairseq-train` is killed; None for never.
        environment: variables in addition to those of the tests.
    """
    words = [str(word) for word in command]
    if words[0] == "python":
        process = start(*words, folder=folder, **environment)
        output, _ = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, output)
    with tempfile.NamedTemporaryFile("r") as printed:
        given = (words, printed.name, folder or Path.cwd(), {**os.environ, **environment}, kill_at)
        forked = _SERVER.Process(target=_command, args=given)
        forked.start()
        forked.join()
        return subprocess.CompletedProcess(words, forked.exitcode or 0, printed.read())


def finish(*command: object, folder: Path | None = None, **environment: str) -> str:
    """Run a command that must not fail; return what it printed."""
    done = run(*command, folder=folder, **environment)
    assert done.returncode == 0, done.stdout
    return done.stdout


def _command(words: list[str], printed: str, folder: Path, environment: dict[str, str], kill_at: int | None) -> None:
    output = os.open(printed, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    multiprocessing.set_start_method("fork", force=True)  # as in programs that do not come from a server
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if kill_at is not None:
        logging.root.addHandler(_Kill(kill_at))
    program, sys.argv = words[0], words
    try:
        if program == "pyramidions":
            importlib.import_module("pyramidions.cli").main(prog_name=program)
        else:
            importlib.import_module(f"fairseq_cli.{program.removeprefix('fairseq-').replace('-', '_')}").cli_main()
    finally:
        atexit._run_exitfuncs()  # as at the end of a program, which forks do not reach


class _Kill(logging.Handler):
    """Kills this process when it logs an update."""

    def __init__(self, update: int) -> None:
        super().__init__()
        self.wanted = f"num_updates={update},"

    def emit(self, record: logging.LogRecord) -> None:
        if self.wanted in record.getMessage():
            os.kill(os.getpid(), signal.SIGKILL)


def kill_at(update: int, command: list[object]) -> None:
    """Run a `fairseq-train` command, and kill it when it logs an update."""
    assert run(*command, kill_at=update).returncode == -signal.SIGKILL


def train_command(data: DataFolder, save_dir: Path, *flags: object, arch: str = "deep_pyramidion") -> list[object]:
    """Return a `fairseq-train` command for a tiny model; later flags win."""
    return [
        *("fairseq-train", data.path, *TASK, "--arch", arch, *TINY, "--save-dir", save_dir),
        *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed"),
        *("--batch-size", "4", "--seed", "1", "--log-format", "simple", "--log-interval", "1", "--num-workers", "0"),
        *flags,
    ]


def train(data: DataFolder, save_dir: Path, *flags: object, arch: str = "deep_pyramidion", **environment: str) -> str:
    """Train a tiny model to the end; return the log."""
    return finish(*train_command(data, save_dir, *flags, arch=arch), **environment)


def train_extractor_command(data: DataFolder, save_dir: Path, *flags: object) -> list[object]:
    """Return a `fairseq-train` command for a tiny extractor; later flags win."""
    return [
        *("fairseq-train", data.path, *EXTRACTION, "--arch", "extractor", *TINY_EXTRACTOR, "--save-dir", save_dir),
        *("--criterion", "extractive_summarization", "--optimizer", "adam", "--lr", "0.001"),
        *("--lr-scheduler", "fixed", "--batch-size", "4", "--seed", "1", "--log-format", "simple"),
        *("--log-interval", "1", "--num-workers", "0", *flags),
    ]

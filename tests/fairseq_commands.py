"""fairseq's commands as tests run them: for real, in processes of their own, on tiny models."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyramidions.plugin  # noqa: F401  (registers with fairseq, which may be imported later than pyramidions)
from pyramidions.data.folder import DataFolder

USER_DIR = Path(__file__).parent.parent / "pyramidions"

#: sizes at which a step takes milliseconds
TINY = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
    *("--encoder-layers", "3", "--decoder-layers", "1"),
    *("--self-attention", "blockwise", "--self-attention-args", '{"block_size": 32}'),
    *("--pooling-lengths", "None,64,16"),
    *("--max-source-positions", "256", "--max-target-positions", "48"),
]
#: the same for an extractor
TINY_EXTRACTOR = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
    *("--encoder-layers", "2", "--self-attention", "blockwise,full"),
    *("--self-attention-args", '[{"block_size": 32}, {}]', "--pooling-lengths", "64,None"),
    *("--max-source-positions", "512"),
]
TASK = ["--user-dir", str(USER_DIR), "--task", "long_document_summarization", "--cpu"]
EXTRACTION = ["--user-dir", str(USER_DIR), "--task", "extractive_summarization", "--cpu"]


def start(*command: object, folder: Path | None = None, **environment: str) -> subprocess.Popen[str]:
    """Start a command of the environment that runs the tests, both of its streams in one.

    One thread: sums in another order would differ in their last digits.
    """
    program = Path(sys.executable).parent / str(command[0])
    return subprocess.Popen(
        [program, *map(str, command[1:])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def run(*command: object, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; return what it printed."""
    process = start(*command, folder=folder, **environment)
    output, _ = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output)


def kill_at(update: int, command: list[object]) -> None:
    """Run a `fairseq-train` command, and kill it when it logs an update."""
    process = start(*command)
    assert process.stdout is not None
    for line in process.stdout:
        if f"num_updates={update}," in line:
            process.send_signal(signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL


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
    done = run(*train_command(data, save_dir, *flags, arch=arch), **environment)
    assert done.returncode == 0, done.stdout
    return done.stdout


def train_extractor_command(data: DataFolder, save_dir: Path, *flags: object) -> list[object]:
    """Return a `fairseq-train` command for a tiny extractor; later flags win."""
    return [
        *("fairseq-train", data.path, *EXTRACTION, "--arch", "extractor", *TINY_EXTRACTOR, "--save-dir", save_dir),
        *("--criterion", "extractive_summarization", "--optimizer", "adam", "--lr", "0.001"),
        *("--lr-scheduler", "fixed", "--batch-size", "4", "--seed", "1", "--log-format", "simple"),
        *("--log-interval", "1", "--num-workers", "0", *flags),
    ]

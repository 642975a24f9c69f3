"""What several tests share: a prepared data folder of real papers, and fairseq's commands."""

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import Settings, prepare
from pyramidions.data.readers import Corpus

SAMPLE = Path(__file__).parent.parent / "data" / "sample"
USER_DIR = Path(__file__).parent.parent / "pyramidions"

#: sizes at which a step takes milliseconds
TINY = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
    *("--encoder-layers", "3", "--decoder-layers", "1"),
    *("--self-attention", "blockwise", "--self-attention-args", '{"block_size": 32}'),
    *("--pooling-lengths", "None,64,16"),
    *("--max-source-positions", "256", "--max-target-positions", "48"),
]
TASK = ["--user-dir", str(USER_DIR), "--task", "long_document_summarization", "--cpu"]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Return a folder with 24 training, 6 validation and 10 test papers of the sample."""
    root = tmp_path_factory.mktemp("corpus")
    for split, count in (("train", 24), ("valid", 6), ("test", 10)):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers, (root / f"{split}.jsonl").open("w") as few:
            few.writelines(line for _, line in zip(range(count), papers, strict=False))
    corpora = {split: Corpus(str(root / f"{split}.jsonl"), split) for split in ("train", "valid", "test")}
    prepare(root / "data", corpora, Settings(vocab_size=800))
    return DataFolder(root / "data")


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment that runs the tests; return what it printed, both streams together."""
    program = Path(sys.executable).parent / str(command[0])
    return subprocess.run(
        [program, *map(str, command[1:])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        check=False,
    )


def train_command(data: DataFolder, save_dir: Path, *flags: object, arch: str = "deep_pyramidion") -> list[object]:
    """Return a `fairseq-train` command for a tiny model; later flags win."""
    return [
        *("fairseq-train", data.path, *TASK, "--arch", arch, *TINY, "--save-dir", save_dir),
        *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed"),
        *("--batch-size", "4", "--seed", "1", "--log-format", "simple", "--log-interval", "1", "--num-workers", "0"),
        *flags,
    ]


def train(data: DataFolder, save_dir: Path, *flags: object, arch: str = "deep_pyramidion") -> str:
    """Train a tiny model to the end; return the log."""
    done = run(*train_command(data, save_dir, *flags, arch=arch))
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def checkpoint(data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny deep_pyramidion, trained for a few updates."""
    save_dir = tmp_path_factory.mktemp("trained")
    train(data, save_dir, "--max-update", "8", "--disable-validation", "--no-epoch-checkpoints")
    return save_dir / "checkpoint_last.pt"

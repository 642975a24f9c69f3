"""Architectures train, resume, generate and are scored through fairseq's own commands."""

import re
from pathlib import Path

import pytest
from fairseq_commands import TASK, run

from pyramidions.data.folder import DataFolder

BLOCKS = ["--self-attention", "blockwise(block_size=32)"]
# What makes each architecture small; layers and attention are the preset's own.
SMALL = {
    "blockwise": BLOCKS,
    "lsh": ["--self-attention", "lsh(bucket_size=16, num_hashes=2, local_heads=1)"],
    "transpooler": [*BLOCKS, "--pooling-lengths", "None,16"],
    "transpooler_pointer": [*BLOCKS, "--pooling-lengths", "None,16"],
    "power": [*BLOCKS, "--pooling-lengths", "64,16"],
    "funnel": [*BLOCKS, "--pooling-lengths", "64,None"],
    "deep_pyramidion": [*BLOCKS, "--pooling-lengths", "None,64,16,None,None,None"],
}
SIZES = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"),
    *("--max-source-positions", "256", "--max-target-positions", "48"),
]
TRAINING = [
    *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed"),
    *("--batch-size", "4", "--seed", "1", "--log-format", "simple", "--log-interval", "1"),
    *("--disable-validation", "--no-epoch-checkpoints", "--save-interval-updates", "5", "--keep-interval-updates", "1"),
]


def trained(data: DataFolder, save_dir: Path, arch: str, updates: int, *flags: object) -> str:
    command = ["fairseq-train", data.path, *TASK, "--arch", arch, *SIZES, *SMALL[arch], *TRAINING, *flags]
    done = run(*command, "--save-dir", save_dir, "--max-update", updates)
    assert done.returncode == 0, done.stdout
    return done.stdout


# One that pools and is deep, one that draws random numbers, one that upsamples and one that copies stand for the rest,
# which take the same way and half a minute each.
@pytest.mark.parametrize(
    "arch",
    ["deep_pyramidion", *(pytest.param(a, marks=pytest.mark.slow) for a in ("lsh", "funnel", "transpooler_pointer"))],
)
def test_it_trains_resumes_generates_and_is_scored(arch: str, data: DataFolder, tmp_path: Path) -> None:
    trained(data, tmp_path, arch, 7)
    resumed = trained(data, tmp_path, arch, 12)
    assert "Loaded checkpoint" in resumed and "num_updates=12," in resumed and "num_updates=7," not in resumed
    checkpoint = tmp_path / "checkpoint_last.pt"
    done = run(
        *("fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", checkpoint, "--batch-size", "4"),
        *("--min-len", "4", "--max-len-b", "12", "--results-path", tmp_path),
    )
    assert done.returncode == 0, done.stdout
    scores = run("pyramidions", "score", tmp_path / "generate-test.txt", "--data", data.path)
    assert scores.returncode == 0 and "n=10" in scores.stdout


@pytest.mark.slow
def test_pooling_and_copying_are_added_to_a_blockwise_checkpoint_and_only_where_fine_tuning_begins(
    data: DataFolder, tmp_path: Path
) -> None:
    trained(data, tmp_path / "blockwise", "blockwise", 2)
    start = tmp_path / "blockwise" / "checkpoint_last.pt"
    log = trained(data, tmp_path / "pooled", "transpooler_pointer", 2, "--finetune-from-model", start)
    (named,) = re.findall(r"lacks these parts, which begin at random: (.*)\.$", log, re.MULTILINE)
    assert named == "encoder.core.poolers.1.scorer, decoder.core.output.pointer"
    again = trained(data, tmp_path / "pooled", "transpooler_pointer", 3)
    assert "begin at random" not in again and "num_updates=3," in again
    with pytest.raises(AssertionError, match="The checkpoint is of another architecture: it lacks 2 weights"):
        trained(data, tmp_path / "resumed", "transpooler", 3, "--restore-file", start, "--reset-optimizer")
    with pytest.raises(AssertionError, match="The checkpoint is of another architecture: it has unknown 13 weights"):
        trained(
            data, tmp_path / "wrong", "blockwise", 1, "--finetune-from-model", tmp_path / "pooled/checkpoint_last.pt"
        )


@pytest.mark.slow
def test_power_is_finetuned_from_a_blockwise_checkpoint(data: DataFolder, tmp_path: Path) -> None:
    trained(data, tmp_path / "blockwise", "blockwise", 2)
    start = tmp_path / "blockwise" / "checkpoint_last.pt"
    log = trained(data, tmp_path / "power", "power", 2, "--finetune-from-model", start)
    assert "loading pretrained model from" in log and "is ignored" not in log
    # Run again, it goes on from its own checkpoint, where fairseq would say nothing of the flag.
    again = trained(data, tmp_path / "power", "power", 3, "--finetune-from-model", start)
    assert f"--finetune-from-model {start} is ignored: {tmp_path / 'power'} holds checkpoint_last.pt" in again
    with pytest.raises(AssertionError, match="The checkpoint is of another architecture: it lacks"):
        trained(data, tmp_path / "wrong", "lsh", 1, "--finetune-from-model", start, "--encoder-layers", "3")

"""Runs that begin with the weights of another one."""

from pathlib import Path

from fairseq_commands import start as started
from fairseq_commands import train, train_command

from pyramidions.data.folder import DataFolder


def test_pooling_and_copying_are_added_where_fine_tuning_begins(data: DataFolder, tmp_path: Path) -> None:
    flags = ["--encoder-layers", "2", "--disable-validation", "--no-epoch-checkpoints"]
    plain = [*flags, "--pooling-lengths", "None,None"]
    pooled = [*flags, "--pooling-lengths", "None,16"]
    train(data, tmp_path / "blockwise", *plain, "--max-update", "1", arch="blockwise")
    start = tmp_path / "blockwise" / "checkpoint_last.pt"
    tunes = ["--finetune-from-model", start]
    log = train(data, tmp_path / "pooled", *pooled, *tunes, "--max-update", "1", arch="transpooler_pointer")
    assert f"loading pretrained model from {start}" in log and "is ignored" not in log
    named = "lacks these parts, which begin at random: encoder.core.poolers.1.scorer, decoder.core.output.pointer."
    assert named in log
    # Run again, it goes on from its own checkpoint, where fairseq would say nothing of the flag.
    again = train(data, tmp_path / "pooled", *pooled, *tunes, "--max-update", "2", arch="transpooler_pointer")
    assert "begin at random" not in again and "num_updates=2," in again
    assert f"--finetune-from-model {start} is ignored: {tmp_path / 'pooled'} holds checkpoint_last.pt" in again
    wrong = ["--finetune-from-model", tmp_path / "pooled" / "checkpoint_last.pt", "--max-update", "1"]
    process = started(*train_command(data, tmp_path / "wrong", *plain, *wrong, arch="blockwise"))
    log, _ = process.communicate()
    said = "Error: The checkpoint is of another architecture than the settings say: encoder.core.poolers.1.scorer."
    assert process.returncode == 1 and said in log.splitlines()[-1] and "Traceback" not in log

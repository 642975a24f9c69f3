"""fairseq-train on real papers: signals, precision, and two processes; test_lives.py has kills."""

import math
import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from fairseq_commands import finish, train, train_command

from pyramidions.data.folder import DataFolder
from pyramidions.files.processes import start_process
from pyramidions.runs.progress import read_record

NO_DROPOUT = ["--dropout", "0", "--attention-dropout", "0", "--activation-dropout", "0"]


def updates(log: str) -> dict[int, str]:
    """Return loss and gradient norm as printed, by update."""
    found = {}
    for line in log.splitlines():
        match = re.search(r"train_inner \|.* loss=([\d.]+),.* num_updates=(\d+),.* gnorm=([\d.]+)", line)
        if match:
            found[int(match[2])] = f"{match[1]} {match[3]}"
    return found


def rouge(log: str) -> list[str]:
    return re.findall(r"rouge1 [\d.]+ \| rouge2 [\d.]+ \| rougeL [\d.]+ \| rougeLsum [\d.]+", log)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_a_signal_to_the_whole_group_loses_no_update(data: DataFolder, tmp_path: Path, number: signal.Signals) -> None:
    # Processes that load data get it, too, as those of a terminal or of a batch system.
    flags = ["--batch-size", "1", "--max-update", "24", "--disable-validation", "--num-workers", "2"]
    command = [str(word) for word in train_command(data, tmp_path / "run", *flags)]
    command[0] = str(Path(sys.executable).parent / command[0])
    with (tmp_path / "log").open("wb") as log:
        process = start_process(command, log, {**os.environ, "OMP_NUM_THREADS": "1"})
        while "num_updates=3," not in (tmp_path / "log").read_text():
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, number)
        assert process.wait() == 128 + number, (tmp_path / "log").read_text()
    seen = max(updates((tmp_path / "log").read_text()))
    assert f"update {seen} is saved, and the same command goes on from there" in (tmp_path / "log").read_text()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["checkpoint_last.pt"]
    assert min(updates(train(data, tmp_path / "run", *flags))) == seen + 1


@pytest.mark.parametrize("flag", ["--bf16", pytest.param("--memory-efficient-bf16", marks=pytest.mark.nightly)])
def test_bf16_trains_in_bfloat16_validates_and_resumes(flag: str, data: DataFolder, tmp_path: Path) -> None:
    flags = [flag, "--eval-rouge", "--eval-rouge-args", "beam=1, min_len=2, max_len_b=4"]
    log = train(data, tmp_path / "bf16", *flags, "--max-update", "4", "--validate-interval-updates", "4")
    assert len(rouge(log)) == 1
    saved = torch.load(tmp_path / "bf16" / "checkpoint_last.pt", weights_only=True)
    trained = [weight for weight in saved["model"].values() if weight.is_floating_point()]
    # fairseq writes them in float32, but they are rounded.
    assert all(weight.isfinite().all() and torch.equal(weight, weight.bfloat16().float()) for weight in trained)
    moments = [state["exp_avg"] for state in saved["last_optimizer_state"]["state"].values()]
    assert {moment.dtype for moment in moments} == {torch.float32}
    in_float32 = updates(train(data, tmp_path / "float32", "--no-save", "--disable-validation", "--max-update", "4"))
    losses = [[float(line.split()[0]) for line in found.values()] for found in (updates(log), in_float32)]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert [*updates(train(data, tmp_path / "bf16", *flags, "--max-update", "6"))] == [5, 6]


def in_two_processes(*command: object, losses: Path) -> str:
    """Run fairseq-train as two CPU processes; return the first one's log."""
    # A file to meet at, where a free port may be taken by the time it is used.
    distributed = [
        *("--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp", "--distributed-world-size", "2"),
        *("--distributed-init-method", f"file://{losses}.meeting", "--distributed-no-spawn"),
    ]

    def one(rank: int) -> str:
        return finish(*command, *distributed, "--distributed-rank", rank, LOSSES=f"{losses}.{rank}")

    with ThreadPoolExecutor(2) as pool:
        first, _ = pool.map(one, (0, 1))
    return first


# A plugin over ours that writes down, unrounded, the loss that fairseq prints rounded.
WRITE_LOSSES = """
import os
import pyramidions
from pyramidions.plugin.criterions.pooled_cross_entropy import PooledCrossEntropyCriterion as Criterion

def reduce_metrics(cls, logs, reduce=Criterion.reduce_metrics.__func__):
    reduce(cls, logs)
    loss, size = (float(sum(log[key] for log in logs)) for key in ("loss", "sample_size"))
    with open(os.environ["LOSSES"], "a") as out:
        print(repr(loss / size), file=out)

Criterion.reduce_metrics = classmethod(reduce_metrics)
"""


def test_two_processes_train_and_validate_like_one(data: DataFolder, tmp_path: Path) -> None:
    plugin = tmp_path / "write_losses"
    plugin.mkdir()
    (plugin / "__init__.py").write_text(WRITE_LOSSES)
    flags = [
        *("--user-dir", plugin, *NO_DROPOUT, "--max-update", "12", "--batch-size", "2", "--no-epoch-checkpoints"),
        *("--validate-interval", "100", "--best-checkpoint-metric", "rouge2", "--maximize-best-checkpoint-metric"),
        *("--eval-rouge", "--eval-rouge-args", "beam=2, min_len=4, max_len_b=12"),
        *("--stopping-patience", "5"),
    ]
    one = train(data, tmp_path / "one", *flags, "--update-freq", "2", LOSSES=str(tmp_path / "one.losses"))
    two = in_two_processes(*train_command(data, tmp_path / "two", *flags), losses=tmp_path / "two.losses")

    alone = [float(line) for line in (tmp_path / "one.losses").read_text().split()]
    for rank in (0, 1):
        together = [float(line) for line in (tmp_path / f"two.losses.{rank}").read_text().split()]
        assert together[:12] == pytest.approx(alone[:12], abs=1e-4)
    assert len(rouge(one)) == len(rouge(two)) == 1
    assert all((tmp_path / run / "checkpoint_best.pt").exists() for run in ("one", "two"))


@pytest.mark.parametrize("frequency", [3, pytest.param(2, marks=pytest.mark.nightly)])
def test_two_processes_that_lack_a_batch_learn_what_one_does(frequency: int, data: DataFolder, tmp_path: Path) -> None:
    # Five batches: a worker's share is filled up, in an update with other batches or in one by itself.
    flags = [*NO_DROPOUT, "--batch-size", "5", "--max-epoch", "2", "--disable-validation", "--no-save"]
    one = train(data, tmp_path, *flags, "--update-freq", 2 * frequency)
    command = train_command(data, tmp_path, *flags, "--update-freq", frequency)
    two = in_two_processes(*command, losses=tmp_path / "unused")
    assert len(updates(one)) == 2 * math.ceil(5 / (2 * frequency))
    for log in (one, two):
        assert sum(map(int, re.findall(r"train_inner \|.* bsz=(\d+),", log))) == 48
    numbers = [[float(number) for text in updates(log).values() for number in text.split()] for log in (one, two)]
    assert numbers[1] == pytest.approx(numbers[0], abs=2e-3)


def test_two_processes_validate_to_the_same_rouge(data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    # At a learning rate of 0 the one update changes nothing: the checkpoint is loaded and validated.
    flags = [
        *("--restore-file", checkpoint, "--reset-optimizer", "--reset-dataloader", "--reset-lr-scheduler"),
        *("--lr", "0", "--max-update", "1", "--batch-size", "2", "--no-save", "--eval-rouge"),
        *("--eval-rouge-args", "beam=3, min_len=16, max_len_b=32"),
    ]
    one = train(data, tmp_path / "one", *flags)
    two = in_two_processes(*train_command(data, tmp_path / "two", *flags), losses=tmp_path / "unused")
    assert len(rouge(one)) == 1 and not rouge(one)[0].startswith("rouge1 0 ")
    assert rouge(one) == rouge(two)


@pytest.mark.slow
def test_two_processes_go_on_from_the_newest_whole_checkpoint(data: DataFolder, tmp_path: Path) -> None:
    flags = ["--batch-size", "2", "--disable-validation"]
    flags += ["--save-interval-updates", "2", "--keep-interval-updates", "1"]
    run, unused = tmp_path / "run", tmp_path / "unused"
    in_two_processes(*train_command(data, run, *flags, "--max-update", "4"), losses=unused)
    last = run / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:-200])
    rest = in_two_processes(*train_command(data, run, *flags, "--max-update", "6"), losses=tmp_path / "again")
    assert "checkpoint_last.pt with checkpoint_1_4.pt, the newest intact checkpoint (update 4)." in rest
    assert sorted(updates(rest)) == [5, 6]
    before = last.stat().st_mtime_ns
    end = in_two_processes(*train_command(data, run, *flags, "--max-update", "6"), losses=tmp_path / "end")
    assert "is finished, it has 6 updates" in end and not updates(end) and last.stat().st_mtime_ns == before


def test_the_log_has_loss_rouge_and_sharpness_of_each_validation(data: DataFolder, tmp_path: Path) -> None:
    # Epochs have six updates.
    flags = [
        "--max-update",
        "8",
        "--validate-interval-updates",
        "4",
        "--no-save",
        "--log-format",
        "json",
        "--eval-rouge",
    ]
    flags += ["--eval-rouge-args", "beam=1, min_len=2, max_len_b=6"]
    log = train(data, tmp_path, *flags)
    records = [record for line in log.splitlines() if (record := read_record(line))]
    measures, scores = {"loss", "sharpness_2", "sharpness_3"}, {"rouge1", "rouge2", "rougeL", "rougeLsum"}
    for is_training, expected, names in (
        # Each update, and the two epochs.
        (True, sorted([*range(1, 9), 6, 8]), measures),
        (False, [4, 6, 8], measures | scores),
    ):
        of_split = [record for record in records if record.is_training is is_training]
        assert [record.update for record in of_split] == expected
        assert all(names <= record.values.keys() for record in of_split)

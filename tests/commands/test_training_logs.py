"""What a real training leaves to look at: its log in JSON, and TensorBoard's events."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairseq_commands import train
from tensorboardX.proto.event_pb2 import Event

from pyramidions.data.folder import DataFolder
from pyramidions.runs.progress import read_record

# Epochs have six updates.
FLAGS = [
    *("--max-update", "8", "--validate-interval-updates", "4", "--no-save", "--batch-size-valid", "2"),
    *("--eval-rouge", "--eval-rouge-args", '{"beam": 1, "min_len": 2, "max_len_b": 6}'),
]


def events(folder: Path) -> Iterator[Event]:
    """Yield the records of an event file: length, its checksum, the event, its checksum."""
    (path,) = folder.glob("events.out.tfevents.*")
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Return tag -> update -> value."""
    found: dict[str, dict[int, float]] = {}
    for event in events(folder):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def test_tensorboard_gets_loss_rouge_and_sharpness_and_the_log_says_the_same(data: DataFolder, tmp_path: Path) -> None:
    board = tmp_path / "board"
    log = train(data, tmp_path, *FLAGS, "--tensorboard-logdir", board, "--log-format", "json")
    records = [record for line in log.splitlines() if (record := read_record(line))]
    measures = {"loss", "sharpness_2", "sharpness_3"}
    rouge = {"rouge1", "rouge2", "rougeL", "rougeLsum"}
    wanted = {
        ("train_inner", tuple(range(1, 9))): measures,
        ("train", (6, 8)): measures,
        ("valid", (4, 6, 8)): measures | rouge,
    }
    for (split, updates), names in wanted.items():
        written = scalars(board / split)
        for name in names:
            said = {record.update: record.values[name] for record in records if record.split == split}
            assert tuple(said) == tuple(written[name]) == updates
            # The log has fewer digits.
            assert said == pytest.approx(written[name], rel=1e-3, abs=1e-3), name

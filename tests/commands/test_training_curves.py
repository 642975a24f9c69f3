"""What a real training leaves to look at: its log in JSON, and TensorBoard's events."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairseq_commands import train
from tensorboardX.proto.event_pb2 import Event

from pyramidions.data.folder import DataFolder
from pyramidions.runs.curves import read_curves

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


def test_the_log_and_tensorboard_say_the_same(data: DataFolder, tmp_path: Path) -> None:
    board = tmp_path / "board"
    (tmp_path / "train.log").write_text(
        train(data, tmp_path, *FLAGS, "--tensorboard-logdir", board, "--log-format", "json")
    )
    curves = read_curves(tmp_path / "train.log").groupby(["split", "measure"])
    read = {key: [*zip(curve.updates, curve.value, strict=True)] for key, curve in curves}
    measures = {"loss", "sharpness_2", "sharpness_3"}
    rouge = {"rouge1", "rouge2", "rougeL", "rougeLsum"}
    assert set(read) == {("train", m) for m in measures} | {("valid", m) for m in measures | rouge}
    assert [update for update, _ in read["train", "loss"]] == list(range(1, 9))
    assert [update for update, _ in read["valid", "rouge2"]] == [4, 6, 8]
    for split, folder in (("train", "train_inner"), ("valid", "valid")):
        written = scalars(board / folder)
        for measure in {measure for of, measure in read if of == split}:
            # The log has fewer digits.
            assert dict(read[split, measure]) == pytest.approx(written[measure], rel=1e-3, abs=1e-3), measure
    assert scalars(board / "train")["sharpness_2"].keys() == {6, 8}

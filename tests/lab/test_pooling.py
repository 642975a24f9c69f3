"""The rows of `python -m lab pooling` are what its tables call them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from invoking import run_lab

from lab import pooling
from lab.pooling_tasks import EOS, PAD, Needles, Papers
from pyramidions.data.indexed import IndexedReader, IndexedWriter

OWN = '''
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.pooling.windows import MeanPooler

@POOLING.register("own")
class Own(MeanPooler):
    """Means, by another name."""
'''


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"source": 64, "batch": 4, "_VALIDATED": 8}.items():
        monkeypatch.setattr(Needles, name, value)
    monkeypatch.setattr(pooling, "_WRITTEN", 3)


@pytest.mark.parametrize(
    ("where", "ratio", "kept"),
    [
        ("early", 4, [64, None]),
        ("late", 4, [None, 64]),
        ("late", 256, [None, 1]),
        ("2,2", 4, [128, 64]),
        ("8", 99, [None, 32]),
        ("late", 100, [None, 3]),
    ],
)
def test_layers_hand_on_the_vectors_that_a_place_and_a_ratio_leave(
    where: str, ratio: int, kept: list[int | None]
) -> None:
    assert pooling.lengths(where, ratio, 256) == kept


def test_each_value_follows_its_key_once_and_others_follow_none() -> None:
    batch = next(Needles().training(1))
    keys, values = range(4, 20), range(20, 36)
    for source, target, counted in zip(*(x.tolist() for x in batch), strict=True):
        said = dict(zip(target[::2], target[1::2], strict=True))
        pairs = {a: b for a, b in pairwise(source) if a in keys}
        assert pairs == said and len(pairs) == 8
        assert sum(token in keys for token in source) == 8 and sum(token in values for token in source) == 16
        assert counted == [False, True] * 8
    again = next(Needles().training(1))
    assert torch.equal(batch.source, again.source) and not torch.equal(batch.source, next(Needles().training(2)).source)


def test_papers_are_cut_and_padded_and_padding_does_not_count(tmp_path: Path) -> None:
    for side, ids in (("source", [[5, 6, 2], [7] * 2000]), ("target", [[8, 2], [9] * 500])):
        with IndexedWriter(tmp_path / f"train.{side}", 10) as writer:
            for each in ids:
                writer.add(each)
    task = object.__new__(Papers)
    readers = [IndexedReader(tmp_path / f"train.{side}") for side in ("source", "target")]
    batch = task._batch(*readers, [0, 1])
    assert batch.source[0].tolist() == [5, 6, 2, *[PAD] * 509] and batch.source[1].tolist() == [7] * 512
    assert batch.counted.sum(1).tolist() == [2, 128] and batch.target[0, :2].tolist() == [8, EOS]


@pytest.mark.parametrize(
    ("name", "output", "numbers"),
    [
        # keys and values of two layers; of a pointer, its keys, and its gate's values
        (pooling.ALL, "tied", 64 * 2 * 2 * 128),
        (pooling.ALL, pooling.VECTORS_ALONE, 64 * (2 * 2 * 128 + 128 + 1)),
        (pooling.ALL, "pointer", 64 * (2 * 2 * 128 + 128 + 1)),
        ("mean, late, 1/16", "pointer", 4 * (2 * 2 * 128 + 128 + 1)),
        ("mean, late, 1/16, no token keys", "pointer", 4 * (2 * 2 * 128 + 128 + 1)),
        ("mean, late, 1/16", pooling.MEMBERS, 4 * (2 * 2 * 128 + 128 + 1)),
        ("4 vectors", "tied", 4 * 2 * 2 * 128),
        ("1 vector", "tied", 2 * 2 * 128),
    ],
)
def test_bytes_are_those_of_all_numbers_that_a_decoder_may_read(
    short: None, name: str, output: str, numbers: int
) -> None:
    task = Needles()
    row = next(row for row in pooling.rows(task, [], "late", [16], output) if row.name == name)
    batch = task.validation()[0]
    read = pooling.bytes_read(pooling.made(row, task, 1).eval(), batch)
    # A pointer keeps 64 numbers of each different token, too.
    has_keys = row.fields["output"] in ("pointer", pooling.MEMBERS)
    keys = 64 * len(set(batch.source[0].tolist())) if has_keys else 0
    assert read == (numbers + keys) * 4 / 64


def test_a_model_without_cross_attention_reads_nothing_and_others_do(short: None) -> None:
    task = Needles()
    for row in pooling.rows(task, ["soft_topk"], "late", [4], "tied"):
        found = pooling.document_losses(pooling.made(row, task, 1).eval(), task.validation())
        assert len(found["own"]) == 8 and (found["own"] == found["another"]) == (row.name == pooling.NOTHING)


def test_a_table_has_its_controls_and_a_second_run_trains_nothing(tmp_path: Path, short: None) -> None:
    mine = tmp_path / "mine_pooling.py"
    mine.write_text(OWN)
    words = ["pooling", mine, "--task", "needles", "--ratio", 4, "--updates", 2, "--out", tmp_path]
    first = run_lab(*words, "--seeds", 1)
    assert first.exit_code == 0, first.output
    names = [pooling.ALL, "mean, late, 1/4", "mine_pooling.own, late, 1/4", "4 vectors", "1 vector", pooling.NOTHING]
    folder = tmp_path / "needles" / "tied"
    report = (folder / "report.md").read_text()
    rows = [line.split("|")[1].strip() for line in report.splitlines()[4:]]
    assert rows == names and (folder / "losses.png").read_bytes()[:4] == b"\x89PNG"
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("*/seed1.json")}
    assert len(kept) == 6
    by_row = {json.loads(path.read_text())["settings"]["row"]: json.loads(path.read_text()) for path in kept}
    # One's own kind of means does what means do.
    assert by_row["mine_pooling.own, late, 1/4"]["losses"] == by_row["mean, late, 1/4"]["losses"]
    assert run_lab(*words, "--seeds", "1,2").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept and len(list(folder.glob("*/seed2.json"))) == 6

"""What a run finds in its folder after kills, full disks and flipped bits, and what it does about it."""

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from refusals import refused

from pyramidions.files.atomic import atomic_file
from pyramidions.files.run_facts import RunFacts
from pyramidions.plugin.tasks.checkpoint_folder import CheckpointFolder

Write, Damage = Callable[..., Path], Callable[[Path], None]


def state(updates: int, val_loss: float | None = None, best: float | None = None) -> dict[str, Any]:
    """Return as much of a checkpoint as tells its age and rank, and some weights."""
    extra = {
        "previous_training_time": 1.5,
        "train_iterator": {"epoch": 1, "iterations_in_epoch": updates},
        "val_loss": val_loss,
        **({} if best is None else {"best": best}),
    }
    return {
        "model": {"weight": torch.full((4096,), float(updates))},
        "optimizer_history": [{"num_updates": updates}],
        "cfg": {"checkpoint": {"best_checkpoint_metric": "loss"}},
        "extra_state": extra,
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, *facts: Any) -> Path:
        torch.save(state(*facts), tmp_path / name)
        return tmp_path / name

    return write


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9000])


def spoil(path: Path) -> None:
    """Leave what a full disk leaves: a part in front of the whole."""
    path.write_bytes(path.read_bytes()[:7000] + path.read_bytes())


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8000] ^= 1
    path.write_bytes(content)


def updates(path: Path) -> int:
    facts = RunFacts.of(path)
    assert facts is not None
    return facts.updates


def held(folder: Path) -> dict[str, int]:
    """Return the updates of each whole checkpoint by name; every other file counts as -1."""
    files = {path.name: RunFacts.of(path) for path in folder.iterdir()}
    return {name: -1 if facts is None else facts.updates for name, facts in files.items()}


# Before fairseq reads


#: checkpoints, their facts and what damages them; what is held once they are mended, where not the same; what is said
LAST, BEST, OLD, NEW = "checkpoint_last.pt", "checkpoint_best.pt", "checkpoint_1_10.pt", "checkpoint_1_20.pt"
SCORED = {OLD: (10, 2.5, 2.5), NEW: (20, 2.0, 2.0), LAST: (30, 2.25, 2.0)}
SET_ASIDE = {"checkpoint_last.damaged": -1}
MENDED: list[tuple[dict[str, Any], dict[str, Damage], dict[str, int], str]] = [
    ({LAST: (20,), BEST: (10,), OLD: (10,)}, {}, {}, ""),
    ({}, {}, {}, ""),
    # The newest whole one takes the place of a damaged last one.
    ({BEST: (10,), NEW: (20,), LAST: (30,)}, {LAST: cut}, {LAST: 20, **SET_ASIDE}, f"with {NEW}, the newest intact"),
    (
        {OLD: (10,), NEW: (30,), LAST: (30,)},
        {LAST: flip, NEW: flip},
        {LAST: 10, NEW: 30, "checkpoint_last.damaged": 30},
        f"with {OLD}, the newest intact checkpoint (update 10).",
    ),
    # A damaged best one is that with the best score, if it is left.
    ({**SCORED, BEST: SCORED[NEW]}, {BEST: cut}, {"checkpoint_best.damaged": -1}, f"with {NEW}"),
    (
        {LAST: SCORED[LAST], BEST: SCORED[NEW]},
        {BEST: cut},
        {BEST: 0, "checkpoint_best.damaged": -1},
        "No intact checkpoint has the best score",
    ),
    ({LAST: (1,)}, {LAST: cut}, {LAST: 0, **SET_ASIDE}, "No intact checkpoint is left in "),
    # What a full disk left before a whole archive is cut off.
    ({LAST: (30,), NEW: (20,)}, {LAST: spoil}, {}, "and has been repaired."),
]


@pytest.mark.parametrize(("files", "damages", "changed", "said"), MENDED)
def test_what_is_damaged_is_replaced_by_what_is_whole_and_stays_beside_it(
    tmp_path: Path,
    write: Write,
    caplog: pytest.LogCaptureFixture,
    files: dict[str, Any],
    damages: dict[str, Damage],
    changed: dict[str, int],
    said: str,
) -> None:
    for name, facts in files.items():
        write(name, *facts)
    before = {name: (tmp_path / name).read_bytes() for name in files}
    for name, damage in damages.items():
        damage(tmp_path / name)
    CheckpointFolder(tmp_path).mend()
    expected = {**{name: facts[0] for name, facts in files.items()}, **changed}
    assert held(tmp_path) == {name: found for name, found in expected.items() if found}
    assert all((tmp_path / name).read_bytes() == before[name] for name in before if name not in {*changed, *damages})
    assert said in caplog.text and bool(said) is bool(caplog.messages)


# While fairseq writes


def save(
    folder: CheckpointFolder, updates: int, names: list[str], replaces_best: bool = False, damage: Any = None
) -> None:
    """Save as fairseq does: one file is written and renamed, the others are copies of it, written in place."""
    folder.before_saving(replaces_best)
    first, *copies = (folder.path / name for name in names)
    torch.save(state(updates), folder.path / "tmp")
    if damage:
        damage(folder.path / "tmp")
    (folder.path / "tmp").rename(first)
    for copy in copies:
        checkpoint_utils.PathManager.copy(str(first), str(copy), overwrite=True)
    folder.saved(first)


LAST_AND_NUMBERED = ["checkpoint_1_8.pt", "checkpoint_last.pt"]


@pytest.mark.parametrize(
    "names", [LAST_AND_NUMBERED, ["checkpoint_last.pt"], ["checkpoint1.pt"], ["checkpoint_best.pt", *LAST_AND_NUMBERED]]
)
def test_a_save_leaves_what_fairseq_wrote_also_if_a_full_disk_ruined_it(
    tmp_path: Path, write: Write, names: list[str]
) -> None:
    best = "checkpoint_best.pt" in names
    save(CheckpointFolder(tmp_path), 2, names, best)
    assert held(tmp_path) == dict.fromkeys(names, 2)
    before = {"checkpoint_best.pt": 4, "checkpoint_last.pt": 4}
    for name in before:
        write(name, 4)
    for updates, ruined in ((6, None), (8, spoil)):
        save(CheckpointFolder(tmp_path), updates, names, best, ruined)
        assert held(tmp_path) == {**before, **dict.fromkeys(names, updates)}


def test_a_first_file_that_fairseq_deletes_at_once_is_not_missed(tmp_path: Path, write: Write) -> None:
    # As --keep-best-checkpoints does with one that is not among the best.
    folder = CheckpointFolder(tmp_path)
    folder.before_saving(replaces_best=False)
    write("checkpoint_last.pt", 8)
    folder.saved(tmp_path / "checkpoint.best_loss_9.1230.pt")
    assert held(tmp_path) == {"checkpoint_last.pt": 8}


both_orders = pytest.mark.parametrize(
    ("first", "copy"), [("checkpoint_last.pt", "checkpoint_1_8.pt"), ("checkpoint_1_8.pt", "checkpoint_last.pt")]
)


@both_orders
@pytest.mark.parametrize(
    ("of_first", "of_copy"), [(None, cut), (cut, None), (spoil, cut), (cut, spoil)], ids=["first", "copy"] * 2
)
def test_one_whole_file_mends_its_copies(
    tmp_path: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    copy: str,
    of_first: Damage | None,
    of_copy: Damage | None,
) -> None:
    # fairseq's path may be relative.
    monkeypatch.chdir(tmp_path)
    folder = CheckpointFolder(tmp_path)
    folder.before_saving(replaces_best=False)
    for name, damage in ((first, of_first), (copy, of_copy)):
        path = write(name, 8)
        if damage:
            damage(path)
    folder.saved(Path(first))
    assert held(tmp_path) == {"checkpoint_1_8.pt": 8, "checkpoint_last.pt": 8}


@both_orders
def test_where_all_files_are_ruined_the_first_is_named(tmp_path: Path, write: Write, first: str, copy: str) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.before_saving(replaces_best=False)
    for name in (first, copy):
        cut(write(name, 9))
    with refused(f"{first} was damaged", OSError):
        folder.saved(tmp_path / first)


@pytest.mark.parametrize(
    ("before", "names", "told"),
    [
        (True, ["checkpoint_best.pt", "checkpoint_last.pt"], "The previous checkpoint_last.pt and checkpoint_best"),
        (True, ["checkpoint_last.pt"], "The previous checkpoint_last.pt was restored."),
        (True, [], "Earlier checkpoints are unchanged."),
        (False, ["checkpoint_last.pt"], "There is no earlier checkpoint."),
    ],
)
def test_a_checkpoint_ruined_beyond_mending_stops_the_run_and_leaves_those_of_before(
    tmp_path: Path, write: Write, before: bool, names: list[str], told: str
) -> None:
    for name in ("checkpoint_last.pt", "checkpoint_best.pt") if before else ():
        write(name, 4)
    found = held(tmp_path)
    folder = CheckpointFolder(tmp_path, writes_last=bool(names))
    with refused(f"checkpoint_1_8.pt was damaged during saving and renamed to checkpoint_1_8.damaged. {told}", OSError):
        save(folder, 8, ["checkpoint_1_8.pt", *names], "checkpoint_best.pt" in names, flip)
    # A flipped bit does not keep torch from reading it.
    assert held(tmp_path) == {**found, "checkpoint_1_8.damaged": 8}


@pytest.mark.parametrize("end", [CheckpointFolder.nothing_saved, CheckpointFolder._mend_at_exit, CheckpointFolder.mend])
def test_a_save_that_writes_nothing_moves_and_makes_nothing(
    tmp_path: Path, write: Write, end: Callable[[CheckpointFolder], None]
) -> None:
    write("checkpoint_1_6.pt", 6, 4.0, 3.0)
    folder = CheckpointFolder(tmp_path, writes_last=False)
    for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
        before = held(tmp_path)
        folder.before_saving(replaces_best=False)
        assert held(tmp_path) == before
        end(folder)
        assert held(tmp_path) == before
        write(name, 4, 3.0, 3.0)


@pytest.mark.parametrize("last", [True, False])
def test_what_was_moved_aside_for_a_save_that_wrote_nothing_is_back_before_the_next(
    tmp_path: Path, write: Write, last: bool
) -> None:
    for name in ["checkpoint_best.pt"] + ["checkpoint_last.pt"] * last:
        write(name, 4)
    before = held(tmp_path)
    folder = CheckpointFolder(tmp_path)
    folder.before_saving(replaces_best=True)
    folder.nothing_saved()
    assert held(tmp_path) == before
    folder.before_saving(replaces_best=True)
    save(folder, 8, ["checkpoint_1_8.pt"])
    assert held(tmp_path) == {**before, "checkpoint_1_8.pt": 8}


SOUGHT = {LAST: (6, 4.0, 3.0), BEST: (4, 3.0, 3.0)}


@pytest.mark.parametrize(
    ("before", "written", "cut_at", "found"),
    [
        *[(SOUGHT, [NEW, BEST, LAST], at, {NEW: 20, BEST: 20, LAST: 20}) for at in (0, 9000, None)],
        # In the first save of all, and before anything is written.
        ({}, [NEW, BEST], 9000, {NEW: 20, BEST: 20, LAST: 20}),
        (SOUGHT, [], None, {LAST: 6, BEST: 4}),
    ],
)
def test_a_kill_in_a_save_loses_nothing_that_is_whole(
    tmp_path: Path, write: Write, before: dict[str, Any], written: list[str], cut_at: int | None, found: dict[str, int]
) -> None:
    for name, facts in before.items():
        write(name, *facts)
    CheckpointFolder(tmp_path).before_saving(replaces_best=True)
    for name in written:
        path = write(name, 20, 2.0, 2.0)
        path.write_bytes(path.read_bytes()[: None if name == NEW else cut_at])
    CheckpointFolder(tmp_path).mend()
    assert {name: updates for name, updates in held(tmp_path).items() if not name.endswith(".damaged")} == found


def test_a_last_checkpoint_that_is_not_wanted_any_more_is_not_made_of_an_interrupted_first_save(
    tmp_path: Path, write: Write
) -> None:
    CheckpointFolder(tmp_path).before_saving(replaces_best=False)
    write("checkpoint_1_8.pt", 8)
    CheckpointFolder(tmp_path, writes_last=False).mend()
    assert held(tmp_path) == {"checkpoint_1_8.pt": 8}


def test_where_there_is_no_room_for_a_copy_a_link_takes_its_place(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write("checkpoint_1_20.pt", 20)
    cut(write("checkpoint_last.pt", 30))
    monkeypatch.setattr("pyramidions.plugin.tasks.checkpoint_folder.shutil.copyfileobj", full)
    CheckpointFolder(tmp_path).mend()
    assert (tmp_path / "checkpoint_last.pt").samefile(tmp_path / "checkpoint_1_20.pt")
    monkeypatch.undo()
    save(CheckpointFolder(tmp_path), 40, ["checkpoint_1_40.pt", "checkpoint_last.pt"])
    assert updates(tmp_path / "checkpoint_1_20.pt") == 20 and updates(tmp_path / "checkpoint_last.pt") == 40


def test_a_save_that_failed_is_put_in_order_when_the_run_ends(
    tmp_path: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("checkpoint_last.pt", 4)
    folder = CheckpointFolder(tmp_path)
    (tmp_path / "checkpoint_other.pt.tmp").write_bytes(b"another's")
    folder.before_saving(replaces_best=False)
    write("checkpoint_1_8.pt", 8)
    (tmp_path / "checkpoint_last.pt").write_bytes(b"part")
    (tmp_path / "checkpoint_1_8.pt.tmp").write_bytes(b"part")
    with caplog.at_level(logging.WARNING):
        folder._mend_at_exit()
    assert updates(tmp_path / "checkpoint_last.pt") == 8 and "(update 8)" in caplog.text
    assert [file.name for file in tmp_path.glob("*.tmp")] == ["checkpoint_other.pt.tmp"]


def test_parts_of_killed_processes_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "checkpoint_last.pt") as living:
        dead = Path(living.name[:-8] + "00000000")
        dead.write_bytes(b"part")
        CheckpointFolder(tmp_path).mend()
        assert [str(file) for file in tmp_path.iterdir()] == [str(living.name)]

from pathlib import Path

import torch

from pyramidions.reproduce.checkpoints import repair, training


def save(path: Path, value: int) -> None:
    torch.save({"value": value}, path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def test_what_is_whole_is_left_alone(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint_last.pt", 1)
    save(tmp_path / "checkpoint_best.pt", 2)
    assert repair(tmp_path) == [] and torch.load(tmp_path / "checkpoint_last.pt") == {"value": 1}
    assert repair(tmp_path / "nowhere") == []


def test_the_newest_whole_checkpoint_takes_the_place_of_a_truncated_one(tmp_path: Path) -> None:
    import os

    for age, name in ((3, "checkpoint_best.pt"), (2, "checkpoint_1_10.pt"), (1, "checkpoint_1_20.pt")):
        save(tmp_path / name, age)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    cut(tmp_path / "checkpoint_1_20.pt")
    save(tmp_path / "checkpoint_last.pt", 0)
    cut(tmp_path / "checkpoint_last.pt")
    (said,) = repair(tmp_path)
    assert said.endswith(
        "checkpoint_last.pt was damaged (now checkpoint_last.damaged): training goes on from checkpoint_1_10.pt."
    )
    assert torch.load(tmp_path / "checkpoint_last.pt") == {"value": 2}
    assert (tmp_path / "checkpoint_last.damaged").exists()


def test_without_another_checkpoint_training_starts_anew_and_nothing_is_deleted(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint_last.pt", 0)
    cut(tmp_path / "checkpoint_last.pt")
    (said,) = repair(tmp_path)
    assert "training starts anew" in said
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_last.damaged"]


def test_a_damaged_checkpoint_tells_nothing_of_its_training(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint_last.pt", 0)
    cut(tmp_path / "checkpoint_last.pt")
    assert training(tmp_path / "checkpoint_last.pt") is None

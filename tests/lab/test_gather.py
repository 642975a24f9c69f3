from pathlib import Path

import torch

from lab.gather import training


def test_a_damaged_checkpoint_tells_nothing_of_its_training(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"value": torch.arange(64.0)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(torch.arange(64.0).numpy().tobytes()) + 100] ^= 1
    path.write_bytes(content)
    assert training(path) is None
    path.write_bytes(content[:-30])
    assert training(path) is None


def test_what_a_run_wrote_tells_of_its_training(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    iterator = {"epoch": 3, "iterations_in_epoch": 0}
    state = {
        "optimizer_history": [{"num_updates": 12}],
        "extra_state": {"previous_training_time": 1.5, "train_iterator": iterator, "val_loss": 2.5, "best": 2.25},
        "cfg": {"checkpoint": {"best_checkpoint_metric": "loss"}},
    }
    torch.save(state, path)
    best = {"metric": "loss", "value": 2.25}
    assert training(path) == {"seconds": 1.5, "updates": 12, "epochs": 2, "best": best}
    del state["extra_state"]["best"]
    iterator["iterations_in_epoch"] = 4
    torch.save(state, path)
    assert training(path) == {"seconds": 1.5, "updates": 12, "epochs": 3, "best": None}
    torch.save({"model": {}}, path)
    assert training(path) is None

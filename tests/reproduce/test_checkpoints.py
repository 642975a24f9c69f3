from pathlib import Path

import torch

from pyramidions.reproduce.checkpoints import training


def test_a_damaged_checkpoint_tells_nothing_of_its_training(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"value": torch.arange(64.0)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(torch.arange(64.0).numpy().tobytes()) + 100] ^= 1
    path.write_bytes(content)
    assert training(path) is None
    path.write_bytes(content[:-30])
    assert training(path) is None

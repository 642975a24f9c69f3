"""Checkpoints that are whole, and what kills and full disks leave of them."""

from pathlib import Path

import pytest
import torch

from pyramidions.data.archive import is_whole


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"model": {"weight": torch.arange(4096.0)}}, path)
    return path


def test_what_torch_wrote_is_whole(checkpoint: Path) -> None:
    assert is_whole(checkpoint)


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.99])
def test_a_truncated_file_is_not(checkpoint: Path, share: float) -> None:
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: int(share * len(content))])
    assert not is_whole(checkpoint)


def test_an_archive_behind_a_part_of_itself_is_not(checkpoint: Path) -> None:
    # What fairseq's second attempt on the same handle leaves after a disk was full for a moment.
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[:9000] + content)
    assert not is_whole(checkpoint)


def test_one_flipped_bit_in_a_weight_is_found(checkpoint: Path) -> None:
    content = bytearray(checkpoint.read_bytes())
    content[content.index(torch.arange(4096.0).numpy().tobytes()) + 5000] ^= 1
    checkpoint.write_bytes(content)
    assert not is_whole(checkpoint)


def test_a_missing_file_a_folder_and_a_text_are_not(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no archive")
    assert not any(map(is_whole, (tmp_path / "missing.pt", tmp_path, tmp_path / "text.pt")))

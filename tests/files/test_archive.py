"""Checkpoints that are whole, and what kills and full disks leave of them."""

from pathlib import Path

import pytest
import torch

from pyramidions.files.archive import is_damaged, is_whole_checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"model": {"weight": torch.arange(4096.0)}}, path)
    return path


def test_what_torch_wrote_is_whole(checkpoint: Path) -> None:
    assert is_whole_checkpoint(checkpoint) and not is_damaged(checkpoint)


@pytest.mark.parametrize("share", [0, 0.0001, 0.5, 0.99])
def test_a_truncated_file_is_not(checkpoint: Path, share: float) -> None:
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: int(share * len(content))])
    assert not is_whole_checkpoint(checkpoint) and is_damaged(checkpoint)


def test_an_archive_behind_a_part_of_itself_is_not(checkpoint: Path) -> None:
    # What fairseq's second attempt on the same handle leaves after a disk was full for a moment.
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[:9000] + content)
    assert not is_whole_checkpoint(checkpoint)


def test_one_flipped_bit_in_a_weight_or_in_how_it_is_stored_is_found(checkpoint: Path) -> None:
    content = checkpoint.read_bytes()
    weight, method = content.index(torch.arange(4096.0).numpy().tobytes()) + 5000, content.index(b"PK\x01\x02") + 10
    for place, bit in ((weight, 1), (method, 8)):
        checkpoint.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        assert not is_whole_checkpoint(checkpoint)


def test_a_missing_file_a_folder_and_a_text_are_not(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no archive")
    for path in (tmp_path / "missing.pt", tmp_path, tmp_path / "text.pt"):
        assert not is_whole_checkpoint(path) and is_damaged(path)


@pytest.mark.parametrize("xor", [0x0C, 0xFF])
def test_a_flipped_byte_wherever_it_is_never_raises(tmp_path: Path, xor: int) -> None:
    # Also in a header: 0x0C turns what is stored into what is said to be packed by bzip2.
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"model": torch.arange(4.0)}, path)
    content = path.read_bytes()
    directory = content.index(b"PK\x01\x02")
    weights = content.index(torch.arange(4.0).numpy().tobytes())
    for place in (*range(0, directory, 16), *range(weights, weights + 16), *range(directory, len(content), 2)):
        path.write_bytes(content[:place] + bytes([content[place] ^ xor]) + content[place + 1 :])
        assert is_whole_checkpoint(path) in (True, False)
        if weights <= place < weights + 16:
            assert not is_whole_checkpoint(path)


def test_the_format_of_older_torch_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    torch.save({"model": torch.arange(4096.0)}, path, _use_new_zipfile_serialization=False)
    assert not is_damaged(path) and not is_whole_checkpoint(path)

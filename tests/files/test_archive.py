"""Checkpoints that are whole, and what kills and full disks leave of them."""

from pathlib import Path

import pytest
import torch

from pyramidions.files.archive import is_damaged, is_whole_checkpoint

WEIGHT = torch.arange(4096.0)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"model": {"weight": WEIGHT}}, path)
    return path


def test_what_torch_wrote_is_whole_and_its_older_format_is_not_called_damaged(checkpoint: Path) -> None:
    assert is_whole_checkpoint(checkpoint) and not is_damaged(checkpoint)
    torch.save({"model": WEIGHT}, checkpoint, _use_new_zipfile_serialization=False)
    assert not is_damaged(checkpoint) and not is_whole_checkpoint(checkpoint)


def test_what_is_no_whole_checkpoint_is_found(checkpoint: Path, tmp_path: Path) -> None:
    content = checkpoint.read_bytes()
    weight, method = content.index(WEIGHT.numpy().tobytes()) + 5000, content.index(b"PK\x01\x02") + 10
    # A bit in a weight, and in how it is stored.
    flipped = [content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :] for at, bit in ((weight, 1), (method, 8))]
    cut = [content[: int(share * len(content))] for share in (0, 0.0001, 0.5, 0.99)]
    # What fairseq's second attempt on the same handle leaves after a disk was full for a moment.
    for damaged in (*cut, *flipped, content[:9000] + content, b"no archive"):
        checkpoint.write_bytes(damaged)
        assert not is_whole_checkpoint(checkpoint) and is_damaged(checkpoint)
    for path in (tmp_path / "missing.pt", tmp_path):
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

"""A shard whose run is killed goes on, and the join is that of a run that was never killed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_extractor import exported

WORDS = "bees fly fast a bee with ruler".split()


def start(*command: object) -> "subprocess.Popen[bytes]":
    program = Path(sys.executable).with_name("pyramidions")
    return subprocess.Popen([program, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(*command: object) -> None:
    process = start(*command)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()


def kill_behind_blocks(partial: Path, *command: object) -> int:
    """Kill a run behind a block that it wrote itself; return the bytes that it leaves."""
    before = partial.stat().st_size if partial.exists() else 0
    process = start(*command)
    while process.poll() is None and not (partial.exists() and partial.stat().st_size > before + 1000):
        time.sleep(0.001)
    assert process.poll() is None, "it ended before it could be killed"
    process.kill()
    process.communicate()
    return partial.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["summarize", "extract"])
def test_a_shard_that_is_killed_twice_joins_to_the_bytes_of_one_run(
    kind: str, whole_models: dict[str, Path], tmp_path: Path
) -> None:
    lines = [
        json.dumps({"text": " ".join(WORDS[(number * step) % 7] for step in range(1, 6 + number % 9)) + ". A bee."})
        for number in range(2000)
    ]
    corpus, shards = tmp_path / "corpus.jsonl", tmp_path / "shards"
    corpus.write_text("".join(f"{line}\n" for line in lines))
    command = {
        "summarize": ["summarize", whole_models["plain"], corpus, "--beam", 2, "--max-len", 8, "--batch-size", 4],
        "extract": ["extract", corpus, "--method", exported(tmp_path / "model"), "--sentences", 1],
    }[kind]
    finish(*command, "-o", tmp_path / "one.jsonl")
    finish(*command, "--shard", "2/2", "-o", shards)
    first = [*command, "--shard", "1/2", "-o", shards]
    partial = shards / "00001-of-00002.partial"
    left = [kill_behind_blocks(partial, *first) for _ in range(2)]
    assert 0 < left[0] < left[1]
    finish(*first)
    assert not partial.exists()
    finish("join", tmp_path / "joined.jsonl", shards)
    assert (tmp_path / "joined.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    assert (tmp_path / "one.jsonl").read_bytes().count(b"\n") == 2000

import json
from pathlib import Path
from typing import Any

import pytest

from pyramidions.data.folder import DataFolder


def test_both_losses_and_their_difference_are_told_with_intervals(
    run: Any, data: DataFolder, checkpoint: Path, tmp_path: Path
) -> None:
    out = tmp_path / "losses.json"
    done = run("loss", checkpoint, "--data", data.path, "--documents", 4, "--json", out)
    assert done.exit_code == 0, done.output
    assert [line[:22].strip() for line in done.stdout.splitlines()[1:4]] == [
        *("own document", "another document", "another document costs"[:22])
    ]
    assert "4 documents of valid" in done.stdout
    found = json.loads(out.read_text())
    costs = [each["another"] - each["own"] for each in found["documents"]]
    assert len(costs) == 4 and found["cost"]["mean"] == pytest.approx(sum(costs) / 4)
    assert found["own"]["low"] <= found["own"]["mean"] <= found["own"]["high"]


def test_an_older_file_of_losses_is_replaced_and_no_other(
    run: Any, fail: Any, data: DataFolder, checkpoint: Path, tmp_path: Path
) -> None:
    out = tmp_path / "losses.json"
    for _ in range(2):
        assert run("loss", checkpoint, "--data", data.path, "--documents", 2, "--json", out).exit_code == 0
    out.write_text("{}")
    sentence = f"--json must not replace a file of another kind, but {out} is not an older file of losses."
    assert fail("loss", checkpoint, "--data", data.path, "--json", out) == sentence


def test_a_device_that_is_not_there_is_named(fail: Any, data: DataFolder, checkpoint: Path) -> None:
    assert fail("loss", checkpoint, "--data", data.path, "--device", "tpu").startswith("--device must be one that")

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from pyramidions.data.folder import DataFolder

Run = Callable[..., Result]


def test_both_losses_and_their_difference_are_told_with_intervals_and_replace_an_older_file(
    run: Run, data: DataFolder, checkpoint: Path, tmp_path: Path
) -> None:
    out = tmp_path / "losses.json"
    for documents in (2, 4):
        done = run("loss", checkpoint, "--data", data.path, "--documents", documents, "--json", out)
        assert done.exit_code == 0, done.output
    assert [line[:22].strip() for line in done.stdout.splitlines()[1:4]] == [
        *("own document", "another document", "another document costs"[:22])
    ]
    assert "4 documents of valid" in done.stdout
    found = json.loads(out.read_text())
    costs = [each["another"] - each["own"] for each in found["documents"]]
    assert len(costs) == 4 and found["cost"]["mean"] == pytest.approx(sum(costs) / 4)
    assert found["own"]["low"] <= found["own"]["mean"] <= found["own"]["high"]

"""Rows of the paper's tables, run for real in the small size, killed and gone on with."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def command(out: Path) -> list[str]:
    return [str(ROOT / "scripts/reproduce/table2.sh"), "--scale", "tiny", "--rows", "4,15", "--out", str(out)]


def kill_in_mid_training(out: Path, row: str) -> str:
    """Start rows 4 and 15 and kill all of it between two checkpoints of one of them; return what was printed."""
    log = out / "arxiv" / "table2" / row / "train.log"
    process = subprocess.Popen(
        command(out), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    checkpoint = log.parent / "checkpoints" / "checkpoint_last.pt"
    while not (checkpoint.exists() and "num_updates=15," in log.read_text()):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    printed, _ = process.communicate()
    # What runs in a session of its own outlives it, and holds the folder.
    subprocess.run(["pkill", "-KILL", "-f", f"checkpoint.save_dir={log.parent}/"], check=True)
    return printed


def test_rows_killed_in_mid_training_go_on_and_end_in_a_report(tmp_path: Path) -> None:
    printed = kill_in_mid_training(tmp_path, "15_power_2k_1k_512")
    assert "1 of 2: arxiv/table2/04_blockwise_2k" in printed and "score" in printed

    done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    finished, resumed = done.stdout.split("2 of 2: ")
    assert re.findall(r"  (\w+): done before", finished) == ["prepare", "train", "generate", "score", "time"]
    assert "done before" not in resumed
    folder = tmp_path / "arxiv" / "table2" / "15_power_2k_1k_512"
    assert "Loaded checkpoint" in (folder / "train.log").read_text().split("\n$ ")[-1]

    result = json.loads((folder / "result.json").read_text())
    assert result["training"]["updates"] == 25 and result["training"]["epochs"] == 1
    assert 0 <= result["scores"]["rouge1"]["low"] <= result["scores"]["rouge1"]["high"]
    assert result["times"]["train_step"]["ratio_to_reference"]["medians"] > 0
    assert "loading pretrained model from" in (folder / "train.log").read_text()
    page = (tmp_path / "report.md").read_text()
    assert "35.3" in page and "not run" in page


def test_a_row_that_fails_is_reported_and_the_rest_go_on(tmp_path: Path) -> None:
    # Where the checkpoints of row 4 should go, there is a file.
    folder = tmp_path / "arxiv" / "table2" / "04_blockwise_2k"
    folder.mkdir(parents=True)
    (folder / "checkpoints").write_text("in the way")
    rows = [*command(tmp_path)[:-3], "4,15,12", "--out", str(tmp_path)]
    done = subprocess.run(rows, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAILED: train failed; the end of" in done.stdout
    assert "FAILED: it is fine-tuned from arxiv/table2/04_blockwise_2k, which failed." in done.stdout
    assert "2 failed: arxiv/table2/04_blockwise_2k, arxiv/table2/15_power_2k_1k_512." in done.stderr
    assert (tmp_path / "arxiv" / "table2" / "12_efficient_512" / "scores.json").exists()

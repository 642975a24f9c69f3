"""Rows of the paper's tables, run for real in the small size, killed and gone on with."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairseq_commands import finish

from lab.catalogue import read_catalogue
from lab.plan import Machines, Planner
from lab.scale import SCALES
from pyramidions.data.folder import DataFolder
from pyramidions.runs.steps import Command, Step, run_commands
from pyramidions.scoring.summaries import generated_summaries

pytestmark = pytest.mark.nightly
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
    while not (checkpoint.exists() and '"num_updates": "15"' in log.read_text()):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    printed, _ = process.communicate()
    return printed


def test_rows_killed_in_mid_training_go_on_and_end_in_a_report(tmp_path: Path) -> None:
    printed = kill_in_mid_training(tmp_path, "15_power_2k_1k_512")
    assert "1 of 2: arxiv/table2/04_blockwise_2k" in printed and "score" in printed

    done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    finished, resumed = done.stdout.split("2 of 2: ")
    assert re.findall(r"  (\w+): done before", finished) == ["train", "generate", "score", "time"]
    assert "done before" not in resumed
    folder = tmp_path / "arxiv" / "table2" / "15_power_2k_1k_512"
    assert "Loaded checkpoint" in (folder / "train.log").read_text().split("\n$ ")[-1]

    result = json.loads((folder / "result.json").read_text())
    assert result["training"]["updates"] == 25 and result["training"]["epochs"] == 1
    assert 0 <= result["scores"]["rouge1"]["low"] <= result["scores"]["rouge1"]["high"]
    assert result["times"]["train_step"]["ratio_to_reference"]["medians"] > 0
    assert "loading pretrained model from" in (folder / "train.log").read_text()
    page = (tmp_path / "report.md").read_text()
    assert "sample, {'train': 200, 'valid': 20, 'test': 40}" in page
    # The paper's figure for row 15, which no tiny model can be compared with.
    assert re.search(r"\| 15 +\| tiny +\| power +\| 128 > 64 → 32 +\|", page) and "35.3" not in page


def test_the_shares_of_two_gpus_are_all_test_documents(data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    row = next(row for row in read_catalogue(ROOT / "configs") if row.row == "5")
    two_gpus = Machines(2)
    planner = Planner(tmp_path, ROOT / "configs", SCALES["paper"], two_gpus, ROOT / "pyramidions", {"arxiv": data.path})
    checkpoints = planner.folder(row) / "checkpoints"
    checkpoints.mkdir(parents=True)
    shutil.copy(checkpoint, checkpoints / "checkpoint_best.pt")
    step = planner.generate(row, 4)
    for command in step.commands:
        finish(Path(command.words[0]).name, *command.words[1:], "--cpu", "--min-len", "2", "--max-len-b", "8")
    shares = [part.read_text().splitlines() for part in step.after.args[0]]
    assert all(any(line.startswith("H-") for line in share) for share in shares)
    assert len(generated_summaries(shares[0] + shares[1], 10)) == 10


SLURM = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_NNODES": "2", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(("gpus", "processes", "slurm"), [(0, 1, {}), (1, 1, SLURM), (4, 4, SLURM)])
def test_fairseq_starts_as_many_processes_as_planned_on_a_machine_with_eight_gpus(
    gpus: int, processes: int, slurm: dict[str, str], tmp_path: Path
) -> None:
    row = next(row for row in read_catalogue(ROOT / "configs") if row.row == "5")
    planner = Planner(tmp_path, ROOT / "configs", SCALES["paper"], Machines(gpus), ROOT / "pyramidions", {})
    (train,) = planner.train(row, 4).argv
    overrides = [word for word in train.words if word.startswith("distributed_training.")]
    script = tmp_path / "train"
    script.write_text(f"#!{sys.executable}\n{LAUNCH}")
    script.chmod(0o755)
    step = Step("train", (Command((str(script), *overrides), train.gpus),), (), tmp_path / "train.log")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.items():
            patch.setenv(name, value)
        run_commands(step)
    assert (tmp_path / "train.log").read_text().splitlines()[-1] == f"{processes} {processes}"


# What fairseq makes of our settings, on a machine that shows as many GPUs as it is let to, of eight.
LAUNCH = """
import os, sys, torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed.utils import infer_init_method
visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
torch.cuda.device_count = lambda: len([gpu for gpu in visible.split(",") if gpu])
from omegaconf import OmegaConf
cfg = OmegaConf.structured(FairseqConfig()).distributed_training
for word in sys.argv[1:]:
    name, value = word.removeprefix("distributed_training.").split("=")
    cfg[name] = int(value)
infer_init_method(cfg)
spawned = cfg.distributed_num_procs if cfg.distributed_init_method else 1
print(cfg.distributed_world_size, spawned)
"""

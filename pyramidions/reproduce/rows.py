"""From tables to rows to results: what is wanted, in which order, and one result file a row."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.data.atomic import atomic_file
from pyramidions.data.manifest import file_hash
from pyramidions.errors import UserError
from pyramidions.measure.provenance import commit, versions
from pyramidions.models.experiment import read_experiment
from pyramidions.reproduce.catalogue import QUALITY_TABLES, PaperRow, rows_of
from pyramidions.reproduce.checkpoints import repair, training
from pyramidions.reproduce.plan import Planner, Step
from pyramidions.reproduce.run import Say, StepError, locked, run_step
from pyramidions.scoring.rouge import METRICS

#: What each kind of table needs of a row.
_STEPS = {
    **dict.fromkeys(QUALITY_TABLES, ("train", "generate", "score", "time")),
    "table10": ("time",),
    "figure4": ("time-training",),
}
TABLES = tuple(_STEPS)
_ORDER = ("train", "generate", "score", "time", "time-training")
_TELL_HARDWARE = """
import json, sys
from pyramidions.measure.provenance import hardware
print(json.dumps(hardware(sys.argv[1])))
"""


class Job(NamedTuple):
    """A config on a corpus, which rows of several tables may share.

    Attributes:
        row: one of those rows.
        wanted: names of steps.
    """

    row: PaperRow
    wanted: frozenset[str]

    @property
    def name(self) -> str:
        """Corpus and config."""
        return f"{self.row.data}/{self.row.config}"


def jobs_for(catalogue: list[PaperRow], tables: Iterable[str], only: Iterable[str] = ()) -> list[Job]:
    """Return what tables need, each config once and after the one that it is fine-tuned from.

    Args:
        catalogue: all rows.
        tables: names from `TABLES`.
        only: rows of those tables, by the paper's number or name; none for all.

    Raises:
        UserError: a row that none of the tables has.
    """
    only, wanted = list(only), dict[tuple[str, str], Job]()
    found = [(table, row) for table in tables for row in rows_of(catalogue, table)]
    known = [row.row for _, row in found]
    if unknown := [name for name in only if name not in known]:
        raise UserError(f"--rows must be of {', '.join(known)}, but one is {unknown[0]!r}.")
    for table, row in found:
        if only and row.row not in only:
            continue
        if row.starts_from and "train" in _STEPS[table]:
            start = next(r for r in catalogue if (r.config, r.data) == (row.starts_from, row.data))
            _want(wanted, start, ("train",))
        _want(wanted, row, _STEPS[table])
    return list(wanted.values())


def _want(wanted: dict[tuple[str, str], Job], row: PaperRow, steps: tuple[str, ...]) -> None:
    key = (row.config, row.data)
    before = wanted.get(key)
    wanted[key] = Job(row, frozenset(steps)) if before is None else before._replace(wanted=before.wanted | set(steps))


class Runner:
    """Runs jobs one after the other; one that fails does not keep the rest from running.

    Args:
        planner: knows the commands.
        configs: the folder of configs at the paper's size, which say how many documents fit on a GPU.
        say: is told about progress, a line at a time.
    """

    def __init__(self, planner: Planner, configs: Path, say: Say) -> None:
        self.planner = planner
        self.configs = configs
        self.say = say

    def steps(self, job: Job) -> list[Step]:
        """Return the steps of a job, in order; machines but the first only help to train."""
        planner, row = self.planner, job.row
        dataset = read_experiment(str(self.configs / f"{row.config}.yaml")).run["dataset"]
        size = planner.machines.documents_per_gpu or dataset["batch_size"]
        make: dict[str, Callable[[], Step]] = {
            "train": lambda: planner.train(row, size),
            "generate": lambda: planner.generate(row, dataset["batch_size_valid"]),
            "score": lambda: planner.score(row),
            "time": lambda: planner.time(row, size),
            "time-training": lambda: planner.time(row, size, decodes=False),
        }
        mine = _ORDER if planner.machines.node_rank == 0 else ("train",)
        return [make[name]() for name in mine if name in job.wanted]

    def run(self, jobs: list[Job]) -> list[str]:
        """Run jobs; return the names of those that failed."""
        failed: list[str] = []
        for corpus in dict.fromkeys(job.row.data for job in jobs if job.wanted & {"train", "generate", "score"}):
            step = self.planner.prepare(corpus)
            with locked(step.folder) as descriptor:
                self._step(step, descriptor)
        for number, job in enumerate(jobs, 1):
            self.say(f"{number} of {len(jobs)}: {job.name}")
            try:
                self._job(job, failed)
            except StepError as error:
                self.say(f"  FAILED: {error}")
                failed.append(job.name)
        return failed

    def _job(self, job: Job, failed: list[str]) -> None:
        start = f"{job.row.data}/{job.row.starts_from}"
        if start in failed and "train" in job.wanted:
            raise StepError(f"it is fine-tuned from {start}, which failed.")
        folder = self.planner.folder(job.row)
        first = self.planner.machines.node_rank == 0
        # Only the first of several machines holds the folder: all of them write into it.
        with locked(folder) if first else contextlib.nullcontext(0) as descriptor:
            for step in self.steps(job):
                if step.name == "train" and first and not step.made.exists():
                    for sentence in repair(folder / "checkpoints"):
                        self.say(f"  {sentence}")
                try:
                    self._step(step, descriptor)
                finally:
                    if first:
                        self._write_result(job.row)

    def _step(self, step: Step, descriptor: int) -> None:
        taken = run_step(step, descriptor, self.say)
        if taken is not None:
            # Kept with the step: a later run of another commit, or on another machine, must not relabel it.
            ran = {"seconds": round(taken, 1), "commit": commit(), "versions": versions(), "hardware": self.hardware}
            _write(step.folder / f"{step.name}.ran.json", ran)
        self.say(f"  {step.name}: {'done before' if taken is None else f'{taken:.0f} s'}")

    @cached_property
    def hardware(self) -> dict[str, Any]:
        """What computes, as another process says: asking for a GPU's name would take some of its memory for good."""
        machines = self.planner.machines
        words = [sys.executable, "-c", _TELL_HARDWARE, "cuda" if machines.gpus else "cpu"]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        return {**json.loads(told), "gpus": machines.gpus, "nodes": machines.nodes}

    def _write_result(self, row: PaperRow) -> None:
        """Gather what there is of a row; nothing where no step has ended."""
        planner, folder = self.planner, self.planner.folder(row)
        files = [folder / f"{name}.ran.json" for name in _ORDER]
        ran = {path.name.removesuffix(".ran.json"): json.loads(path.read_text()) for path in files if path.is_file()}
        if not ran:
            return
        last = list(ran.values())[-1]
        manifest = planner.data(row.data) / "manifest.json"
        result = {
            "config": row.config,
            "data": row.data,
            "scale": planner.scale.name,
            "data_hash": file_hash(manifest) if manifest.is_file() else None,
            # Of all steps, where they were made by several commits or on several kinds of device.
            "commit": ", ".join(dict.fromkeys(step["commit"] for step in ran.values())),
            "versions": last["versions"],
            "hardware": {
                **last["hardware"],
                "device": ", ".join(dict.fromkeys(step["hardware"]["device"] for step in ran.values())),
            },
            "seed": read_experiment(str(self.configs / f"{row.config}.yaml")).run["common"]["seed"],
            "training": training(folder / "checkpoints" / "checkpoint_last.pt") if "train" in ran else None,
            "generation": {"seconds": ran["generate"]["seconds"]} if "generate" in ran else None,
            "scores": _scores(folder / "scores.json"),
            "times": _times(folder, row.reference, planner.scale.decode_tokens),
        }
        _write(folder / "result.json", result)


def _write(path: Path, values: dict[str, Any]) -> None:
    with atomic_file(path) as file:
        file.write((json.dumps(values, indent=1) + "\n").encode())


def _scores(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    scores = json.loads(path.read_text())
    ours = next(iter(scores["systems"].values()))
    return {"signature": scores["signature"], **{metric: ours[metric] for metric in METRICS}}


def _times(folder: Path, reference: str, decode_tokens: tuple[int, int]) -> dict[str, Any] | None:
    """Return the times of a row and their ratios to its reference, with which it took turns."""
    times: dict[str, Any] | None = None
    for name in ("training-times.json", "times.json"):
        path = folder / name
        if path.is_file():
            told = json.loads(path.read_text())
            own = told["configs"][-1]
            kept = {key: told[key] for key in ("repeats", "train_batch", "decode_batch", "precision")}
            times = {"reference": reference, "decode_tokens": list(decode_tokens), **kept}
            for phase in ("train_step", *(f"decode_{tokens}" for tokens in decode_tokens)):
                if phase in own:
                    numbers = {key: own[phase][key] for key in ("mean", "standard_deviation", "median")}
                    times[phase] = {**numbers, "ratio_to_reference": own[phase]["ratio_to_first"]}
    return times

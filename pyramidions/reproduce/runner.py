"""Runs jobs one after the other, alone or as one of several machines."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pyramidions.data.manifest import file_hash
from pyramidions.environment import commit, versions
from pyramidions.models.experiment import read_experiment
from pyramidions.reproduce.gather import write_result
from pyramidions.reproduce.jobs import ORDER, Job
from pyramidions.reproduce.nodes import Leader, Say, leading, trainings
from pyramidions.reproduce.plan import Planner, Step, documents_an_update
from pyramidions.reproduce.run import StepError, locked, run_commands, run_step

_TELL_HARDWARE = """
import json, sys
from pyramidions.environment import hardware
print(json.dumps(hardware(sys.argv[1])))
"""


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
        dataset, size = self._settings(job)["dataset"], self._batch_size(job)
        make: dict[str, Callable[[], Step]] = {
            "train": lambda: planner.train(row, size),
            "generate": lambda: planner.generate(row, dataset["batch_size_valid"]),
            "score": lambda: planner.score(row),
            "time": lambda: planner.time(row, size),
            "time-training": lambda: planner.time(row, size, decodes=False),
        }
        mine = ORDER if planner.machines.node_rank == 0 else ("train",)
        return [make[name]() for name in mine if name in job.wanted]

    def corpora(self, jobs: list[Job]) -> list[str]:
        """Return the corpora that jobs read."""
        return list(dict.fromkeys(job.row.data for job in jobs if job.wanted & {"train", "generate", "score"}))

    def run(self, jobs: list[Job], others: list[Step]) -> list[str]:
        """Run jobs, and steps that belong to no row; return the names of those that failed.

        Several machines: the first leads, each other one helps it to train and has nothing to tell of failures.
        """
        machines = self.planner.machines
        if machines.node_rank > 0:
            self._follow(jobs)
            return []
        failed: list[str] = []
        with self._leader() as leader:
            unprepared = self._prepare(jobs)
            for number, job in enumerate(jobs, 1):
                self.say(f"{number} of {len(jobs)}: {job.name}")
                with self._telling(job.name, failed):
                    if job.row.data in unprepared and job.wanted & {"train", "generate", "score"}:
                        raise StepError(f"its corpus {job.row.data} could not be prepared.")
                    self._job(job, leader)
            for step in others:
                self.say(step.name)
                with self._telling(step.name, failed), locked(step.folder) as descriptor:
                    self._step(step, descriptor, {})
        return failed

    @contextmanager
    def _leader(self) -> Iterator[Leader | None]:
        machines = self.planner.machines
        if machines.nodes == 1:
            yield None
            return
        assert machines.rendezvous is not None
        with leading(machines.rendezvous, machines.nodes - 1, self.say) as leader:
            yield leader

    @contextmanager
    def _telling(self, name: str, failed: list[str]) -> Iterator[None]:
        try:
            yield
        except StepError as error:
            self.say(f"  FAILED: {error}")
            failed.append(name)

    def _follow(self, jobs: list[Job]) -> None:
        by_name = {job.name: job for job in jobs}
        rendezvous, rank = self.planner.machines.rendezvous, self.planner.machines.node_rank
        assert rendezvous is not None
        for name in trainings(rendezvous):
            self.say(f"helping to train {name}")
            (step,) = self.steps(by_name[name])
            step.folder.mkdir(parents=True, exist_ok=True)
            with self._telling(name, []):
                run_commands(step, step.folder / f"{step.name}.{rank}.log", None, self.say)

    def _prepare(self, jobs: list[Job]) -> set[str]:
        """Prepare what corpora jobs need; return those that could not be."""
        failed: list[str] = []
        for corpus in self.corpora(jobs):
            step = self.planner.prepare(corpus)
            if step is not None:
                with self._telling(corpus, failed), locked(step.folder, wait=self.say) as descriptor:
                    # Whoever held it may have prepared it.
                    if self.planner.prepare(corpus) is not None:
                        self._step(step, descriptor, {})
        return set(failed)

    def _job(self, job: Job, leader: Leader | None) -> None:
        folder = self.planner.folder(job.row)
        with locked(folder) as descriptor:
            for step in self.steps(job):
                if step.name == "train" and not step.is_done:
                    self._before_training(job)
                    if leader is not None:
                        leader.announce(job.name)
                self._step(step, descriptor, self._made_from(job, step))
                write_result(self.planner, job.row, self._settings(job)["common"]["seed"])

    def _before_training(self, job: Job) -> None:
        start = self.planner.out / job.row.data / job.row.starts_from
        if job.row.starts_from and not (start / "train.ran.json").is_file():
            raise StepError(f"it is fine-tuned from {job.row.data}/{job.row.starts_from}, which is not trained.")
        scale, size = self.planner.scale, self._batch_size(job)
        documents = documents_an_update(self.planner.machines, scale, size)
        if documents != scale.documents:
            self.say(
                f"  an update has {documents} documents: batches of {size} on each GPU do not make {scale.documents}"
            )

    def _made_from(self, job: Job, step: Step) -> dict[str, str]:
        """Return hashes of the configs that a step reads and, where it reads documents, of their manifest."""
        row, timing = job.row, step.name in ("time", "time-training")
        configs = dict.fromkeys((row.reference, row.config) if timing else (row.config,))
        read = [read_experiment(str(self.planner.configs / f"{config}.yaml")).run for config in configs]
        made_from = {"config": hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()}
        if not timing:
            made_from["data"] = file_hash(self.planner.data(row.data) / "manifest.json")
        return made_from

    def _step(self, step: Step, descriptor: int, made_from: dict[str, str]) -> None:
        if not step.is_done:
            self.say(f"  {step.name} ... (log: {step.folder / f'{step.name}.log'})")
        nodes, gpus = step.machines
        about = {
            "made_from": made_from,
            "commit": commit(),
            "versions": versions(),
            "hardware": {**self._hardware, "nodes": nodes, "gpus": gpus},
        }
        taken = run_step(step, descriptor, self.say, about)
        self.say(f"  {step.name}: {'done before' if taken is None else f'{taken:.0f} s'}")

    @cached_property
    def _hardware(self) -> dict[str, Any]:
        """What computes, as another process says: asking for a GPU's name would take some of its memory for good."""
        words = [sys.executable, "-c", _TELL_HARDWARE, "cuda" if self.planner.machines.gpus else "cpu"]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        hardware: dict[str, Any] = json.loads(told)
        return hardware

    def _batch_size(self, job: Job) -> int:
        """Return documents at a time on a GPU."""
        return self.planner.machines.documents_per_gpu or int(self._settings(job)["dataset"]["batch_size"])

    def _settings(self, job: Job) -> dict[str, Any]:
        return read_experiment(str(self.configs / f"{job.row.config}.yaml")).run

"""Runs jobs one after the other, here or on a cluster."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pyramidions.data.manifest import file_hash
from pyramidions.models.experiment import read_experiment
from pyramidions.reproduce.gather import write_result
from pyramidions.reproduce.jobs import ORDER, Job
from pyramidions.reproduce.plan import Planner, Step, documents_an_update
from pyramidions.reproduce.run import Hashes, Say, StepError, is_done, run_step


class Run(Protocol):
    """Runs a step to its end and returns its seconds, as `run_step` does here and `Cluster.run` as a job."""

    def __call__(self, step: Step, made_from: Hashes, say: Say, *, waits: bool = False) -> float | None: ...


class Runner:
    """Runs jobs one after the other; the rest go on when one fails.

    Args:
        planner: knows the commands.
        configs: the folder of configs at the paper's size, which say how many documents fit on a GPU.
        say: receives progress, one line at a time.
        run: runs a step.
    """

    def __init__(self, planner: Planner, configs: Path, say: Say, run: Run = run_step) -> None:
        self.planner = planner
        self.configs = configs
        self.say = say
        self._run = run

    def steps(self, job: Job) -> list[Step]:
        """Return the steps of a job, in order."""
        planner, row = self.planner, job.row
        dataset, size = self._settings(job)["dataset"], self._batch_size(job)
        make: dict[str, Callable[[], Step]] = {
            "train": partial(planner.train, row, size),
            "generate": partial(planner.generate, row, dataset["batch_size_valid"]),
            "score": partial(planner.score, row),
            "time": partial(planner.time, row, size),
            "time-training": partial(planner.time, row, size, decodes=False),
        }
        return [make[name]() for name in ORDER if name in job.wanted]

    def corpora(self, jobs: list[Job]) -> list[str]:
        """Return the corpora that jobs read."""
        return list(dict.fromkeys(job.row.data for job in jobs if job.reads_corpus))

    def run(self, jobs: list[Job], others: list[Step]) -> list[str]:
        """Run jobs, and steps that belong to no row; return the names of those that failed."""
        failed: list[str] = []
        unprepared: list[str] = []
        for corpus in self.corpora(jobs):
            if step := self.planner.prepare(corpus):
                with self._reporting(corpus, unprepared):
                    self._step(step, {}, waits=True)
        for number, job in enumerate(jobs, 1):
            self.say(f"{number} of {len(jobs)}: {job.name}")
            with self._reporting(job.name, failed):
                if job.row.data in unprepared and job.reads_corpus:
                    raise StepError(f"its corpus {job.row.data} could not be prepared.")
                for step in self.steps(job):
                    if step.name == "train" and not step.is_done:
                        self._before_training(job)
                    self._step(step, self._made_from(job, step))
                    write_result(self.planner, job.row, self._settings(job)["common"]["seed"])
        for step in others:
            self.say(step.name)
            with self._reporting(step.name, failed):
                self._step(step, {})
        return failed

    @contextmanager
    def _reporting(self, name: str, failed: list[str]) -> Iterator[None]:
        try:
            yield
        except StepError as error:
            self.say(f"  FAILED: {error}")
            failed.append(name)

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
        """Return hashes of the configs that a step reads and, if it reads documents, of their manifest."""
        row, timing = job.row, step.name in ("time", "time-training")
        configs = dict.fromkeys((row.reference, row.config) if timing else (row.config,))
        read = [read_experiment(str(self.planner.configs / f"{config}.yaml")).run for config in configs]
        made_from = {"config": hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()}
        if not timing:
            made_from["data"] = file_hash(self.planner.data(row.data) / "manifest.json")
        return made_from

    def _step(self, step: Step, made_from: Hashes, *, waits: bool = False) -> None:
        taken = None
        if not is_done(step, made_from):
            self.say(f"  {step.name} ... (log: {step.log})")
            taken = self._run(step, made_from, self.say, waits=waits)
        self.say(f"  {step.name}: {'done before' if taken is None else f'{taken:.0f} s'}")

    def _batch_size(self, job: Job) -> int:
        """Return documents at a time on a GPU."""
        return self.planner.machines.documents_per_gpu or int(self._settings(job)["dataset"]["batch_size"])

    def _settings(self, job: Job) -> dict[str, Any]:
        return read_experiment(str(self.configs / f"{job.row.config}.yaml")).run

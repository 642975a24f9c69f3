"""Runs jobs, here or on a cluster, and gathers what their steps left in one file per row and seed."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.catalogue import ORDER, Job, PaperRow
from lab.compose import composed, settings_hash
from lab.plan import Planner
from lab.run import Hashes, Say, StepError, is_done, run_step
from lab.side_by_side import run_side_by_side
from lab.steps import Step
from pyramidions.data.folder import DataFolder
from pyramidions.data.manifest import file_hash
from pyramidions.files.archive import is_whole_checkpoint
from pyramidions.files.atomic import write_file
from pyramidions.files.run_facts import RunFacts
from pyramidions.scoring import FIGURES

#: Runs a step to its end and returns its seconds, as `run_step` does here and `Cluster.run` as a job.
Run = Callable[..., float | None]
_TIMING = ("time", "time-training")


@dataclass
class Runner:
    """Runs jobs, one after the other or side by side; the rest go on when one fails.

    Attributes:
        planner: knows the commands.
        configs: the folder of configs at the paper's size, which say how many documents fit on a GPU.
        say: receives progress, one line at a time.
        run_one: runs a step.
        stop: of jobs that run side by side, makes `run_one` stop what it runs; None runs one job after the other.
    """

    planner: Planner
    configs: Path
    say: Say
    run_one: Run = run_step
    stop: Callable[[], object] | None = None

    def steps(self, job: Job) -> list[Step]:
        """Return the steps of a job, in order."""
        planner, row = self._planner(job), job.row
        dataset, size = self._settings(job)["dataset"], self._batch_size(job)
        steps = (
            *(planner.train(row, size), planner.loss(row)),
            *(planner.generate(row, dataset["batch_size_valid"]), planner.score(row)),
            *(planner.time(row, size), planner.time(row, size, decodes=False)),
        )
        return [step for step in steps if step.name in job.wanted]

    def start(self, job: Job) -> Step | None:
        """Return the training that a job begins with, which others may share; None if there is none."""
        return self._planner(job).start(job.row) if "train" in job.wanted else None

    def _planner(self, job: Job) -> Planner:
        """Return what plans the job's seed."""
        return replace(self.planner, seed=job.seed)

    def corpora(self, jobs: list[Job]) -> list[str]:
        """Return the corpora that jobs read."""
        return list(dict.fromkeys(job.row.corpus for job in jobs if job.reads_corpus))

    def run(self, jobs: list[Job], others: list[Step]) -> list[str]:
        """Run jobs, and steps that belong to no row; return the names of those that failed."""
        failed: list[str] = []
        unprepared: list[str] = []
        for corpus in self.corpora(jobs):
            if step := self.planner.prepare(corpus):
                with self._reporting(corpus, unprepared):
                    self._step(step, {}, waits=True)
        if self.stop is None:
            tried: set[Path] = set()
            for number, job in enumerate(jobs, 1):
                self.say(f"{number} of {len(jobs)}: {job.name}")
                with self._reporting(job.name, failed):
                    self.run_start(job, unprepared, tried)
                    self.run_job(job, unprepared)
        else:
            failed += run_side_by_side(self, jobs, unprepared, self.stop)
        for step in others:
            self.say(step.name)
            with self._reporting(step.name, failed):
                self._step(step, {})
        return failed

    def run_start(self, job: Job, unprepared: Sequence[str], tried: set[Path]) -> None:
        """Run what a job begins with, unless that was tried.

        Args:
            job: the job.
            unprepared: corpora that could not be prepared.
            tried: folders of such trainings; grows by this one.

        Raises:
            StepError: it failed, or cannot begin.
        """
        start = self.start(job)
        if start is None or start.folder in tried:
            return
        tried.add(start.folder)
        self._check(job, unprepared)
        self._step(start, self._made_from(job, start))

    def run_job(self, job: Job, unprepared: Sequence[str]) -> None:
        """Run the steps of a job after its start, and write its result after each.

        Args:
            job: the job.
            unprepared: corpora that could not be prepared.

        Raises:
            StepError: a step failed, or cannot begin.
        """
        self._check(job, unprepared)
        start = self.start(job)
        if start is not None and not is_done(start, self._made_from(job, start)):
            raise StepError(f"it begins with {start.folder}, which is not trained.")
        for step in self.steps(job):
            if step.name == "train" and not step.is_done:
                self._before_training(job)
            made_from = self._made_from(job, step)
            if step.name == "score":
                _score_again(step, made_from)
            self._step(step, made_from)
            write_result(self._planner(job), job.row, self._seed(job))

    def _check(self, job: Job, unprepared: Sequence[str]) -> None:
        """Refuse a job before hours of work.

        Raises:
            StepError: its corpus could not be prepared, or it was trained on other data or with another config.
        """
        if job.row.corpus in unprepared and job.reads_corpus:
            raise StepError(f"its corpus {job.row.data} could not be prepared.")
        for step in self.steps(job):
            if step.name == "train":
                is_done(step, self._made_from(job, step))

    @contextmanager
    def _reporting(self, name: str, failed: list[str]) -> Iterator[None]:
        try:
            yield
        except StepError as error:
            self.say(f"  FAILED: {error}")
            failed.append(name)

    def _before_training(self, job: Job) -> None:
        start = self._planner(job).folder(job.row.model_copy(update={"config": job.row.starts_from}))
        if job.row.starts_from and not (start / "train.ran.json").is_file():
            raise StepError(f"it is fine-tuned from {job.row.data}/{job.row.starts_from}, which is not trained.")
        wanted, size = self.planner.scale.documents, self._batch_size(job)
        documents = self.planner.machines.documents_an_update(wanted, size)
        if documents != wanted:
            self.say(f"  an update has {documents} documents: batches of {size} on each GPU do not make {wanted}")

    def _made_from(self, job: Job, step: Step) -> dict[str, str]:
        """Return hashes of the configs that a step reads and, if it reads documents, of their manifest."""
        row, timing = job.row, step.name in _TIMING
        made_from = {"config": settings_hash(self._read(row, step))}
        if not timing:
            made_from["data"] = file_hash(self.planner.data(row.corpus) / "manifest.json")
        # What was scored by ROUGE alone before there were other metrics stays done.
        if step.name == "score" and self.planner.metrics != ("rouge",):
            made_from["metrics"] = ",".join(self.planner.metrics)
        return made_from

    def _read(self, row: PaperRow, step: Step) -> list[Any]:
        """Return the settings that a step reads, and those of what it began with."""
        if step.name in _TIMING:
            configs = dict.fromkeys((row.reference, row.config))
            return [composed(self.planner.configs, (f"+{config.replace('/', '=', 1)}",)).run for config in configs]
        start = self.planner.start_settings(row)
        began = [] if start is None else [start]
        is_start = self.planner.scale.start is not None and step.name == self.planner.scale.start.name
        return began if is_start else [self.planner.settings(row), *began]

    def _step(self, step: Step, made_from: Hashes, *, waits: bool = False) -> None:
        taken = None
        if not is_done(step, made_from):
            self.say(f"  {step.name} ... (log: {step.log})")
            taken = self.run_one(step, made_from, self.say, waits=waits)
        self.say(f"  {step.name}: {'done before' if taken is None else f'{taken:.0f} s'}")

    def _batch_size(self, job: Job) -> int:
        """Return documents at a time on a GPU."""
        asked = self.planner.machines.documents_per_gpu or self.planner.scale.batch_size
        return asked or int(self._settings(job)["dataset"]["batch_size"])

    def _seed(self, job: Job) -> int:
        """Return the seed of the job's training."""
        return int(self._settings(job)["common"]["seed"]) if job.seed is None else job.seed

    def _settings(self, job: Job) -> dict[str, Any]:
        return composed(self.configs, job.row.overrides).run


def _score_again(step: Step, made_from: Hashes) -> None:
    """Forget that a row is scored if that was by other metrics: its summaries are there."""
    if step.is_done:
        before = json.loads(step.mark.read_text()).get("made_from", {})
        if before.get("metrics") != made_from.get("metrics"):
            step.mark.unlink()


def write_result(planner: Planner, row: PaperRow, seed: int) -> None:
    """Write result.json of a row from the steps that are done; do nothing if none is.

    Commit, versions and hardware come from the marks, which later runs do not change. Hardware and versions are those
    of the first step, commits are those of all steps.
    """
    folder = planner.folder(row)
    files = {name: folder / f"{name}.ran.json" for name in ORDER}
    ran: dict[str, Any] = {name: json.loads(path.read_text()) for name, path in files.items() if path.is_file()}
    if not ran:
        return
    first = next(iter(ran.values()))
    start = planner.start(row) if "train" in ran else None
    begun = json.loads(start.mark.read_text()) if start and start.is_done else None
    timed = bool(ran.keys() & {"time", "time-training"})
    result = {
        "config": row.config,
        "data": row.data,
        "corpus": _corpus(planner.data(row.corpus)) if "train" in ran else None,
        "scale": planner.scale.name,
        "data_hash": next((step["made_from"]["data"] for step in ran.values() if "data" in step["made_from"]), None),
        "commit": ", ".join(dict.fromkeys(step["commit"] for step in (*([begun] if begun else []), *ran.values()))),
        "versions": first["versions"],
        "hardware": first["hardware"],
        "seed": seed,
        "start": _start(start, begun["hardware"]) if start and begun else None,
        "training": training(folder / "checkpoints" / "checkpoint_last.pt") if "train" in ran else None,
        "memory": ran.get("train", {}).get("memory"),
        "losses": _losses(folder / "losses.json") if "loss" in ran else None,
        "generation": {"seconds": ran["generate"]["seconds"]} if "generate" in ran else None,
        "scores": _scores(folder / "scores.json") if "score" in ran else None,
        "times": _times(folder, planner.scale.decode_tokens) if timed else None,
    }
    write_file(folder / "result.json", (json.dumps(result, indent=1) + "\n").encode())


def training(path: Path) -> dict[str, Any] | None:
    """Return what the checkpoint of a run says about it; None if it is damaged or not of a run."""
    facts = RunFacts.of(path) if is_whole_checkpoint(path) else None
    if facts is None:
        return None
    best = None if facts.best is None else {"metric": facts.metric, "value": facts.best}
    return {"seconds": facts.seconds, "updates": facts.updates, "epochs": facts.epochs, "best": best}


def _start(step: Step, hardware: Any) -> dict[str, Any] | None:
    """Return what a row began with, and on what that ran; None if its checkpoint is damaged."""
    found = training(step.made)
    return None if found is None else {**found, "hardware": hardware}


def _corpus(folder: Path) -> dict[str, Any]:
    """Return the name of the corpus and its documents by split."""
    splits = DataFolder(folder).manifest["splits"]
    return {"name": folder.name, "documents": {name: split["documents"] for name, split in splits.items()}}


def _losses(path: Path) -> dict[str, Any]:
    """Return the losses without those of each document, which stay in their file."""
    losses = json.loads(path.read_text())
    return {name: losses[name] for name in ("split", "own", "another", "cost")}


def _scores(path: Path) -> dict[str, Any]:
    scores = json.loads(path.read_text())
    ours = next(iter(scores["systems"].values()))
    return {"signature": scores["signature"], **{name: ours[name] for name in ours if name in FIGURES}}


def _times(folder: Path, decode_tokens: tuple[int, int]) -> dict[str, Any] | None:
    """Return the times of a row, and their ratios to those of its reference."""
    times: dict[str, Any] | None = None
    for name in ("training-times.json", "times.json"):
        path = folder / name
        if path.is_file():
            told = json.loads(path.read_text())
            own = told["configs"][-1]
            kept = {key: told[key] for key in ("repeats", "train_batch", "decode_batch", "precision")}
            kept |= {"reference": told["configs"][0]["config"], "device": told["hardware"]["device"]}
            times = {"decode_tokens": list(decode_tokens), **kept}
            for phase in ("train_step", *(f"decode_{tokens}" for tokens in decode_tokens)):
                if phase in own:
                    numbers = {key: own[phase][key] for key in ("mean", "standard_deviation", "median")}
                    times[phase] = {**numbers, "ratio_to_reference": own[phase]["ratio_to_first"]}
    return times

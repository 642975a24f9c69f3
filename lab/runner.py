"""Runs jobs, here or on a cluster, one after the other or side by side, and writes the result.json of each."""

import hashlib
import json
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lab.catalogue import ORDER, PAPER_DOCUMENTS, Job, PaperRow, is_papers
from lab.plan import Planner, composed
from lab.run import RowStep, run_here
from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.files.archive import is_whole_checkpoint
from pyramidions.files.atomic import write_file
from pyramidions.files.bounded import file_hash
from pyramidions.files.run_facts import RunFacts
from pyramidions.models.formats import FORMAT
from pyramidions.runs.steps import Say, StepError
from pyramidions.scoring import FIGURES

#: Runs a step to its end and returns its seconds, as `run_here` does here and `Cluster.run` as a job.
Run = Callable[..., float | None]
_TIMING = ("time", "time-training")


@dataclass
class Runner:
    """Runs jobs, one after the other or side by side; the rest go on when one fails.

    Attributes:
        configs: the folder of configs at the paper's size, which say how many documents fit on a GPU.
        run_one: runs a step.
        stop: of jobs that run side by side, makes `run_one` stop what it runs; None runs one job after the other.
    """

    planner: Planner
    configs: Path
    say: Say
    run_one: Run = run_here
    stop: Callable[[], object] | None = None

    def steps(self, job: Job) -> list[RowStep]:
        """Return the steps of a job, in order."""
        planner, row = self._planner(job), job.row
        dataset, size = self._settings(job)["dataset"], self._batch_size(job)
        if row.is_of_characters:
            return [step for step in (planner.train(row, size), planner.test(row)) if step.name in job.wanted]
        steps = (
            *(planner.train(row, size), planner.loss(row)),
            *(planner.generate(row, dataset["batch_size_valid"]), planner.score(row)),
            *(planner.time(row, size), planner.time(row, size, decodes=False)),
        )
        return [step for step in steps if step.name in job.wanted]

    def _planner(self, job: Job) -> Planner:
        return replace(self.planner, seed=job.seed)

    def corpora(self, jobs: list[Job]) -> list[str]:
        """Return the corpora that jobs read."""
        return list(dict.fromkeys(job.row.corpus for job in jobs if job.reads_corpus))

    def run(self, jobs: list[Job], others: list[RowStep]) -> list[str]:
        """Run jobs, and steps that belong to no row; return the names of those that failed."""
        unprepared = [
            corpus
            for corpus in self.corpora(jobs)
            if (step := self.planner.prepare(corpus)) and not self._attempt(partial(self._step, step, waits=True))
        ]
        for line in self.odd_corpora(jobs):
            self.say(line)
        if self.stop is None:
            failed = []
            for number, job in enumerate(jobs, 1):
                self.say(f"{number} of {len(jobs)}: {job.name}")
                if not self._attempt(partial(self.run_job, job, unprepared)):
                    failed.append(job.name)
        else:
            failed = self._run_side_by_side(jobs, unprepared, self.stop)
        for step in others:
            self.say(step.name)
            failed += [] if self._attempt(partial(self._step, step)) else [step.name]
        return failed

    def odd_corpora(self, jobs: list[Job]) -> list[str]:
        """Return a line for each prepared corpus that is smaller or larger than the paper's, at the paper's scale."""
        lines = []
        rows = {job.row.data: job.row for job in jobs if job.reads_corpus and job.row.data in PAPER_DOCUMENTS}
        for name, row in rows.items() if self.planner.scale.is_papers else ():
            path = self.planner.data(row.corpus) / "manifest.json"
            try:
                splits = json.loads(path.read_bytes())["splits"]
                found = {split: int(of["documents"]) for split, of in splits.items()}
            except (OSError, ValueError, LookupError, TypeError, AttributeError):
                continue  # not prepared yet, or damaged, which the training says
            if not is_papers(name, found):
                ours = [f"{found.get(split, 0):,}" for split in ("train", "test")]
                train, test = PAPER_DOCUMENTS[name]
                lines.append(
                    f"{path.parent} is not the paper's {name}: it has {ours[0]} documents to train on and {ours[1]} to "
                    f"test, not {train:,} and {test:,}."
                )
        return lines

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Return whether something went well; nothing that it raises ends what runs after or beside it."""
        try:
            work()
        except UserError as error:
            self.say(f"  FAILED: {error}")
        except Exception:
            # A bug of ours keeps its traceback.
            self.say(f"  FAILED: {traceback.format_exc()}")
        else:
            return True
        return False

    def _run_side_by_side(
        self, jobs: Sequence[Job], unprepared: Sequence[str], stop: Callable[[], object]
    ) -> list[str]:
        """Run all jobs at once, each in a thread that waits for its steps; return names of those that failed."""
        # A job begins after the one that it is fine-tuned from, which comes before it.
        begun: dict[tuple[str, str, int | None], Future[bool]] = {}

        def attempt(job: Job, before: Future[bool] | None) -> bool:
            # Whether the one before failed, the job finds out itself.
            wait([before] if before else [])
            here = replace(self, say=lambda line: self.say(f"{job.name}: {line.strip()}"))
            well = here._attempt(partial(here.run_job, job, unprepared))
            if well:
                here.say("finished")
            return well

        with ThreadPoolExecutor(max_workers=max(1, len(jobs))) as threads:
            try:
                for job in jobs:
                    before = begun.get((job.row.data, job.row.starts_from, job.seed))
                    begun[job.row.data, job.row.config, job.seed] = threads.submit(attempt, job, before)
                wait(begun.values())
            except BaseException:
                # The threads end before the pool does.
                stop()
                raise
        return [job.name for job, done in zip(jobs, begun.values(), strict=True) if not done.result()]

    def run_job(self, job: Job, unprepared: Sequence[str]) -> None:
        """Run the steps of a job, and write its result after each."""
        self._check(job, unprepared)
        for planned in self.steps(job):
            step = self._with_origin(job, planned)
            if step.name == "train" and not step.is_done:
                self._before_training(job)
            if step.name == "score":
                _score_again(step)
            self._step(step)
            write_result(self._planner(job), job.row, self._seed(job))

    def _check(self, job: Job, unprepared: Sequence[str]) -> None:
        """Refuse a job before hours of work."""
        if job.row.corpus in unprepared and job.reads_corpus:
            raise StepError(f"its corpus {job.row.data} could not be prepared.")
        for step in self.steps(job):
            if step.name == "train":
                step.state.is_done(self._with_origin(job, step))

    def _before_training(self, job: Job) -> None:
        start = self._planner(job).score(job.row.model_copy(update={"config": job.row.starts_from}))
        if job.row.starts_from and "train" not in start.state.facts["done"]:
            raise StepError(f"it is fine-tuned from {job.row.data}/{job.row.starts_from}, which is not trained.")
        if job.row.is_of_characters:
            return
        wanted, size = self.planner.scale.documents, self._batch_size(job)
        documents = self.planner.machines.documents_an_update(wanted, size)
        if documents != wanted:
            self.say(f"  an update has {documents} documents: batches of {size} on each GPU do not make {wanted}")

    def _with_origin(self, job: Job, step: RowStep) -> RowStep:
        """Return a step with hashes of the configs that it reads and, if it reads documents, of their manifest."""
        return replace(step, made_from=self._made_from(job, step))

    def _made_from(self, job: Job, step: RowStep) -> dict[str, str]:
        if step.name in _TIMING:
            configs = dict.fromkeys((job.row.reference, job.row.config))
            settings = [composed(self.planner.configs, (f"+{config.replace('/', '=', 1)}",)) for config in configs]
        else:
            settings = [self.planner.settings(job.row)]
        # The format is part of the config: the same settings may have meant another model in an older release.
        read = json.dumps([FORMAT, *settings], sort_keys=True)
        made_from = {"config": hashlib.sha256(read.encode()).hexdigest()}
        if step.name not in _TIMING:
            made_from["data"] = file_hash(self.planner.data(job.row.corpus) / "manifest.json")
        if step.name == "score":
            made_from["metrics"] = ",".join(self.planner.metrics)
        return made_from

    def _step(self, step: RowStep, *, waits: bool = False) -> None:
        taken = None
        if not step.is_done:
            self.say(f"  {step.name} ... (log: {step.log})")
            taken = self.run_one(step, self.say, waits=waits)
        self.say(f"  {step.name}: {'done before' if taken is None else f'{taken:.0f} s'}")

    def _batch_size(self, job: Job) -> int:
        asked = self.planner.machines.documents_per_gpu or self.planner.scale.batch_size
        return asked or int(self._settings(job)["dataset"]["batch_size"])

    def _seed(self, job: Job) -> int:
        return int(self._settings(job)["common"]["seed"]) if job.seed is None else job.seed

    def _settings(self, job: Job) -> dict[str, Any]:
        return composed(self.configs, job.row.overrides, job.row.base)


def _score_again(step: RowStep) -> None:
    """Forget that a row is scored if that was by other metrics: its summaries are there."""
    state, wanted = step.state, (step.made_from or {}).get("metrics")
    if state.facts["done"].get("score", {}).get("made_from", {}).get("metrics") != wanted:
        state.forget("score")


def write_result(planner: Planner, row: PaperRow, seed: int) -> None:
    """Write result.json of a row from the steps that are done, at least one.

    Commit, versions and hardware are noted with each step, and later runs do not change them. Hardware and versions are
    those of the first step, commits are those of all steps.
    """
    folder = planner.folder(row)
    done = planner.score(row).state.facts["done"]
    ran: dict[str, Any] = {name: done[name] for name in ORDER if name in done}
    first = next(iter(ran.values()))
    timed = bool(ran.keys() & {"time", "time-training"})
    result = {
        "config": row.config,
        "data": row.data,
        "corpus": _corpus(planner.data(row.corpus)) if "train" in ran and not row.is_of_characters else None,
        "scale": planner.scale.name,
        "data_hash": next((step["made_from"]["data"] for step in ran.values() if "data" in step["made_from"]), None),
        "commit": ", ".join(dict.fromkeys(step["commit"] for step in ran.values())),
        "versions": first["versions"],
        "hardware": first["hardware"],
        "seed": seed,
        "training": training(folder / "checkpoints" / "checkpoint_last.pt") if "train" in ran else None,
        "memory": ran.get("train", {}).get("memory"),
        "language": json.loads((folder / "test.json").read_text()) if "test" in ran else None,
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


def _corpus(folder: Path) -> dict[str, Any]:
    splits = DataFolder(folder).manifest["splits"]
    return {"name": folder.name, "documents": {name: split["documents"] for name, split in splits.items()}}


def _losses(path: Path) -> dict[str, Any]:
    """Return the losses without those of each document, which stay in their file."""
    losses = json.loads(path.read_text())
    return {name: losses[name] for name in ("split", "own", "another", "cost", "copied") if name in losses}


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

"""What runs workers: this process, or Ray on the cores of one machine or on many machines."""

import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.notes import listening
from pyramidions.base.optional import optional_library
from pyramidions.base.parts import load_parts, loaded
from pyramidions.cli.worker import Report, Result, Worker
from pyramidions.documents.as_one import read_as_one
from pyramidions.documents.source import STANDARD_INPUT, Fields, Input, list_inputs, read_inputs

TRIES = 4  # of a group whose worker dies


class Source(NamedTuple):
    """What is read."""

    paths: list[Path]  # files
    fields: Fields  # what is read of them
    # Inputs that are computed together, and with no others, so that the last digits of a score do not depend on the
    # engine.
    together: int = 1
    as_one: bool = False  # all inputs are one document

    def groups(self, done: int = 0) -> Iterator[Iterator[Input]]:
        """Yield groups of inputs but the first `done`; each group must be read before the next is asked for."""
        if self.as_one:
            yield list_inputs(self.paths, self.fields)
            return
        inputs = islice(list_inputs(self.paths, self.fields), done, None)
        for first in inputs:
            yield chain([first], islice(inputs, self.together - 1))


class Here:
    """Runs one worker in this process.

    Attributes:
        inputs: inputs read so far; valid once the results of a group are consumed.
        said: as `Worker.said`; known with the first result.
        worker: the worker; None where there are several.
    """

    def __init__(self, source: Source, make: Callable[[], Worker], report: Report, done: int = 0) -> None:
        self._make_results = (worker := make()).results
        self.worker: Worker | None = worker
        self.said = worker.said
        self.inputs = done
        self._source = source
        self._report = report

    def groups(self) -> Iterator[Iterable[Result]]:
        """Yield the results of each group; they are made as they are asked for."""
        for group in self._source.groups(self.inputs):
            documents = read_inputs(self._counted(group), self._source.fields, self._report.fail)
            yield self._make_results(read_as_one(documents) if self._source.as_one else documents, self._report)

    def _counted(self, group: Iterator[Input]) -> Iterator[Input]:
        for each in group:
            self.inputs = each.number
            yield each


@dataclass
class _Group:
    """Inputs that are computed together."""

    inputs: list[Input]


@dataclass
class _Outcome:
    """What a worker made of a group."""

    inputs: int  # number of the last one
    size: int = 0
    results: list[Result] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    said: str | None = None
    refused: str | None = None  # why there is no worker

    def add(self, size: float) -> None:
        """Pass over progress: bytes count when the group is done."""

    def fail(self, error: UserError) -> None:
        """Keep an error."""
        self.errors.append(str(error))

    def note(self, message: str) -> None:
        """Keep a note."""
        self.notes.append(message)


class _Begun:
    """Counts how often each group was begun, by the number of its last input."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    def again(self, group: int) -> int:
        """Count a begin; return how many there were."""
        self._times[group] += 1
        return self._times[group]


class _Actor:
    """A process of Ray with one worker, made when its first group comes."""

    def __init__(self, source: Source, make: Callable[[], Worker], folder: str, begun: Any) -> None:
        # Paths are those that the user typed.
        os.chdir(folder)
        self._source = source
        self._make = make
        self._begun = begun
        self._worker: Worker | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        import ray

        inputs = row["group"].inputs
        outcome = _Outcome(inputs[-1].number, sum(each.size for each in inputs))
        try:
            # Ray itself would try for ever.
            if ray.get(self._begun.again.remote(outcome.inputs)) > TRIES:
                first, last = inputs[0].name, inputs[-1].name
                raise UserError(f"Workers died {TRIES} times over {first} to {last}, perhaps for lack of memory.")
            self._worker = self._worker or self._make()
            outcome.said = self._worker.said
            documents = read_inputs(inputs, self._source.fields, outcome.fail)
            with listening(outcome.note):
                outcome.results = list(self._worker.results(documents, outcome))
        except UserError as error:
            outcome.refused = str(error)
        return {"outcome": outcome}


class OnRay:
    """Runs a worker on each GPU, or on each core, of a Ray cluster; without a cluster, on this machine.

    Ray Data reads the inputs, which all machines must find at the same paths, hands out groups of them, and computes a
    group again whose worker died. Its attributes are those of `Here`.
    """

    def __init__(
        self, source: Source, make: Callable[[], Worker], report: Report, done: int = 0, on_gpu: bool = False
    ) -> None:
        if STANDARD_INPUT in source.paths:
            raise UserError("--engine ray needs files, but standard input is read.")
        # It sends reports about its use to its makers otherwise.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        self._ray = optional_library("ray", "--engine ray", "data", extra="ray")
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        self.worker: Worker | None = None
        self.said: str | None = None
        self.inputs = done
        self._source = source
        self._make = partial(_made, tuple(loaded), make)
        self._on_gpu = on_gpu
        self._report = report

    def groups(self) -> Iterator[Iterable[Result]]:
        """Yield the results of each group, in order."""
        ray = self._ray
        is_ours = not ray.is_initialized()
        if is_ours:
            # Ray replaces the handler by one that ends the process without cleaning up.
            handler = signal.getsignal(signal.SIGTERM)
            ray.init(log_to_driver=False, logging_level="error")
            signal.signal(signal.SIGTERM, handler)
        try:
            for row in self._dataset(ray).iter_rows():
                yield self._told(row["outcome"])
        except ray.exceptions.RayError as error:
            # What a worker raises is a mistake of ours.
            if isinstance(error, ray.exceptions.RayTaskError):
                raise
            raise UserError(f"The Ray cluster failed ({type(error).__name__}).") from error
        finally:
            if is_ours:
                ray.shutdown()

    def _dataset(self, ray: Any) -> Any:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        # Each group is a block of its own, so that the next worker that is free takes it.
        context.target_max_block_size = 1
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if self._on_gpu else 0
        workers = gpus or max(1, int(resources.get("CPU", 1)))
        each = {"num_gpus": 1} if gpus else {"num_cpus": 1}
        folder = str(Path.cwd())
        start = ray.data.from_items([{"done": self.inputs}])
        # Without a core of its own, what reads takes none from the workers.
        groups = start.flat_map(partial(_read, self._source, folder), num_cpus=0)
        return groups.map(
            _Actor,
            fn_constructor_args=[self._source, self._make, folder, ray.remote(_Begun).options(num_cpus=0).remote()],
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers, initial_size=workers),
            **each,
        )

    def _told(self, outcome: _Outcome) -> list[Result]:
        for message in outcome.notes:
            self._report.note(message)
        if outcome.refused is not None:
            raise UserError(outcome.refused)
        for sentence in outcome.errors:
            self._report.fail(UserError(sentence))
        self._report.add(2 * outcome.size)
        self.said, self.inputs = outcome.said, outcome.inputs
        return outcome.results


def _made(parts: tuple[str, ...], make: Callable[[], Worker]) -> Worker:
    """Make a worker in another process, which must know the parts of this one."""
    for folder in parts:
        load_parts(folder)
    return make()


def _read(source: Source, folder: str, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    os.chdir(folder)
    for group in source.groups(row["done"]):
        yield {"group": _Group(list(group))}

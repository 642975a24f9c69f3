"""Runs jobs side by side, each in a thread that waits for the steps of one."""

import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lab.catalogue import Job
from lab.run import StepError
from pyramidions.errors import UserError

if TYPE_CHECKING:
    from lab.runner import Runner


def run_side_by_side(
    runner: "Runner", jobs: Sequence[Job], unprepared: Sequence[str], stop: Callable[[], object]
) -> list[str]:
    """Run all jobs at once, but each after what it begins with or is fine-tuned from; say of each line whose it is.

    Args:
        runner: runs a job.
        jobs: a row that another starts from comes before it.
        unprepared: corpora that could not be prepared.
        stop: called when we are interrupted; makes the steps that run end.

    Returns:
        The names of the jobs that failed, whatever the reason, in their order.
    """
    starts: dict[Path, Future[bool]] = {}
    begun: dict[tuple[str, str, int | None], Future[bool]] = {}
    # A job may wait for a start in a thread of its own.
    with ThreadPoolExecutor(max_workers=max(1, 2 * len(jobs))) as threads:
        try:
            for job in jobs:
                before = [begun.get((job.row.data, job.row.starts_from, job.seed))]
                if start := runner.start(job):
                    if start.folder not in starts:
                        starts[start.folder] = threads.submit(_run, runner, job, partial(_start, unprepared))
                    before.append(starts[start.folder])
                run = partial(_row, unprepared, [each for each in before if each])
                begun[job.row.data, job.row.config, job.seed] = threads.submit(_run, runner, job, run)
            wait(begun.values())
        except BaseException:
            # The threads end before the pool does.
            stop()
            raise
    return [job.name for job, done in zip(jobs, begun.values(), strict=True) if not done.result()]


def _start(unprepared: Sequence[str], runner: "Runner", job: Job) -> None:
    runner.run_start(job, unprepared, set())
    runner.say("finished what it begins with")


def _row(unprepared: Sequence[str], before: Sequence["Future[bool]"], runner: "Runner", job: Job) -> None:
    # Whether one of them failed, the job finds out itself.
    wait(before)
    runner.run_job(job, unprepared)
    runner.say("finished")


def _run(runner: "Runner", job: Job, run: Callable[["Runner", Job], None]) -> bool:
    """Run a part of a job and return whether it went well; nothing that it raises ends the others."""
    say = runner.say
    of_job = replace(runner, say=lambda line: say(f"{job.name}: {line.strip()}"))
    try:
        run(of_job, job)
    except (StepError, UserError) as error:
        of_job.say(f"FAILED: {error}")
    except Exception:
        # A bug of ours keeps its traceback.
        of_job.say(f"FAILED: {traceback.format_exc()}")
    else:
        return True
    return False

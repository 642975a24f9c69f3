"""Runs jobs side by side, each in a thread that waits for the steps of one."""

import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from pyramidions.errors import UserError
from pyramidions.reproduce.catalogue import Job
from pyramidions.reproduce.run import StepError

if TYPE_CHECKING:
    from pyramidions.reproduce.runner import Runner


def run_side_by_side(
    runner: "Runner", jobs: Sequence[Job], unprepared: Sequence[str], stop: Callable[[], object]
) -> list[str]:
    """Run all jobs at once, but a row after the one that it is fine-tuned from; say of each line whose it is.

    Args:
        runner: runs a job.
        jobs: a row that another starts from comes before it.
        unprepared: corpora that could not be prepared.
        stop: called when we are interrupted; makes the steps that run end.

    Returns:
        The names of the jobs that failed, whatever the reason, in their order.
    """
    begun: dict[tuple[str, str, int | None], Future[bool]] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(jobs))) as threads:
        try:
            for job in jobs:
                before = begun.get((job.row.data, job.row.starts_from, job.seed))
                begun[job.row.data, job.row.config, job.seed] = threads.submit(_run, runner, job, unprepared, before)
            wait(begun.values())
        except BaseException:
            # The threads end before the pool does.
            stop()
            raise
    return [job.name for job, done in zip(jobs, begun.values(), strict=True) if not done.result()]


def _run(runner: "Runner", job: Job, unprepared: Sequence[str], before: "Future[bool] | None") -> bool:
    """Run a job and return whether it went well; nothing that it raises ends the others."""
    say = runner.say
    of_job = replace(runner, say=lambda line: say(f"{job.name}: {line.strip()}"))
    try:
        if before is not None:
            # Whether it failed, the job finds out itself.
            wait([before])
        of_job.run_job(job, unprepared)
    except (StepError, UserError) as error:
        of_job.say(f"FAILED: {error}")
    except Exception:
        # A bug of ours keeps its traceback.
        of_job.say(f"FAILED: {traceback.format_exc()}")
    else:
        of_job.say("finished")
        return True
    return False

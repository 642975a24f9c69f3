"""Steps as SLURM jobs: `submitit` submits them, watches them, and requeues them when their time is up."""

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from submitit import AutoExecutor
from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError
from submitit.helpers import Checkpointable, TorchDistributedEnvironment

from lab.run import RowStep, Teller, run_here
from pyramidions.base.errors import UserError
from pyramidions.runs.steps import Say, StepError, run_commands

_MINUTES = 3 * 24 * 60  # of a job; SBATCH_TIMELIMIT overrides it
_TIMEOUTS = 50  # a job is requeued as often: training goes on from its last checkpoint
_CPUS = 4  # per GPU
_CPUS_WITHOUT_GPU = 16


@dataclass
class StepJob(Checkpointable):
    """A step as each machine of a job calls it; the first one locks, joins and marks."""

    step: RowStep
    waits: bool

    def __call__(self) -> float | StepError | None:
        """Return the seconds that the step took, None if it was done before, or why it failed."""
        step, job = self.step, TorchDistributedEnvironment()
        torchrun = {
            "PET_NODE_RANK": str(job.rank),
            "PET_MASTER_ADDR": job.master_addr,
            "PET_MASTER_PORT": str(job.master_port),
        }
        if job.rank > 0:
            run_commands(replace(step, log=step.folder / f"{step.name}.{job.rank}.log"), torchrun)
            return None
        try:
            return run_here(step, print, waits=self.waits, environment=torchrun)
        except StepError as error:
            return error


def needs(step: RowStep) -> dict[str, Any]:
    """Return what the job of a step asks for, in submitit's words."""
    return {
        "name": f"{step.folder.name}-{step.name}",
        "nodes": step.nodes,
        "gpus_per_node": step.gpus,
        "cpus_per_task": _CPUS * step.gpus or _CPUS_WITHOUT_GPU,
        "timeout_min": _MINUTES,
    }


class Cluster:
    """Runs steps as jobs, as `run_here` runs them here; several threads may each wait for one.

    Site-specific options come from sbatch's own variables: SBATCH_ACCOUNT, SBATCH_PARTITION, SBATCH_TIMELIMIT...
    Scripts and logs go to a folder that all machines see. The kind "local" takes processes of this machine.
    """

    def __init__(self, folder: Path, kind: str = "slurm") -> None:
        if kind == "slurm" and shutil.which("sbatch") is None:
            raise UserError(
                "--launcher slurm needs sbatch, which is not installed: run the command on the cluster's login node."
            )
        self._folder = folder
        self._kind = kind
        self._stopped = Event()

    def stop(self) -> None:
        """Make all threads that wait for a job cancel it."""
        self._stopped.set()

    def run(self, step: RowStep, say: Say, *, waits: bool = False) -> float | None:
        """Submit a step and wait for it.

        The arguments, the seconds returned and a `StepError` are those of `run_here`.
        """
        if self._stopped.is_set():
            raise StepError(f"{step.name} was stopped.")
        executor = AutoExecutor(self._folder, cluster=self._kind, slurm_max_num_timeout=_TIMEOUTS)
        asked = needs(step)
        # srun does not inherit the number of CPUs.
        srun = [f"--cpus-per-task={asked['cpus_per_task']}", "--kill-on-bad-exit=1"]
        executor.update_parameters(**asked, tasks_per_node=1, slurm_srun_args=srun)
        step.folder.mkdir(parents=True, exist_ok=True)
        try:
            job = executor.submit(StepJob(step, waits))
        except (FailedJobError, FailedSubmissionError) as error:
            raise StepError(f"{step.name} was not submitted: {str(error).strip()}") from None
        say(f"    job {job.job_id}")
        first = job.task(0)
        teller = Teller(step, say)
        try:
            while not first.done():
                if self._stopped.is_set():
                    raise StepError(f"{step.name} was stopped.")
                teller()
                time.sleep(1.0)
            result = first.result()
        except UncompletedJobError:
            raise StepError(
                f"{step.name}: job {job.job_id} ended without a result ({job.state}); see {step.log} and "
                f"{first.paths.stderr}."
            ) from None
        except BaseException:
            job.cancel(check=False)
            raise
        if isinstance(result, StepError):
            # The other machines wait for the first.
            job.cancel(check=False)
            raise result
        return result

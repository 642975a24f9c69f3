"""The commands of a run."""

from pyramidions.files.processes import USER_DIR, program
from pyramidions.runs.training.arguments import Arguments
from pyramidions.runs.training.kinds import Schedule
from pyramidions.runs.training.places import Places
from pyramidions.runs.training.plan import Plan

_LINES = 200  # of the log for a whole training, about


def train_command(places: Places, arguments: Arguments, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    """Return how the model is trained."""
    interval = max(1, min(100, schedule.updates // _LINES))
    flags = [*schedule.flags, "--seed", str(arguments.seed), "--save-dir", str(places.checkpoints)]
    if arguments.hours is not None:
        flags += ["--stop-time-hours", f"{arguments.hours:g}"]
    flags += ["--log-format", "json", "--log-interval", str(interval), *plan.machine.flags]
    return program("fairseq-train", *_task(places, plan), *flags)


def generate_command(places: Places, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    """Return how the test split is summarized."""
    device = ("--distributed-world-size", "1") if plan.gpus else ("--cpu",)
    flags = ("--gen-subset", "test", "--path", places.best, "--batch-size", schedule.batch)
    return program("fairseq-generate", *_task(places, plan), *flags, *device, "--results-path", places.work)


def score_command(places: Places, plan: Plan) -> tuple[str, ...]:
    """Return how the summaries are scored, in the work folder: systems are called by their files there."""
    files = (plan.kind, "--data", places.data.name, "--lead")
    return program("pyramidions", "score", *files, "--baseline", places.hiporank.name, "--json", places.scores.name)


def export_command(places: Places) -> tuple[str, ...]:
    """Return how the model is exported."""
    about = ("--data", places.data, "--scores", places.scores)
    return program("pyramidions", "export", places.best, places.model, *about)


def _task(places: Places, plan: Plan) -> tuple[object, ...]:
    return places.data, "--user-dir", USER_DIR, "--task", plan.of_kind.task

"""`pyramidions reproduce`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.reproduce.jobs import Job
    from pyramidions.reproduce.plan import Machines, Step
    from pyramidions.reproduce.runner import Runner

TARGETS = ("table2", "table3", "table4", "table7", "table8", "table10", "figure4", "figure5", "figure6")
_OPERATORS = ("figure5", "figure6")  # two views of one benchmark
_CHECKOUT = Path(__file__).parents[2]  # of the repository, where sample and benchmarks lie


@click.command(short_help="Train, score and time the rows of the paper's tables.")
@click.argument("targets", nargs=-1, required=True, type=click.Choice(TARGETS), metavar="TABLE...")
@click.option(
    "--scale",
    type=click.Choice(["paper", "tiny"]),
    default="paper",
    show_default=True,
    help="tiny divides lengths by 16 and widths by 8, for the sample papers and a CPU.",
)
@click.option(
    "--rows", multiple=True, metavar="ROW,...", help="Rows to run, e.g. 3,5,16 or linear,max.  [default: all]"
)
@click.option("--gpus", type=click.IntRange(0), help="GPUs of each machine; 0 for the CPU.  [default: all; tiny: 0]")
@click.option(
    "--nodes", type=click.IntRange(1), default=1, show_default=True, help="Machines that train together, with --slurm."
)
@click.option("--slurm", is_flag=True, help="Run every step as a job of SLURM, and wait for it.")
@click.option("--batch-size", type=click.IntRange(1), help="Documents at a time on a GPU.  [default: the config's]")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with arxiv and pubmed, prepared or not.  [default: from the hub; tiny: the sample]",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of results.  [default: reproduced/SCALE]")
@click.option(
    "--configs",
    type=click.Path(path_type=Path),
    default=Path("configs"),
    show_default=True,
    help="Folder with base.yaml and paper.csv.",
)
@click.option("--dry-run", is_flag=True, help="Print the commands and run nothing.")
def reproduce(
    targets: tuple[str, ...],
    scale: str,
    rows: tuple[str, ...],
    gpus: int | None,
    nodes: int,
    slurm: bool,
    batch_size: int | None,
    data: Path | None,
    out: Path | None,
    configs: Path,
    dry_run: bool,
) -> None:
    """Train, generate, score and time the rows of tables and figures, and write a report beside the paper's figures.

    A row that is finished is skipped, an interrupted one goes on, and one that fails is reported while the rest go
    on. Each has its folder with a log of every step and result.json; report.md puts them beside the paper.

    \b
    Example:
      pyramidions reproduce table2 --scale tiny --rows 3,5,6
      pyramidions reproduce table2 table7 table8 --data corpora --gpus 8
      pyramidions reproduce table3 --data corpora --gpus 8 --nodes 2 --slurm
    """
    if scale == "tiny":
        # Of models this small a second thread makes nothing faster, and much slower where the machine is shared.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    from pyramidions.reproduce.catalogue import read_catalogue
    from pyramidions.reproduce.jobs import jobs_for
    from pyramidions.reproduce.plan import Machines
    from pyramidions.reproduce.report import write_report
    from pyramidions.reproduce.run import check_programs

    if nodes > 1 and not (slurm or dry_run):
        raise UserError(f"--nodes must be 1 without --slurm, but is {nodes}; --dry-run prints what torchrun is to run.")
    out = (out or Path("reproduced") / scale).absolute()
    if file := next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None):
        raise UserError(f"--out must be a folder, but {file} is a file.")
    configs = configs.absolute()
    catalogue = read_catalogue(configs)
    tables = [target for target in targets if target not in _OPERATORS]
    if rows and not tables:
        raise UserError(f"--rows has a meaning for tables and figure4 only, not for {', '.join(targets)}.")
    machines = Machines(_gpus(gpus, scale, elsewhere=slurm or dry_run), nodes, batch_size)
    names = [name.strip() for given in rows for name in given.split(",")]
    if "" in names:
        raise UserError(f"--rows must be names with commas between them, but is {','.join(rows)!r}.")
    jobs = jobs_for(catalogue, tables, names) if tables else []
    runner = _runner(out, configs, scale, machines, data, slurm=slurm, dry_run=dry_run)
    if data is not None and (lacking := [name for name in runner.corpora(jobs) if not (data / name).is_dir()]):
        raise UserError(f"--data must hold a folder {lacking[0]}, but {data} has none.")
    steps = [step for job in jobs for step in runner.steps(job)]
    timed = not set(targets).isdisjoint(_OPERATORS)
    others = [runner.planner.operators(_CHECKOUT / "benchmarks")] if timed else []
    if dry_run:
        _print_plan(runner, jobs, others)
        return
    check_programs([*steps, *others])
    out.mkdir(parents=True, exist_ok=True)
    click.echo(f"Results: {out}")
    try:
        failed = runner.run(jobs, others)
    except BaseException:
        click.echo("Run the same command again to go on.", err=True)
        raise
    finally:
        # Of an interrupted run, too: weeks may have gone into it.
        click.echo(f"Report: {write_report(out, configs).page}")
    if failed:
        click.echo(f"{len(failed)} failed: {', '.join(failed)}. Run the same command again to go on.", err=True)
        sys.exit(1)


def _gpus(asked: int | None, scale: str, *, elsewhere: bool) -> int:
    """Return how many GPUs to use, having looked for as many."""
    if scale == "tiny" and asked is None:
        return 0
    if elsewhere and asked is not None:
        return asked
    import torch

    from pyramidions.measure.gpus import why_no_gpu

    there = torch.cuda.device_count()
    if asked is None and there == 0:
        raise UserError(f"--gpus must be given, since {why_no_gpu()}. 0 trains on the CPU, at the paper's size.")
    if asked and there == 0:
        raise UserError(f"--gpus must be 0, but is {asked}: {why_no_gpu()}.")
    if (asked or 0) > there:
        raise UserError(f"--gpus must be at most {there}, what torch finds, but is {asked}.")
    return there if asked is None else asked


def _runner(
    out: Path, configs: Path, scale_name: str, machines: "Machines", data: Path | None, *, slurm: bool, dry_run: bool
) -> "Runner":
    from pyramidions.reproduce.plan import Planner
    from pyramidions.reproduce.runner import Runner
    from pyramidions.reproduce.scale import SCALES, scaled_configs

    scale = SCALES[scale_name]
    if data is not None and not data.is_dir():
        raise UserError(f"--data must be a folder with arxiv and pubmed, but is {data}.")
    corpora: dict[str, Path | None] = {}
    for corpus in ("arxiv", "pubmed"):
        if data is not None:
            if (data / corpus).is_dir():
                corpora[corpus] = (data / corpus).absolute()
        elif scale_name == "tiny":
            corpora[corpus] = _CHECKOUT / "data" / "sample"
    small = out / "configs"
    # A dry run writes nothing, and prints the same names.
    at_scale = (small if scale.lengths > 1 else configs) if dry_run else scaled_configs(configs, small, scale)
    plugin = Path(__file__).parents[1]
    planner = Planner(out, at_scale, scale, machines, plugin, corpora)
    if slurm:
        from pyramidions.reproduce.slurm import Cluster

        return Runner(planner, configs, _say, Cluster(out / "slurm").run)
    return Runner(planner, configs, _say)


def _say(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()


def _print_plan(runner: "Runner", jobs: "list[Job]", others: "list[Step]") -> None:
    from pyramidions.reproduce.run import printed

    def show(step: "Step") -> None:
        if step.is_done:
            click.echo(f"# {step.name}: done before")
            return
        for command in step.commands:
            click.echo(printed(command))
        if len(step.parts) > 1:
            click.echo(f"# then the {len(step.parts)} parts are joined to {step.made}")

    for corpus in runner.corpora(jobs):
        step = runner.planner.prepare(corpus)
        click.echo(f"# {corpus}: {'is prepared' if step is None else 'has to be prepared'}")
        if step is not None:
            show(step)
    for job in jobs:
        click.echo(f"\n# {job.name}")
        for step in runner.steps(job):
            show(step)
    for step in others:
        click.echo(f"\n# {step.name}")
        show(step)

"""`python -m lab reproduce`."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import torch

from lab.catalogue import (
    CHECKOUT,
    SPARSE_TABLES,
    Job,
    is_trained,
    jobs_for,
    read_catalogue,
)
from lab.environment import why_no_gpu
from lab.plan import Machines, Planner
from lab.report import TITLES, write_report
from lab.results import check_scale
from lab.run import RowStep
from lab.runner import Runner
from lab.scale import SCALES, Scale, scaled_configs
from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH
from pyramidions.data.folder import DataFolder
from pyramidions.documents.records import FILE_ENDINGS
from pyramidions.scoring.scores import metrics_of

_OPERATORS = ("figure5", "figure6")  # two views of one benchmark
TARGETS = (*TITLES, *_OPERATORS)


def numbers(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Read an option such as 1,2,3."""
    if value is None:
        return None
    numbers = value.split(",")
    # Not `isdigit`, which takes ², and not what has no place in a seed of 32 bits.
    if not all(re.fullmatch(r"[0-9]{1,9}", number) for number in numbers):
        raise click.BadParameter(f"{value!r} is no list of whole numbers like 1,2,3.")
    found = tuple(map(int, numbers))
    if len(set(found)) < len(found):
        raise click.BadParameter(f"{value!r} names a seed twice.")
    return found


@click.command(
    short_help="Train, score and time the rows of the paper's tables.", epilog=f"TABLE is one of {', '.join(TARGETS)}."
)
@click.argument("targets", nargs=-1, required=True, type=click.Choice(TARGETS), metavar="TABLE...")
@click.option(
    "--scale",
    type=click.Choice(["paper", "small", "tiny"]),
    default="paper",
    help="small divides lengths and widths by 4, to compare rows with each other on --data and a CPU; tiny "
    "divides lengths by 16 and widths by 8, for the sample papers.",
)
@click.option(
    "--rows", multiple=True, metavar="ROW,...", help="Rows to run, e.g. 3,5,16 or stride,hat.  [default: all]"
)
@click.option(
    "--seeds",
    callback=numbers,
    metavar="N,...",
    help="Train each row for each of these seeds, and compare rows with each other.  [default: once, with the config's "
    "seed; small: 1,2,3]",
)
@click.option(
    "--updates",
    type=click.IntRange(1),
    metavar="N",
    help="Updates of each row with summaries, at the small scale.  [default: 600]",
)
@click.option(
    "--gpus", type=click.IntRange(0), help="GPUs of each machine; 0 for the CPU.  [default: all; small, tiny: 0]"
)
@click.option("--nodes", type=click.IntRange(1), default=1, help="Machines that train together, with --launcher slurm.")
@click.option(
    "--launcher",
    type=click.Choice(["local", "slurm"]),
    default="local",
    help="slurm runs every step as a job of SLURM, those of all rows and seeds side by side, and waits for them.",
)
@click.option("--batch-size", type=click.IntRange(1), help="Documents at a time on a GPU.  [default: the config's]")
@click.option(
    "--data",
    type=PATH,
    help="Folder with arxiv, pubmed or govreport, prepared or not; or one corpus for all rows.  [default: from the "
    "hub; tiny: the sample]",
)
@click.option("--metrics", metavar="NAME,...", help="Metrics beside ROUGE, such as meteor,coverage.")
@click.option("--out", type=PATH, help="Folder of results.  [default: reproduced/SCALE]")
@click.option(
    "--configs", type=PATH, default=CHECKOUT / "configs", help="Folder with base.yaml, paper.csv...", show_default=False
)
@click.option("--dry-run", is_flag=True, help="Print the commands and run nothing.")
def reproduce(
    targets: tuple[str, ...],
    scale: str,
    rows: tuple[str, ...],
    seeds: tuple[int, ...] | None,
    updates: int | None,
    gpus: int | None,
    nodes: int,
    launcher: str,
    batch_size: int | None,
    data: Path | None,
    metrics: str | None,
    out: Path | None,
    configs: Path,
    dry_run: bool,
) -> None:
    """Train, generate, score and time the rows of tables and figures, and write a report beside the paper's figures.

    A row that is finished is skipped, an interrupted one goes on, and one that fails is reported while the rest go
    on. Each has its folder with a log of every step and result.json; report.md puts them beside the paper. With several
    seeds, and at the small scale, it compares rows with each other.

    \b
    Example:
      python -m lab reproduce table2 --scale tiny --rows 3,5,6
      python -m lab reproduce table2 table4 --scale small --data papers --rows 5,8,mean,random
      python -m lab reproduce table2 table7 table8 --data corpora --gpus 8
      python -m lab reproduce table3 --data corpora --gpus 8 --nodes 2 --launcher slurm
    """
    if scale == "tiny":
        # A second thread does not make models of this size faster, and much slower where the machine is shared.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    slurm = launcher == "slurm"
    if nodes > 1 and not (slurm or dry_run):
        raise UserError(
            f"--nodes must be 1 without --launcher slurm, but is {nodes}; --dry-run prints the torchrun command."
        )
    out = _folder(out or Path("reproduced") / scale)
    configs = configs.absolute()
    catalogue = read_catalogue(configs)
    tables = [target for target in targets if target not in _OPERATORS]
    if rows and not tables:
        raise UserError(f"--rows applies only to tables and figure4, not to {', '.join(targets)}.")
    chosen = SCALES[scale] if updates is None else SCALES[scale].with_updates(updates)
    untrained = [target for target in targets if target not in tables or not is_trained(target)]
    if seeds and untrained:
        raise UserError(f"--seeds applies only to tables whose rows are trained, not to {untrained[0]}.")
    if chosen.seeds and untrained and len(untrained) < len(targets):
        raise UserError(f"--scale {scale} trains rows for several seeds: give {untrained[0]} in a command of its own.")
    if chosen.seeds:
        if pretrained := [table for table in tables if table in SPARSE_TABLES]:
            raise UserError(f"--scale must be paper or tiny for {pretrained[0]}, but is {scale}.")
        # All rows have equal updates.
        catalogue = [row.model_copy(update={"starts_from": ""}) for row in catalogue]
    names = [name.strip() for given in rows for name in given.split(",")]
    jobs = jobs_for(catalogue, tables, names, chosen.seeds if seeds is None else seeds) if tables else []
    given = {"--nodes": nodes > 1, "--batch-size": batch_size is not None}
    if any(job.row.is_of_characters for job in jobs) and (option := next(filter(given.get, given), None)):
        raise UserError(f"{option} is an option of tables of documents, but {targets[0]} has language models.")
    machines = Machines(_gpus(gpus, scale, elsewhere=slurm or dry_run), nodes, batch_size)
    corpora = _corpora(data, chosen, {job.row.data for job in jobs if job.reads_corpus})
    check_scale(out, scale)
    at_scale = configs if chosen.is_papers else out / "configs"
    planner = Planner(out, at_scale, chosen, machines, CHECKOUT / "pyramidions", corpora, _metrics(metrics))
    runner = Runner(planner, configs, click.echo)
    if slurm and not dry_run:
        from lab.slurm import Cluster

        cluster = Cluster(out / "slurm")
        runner = Runner(planner, configs, click.echo, cluster.run, cluster.stop)
    others = [] if set(targets).isdisjoint(_OPERATORS) else [planner.operators(CHECKOUT / "lab/benchmarks")]
    if dry_run:
        with TemporaryDirectory() as folder:
            runner.planner = replace(planner, files=scaled_configs(configs, Path(folder), chosen))
            _print_commands(runner, jobs, others, slurm)
        return
    scaled_configs(configs, at_scale, chosen)
    _run(runner, jobs, others, out, configs)


def _print_commands(runner: Runner, jobs: list[Job], others: list[RowStep], slurm: bool) -> None:
    # One folder may stand for several corpora.
    for corpus in {runner.planner.data(corpus): corpus for corpus in runner.corpora(jobs)}.values():
        step = runner.planner.prepare(corpus)
        _print(f"{corpus}: {'has to be prepared' if step else 'is prepared'}", [step] if step else [], slurm)
    for line in runner.odd_corpora(jobs):
        click.echo(f"# {line}")
    for title, steps in [*((job.name, runner.steps(job)) for job in jobs), *((step.name, [step]) for step in others)]:
        click.echo()
        _print(title, steps, slurm)


def _run(runner: Runner, jobs: list[Job], others: list[RowStep], out: Path, configs: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    click.echo(f"Results: {out}")
    try:
        failed = runner.run(jobs, others)
    except BaseException:
        click.echo("Run the same command again to go on.", err=True)
        raise
    finally:
        # An interrupted run has one, too: weeks may have gone into it.
        click.echo(f"Report: {write_report(out, configs).page}")
    if failed:
        click.echo(f"{len(failed)} failed: {', '.join(failed)}.", err=True)
        click.echo("Fix the cause and run the same command again; finished steps are kept.", err=True)
        sys.exit(1)


def _folder(out: Path) -> Path:
    out = out.absolute()
    if file := next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None):
        raise UserError(f"--out must be a folder, but {file} is a file.")
    return out


def _gpus(asked: int | None, scale: str, *, elsewhere: bool) -> int:
    """Return how many GPUs to use, having looked for as many unless they are elsewhere."""
    if scale != "paper" and asked is None:
        return 0
    if elsewhere and asked is not None:
        return asked
    there = torch.cuda.device_count()
    if asked is None and there == 0:
        raise UserError(f"--gpus must be given, since {why_no_gpu()}. 0 trains on the CPU, at the paper's size.")
    if asked and there == 0:
        raise UserError(f"--gpus must be 0, but is {asked}: {why_no_gpu()}.")
    if (asked or 0) > there:
        raise UserError(f"--gpus must be at most {there}, what torch finds, but is {asked}.")
    return there if asked is None else asked


def _corpora(data: Path | None, scale: Scale, needed: set[str]) -> dict[str, Path | None]:
    """Return where each corpus lies; the hub has those without a place."""
    if data is None:
        if needed and scale.seeds:
            raise UserError(
                f"--data must be given where --scale is {scale.name}: a corpus with some thousand documents."
            )
        return dict.fromkeys(needed, CHECKOUT / "data" / "sample" if scale.sample else None)
    if not data.is_dir():
        raise UserError(f"--data must be a folder with arxiv and pubmed, but is {data}.")
    if _is_corpus(data):
        return dict.fromkeys(needed, data.absolute())
    if lacking := sorted(name for name in needed if not (data / name).is_dir()):
        raise UserError(f"--data must be a corpus or hold a folder {lacking[0]}, but {data} does neither.")
    return {name: (data / name).absolute() for name in needed}


def _is_corpus(folder: Path) -> bool:
    """Whether a folder is prepared, or holds the documents of a training split itself."""
    files = (folder / f"train{ending}" for ending in FILE_ENDINGS)
    return DataFolder(folder).manifest_path.is_file() or any(map(os.path.lexists, files))


def _metrics(given: str | None) -> tuple[str, ...]:
    """Return the metrics of the scores; each is made once, so that what one lacks is known before anything is run."""
    names = ("rouge", *(name for name in given.split(",") if name != "rouge")) if given else ("rouge",)
    metrics_of(names)
    return names


def _print(title: str, steps: list[RowStep], slurm: bool) -> None:
    click.echo(f"# {title}")
    for step in steps:
        if step.is_done:
            click.echo(f"# {step.name}: done before")
            continue
        if slurm:
            from lab.slurm import needs

            click.echo(f"# job: {', '.join(f'{name} {value}' for name, value in needs(step).items())}")
        click.echo("\n".join(map(str, step.commands)))
        if len(step.commands) > 1:
            click.echo(f"# then the {len(step.commands)} parts are joined to {step.made}")

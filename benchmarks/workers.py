"""Documents a second of one process that reads all documents, beside several that read a shard each.

    python benchmarks/workers.py --documents corpus.jsonl --out benchmarks/results/workers-cpu.json \\
        -- summarize my-summarizer --beam 2
    python benchmarks/workers.py --documents corpus.jsonl -- extract --method my-extractor

Behind `--` stands the command, without its documents. Both contenders are processes that begin with nothing: they
start Python, read the model, read and compute their share, and write it. Several processes share the cores: each has as
many threads as there are cores for it, at least one. The join of the shards is timed by itself, and added to the time
of the processes. What it joins is compared with what the one process wrote: with another number of threads, the last
digits of scores may differ, so that texts are compared.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from side_by_side import Figure, finish, parser, ratio, take_turns

from pyramidions.files.parallel import available_cores
from pyramidions.files.processes import program, start_process, stop_processes
from pyramidions.measure.timing.stopwatch import Timed


def run_together(commands: list[list[str]], threads: int) -> None:
    """Run commands of `pyramidions` at the same time, to their ends.

    Args:
        commands: without the program's name.
        threads: of each.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryFile() as printed:
        processes = [
            start_process(program("pyramidions", *words), printed, environment, ends_with_us=True) for words in commands
        ]
        try:
            codes = [process.wait() for process in processes]
        finally:
            stop_processes(processes)
        if any(codes):
            printed.seek(0)
            sys.exit(f"A command ended with status {max(codes)}: {printed.read().decode(errors='replace')}")


def one_process(command: list[str], folder: Path, cores: int) -> None:
    """Read all documents in one process."""
    run_together([[*command, "-o", str(folder / "one.jsonl")]], cores)


def shards(command: list[str], folder: Path, cores: int, workers: int) -> None:
    """Read a shard in each of several processes, from the beginning."""
    out = folder / "shards"
    shutil.rmtree(out, ignore_errors=True)
    commands = [[*command, "--shard", f"{number}/{workers}", "-o", str(out)] for number in range(1, workers + 1)]
    run_together(commands, max(1, cores // workers))


def join(folder: Path) -> None:
    """Join the shards."""
    run_together([["join", str(folder / "joined.jsonl"), str(folder / "shards")]], 1)


def texts(path: Path) -> list[tuple[str, str]]:
    """Return ids and summaries."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [(row["id"], row["summary"]) for row in rows]


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "workers", repeats=3, devices=False)
    made.add_argument("--documents", required=True, type=Path, help="files or folder that are read")
    made.add_argument("--workers", type=int, default=2, help="processes that read a shard (default: %(default)s)")
    made.add_argument("command", nargs="+", help="summarize or extract with its options, after --")
    args = made.parse_args()
    if args.command[0] not in ("summarize", "extract"):
        made.error(f"The command after -- must be summarize or extract, but is {args.command[0]}.")
    return args


def main() -> None:
    """Run the benchmark."""
    args = arguments()
    cores = available_cores()
    verb, *options = args.command
    # The model of `summarize` comes before the documents.
    command = [verb, *options, str(args.documents)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one, several, whole = "1 process", f"{args.workers} processes", f"{args.workers} processes and join"
        timed = take_turns(
            {
                one: partial(one_process, command, folder, cores),
                several: partial(shards, command, folder, cores, args.workers),
                "join": partial(join, folder),
            },
            args.repeats,
            warmup=0,
        )
        alone, joined = texts(folder / "one.jsonl"), texts(folder / "joined.jsonl")
    turns = zip(timed[several].seconds, timed["join"].seconds, strict=True)
    timed[whole] = Timed([sum(turn) for turn in turns], None)
    figures = []
    for contender in (one, several, whole):
        rates = [len(alone) / seconds for seconds in timed[contender].seconds]
        rate = len(alone) / statistics.median(timed[contender].seconds)
        figures.append(Figure(contender, rate, min(rates), max(rates), unit=" documents/s"))
    figures += [ratio(f"{one} / {each}", timed[one], timed[each]) for each in (several, whole)]
    same = sum(a == b for a, b in zip(alone, joined, strict=True))
    print(f"{same:,} of {len(alone):,} joined summaries are those of {one}")
    finish(args, figures, timed, cores=cores, documents=len(alone), same_summaries=same, words=args.command)


if __name__ == "__main__":
    main()

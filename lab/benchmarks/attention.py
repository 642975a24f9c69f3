"""Time and memory of every kind of self-attention, by length: which of the curves are lines?

    python lab/benchmarks/attention.py --out lab/benchmarks/results/attention-cpu.json
    python lab/benchmarks/attention.py --device cuda --dtype bf16 --out lab/benchmarks/results/attention-cuda.json
    python lab/benchmarks/attention.py --only sliding_window lsh --lengths 8192 65536 --repeats 5

Attention between projected heads, forward and backward: one document without padding, 8 heads of 64, attention dropout
of 0.1, each kind with the options that it has by default.

seconds
    All kinds take turns at all lengths. On the CPU it is the processor's time, so that what others do on the machine
    does not count, and the C library keeps freed memory, --reserve gigabytes from the start: on its own it keeps pieces
    of up to 32 MB, so that longer documents pay for fresh pages at each step. A kind whose next length would take more
    than --limit seconds, if time goes on to grow as it did, stops there.
saved
    The tensors that autograd keeps of a forward pass for the backward pass, each storage once.
peak
    What forward and backward take beyond queries, keys and values, each kind in a process of its own.

Linear would be the figure at --linear-from tokens times the ratio of the lengths; that is asked of kinds that look at
windows, blocks or buckets. Beside the .json, OUT has all figures as .csv and a plot as .png. Figures that are in the
.csv are not taken again: an interrupted run goes on.
"""

import argparse
import csv
import io
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from attention_memory import HEAD_DIM, HEADS, built, saved_bytes
from peaks import peak, peaks_of_process
from side_by_side import DTYPES, Figure, finish, parser, ratio
from torch import Tensor

from lab.timing import Timed, clock
from pyramidions.files.atomic import atomic_file
from pyramidions.nn.attention import ATTENTION, Feature

KINDS = tuple(kind for kind in ATTENTION.names if Feature.ITSELF in ATTENTION[kind].supports)
#: Options of kinds that are asked to be linear; but a stride looks at all of the document.
NEAR, FAR = ("window", "max_window", "block_size", "bucket_size", "segment_length"), "stride"
LINEAR = 1 / 1.15  # within 15% of it
COLUMNS = ("measure", "kind", "length", "turn", "value")
#: How the C library keeps freed memory.
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(10**12)}
UNITS = {"seconds": "seconds, forward and backward", "saved": "saved for backward, MB", "peak": "peak, MB"}
Row = tuple[str, str, int, int]


class Table:
    """All figures so far, on disk after each.

    Args:
        path: of a .csv file, which may hold what an interrupted run has left; or None.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.values: dict[Row, float | None] = {}
        if path is not None and path.exists():
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    place = (row["measure"], row["kind"], int(row["length"]), int(row["turn"]))
                    self.values[place] = float(row["value"]) if row["value"] else None

    def put(self, measure: str, kind: str, length: int, turn: int, value: float | None) -> None:
        """Keep a figure; None says that memory did not suffice."""
        self.values[measure, kind, length, turn] = value
        print(f"{measure:8} {kind:16} {length:6} {'out of memory' if value is None else f'{value:.5g}'}", flush=True)
        if self.path is None:
            return
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        writer.writerows((*place, "" if found is None else found) for place, found in self.values.items())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(self.path) as file:
            file.write(text.getvalue().encode())

    def turns(self, measure: str, kind: str, length: int) -> list[float]:
        """Return the figures of all turns."""
        found = (value for place, value in self.values.items() if place[:3] == (measure, kind, length))
        return [value for value in found if value is not None]


def step(kind: str, length: int, args: argparse.Namespace) -> Callable[[], None]:
    """Return forward and backward of a kind."""
    torch.manual_seed(args.seed)
    attention = built(kind, length).to(args.device, DTYPES[args.dtype])
    shape = (1, HEADS, length, HEAD_DIM)
    inputs = [torch.randn(shape, device=args.device, dtype=DTYPES[args.dtype]).requires_grad_() for _ in range(3)]
    of_out = torch.randn(shape, device=args.device, dtype=DTYPES[args.dtype])

    def run() -> None:
        out: Tensor = attention(*inputs)
        out.backward(of_out)
        for x in (*inputs, *attention.parameters()):
            x.grad = None

    return run


def take_seconds(table: Table, args: argparse.Namespace) -> None:
    """Time all kinds at all lengths in turns."""
    if args.device == "cpu":
        torch.ones(int(args.reserve * 1e9), dtype=torch.uint8)
    for kind in args.only:
        step(kind, min(args.lengths), args)()  # what is loaded at the first time
    stopped: set[str] = set()
    for turn in range(args.repeats):
        for length in args.lengths:
            for kind in args.only:
                if too_long(table, kind, length, args):
                    if kind not in stopped:
                        print(f"{kind} stops before {length}: it would take more than {args.limit:g} s", flush=True)
                    stopped.add(kind)
                elif ("seconds", kind, length, turn) not in table.values:
                    run = step(kind, length, args)
                    if args.device == "cuda":
                        run()  # kernels are chosen, and memory is reserved
                    table.put("seconds", kind, length, turn, seconds(run, args.device))


def seconds(run: Callable[[], None], device: str) -> float:
    """Return what ``run`` takes: of a CPU, the time of the processor."""
    if device == "cuda":
        return clock(run, device)[0]
    begin = time.process_time()
    run()
    return time.process_time() - begin


def too_long(table: Table, kind: str, length: int, args: argparse.Namespace) -> bool:
    """Say whether a kind has to stop before a length, by its first turns at the two lengths before."""
    if table.turns("seconds", kind, length):
        return False
    before = [each for each in args.lengths if each < length][-2:]
    took = [table.turns("seconds", kind, each) for each in before]
    if not took or not took[-1]:
        return bool(took)
    last = took[-1][0]
    return last * max(2.0, last / took[0][0] if len(took) > 1 else 2.0) > args.limit


def take_memory(table: Table, args: argparse.Namespace) -> None:
    """Take the peak, and what is saved, of all kinds at the lengths at which they were timed."""
    given = ["--device", args.device, "--dtype", args.dtype, "--seed", args.seed]
    for kind in args.only:
        reached = [length for length in args.lengths if table.turns("seconds", kind, length)]
        if args.device == "cpu" and "saved" in args.measures:
            for length in reached:
                if ("saved", kind, length, 0) not in table.values:
                    table.put("saved", kind, length, 0, saved_bytes(kind, length) / 1e6)
        left = [length for length in reached if ("peak", kind, length, 0) not in table.values]
        left = left if "peak" in args.measures else []
        found: list[float | None] = [*(peaks_of_process(["--one", kind, "--lengths", *left, *given]) if left else [])]
        for length, value in zip(left, found + [None] * (len(left) - len(found)), strict=True):
            table.put("peak", kind, length, 0, value)


def judged(table: Table, args: argparse.Namespace) -> Iterator[Figure]:
    """Yield how near each kind is to linear, in time and in memory."""
    least, most = args.linear_from, max(args.lengths)
    if least not in args.lengths or least == most:
        return
    span = f"from {least} to {most} tokens"
    for kind in args.only:
        near = set(NEAR) & set(ATTENTION.arguments(kind)) and FAR not in ATTENTION.arguments(kind)
        target = LINEAR if near else None
        for measure, name in (("seconds", "time"), ("peak", "peak"), ("saved", "saved")):
            short, long = (table.turns(measure, kind, length) for length in (least, most))
            turns = min(len(short), len(long))
            if turns:
                linear = Timed([value * most / least for value in short[:turns]], None)
                yield ratio(f"{kind}: linear {name} / {name} {span}", linear, Timed(long[:turns], None), target)


def draw(table: Table, args: argparse.Namespace, path: Path) -> None:
    """Draw all measures over length."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    taken = [measure for measure in UNITS if any(place[0] == measure for place in table.values)]
    figure, panels = pyplot.subplots(1, len(taken), figsize=(5 * len(taken), 4.5), squeeze=False)
    for axes, measure in zip(panels[0], taken, strict=True):
        for number, kind in enumerate(args.only):
            found = [(length, table.turns(measure, kind, length)) for length in args.lengths]
            points = [(length, sorted(turns)[len(turns) // 2]) for length, turns in found if turns]
            line = "-o" if number < 10 else "--s"  # there are ten colours
            if points:
                axes.plot(*zip(*points, strict=True), line, markersize=3, color=f"C{number % 10}", label=kind)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("tokens")
        axes.set_ylabel(UNITS[measure])
    panels[0, 0].legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "attention", repeats=3)
    made.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, metavar="KIND", help=", ".join(KINDS))
    made.add_argument("--lengths", type=int, nargs="+", default=[2**p for p in range(10, 17)], help="1k to 64k")
    made.add_argument("--measures", nargs="+", choices=UNITS, default=list(UNITS), help="what to take (default: all)")
    made.add_argument("--linear-from", type=int, default=8192, help="tokens (default: 8192)")
    made.add_argument("--limit", type=float, default=60.0, help="most seconds of a turn (default: 60)")
    made.add_argument("--reserve", type=float, default=4.0, help="gigabytes held from the start (default: 4)")
    made.add_argument("--dtype", choices=DTYPES, default="fp32", help="of all tensors (default: fp32)")
    made.add_argument("--one", choices=KINDS, help="print the peaks of this kind, in this process")
    args = made.parse_args()
    args.lengths.sort()
    return args


def main() -> None:
    """Run the benchmark."""
    args = arguments()
    if args.one:
        step(args.one, 64, args)()  # what a library takes at its first use is not the kind's
        for length in args.lengths:
            print(peak(step(args.one, length, args), args.device), flush=True)
        return
    if args.device == "cpu" and not KEEPING.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEEPING})
    table = Table(None if args.out is None else args.out.with_suffix(".csv"))
    if "seconds" in args.measures:
        take_seconds(table, args)
    for name in KEEPING:
        os.environ.pop(name, None)  # peaks are taken as any program would have them
    take_memory(table, args)
    timed = {
        f"{kind} at {length}": Timed(turns, None)
        for kind in args.only
        for length in args.lengths
        if (turns := table.turns("seconds", kind, length))
    }
    if args.out is not None:
        draw(table, args, args.out.with_suffix(".png"))
    finish(args, list(judged(table, args)), timed)


if __name__ == "__main__":
    main()

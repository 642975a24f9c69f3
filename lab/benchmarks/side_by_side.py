"""What the speed benchmarks share: contenders that take turns, ratios beside their targets, and one JSON file.

A machine that others use is slow for a while and fast for a while. So nothing here compares seconds of two runs: all
contenders take turns in one process, and a figure is the ratio of their medians, with the lowest and the highest ratio
of two neighbouring turns beside it.
"""

import argparse
import json
import shlex
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lab import timing
from lab.timing import EOS, FIRST, PAD, Timed, clock, texts
from pyramidions.base.environment import commit, hardware, versions

#: of what is timed, by their names in arguments
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
__all__ = ["EOS", "FIRST", "PAD", "Timed", "clock", "texts"]
#: Multiplications of a turn of matrix products: a GPU makes in 0.1 ms what takes a CPU a second.
_MULTIPLICATIONS = {"cpu": 40e9, "cuda": 4e12}
#: Shapes of matrix products from which the machine's rate is taken, the best of them: (rows, inner, columns).
_PRODUCTS = ((8192, 768, 768), (8192, 768, 3072), (2048, 2048, 2048))


@dataclass(frozen=True)
class Figure:
    """A figure beside its target.

    Attributes:
        name: what it is.
        value: what came out: the ratio of medians, where it is one.
        low: the least of the turns.
        high: the most of them.
        target: what it must at least be; None where nothing is asked.
        unit: what stands behind the number.
    """

    name: str
    value: float
    low: float
    high: float
    target: float | None = None
    unit: str = "x"

    @property
    def met(self) -> bool:
        """Whether it is at least its target."""
        return self.target is None or self.value >= self.target

    def __str__(self) -> str:
        """Say it in one line."""
        text = f"{self.name}: {self.value:.2f}{self.unit} (turns {self.low:.2f} to {self.high:.2f})"
        if self.target is None:
            return text
        return f"{text}, asked {self.target:g}{self.unit}{'' if self.met else ': MISSED'}"


def take_turns(
    contenders: Mapping[str, Callable[[], object]], repeats: int, warmup: int = 1, device: str = "cpu"
) -> dict[str, Timed]:
    """Time each contender ``repeats`` times, in turns; what the ``warmup`` turns before them took is not counted."""

    def tell(turn: int, name: str, seconds: float) -> None:
        print(f"turn {turn} of {warmup + repeats}: {name} {seconds:.2f} s", file=sys.stderr, flush=True)

    works = {name: partial(clock, work, device) for name, work in contenders.items()}
    return timing.take_turns(works, repeats, warmup, tell)


def ratio(name: str, slow: Timed, fast: Timed, target: float | None = None) -> Figure:
    """Return how many times as long ``slow`` takes as ``fast``."""
    found = slow.ratio_to(fast)
    return Figure(name, found["medians"], found["low"], found["high"], target)


def share(
    name: str,
    timed: Timed,
    multiplications: float,
    products: "MatrixProducts",
    took: Timed,
    target: float | None = None,
) -> Figure:
    """Return the share of the machine's matrix rate that something reaches, in percent.

    Args:
        name: what it is.
        timed: what its turns took.
        multiplications: of one turn.
        products: what the rate is measured by.
        took: what the turns of ``products`` took.
        target: least percentage.
    """
    ideal = [seconds * multiplications / products.multiplications for seconds in took.seconds]
    turns = [100 * a / b for a, b in zip(ideal, timed.seconds, strict=True)]
    value = 100 * statistics.median(ideal) / timed.median
    return Figure(name, value, min(turns), max(turns), target, "%")


class MatrixProducts:
    """Matrix products of the shape that is fastest on this machine: what any model's speed is a share of.

    Args:
        device: cpu or cuda.
        dtype: of the matrices.
        multiplications: about how many a turn makes; None for enough to measure the device.
    """

    def __init__(
        self, device: str = "cpu", dtype: torch.dtype = torch.float32, multiplications: float | None = None
    ) -> None:
        tried = []
        multiplications = _MULTIPLICATIONS[device] if multiplications is None else multiplications
        for most, inner, columns in _PRODUCTS:
            # A machine without bfloat16 makes few products: one turn may be less than the whole shape.
            rows = max(1, min(most, round(multiplications / (inner * columns))))
            self._a = torch.randn(rows, inner, device=device, dtype=dtype)
            self._b = torch.randn(inner, columns, device=device, dtype=dtype)
            self._times = max(1, round(multiplications / (rows * inner * columns)))
            #: of a turn, exactly
            self.multiplications = self._times * rows * inner * columns
            self()
            seconds = statistics.median(clock(self, device)[0] for _ in range(3))
            tried.append((self.multiplications / seconds, dict(vars(self))))
        vars(self).update(max(tried, key=lambda attempt: attempt[0])[1])

    def __call__(self) -> None:
        """Take a turn."""
        for _ in range(self._times):
            torch.mm(self._a, self._b)


def parser(text: str | None, name: str, repeats: int = 5, *, devices: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every benchmark takes, and the device where it has a choice of one."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if devices:
        made.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    else:
        made.set_defaults(device="cpu")
    made.add_argument("--repeats", type=int, default=repeats, help="turns that count (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--out", type=Path, help=f"write a JSON file, e.g. lab/benchmarks/results/{name}-cpu.json")
    made.add_argument("--check", action="store_true", help="end with status 1 if a figure misses its target")
    return made


def finish(args: argparse.Namespace, figures: list[Figure], timed: Mapping[str, Timed], **details: Any) -> None:
    """Print figures, write them with where they come from, and judge them where asked to.

    Args:
        args: what the user said.
        figures: what came out.
        timed: seconds of every turn of every contender.
        details: what else belongs into the file.
    """
    for figure in figures:
        print(figure)
    record(
        args,
        figures=[{**asdict(figure), "met": figure.met} for figure in figures],
        seconds={name: found.seconds for name, found in timed.items()},
        peak_bytes={name: found.peak_bytes for name, found in timed.items() if found.peak_bytes},
        **details,
    )
    if args.check and not all(figure.met for figure in figures):
        sys.exit(1)


def record(args: argparse.Namespace, **found: Any) -> None:
    """Write what was found as JSON, with the command, the commit, the versions and the machine, where `--out` says."""
    if args.out is None:
        return
    about = {
        "command": shlex.join(["python", "lab/benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": commit(),
        "versions": versions(),
        "hardware": hardware(args.device),
        "seed": args.seed,
        **found,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(about, indent=1) + "\n")

"""Contenders measured in turns, and the memory of each in a process of its own.

A machine that others use is slow for a while and fast for a while. So nothing here compares seconds of two runs: all
contenders take turns in one process, and a figure is the ratio of their medians, with the lowest and the highest ratio
of two neighbouring turns beside it.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from figures import Entry, add_output, figure, save

from lab.run import memory_of
from lab.timing import EOS, FIRST, PAD, Timed, clock, texts
from lab.timing import take_turns as timed_in_turns
from pyramidions.models import PyramidionConfig, preset

__all__ = ["EOS", "FIRST", "PAD", "Timed", "clock", "texts"]
#: of what is timed, by their names in arguments
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
#: in which models are built to try a program
TINY = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2}
#: Multiplications of a turn of matrix products: a GPU makes in 0.1 ms what takes a CPU a second.
_MULTIPLICATIONS = {"cpu": 40e9, "cuda": 4e12}
#: Shapes of matrix products from which the machine's rate is taken, the best of them: (rows, inner, columns).
_PRODUCTS = ((8192, 768, 768), (8192, 768, 3072), (2048, 2048, 2048))
# On its own the C library keeps freed tensors of up to 32 MB, and the peak is then partly its own. The vectors of a few
# hundred segments have less than a megabyte.
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "100000"}
_OUT_OF_MEMORY = ("OutOfMemoryError", "MemoryError", "DefaultCPUAllocator")


def processor_clock(work: Callable[[], object], device: str) -> tuple[float, None]:
    """Time a call in seconds that the processor worked for this process; its arguments are those of `clock`."""
    begin = time.process_time()
    work()
    return time.process_time() - begin, None


def take_turns(
    contenders: Mapping[str, Callable[[], object]],
    repeats: int,
    warmup: int = 1,
    device: str = "cpu",
    watch: Callable[[Callable[[], object], str], tuple[float, int | None]] = clock,
) -> dict[str, Timed]:
    """Time each contender ``repeats`` times, in turns; what the ``warmup`` turns before them took is not counted."""

    def tell(turn: int, name: str, seconds: float) -> None:
        print(f"turn {turn} of {warmup + repeats}: {name} {seconds:.2f} s", file=sys.stderr, flush=True)

    works = {name: partial(watch, work, device) for name, work in contenders.items()}
    return timed_in_turns(works, repeats, warmup, tell)


def ratio(name: str, slow: Timed, fast: Timed, target: float | None = None) -> Entry:
    """Return how many times as long ``slow`` takes as ``fast``."""
    found = slow.ratio_to(fast)
    return figure(name, found["medians"], (found["low"], found["high"]), target)


def share(
    name: str,
    timed: Timed,
    multiplications: float,
    products: "MatrixProducts",
    took: Timed,
    target: float | None = None,
) -> Entry:
    """Return the share in percent that something reaches of the rate of matrix `products`; `target` is the least."""
    ideal = [seconds * multiplications / products.multiplications for seconds in took.seconds]
    turns = [100 * a / b for a, b in zip(ideal, timed.seconds, strict=True)]
    value = 100 * statistics.median(ideal) / timed.median
    return figure(name, value, turns, target, "%")


class MatrixProducts:
    """Matrix products of the shape that is fastest on this machine: what any model's speed is a share of.

    A turn makes about so many multiplications; None takes enough to measure the device.
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
        for _ in range(self._times):
            torch.mm(self._a, self._b)


def parser(text: str | None, name: str, repeats: int = 5, *, devices: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every benchmark, and the device where it has a choice of one."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if devices:
        made.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    else:
        made.set_defaults(device="cpu")
    made.add_argument("--repeats", type=int, default=repeats, help="turns that count (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--check", action="store_true", help="end with status 1 if a figure misses its target")
    add_output(made, name)
    return made


def add_sizes(made: argparse.ArgumentParser, batch: int = 1) -> None:
    """Add the sizes of synthetic documents."""
    made.add_argument("--batch", type=int, default=batch, help="documents (default: %(default)s)")
    made.add_argument("--source", type=int, default=8192, help="tokens of each (default: 8192)")
    made.add_argument("--vocab-size", type=int, default=32768)
    made.add_argument("--tiny", action="store_true", help="models 16 wide, to try the program")


def deep_preset(name: str, source: int | None) -> PyramidionConfig:
    """Return deep_pyramidion or deep_blockwise; a tiny one for documents of so many tokens, unless None."""
    if source is None:
        return preset(name)
    pooling = {"pooling_lengths": f"None,{-(-source // 4)},{-(-source // 16)},None,None,None"}
    pooled = pooling if name == "deep_pyramidion" else {}
    return preset(name, **TINY, self_attention="blockwise(block_size=16)", **pooled)


def finish(
    args: argparse.Namespace,
    figures: Sequence[Entry],
    timed: Mapping[str, Timed],
    **details: Mapping[str, float | str],
) -> None:
    """Print figures, save them where asked to, and judge them.

    Args:
        args: what the user said.
        figures: what came out.
        timed: seconds of every turn of every contender.
        details: further measures of several rows each.
    """
    print(*figures, sep="\n")
    entries = list(figures)
    for name, took in timed.items():
        entries.append(Entry(name, "seconds", took.median, min(took.seconds), max(took.seconds)))
        entries += [Entry(name, "peak_bytes", took.peak_bytes)] if took.peak_bytes else []
    for measure, values in details.items():
        entries += [Entry(str(name), measure, value) for name, value in values.items()]
    save(args, entries)
    if args.check and not all(each.met for each in figures):
        sys.exit(1)


def peak(work: Callable[[], object]) -> float:
    """Return what ``work`` takes at its peak beyond what this process holds before it, in 10^6 bytes, on Linux.

    getrusage's figure will not do: a process begins with its parent's.
    """
    # The most there was is from here on counted anew (man 5 proc).
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_of("self", "VmRSS")
    work()
    return (memory_of("self") - before) / 1e6


def peak_of_process(arguments: Sequence[object]) -> float | None:
    """Run this program again with other arguments, and return the peak that it prints; None if memory did not suffice.

    A process that fails for another reason ends this one, too.
    """
    done = subprocess.run(
        [sys.executable, sys.argv[0], *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **_ENVIRONMENT},
    )
    # A process that the kernel kills for its memory says nothing.
    if done.returncode == -signal.SIGKILL or any(word in done.stderr for word in _OUT_OF_MEMORY):
        return None
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout.splitlines()[-1])

"""Time and quality of top-k operators (figures 5 and 6 of Pietruszka et al. 2022).

    python lab/benchmarks/topk.py --out lab/benchmarks/results/benchmarks.csv --plot lab/benchmarks/results/topk-cpu
    python lab/benchmarks/topk.py --device cuda --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/topk.py --point            # one size, with the limit of the memory

Time is of forward and backward on a batch, the median of runs in which the operators take turns; quality is the
normalised Chamfer cosine similarity (nCCS) to hard top-k, for E uniform in [-1, 1] and scores uniform in [0, 1].
"""

import argparse
import json
import logging
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from figures import Entry, add_output, save
from torch import Tensor

from pyramidions.base.environment import commit
from pyramidions.nn.functional.topk import TopK, hard_topk, iterative_topk, successive_halving_topk

DIM = 512
GRAPH_LIMIT = 8 * 2**30  # bytes of activations that the iterative operator may hold
Operator = Callable[[Tensor, Tensor, int], Tensor]


def round_by_round(x: Tensor, scores: Tensor, k: int) -> Tensor:
    """The tournament as algorithm 1 states it, on the embeddings, every round: (B, n, D), (B, n) -> (B, k, D)."""
    while x.size(1) > k:
        order = scores.argsort(dim=1, descending=True)
        x = x.gather(1, order[..., None].expand_as(x))
        scores = scores.gather(1, order)
        half = x.size(1) // 2
        pair = torch.stack([scores[:, :half], scores[:, half:].flip(1)], dim=-1)
        w = torch.softmax(20.0**pair, dim=-1)
        x = x[:, :half] * w[..., :1] + x[:, half:].flip(1) * w[..., 1:]
        scores = (pair * w).sum(dim=-1)
    return x


def vectors(operator: Callable[..., TopK], **options: object) -> Operator:
    """Return what an operator selects, without the rest."""
    return lambda x, scores, k: operator(x, scores, k, **options).x


OPERATORS: dict[str, Operator] = {
    "halving": vectors(successive_halving_topk),
    "halving, unsorted": vectors(successive_halving_topk, sort=False),
    "round by round": round_by_round,
    "iterative": vectors(iterative_topk, temperature=1.0),
    "hard": vectors(hard_topk),
}


def nccs(selected: Tensor, hard: Tensor) -> float:
    """Mean over the selected vectors of the cosine to the nearest hard one: (B, k, D) x 2."""
    a, b = (torch.nn.functional.normalize(y, dim=-1) for y in (selected, hard))
    return float((a @ b.transpose(1, 2)).amax(dim=-1).mean())


def graph_bytes(name: str, batch: int, n: int, k: int) -> int:
    """What the backward pass of an operator keeps beside its input, roughly: rows of weights, several times."""
    return 5 * batch * n * k * 4 if name == "iterative" else 0


def clock(device: torch.device) -> float:
    """Return a time in seconds at which all work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(operator: Operator, x: Tensor, scores: Tensor, k: int, backward: bool = True) -> float:
    """Return the time of one forward and, if asked for, backward pass."""
    start = clock(x.device)
    if backward:
        out = operator(x, scores, k)
        torch.autograd.grad(out, (x, scores), torch.ones_like(out), allow_unused=True)
    else:
        with torch.no_grad():
            operator(x, scores, k)
    return clock(x.device) - start


def problem(batch: int, n: int, device: torch.device, seed: int) -> tuple[Tensor, Tensor]:
    """Return random embeddings and scores."""
    generator = torch.Generator(device).manual_seed(seed)
    x = torch.rand(batch, n, DIM, generator=generator, device=device) * 2 - 1
    scores = torch.rand(batch, n, generator=generator, device=device)
    return x.requires_grad_(), scores.requires_grad_()


def measure(batch: int, n: int, k: int, repeats: int, device: torch.device, seed: int) -> list[dict[str, Any]]:
    """Return one row an operator: median, fastest and slowest run, and nCCS."""
    x, scores = problem(batch, n, device, seed)
    runnable = {name: op for name, op in OPERATORS.items() if graph_bytes(name, batch, n, k) <= GRAPH_LIMIT}
    times: dict[str, list[float]] = {name: [] for name in runnable}
    for turn in range(repeats + 1):
        for name, operator in runnable.items():
            taken = seconds(operator, x, scores, k)
            if turn > 0:  # the first turn warms up
                times[name].append(taken)
    rows = []
    with torch.no_grad():
        hard = hard_topk(x, scores, k).x
        for name in OPERATORS:
            row: dict[str, Any] = {"operator": name, "batch": batch, "n": n, "k": k}
            if name in runnable:
                row |= {"seconds": statistics.median(times[name]), "fastest": min(times[name])}
                row |= {"slowest": max(times[name]), "nccs": nccs(OPERATORS[name](x, scores, k), hard), "note": ""}
            else:
                row |= {"seconds": "", "fastest": "", "slowest": "", "nccs": "", "note": "not run: memory"}
            rows.append(row)
    return rows


def memory_limit(x: Tensor, k: int, repeats: int) -> float:
    """Return the time in which the bytes of E, read once, and of the output, written once, can be moved."""
    traffic = x.numel() + x.size(0) * k * DIM
    source, target = torch.ones(traffic // 2, device=x.device), torch.ones(traffic // 2, device=x.device)
    taken = []
    for _ in range(repeats + 1):
        start = clock(x.device)
        target.copy_(source)
        taken.append(clock(x.device) - start)
    return statistics.median(taken[1:])


def point(repeats: int, device: torch.device, seed: int) -> None:
    """Print the ratios at batch 4, n 8192, k 512."""
    batch, n, k = 4, 8192, 512
    x, scores = problem(batch, n, device, seed)
    names = ("halving", "round by round", "iterative")
    both: dict[str, list[float]] = {name: [] for name in names}
    forward: list[float] = []
    limits: list[float] = []
    for turn in range(repeats + 1):
        taken = {name: seconds(OPERATORS[name], x, scores, k) for name in names}
        alone = statistics.median(seconds(OPERATORS["halving"], x, scores, k, backward=False) for _ in range(5))
        limit = memory_limit(x, k, 5)
        if turn > 0:
            for name in names:
                both[name].append(taken[name])
            forward.append(alone)
            limits.append(limit)
    print(f"batch {batch}, n {n}, k {k}, d {DIM}, {device}, {torch.get_num_threads()} threads, {repeats} turns")
    for name in names[1:]:
        ratios = sorted(a / b for a, b in zip(both[name], both["halving"], strict=True))
        middle = statistics.median(both[name]) / statistics.median(both["halving"])
        print(f"forward + backward, {name} / halving: {middle:.1f}x (turns {ratios[0]:.1f} to {ratios[-1]:.1f})")
    ratios = sorted(a / b for a, b in zip(forward, limits, strict=True))
    middle = statistics.median(forward) / statistics.median(limits)
    print(f"forward, halving / memory limit: {middle:.1f}x (turns {ratios[0]:.1f} to {ratios[-1]:.1f})")


def summary(rows: list[dict[str, Any]]) -> str:
    """Return what sorting costs and cuts, over all sizes."""
    found = {(r["operator"], r["n"], r["k"]): r for r in rows if r["seconds"] != ""}
    sizes = [(n, k) for name, n, k in found if name == "halving"]
    pairs = [(found["halving", n, k], found["halving, unsorted", n, k]) for n, k in sizes]
    time_ratio = statistics.mean(a["seconds"] / b["seconds"] for a, b in pairs)
    error = [(1 - a["nccs"]) / (1 - b["nccs"]) for a, b in pairs]
    iterative = [(n, k) for n, k in sizes if ("iterative", n, k) in found]
    best = all(found["halving", n, k]["nccs"] > found["halving, unsorted", n, k]["nccs"] for n, k in sizes) and all(
        found["halving", n, k]["nccs"] > found["iterative", n, k]["nccs"] for n, k in iterative
    )
    return (
        f"sorting takes {100 * (time_ratio - 1):+.1f}% time (paper: +7.3%) "
        f"and changes the error 1 - nCCS by {100 * (statistics.mean(error) - 1):+.1f}% (paper: -45.2%); "
        f"nCCS of the sorted form is {'' if best else 'NOT '}above the unsorted and the iterative one at every size"
    )


def entries(rows: list[dict[str, Any]]) -> Iterator[Entry]:
    """Yield seconds and nCCS of each operator at each size."""
    for r in rows:
        name = f"{r['operator']}, batch {r['batch']}, n {r['n']}, k {r['k']}"
        if r["note"]:
            yield Entry(name, "note", r["note"])
        else:
            yield Entry(name, "seconds", r["seconds"], r["fastest"], r["slowest"])
            yield Entry(name, "nCCS", r["nccs"])


def plot(rows: list[dict[str, Any]], path: Path, title: str) -> None:
    """Draw seconds and nCCS over n, a panel for each k."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ks = sorted({int(str(r["k"])) for r in rows})
    figure, axes = pyplot.subplots(2, len(ks), figsize=(3.4 * len(ks), 6.4), sharex=True, sharey="row", squeeze=False)
    for column, k in enumerate(ks):
        for name in OPERATORS:
            chosen = [r for r in rows if r["k"] == k and r["operator"] == name and r["seconds"] != ""]
            n = [r["n"] for r in chosen]
            # Its quality is that of "halving", which would be hidden.
            style = "--" if name == "round by round" else "-"
            axes[0][column].plot(n, [r["seconds"] for r in chosen], style, marker="o", markersize=3, label=name)
            axes[1][column].plot(n, [r["nccs"] for r in chosen], style, marker="o", markersize=3, label=name)
        axes[0][column].set_title(f"k = {k}")
        axes[0][column].set_yscale("log")
        axes[1][column].set_xscale("log", base=2)
        axes[1][column].set_xlabel("n")
    axes[0][0].set_ylabel("seconds, forward + backward")
    axes[1][0].set_ylabel("nCCS to hard top-k")
    axes[0][-1].legend(fontsize="small")
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def machine(device: torch.device) -> str:
    """Say where the figures come from."""
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or platform.machine()
    return f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}, Python {platform.python_version()}"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--batch", type=int, default=16, help="documents a batch (default: 16)")
    parser.add_argument("--n", type=int, nargs="+", default=[2**p for p in range(8, 15)], help="vectors to choose from")
    parser.add_argument("--k", type=int, nargs="+", default=[32, 128, 512, 2048], help="vectors to select")
    parser.add_argument("--repeats", type=int, default=3, help="turns that count (default: 3)")
    parser.add_argument("--seed", type=int, default=1)
    add_output(parser, "topk")
    parser.add_argument("--plot", type=Path, help="draw PLOT.png, and say in PLOT.json where it comes from")
    parser.add_argument("--point", action="store_true", help="only batch 4, n 8192, k 512, with the memory's limit")
    args = parser.parse_args()
    device = torch.device(args.device)
    if args.point:
        point(max(args.repeats, 5), device, args.seed)
        return
    rows = []
    sizes = [(n, k) for n in args.n for k in args.k if k < n]
    for number, (n, k) in enumerate(sizes, 1):
        print(f"\r{number} of {len(sizes)}: n {n}, k {k}    ", end="", file=sys.stderr, flush=True)
        rows += measure(args.batch, n, k, args.repeats, device, args.seed)
    print(file=sys.stderr)
    print(summary(rows))
    save(args, entries(rows))
    if args.plot is None:
        return
    args.plot.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "command": f"python lab/benchmarks/topk.py --device {args.device} --batch {args.batch} "
        f"--repeats {args.repeats}",
        "commit": commit(),
        "machine": machine(device),
        "seed": args.seed,
        "summary": summary(rows),
    }
    args.plot.with_suffix(".json").write_text(json.dumps(about, indent=2) + "\n")
    plot(rows, args.plot.with_suffix(".png"), machine(device))


if __name__ == "__main__":
    main()

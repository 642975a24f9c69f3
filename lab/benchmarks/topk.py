"""Time and quality of top-k operators (figures 5 and 6 of Pietruszka et al. 2022).

    python lab/benchmarks/topk.py --out lab/benchmarks/results/benchmarks.csv --plot lab/benchmarks/results/topk-cpu
    python lab/benchmarks/topk.py --device cuda --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/topk.py --batch 4 --n 8192 --k 512 --repeats 7

Time is of forward and backward on a batch, the median of runs in which the operators take turns; quality is the
normalised Chamfer cosine similarity (nCCS) to hard top-k, for E uniform in [-1, 1] and scores uniform in [0, 1].
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from contenders import clock, parser, ratio, timed_in_turns
from figures import Entry, run_of, save
from matplotlib.figure import Figure
from torch import Tensor

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


HALVING, UNSORTED, ROUNDS, ITERATIVE = "halving", "halving, unsorted", "round by round", "iterative"
OPERATORS: dict[str, Operator] = {
    HALVING: vectors(successive_halving_topk),
    UNSORTED: vectors(successive_halving_topk, sort=False),
    ROUNDS: round_by_round,
    ITERATIVE: vectors(iterative_topk, temperature=1.0),
    "hard": vectors(hard_topk),
}


def nccs(selected: Tensor, hard: Tensor) -> float:
    """Mean over the selected vectors of the cosine to the nearest hard one: (B, k, D) x 2."""
    a, b = (torch.nn.functional.normalize(y, dim=-1) for y in (selected, hard))
    return float((a @ b.transpose(1, 2)).amax(dim=-1).mean())


def fits(name: str, batch: int, n: int, k: int) -> bool:
    """Say whether memory suffices for the backward pass of an operator: rows of weights, several times."""
    return name != ITERATIVE or 5 * batch * n * k * 4 <= GRAPH_LIMIT


def step(operator: Operator, x: Tensor, scores: Tensor, k: int) -> None:
    """Take a forward and a backward pass."""
    out = operator(x, scores, k)
    torch.autograd.grad(out, (x, scores), torch.ones_like(out), allow_unused=True)


def measure(batch: int, n: int, k: int, repeats: int, device: str, seed: int) -> pd.DataFrame:
    """Return what each operator took to select k of n vectors, and nCCS; nothing of those that were not run."""
    generator = torch.Generator(device).manual_seed(seed)
    x = (torch.rand(batch, n, DIM, generator=generator, device=device) * 2 - 1).requires_grad_()
    scores = torch.rand(batch, n, generator=generator, device=device).requires_grad_()
    works = {
        name: partial(clock, partial(step, operator, x, scores, k), device)
        for name, operator in OPERATORS.items()
        if fits(name, batch, n, k)
    }
    took = timed_in_turns(works, repeats, warmup=1)
    with torch.no_grad():
        hard = hard_topk(x, scores, k).x
        quality = {name: nccs(OPERATORS[name](x, scores, k), hard) for name in works}
    seconds = {name: timed.median for name, timed in took.items()}
    found = pd.DataFrame({"took": took, "seconds": seconds, "nCCS": quality}, list(OPERATORS))
    return found.rename_axis("operator").reset_index().assign(n=n, k=k)


def summary(found: pd.DataFrame) -> str:
    """Return what sorting costs and cuts, over all sizes."""
    seconds, quality = (found.pivot(index=["n", "k"], columns="operator", values=of) for of in ("seconds", "nCCS"))
    slower = (seconds[HALVING] / seconds[UNSORTED]).mean()
    error = ((1 - quality[HALVING]) / (1 - quality[UNSORTED])).mean()
    # What was not run is no better.
    best = (quality[[UNSORTED, ITERATIVE]].max(axis=1) < quality[HALVING]).all()
    return (
        f"sorting takes {100 * (slower - 1):+.1f}% time (paper: +7.3%) "
        f"and changes the error 1 - nCCS by {100 * (error - 1):+.1f}% (paper: -45.2%); "
        f"nCCS of the sorted form is {'' if best else 'NOT '}above the unsorted and the iterative one at every size"
    )


def entries(found: pd.DataFrame, batch: int) -> Iterator[Entry]:
    """Yield seconds and nCCS of each operator at each size."""
    for each in found.itertuples():
        name = f"{each.operator}, batch {batch}, n {each.n}, k {each.k}"
        if pd.isna(each.seconds):
            yield Entry(name, "note", "not run: memory")
        else:
            yield Entry(name, "seconds", each.seconds, min(each.took.seconds), max(each.took.seconds))
            yield Entry(name, "nCCS", each.nCCS)


def plot(found: pd.DataFrame, path: Path, title: str) -> None:
    """Draw seconds and nCCS over n, a panel for each k."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    panels = list(found.groupby("k"))
    figure = Figure((3.4 * len(panels), 6.4), layout="constrained")
    axes = figure.subplots(2, len(panels), sharex=True, sharey="row", squeeze=False)
    # The quality of "round by round" is that of "halving", which would be hidden.
    look = {"style": ["--" if name == ROUNDS else "-" for name in OPERATORS], "marker": "o", "ms": 3, "legend": False}
    for (k, panel), (above, below) in zip(panels, axes.T, strict=True):
        for measure, place in (("seconds", above), ("nCCS", below)):
            panel.pivot(index="n", columns="operator", values=measure)[list(OPERATORS)].plot(ax=place, **look)
        above.set(title=f"k = {k}", yscale="log")
        below.set_xscale("log", base=2)
    axes[0][0].set_ylabel("seconds, forward + backward")
    axes[1][0].set_ylabel("nCCS to hard top-k")
    axes[0][-1].legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "topk", repeats=3)
    made.add_argument("--batch", type=int, default=16, help="documents a batch (default: 16)")
    made.add_argument("--n", type=int, nargs="+", default=[2**p for p in range(8, 15)], help="vectors to choose from")
    made.add_argument("--k", type=int, nargs="+", default=[32, 128, 512, 2048], help="vectors to select")
    made.add_argument("--plot", type=Path, help="draw PLOT.png, and say in PLOT.json where it comes from")
    args = made.parse_args()
    parts = []
    for n, k in ((n, k) for n in args.n for k in args.k if k < n):
        parts.append(measure(args.batch, n, k, args.repeats, args.device, args.seed))
        took = parts[-1].set_index("operator").took.dropna()
        for name in took.index.intersection([ROUNDS, ITERATIVE]):
            print(ratio(f"n {n}, k {k}, {name} / {HALVING}", took[name], took[HALVING]), file=sys.stderr, flush=True)
    found = pd.concat(parts, ignore_index=True)
    print(summary(found))
    save(args, entries(found, args.batch))
    if args.plot is None:
        return
    about = run_of(args) | {"summary": summary(found)}
    args.plot.parent.mkdir(parents=True, exist_ok=True)
    args.plot.with_suffix(".json").write_text(json.dumps(about, indent=2) + "\n")
    plot(found, args.plot.with_suffix(".png"), about["machine"])


if __name__ == "__main__":
    main()

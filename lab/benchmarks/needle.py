"""Does the scorer learn to select? Eight ways of pooling on documents whose summary is a few marked tokens.

    python lab/benchmarks/needle.py --out lab/benchmarks/results/needle-cpu
    python lab/benchmarks/needle.py --quick
    python lab/benchmarks/needle.py --ways linear --outputs tied pointer

A document is noise in which a few tokens of another kind stand at random places; its summary is those tokens, in
order. Attention sees blocks of a few tokens only, so that a marked token can be read off few other vectors.
Every way of pooling gets the same tiny Transpooler (Pietruszka et al. 2022, table 4), the same documents, updates and
seeds; with the output `pointer` it can copy through the pooling. Reported are the share of tokens that greedy decoding
gets right on documents never seen, and how much of each marked token the pooled vectors hold (provenance), both as
means over seeds with 95% t intervals.
"""

import argparse
import json
import math
import platform
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.base.environment import commit
from pyramidions.models import build, preset
from pyramidions.nn import Transformer

PAD, EOS, FIRST = 1, 2, 4
NOISE, MARKED = 32, 32  # how many tokens of either kind there are
LENGTH, NEEDLES, POOLED = 128, 4, 8
OUTPUTS = ("tied", "pointer")
WAYS = ("linear", "nonlinear", "attention", "embedding", "index", "random", "mean", "max")
# 97.5% quantiles of Student's t by degrees of freedom
T_QUANTILE = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def documents(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return documents (B, L), their summaries (B, T) without an end, and where the marked tokens stand (B, T)."""
    source = torch.randint(FIRST, FIRST + NOISE, (count, LENGTH), generator=generator)
    where = torch.rand(count, LENGTH, generator=generator).argsort(dim=1)[:, :NEEDLES].sort(dim=1).values
    marked = torch.randint(FIRST + NOISE, FIRST + NOISE + MARKED, (count, NEEDLES), generator=generator)
    return source.scatter(1, where, marked), marked, where


def model_for(way: str, output: str, block_size: int) -> Transformer:
    """Return the tiny Transpooler that pools in this way and has this output layer."""
    name = "transpooler" if way == "linear" else f"transpooler_{way}"
    config = preset(
        name,
        embed_dim=64,
        ffn_embed_dim=128,
        num_heads=4,
        self_attention=f"blockwise(block_size={block_size})",
        # After the first layer: the second can tell the pooled vectors' order.
        pooling_lengths=f"{POOLED},None",
        decoder_positions="sinusoidal",
        output=output,
        max_source_positions=LENGTH,
        normalize_before=True,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    return build(config, FIRST + NOISE + MARKED, PAD)


def train(
    way: str, output: str, seed: int, updates: int, batch: int, block_size: int, device: torch.device
) -> Transformer:
    """Train with teacher forcing on fresh documents."""
    torch.manual_seed(seed)
    model = model_for(way, output, block_size).to(device)
    generator = torch.Generator().manual_seed(1000 + seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    warmup = max(updates // 20, 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda u: min((u + 1) / warmup, 0.5 * (1 + math.cos(math.pi * u / updates)) + 0.02)
    )
    model.train()
    for _ in range(updates):
        source, target, _ = (t.to(device) for t in documents(batch, generator))
        prefix = F.pad(target[:, :-1], (1, 0), value=EOS)
        loss = F.cross_entropy(model(source, prefix).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def evaluate(model: Transformer, count: int, device: torch.device) -> tuple[float, float | None]:
    """Return the share of tokens that greedy decoding gets right, and the share of marked tokens that was pooled."""
    source, target, where = (t.to(device) for t in documents(count, torch.Generator().manual_seed(7)))
    encoded = model.encoder(source, source.eq(PAD))
    cache = model.decoder.new_cache()
    written = torch.full((count, 1), EOS, device=device)
    for _ in range(NEEDLES):
        logits = model.decoder(written[:, -1:], encoded.memories, cache)
        written = torch.cat([written, logits[:, -1:].argmax(dim=-1)], dim=1)
    accuracy = float((written[:, 1:] == target).float().mean())
    pooled = next(iter(encoded.pooled.values()))
    if pooled.sources is None or pooled.weights is None:
        return accuracy, None
    # How much of each position is in the largest share that any pooled vector has of it: (B, L)
    share = torch.zeros(count, LENGTH, device=device).scatter_reduce(
        1, pooled.sources.flatten(1), pooled.weights.flatten(1), "amax"
    )
    return accuracy, float(share.gather(1, where).mean())


def run(job: tuple[str, str, int], updates: int, batch: int, block_size: int, test: int, device: str) -> dict[str, Any]:
    """Train and test one way of pooling with one output layer and one seed."""
    way, output, seed = job
    model = train(way, output, seed, updates, batch, block_size, torch.device(device))
    accuracy, pooled = evaluate(model, test, torch.device(device))
    return {"seed": seed, "accuracy": accuracy, "pooled": pooled}


def interval(values: list[float]) -> dict[str, float]:
    """Return mean and 95% t interval."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return {"mean": mean, "low": math.nan, "high": math.nan}
    half = T_QUANTILE[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def row(way: str, runs: list[dict[str, Any]]) -> str:
    """Return one line of the table."""
    cells = []
    for key in ("accuracy", "pooled"):
        values = [100 * r[key] for r in runs if r[key] is not None]
        if not values:
            cells.append("no provenance")
            continue
        i = interval(values)
        low, high = max(i["low"], 0.0), min(i["high"], 100.0)
        cells.append(f"{i['mean']:.1f}" if math.isnan(i["low"]) else f"{i['mean']:.1f} [{low:.1f}, {high:.1f}]")
    each = ", ".join(f"{100 * run['accuracy']:.1f}" for run in runs)
    return f"| {way} | {cells[0]} | {cells[1]} | {each} |"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="ways of pooling (default: all)")
    parser.add_argument("--outputs", nargs="+", choices=OUTPUTS, default=["tied"], help="output layers (default: tied)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each, at most 10 (default: 3)")
    parser.add_argument("--updates", type=int, default=1500, help="updates of a run (default: 1500)")
    parser.add_argument("--batch", type=int, default=64, help="documents an update (default: 64)")
    parser.add_argument("--block-size", type=int, default=2, help="tokens that attention sees together (default: 2)")
    parser.add_argument("--test", type=int, default=512, help="documents to test on (default: 512)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, a thread each (default: 2)")
    parser.add_argument("--quick", action="store_true", help="one seed and 200 updates: some minutes")
    parser.add_argument("--out", type=Path, help="write OUT.json and OUT.md")
    args = parser.parse_args()
    if not 1 <= args.seeds <= 10:
        parser.error(f"--seeds must be from 1 to 10, but is {args.seeds}.")
    if "pointer" in args.outputs and "max" in args.ways:
        parser.error("--ways must not have max with --outputs pointer: max does not tell which tokens it pools.")
    if args.quick:
        args.seeds, args.updates = 1, 200
    jobs = list(product(args.ways, args.outputs, range(1, args.seeds + 1)))
    jobs.sort(key=itemgetter(2))
    runs: dict[str, list[dict[str, Any]]] = {}
    start = time.perf_counter()
    with ProcessPoolExecutor(args.workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        settings = {key: getattr(args, key) for key in ("updates", "batch", "block_size", "test", "device")}
        done = pool.map(partial(run, **settings), jobs)
        for number, ((way, output, seed), result) in enumerate(zip(jobs, done, strict=True), 1):
            name = way if output == "tied" else f"{way}, {output}"
            runs.setdefault(name, []).append(result)
            left = (time.perf_counter() - start) / number * (len(jobs) - number) / 60
            accuracy = f"{name}, seed {seed}: {result['accuracy']:.1%} right"
            print(f"{number} of {len(jobs)}: {accuracy}; about {left:.0f} minutes left", file=sys.stderr, flush=True)
    table = [
        f"| pooling | tokens right, % [95%] of {args.seeds} seeds | marked tokens pooled, % | each seed |",
        "|---|---|---|---|",
        *(row(*each) for each in sorted(runs.items(), key=lambda e: -statistics.mean(r["accuracy"] for r in e[1]))),
    ]
    print("\n".join(table))
    if args.out is None:
        return
    about = {
        "command": f"python lab/benchmarks/needle.py --ways {' '.join(args.ways)} --outputs {' '.join(args.outputs)} "
        f"--seeds {args.seeds} --updates {args.updates} --batch {args.batch} --block-size {args.block_size}",
        "commit": commit(),
        "machine": f"{args.device}, {args.workers} runs at a time of 1 thread, torch {torch.__version__}, "
        f"Python {platform.python_version()}",
        "chance": 1 / MARKED,
        "runs": runs,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.with_suffix(".json").write_text(json.dumps(about, indent=2) + "\n")
    args.out.with_suffix(".md").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()

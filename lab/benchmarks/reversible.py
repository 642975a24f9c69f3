"""Reversible layers beside plain and checkpointed ones; and the decoder that reads documents before summaries.

    python lab/benchmarks/reversible.py --only layers --out lab/benchmarks/results/reversible-memory-cpu.json
    python lab/benchmarks/reversible.py --only steps --out lab/benchmarks/results/reversible-steps-cpu.json
    python lab/benchmarks/reversible.py --only lengths --out lab/benchmarks/results/reversible-lengths-cpu.json

By depth: an encoder of blockwise attention reads one document. What lies between its forward and its backward pass is
what the process holds more by the C library's count, so that random state and decisions are in it; the peak of a step
is without weights and their gradients. Each measurement is a process of its own. Steps are timed in turns.

By length: the Terraformer's decoder reads all vectors of its encoder in front of the summary, and so does that of
terraformer_pyramidion, to which the encoder hands few. Training steps of both, whole and of the decoder alone.

Seconds are those that the processor worked for this program. Dropout is 0.1 throughout.
"""

import argparse
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from decode_contenders import seconds_of
from peaks import peak, peaks_of_process
from side_by_side import EOS, Figure, finish, parser, ratio, texts
from stacks import STACKS, by_layers, memory_of, step_of
from torch import Tensor, nn

from lab.timing import Timed
from pyramidions.models import build, preset

TERRAFORMERS = ("terraformer", "terraformer_pyramidion")
PARTS = ("layers", "steps", "lengths")
MEASURES = ("step, peak", "step, seconds", "decoder, peak", "decoder, seconds")


def encoder(stack: str, layers: int, args: argparse.Namespace) -> tuple[nn.Module, Callable[[], Tensor]]:
    """Return an encoder of blockwise attention, and its forward pass over a document to a loss."""
    shape = {"embed_dim": args.embed_dim, "ffn_embed_dim": 4 * args.embed_dim, "num_heads": args.num_heads}
    blocks = {"self_attention": "blockwise", "max_source_positions": args.length}
    return step_of(stack, layers, texts(1, args.length, args.vocab_size), args.seed, **shape, **blocks)


def in_turns(args: argparse.Namespace) -> tuple[list[Figure], dict[str, Timed]]:
    """Time a step of each stack in turns, the first as a warm-up."""
    forwards = {stack: encoder(stack, args.timed_layers, args)[1] for stack in STACKS}

    def step(stack: str) -> None:
        forwards[stack]().backward()

    turns = []
    for turn in range(1 + args.repeats):
        turns.append({stack: seconds_of(partial(step, stack), 1) for stack in STACKS})
        print(f"turn {turn}:", *(f"{stack} {took:.2f} s" for stack, took in turns[-1].items()), flush=True)
    timed = {name: Timed([turn[name] for turn in turns[1:]], None) for name in STACKS}
    figures = [
        ratio(f"a step, {stack} / reversible", timed[stack], timed["reversible"], least)
        for stack, least in (("plain", 1 / 1.5), ("recomputing", 1 / 1.1))
    ]
    return [*figures, ratio("a step, plain / recomputing", timed["plain"], timed["recomputing"])], timed


def of_terraformer(name: str, length: int, args: argparse.Namespace) -> list[float]:
    """Return the megabytes and the seconds of a training step, and of its decoder alone: `MEASURES`."""
    torch.manual_seed(args.seed)
    shape = {"embed_dim": args.embed_dim, "ffn_embed_dim": 4 * args.embed_dim, "num_heads": args.num_heads}
    longest = {"max_source_positions": length}
    model = build(preset(name, **shape, **longest), args.vocab_size).train()
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    target = texts(1, args.target, args.vocab_size)
    prefix = F.pad(target[:, :-1], (1, 0), value=EOS)

    def learn(logits: Tensor) -> None:
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()

    def measured(work: Callable[[], object]) -> tuple[float, float]:
        return peak(work), seconds_of(work, 1)

    # What is loaded at the first use is nobody's.
    learn(model(texts(1, 8, args.vocab_size), prefix))
    source = texts(1, length, args.vocab_size)
    whole = measured(lambda: learn(model(source, prefix)))
    with torch.no_grad():
        memories = model.encoder(source, torch.zeros_like(source, dtype=torch.bool), [length]).memories
    memories = tuple(memory._replace(x=memory.x.detach().requires_grad_()) for memory in memories)
    return [*whole, *measured(lambda: learn(model.decoder(prefix, memories)))]


def by_length(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[Figure]]:
    """Return what the Terraformer takes with all vectors of the encoder, and with pooled ones."""
    rows: list[dict[str, Any]] = []
    figures = []
    for length in args.lengths:
        for name in TERRAFORMERS:
            found = peaks_of_process(["--one", name, "--lengths", length, *_sizes(args)])
            rows.append({"model": name, "length": length, **dict(zip(MEASURES, found, strict=True))})
            print(*(f"{name} {value:,.5g}" for name, value in rows[-1].items() if name != "model"), name, flush=True)
        for measure in MEASURES:
            value = rows[-2][measure] / rows[-1][measure]
            figures.append(Figure(f"{measure}, {length} tokens, all vectors / pooled", value, value, value))
    return rows, figures


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw megabytes over layers."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.5, 4.5), layout="constrained")
    for number, stack in enumerate(STACKS):
        chosen = [row for row in rows if row["stack"] == stack]
        for measure, line, told in (("peak", "-o", "peak of a step"), ("kept", "--o", "kept for the backward pass")):
            places, sizes = [row["layers"] for row in chosen], [row[measure] for row in chosen]
            axes.plot(places, sizes, line, color=f"C{number}", label=f"{stack}, {told}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(
        sorted({row["layers"] for row in rows}), labels=sorted({str(row["layers"]) for row in rows}, key=int)
    )
    axes.set_xlabel("layers")
    axes.set_ylabel("MB beyond weights and gradients")
    figure.legend(loc="outside upper center", ncols=2, fontsize="small")
    figure.savefig(path, dpi=110)


def _sizes(args: argparse.Namespace) -> list[object]:
    names = ("embed_dim", "num_heads", "length", "target", "vocab_size", "seed")
    return [word for name in names for word in ("--" + name.replace("_", "-"), getattr(args, name))]


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "reversible-memory", devices=False)
    made.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the measurements")
    made.add_argument("--layers", type=int, nargs="+", default=[2, 4, 8, 16], help="of models in the memory table")
    made.add_argument("--timed-layers", type=int, default=2, help="of the steps that are timed (default: 2)")
    made.add_argument("--length", type=int, default=8192, help="of the document by layers (default: 8192)")
    made.add_argument("--lengths", type=int, nargs="+", default=[2**p for p in range(11, 15)], help="2k to 16k")
    made.add_argument("--target", type=int, default=256, help="tokens of a summary (default: 256)")
    made.add_argument("--embed-dim", type=int, default=512, help="(default: 512)")
    made.add_argument("--num-heads", type=int, default=8, help="(default: 8)")
    made.add_argument("--vocab-size", type=int, default=1000)
    made.add_argument("--one", choices=(*STACKS, *TERRAFORMERS), help="print the figures of this one, in this process")
    args = made.parse_args()
    if args.one:
        of_stack = args.one in STACKS
        one = (
            memory_of(*encoder(args.one, args.layers[0], args))
            if of_stack
            else of_terraformer(args.one, args.lengths[0], args)
        )
        print(*one, sep="\n")
        return
    figures: list[Figure] = []
    timed: dict[str, Timed] = {}
    tables: dict[str, list[dict[str, Any]]] = {}
    if "layers" in args.only:
        tables["by_layers"], found = by_layers(args.layers, _sizes(args))
        figures += found
        if args.out is not None:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            draw(tables["by_layers"], args.out.with_suffix(".png"))
    if "steps" in args.only:
        found, timed = in_turns(args)
        figures += found
    if "lengths" in args.only:
        tables["by_length"], found = by_length(args)
        figures += found
    finish(args, figures, timed, **tables)


if __name__ == "__main__":
    main()

"""The memory tables of the lecture on long documents, in shape: by length, by chunks, and by number of layers.

    python lab/benchmarks/lecture_memory.py --out lab/benchmarks/results/lecture-memory-cpu.json

Three tables, which the lecture has in megabytes of a graphics card: what the layers of an encoder keep for
the backward pass by length, full attention beside windows that alternate with LSH; the peak of a feed-forward part in
chunks; and training with 4, 8 and 12 layers, plain, checkpointed and reversible. Kept bytes are counted, each storage
once; by layers it is what the process holds more. Peaks are measured, each in a process of its own. Steps are timed in
turns. Dropout is 0.1 throughout.
"""

import argparse
from collections.abc import Callable

import torch
from peaks import peak, peak_of_process
from side_by_side import Figure, finish, parser, ratio, take_turns
from stacks import STACKS, by_layers, memory_of, step_of
from torch import Tensor, nn

from lab.timing import Timed
from pyramidions.models import preset
from pyramidions.nn.feed_forward import DenseFeedForward
from pyramidions.nn.sublayer import LayerContext
from pyramidions.runs.measure.cost import Lengths, cost_of
from pyramidions.runs.measure.parts import CostPart

WINDOWS_AND_LSH = "lsh_window"
# What full attention keeps as it is written down: weights, what dropout leaves of them, and its mask.
_OF_A_WEIGHT = 4 + 4 + 1
PARTS = ("lengths", "chunks", "layers", "steps")


def by_length(args: argparse.Namespace) -> list[dict[str, float]]:
    """Return megabytes that an encoder of six layers of base size keeps for one document."""
    rows = []
    for length in args.lengths:
        row: dict[str, float] = {"length": length}
        for name, changes in (("full", {"self_attention": "full"}), ("local + LSH", {})):
            config = preset(WINDOWS_AND_LSH, max_source_positions=length, encoder_positions="sinusoidal", **changes)
            found = cost_of(config, Lengths(length, 1)).activations
            parts = (CostPart.ENCODER_ATTENTION, CostPart.ENCODER_PROJECTIONS, CostPart.ENCODER_FEED_FORWARD)
            row[name] = sum(found[part] for part in parts) / 1e6
        weights = config.encoder_layers * config.num_heads * length**2 * _OF_A_WEIGHT
        row["full, as a matrix"] = row["full"] + weights / 1e6
        rows.append(row)
        print(" ".join(f"{name} {value:,.0f}" for name, value in row.items()), flush=True)
    return rows


def chunked_peak(chunk_size: int, args: argparse.Namespace) -> float:
    """Return what a training step of a feed-forward part takes at its peak, in 10^6 bytes; 0 for one of width 1."""
    # Wide, so that inputs and outputs do not hide what lies between the layers.
    width = 32 * args.chunked_dim if chunk_size else 1
    part = DenseFeedForward(args.chunked_dim, width, "gelu", 0.1, chunk_size or args.positions).train()
    x = torch.randn(1, args.positions, args.chunked_dim, requires_grad=True)
    # What is loaded at the first use is not the part's, nor are gradients of its weights.
    part(x[:, :8], LayerContext()).sum().backward()
    return peak(lambda: part(x, LayerContext()).sum().backward())


def by_chunks(args: argparse.Namespace) -> tuple[list[dict[str, float]], list[Figure]]:
    """Return the peak by number of chunks, and how many times as much one chunk's activations take."""

    def peak_of(chunk_size: int) -> float:
        found = peak_of_process(["--one", "chunks", "--chunks", chunk_size, *_sizes(args)])
        assert found is not None
        return found

    # Inputs, outputs and their gradients, which are there whatever the chunks.
    fixed = peak_of(0)
    rows = [{"chunks": chunks, "peak": peak_of(-(-args.positions // chunks))} for chunks in args.chunks]
    figures = []
    for row in rows:
        row["activations"] = row["peak"] - fixed
        value = rows[0]["activations"] / row["activations"]
        target = 0.8 * row["chunks"] / rows[0]["chunks"]
        name = f"activations of {rows[0]['chunks']} chunks / of {row['chunks']}"
        figures.append(Figure(name, value, value, value, target))
        print(figures[-1], f"peak {row['peak']:.0f} MB", flush=True)
    return rows, figures


def step(stack: str, layers: int, args: argparse.Namespace) -> tuple[nn.Module, Callable[[], Tensor]]:
    """Return an encoder with full attention, and its forward pass to a loss."""
    tokens = torch.randint(4, args.vocab_size, (args.batch, args.length))
    shape = {"embed_dim": args.embed_dim, "ffn_embed_dim": 4 * args.embed_dim, "num_heads": 8}
    return step_of(stack, layers, tokens, args.seed, **shape)


def _sizes(args: argparse.Namespace) -> list[object]:
    names = ("embed_dim", "chunked_dim", "positions", "batch", "length", "vocab_size", "seed")
    return [word for name in names for word in ("--" + name.replace("_", "-"), getattr(args, name))]


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__, "lecture-memory", repeats=5, devices=False)
    options.add_argument("--lengths", type=int, nargs="+", default=[2**p for p in range(11, 17)], help="2k to 64k")
    options.add_argument("--chunks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    options.add_argument("--layers", type=int, nargs="+", default=[4, 8, 12])
    options.add_argument("--embed-dim", type=int, default=512)
    options.add_argument("--chunked-dim", type=int, default=128, help="of the part in chunks (default: 128)")
    options.add_argument("--positions", type=int, default=8192, help="of the part in chunks (default: 8192)")
    options.add_argument("--batch", type=int, default=8)
    options.add_argument("--length", type=int, default=512, help="of documents by layers (default: 512)")
    options.add_argument("--vocab-size", type=int, default=1000)
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the tables")
    options.add_argument("--one", help="print the peak of this stack, or of chunks, in this process")
    args = options.parse_args()
    if args.one:
        if args.one == "chunks":
            print(chunked_peak(args.chunks[0], args))
        else:
            print(*memory_of(*step(args.one, args.layers[0], args)), sep="\n")
        return
    figures: list[Figure] = []
    tables: dict[str, list[dict[str, float]]] = {}
    timed: dict[str, Timed] = {}
    if "lengths" in args.only:
        tables["by_length"] = by_length(args)
    if "chunks" in args.only:
        tables["by_chunks"], further = by_chunks(args)
        figures += further
    if "layers" in args.only:
        tables["by_layers"], further = by_layers(args.layers, _sizes(args))
        figures += further
    if "steps" in args.only:
        steps = {stack: step(stack, args.layers[0], args)[1] for stack in STACKS}
        timed = take_turns(
            {stack: (lambda forward=forward: forward().backward()) for stack, forward in steps.items()}, args.repeats
        )
        # At most 1.5 times as long.
        figures.append(ratio("plain / reversible, a step", timed["plain"], timed["reversible"], 1 / 1.5))
        figures.append(ratio("plain / recomputing, a step", timed["plain"], timed["recomputing"]))
    finish(args, figures, timed, **tables)


if __name__ == "__main__":
    main()

"""What a step of the decoder costs with sparse parts and with dense ones: one sequence, one token, on a CPU.

    python benchmarks/sparse_decode.py --out benchmarks/results/sparse-decode-cpu.json
    python benchmarks/sparse_decode.py --widths 16 --layers 2 --repeats 2 --steps 2 --rows dense "sparse feed-forward"

Such a step is bound by the weights that it reads. So there are as many layers as make the dense weights several times
the processor's cache, and every row is told beside the bytes that its step reads, and how near it comes to the rate at
which this machine multiplies matrices with a vector. Seconds are those that the processor worked for this program, in
turns of all rows. The memory is short, as in the paper (16 vectors), and so is the vocabulary: the output layer has
figures of its own. A training step of a feed-forward part alone is timed as well.

A further row is an entry of ROWS: the fields in which its model differs, given the width, and what it must reach.
"""

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from decode_contenders import Contender, FeedForwards, MatrixVectors, Stepper, TrainingStep
from side_by_side import Figure, finish, parser, ratio

from pyramidions.measure.timing import Timed
from pyramidions.models import build, preset
from pyramidions.nn import Decoder
from pyramidions.nn.feed_forward import DenseFeedForward, FeedForward, SparseFeedForward

HEAD_DIM, TIMES_THE_CACHE = 64, 8


@dataclass(frozen=True)
class Row:
    """A decoder beside the dense one.

    Attributes:
        fields: in which its config differs, given the width and the number of heads.
        targets: how many times as fast as the dense one it must be, by width.
    """

    fields: Callable[[int, int], Mapping[str, Any]]
    targets: Mapping[int, float] = field(default_factory=dict)


DENSE = "dense"
ROWS = {
    DENSE: Row(lambda width, heads: {}),
    "sparse feed-forward": Row(lambda width, heads: {"feed_forward": "sparse"}, {512: 1.5, 1024: 1.8, 2048: 2.0}),
}


def in_turns(contenders: Mapping[str, Contender], args: argparse.Namespace) -> dict[str, Timed]:
    """Time contenders in turns; the first turn does not count."""
    turns = [{name: one.seconds(args.steps) for name, one in contenders.items()} for _ in range(1 + args.repeats)][1:]
    return {name: Timed([turn[name] for turn in turns], None) for name in contenders}


def cache_bytes() -> int:
    """Return the size of the processor's largest cache; 0 if nobody says."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 2**10, "M": 2**20}
    return max((int(size[:-1]) * units[size[-1]] for size in sizes), default=0)


def layers_of(width: int) -> int:
    """Return how many dense decoder layers are several times the cache."""
    # Of 14 D * D weights: self-attention, queries and output of cross-attention, and the feed-forward part.
    return max(2, math.ceil(TIMES_THE_CACHE * cache_bytes() / (14 * width**2 * 4)))


def decoder_of(row: Row, width: int, layers: int) -> Decoder:
    """Return a decoder without training."""
    heads = max(1, width // HEAD_DIM)
    shape = {"embed_dim": width, "ffn_embed_dim": 4 * width, "num_heads": heads, "decoder_layers": layers}
    fields = {**shape, "encoder_layers": 1, "normalize_before": True, **row.fields(width, heads)}
    return build(preset("vanilla", **fields), 32).decoder.eval()


def share(name: str, contender: Stepper | FeedForwards, took: Timed, rate: MatrixVectors, products: Timed) -> Figure:
    """Return the share of the machine's rate that a contender reads its bytes at, in percent."""
    turns = [100 * contender.bytes / rate.bytes * b / a for a, b in zip(took.seconds, products.seconds, strict=True)]
    value = 100 * contender.bytes / rate.bytes * products.median / took.median
    return Figure(name, value, min(turns), max(turns), unit="%")


@torch.no_grad()
def decode(width: int, args: argparse.Namespace) -> tuple[list[Figure], dict[str, Timed], dict[str, int]]:
    """Return figures of a width, the turns behind them, and the bytes that each contender reads."""
    layers = args.layers or layers_of(width)
    decoders = {name: decoder_of(ROWS[name], width, layers) for name in args.rows}
    steps = {name: Stepper(decoder, args.memory) for name, decoder in decoders.items()}
    alone = {name: FeedForwards(decoder) for name, decoder in decoders.items()}
    products = MatrixVectors(width, 2 * layers)
    named = {f"a step, D {width}, {name}": step for name, step in steps.items()}
    named |= {f"feed-forward parts, D {width}, {name}": parts for name, parts in alone.items()}
    rate = f"matrices times a vector, D {width}"
    with torch.inference_mode():
        timed = in_turns({**named, rate: products}, args)
    figures = []
    for kind in ("a step", "feed-forward parts"):
        slow = timed[f"{kind}, D {width}, {DENSE}"]
        for name in args.rows[1:]:
            target = ROWS[name].targets.get(width) if kind == "a step" else None
            fast = timed[f"{kind}, D {width}, {name}"]
            figures.append(ratio(f"{kind}, D {width}, {DENSE} / {name}", slow, fast, target))
    for name, one in named.items():
        figures.append(share(f"{name}: share of the rate", one, timed[name], products, timed[rate]))
        print(
            f"{name}: {1e3 * timed[name].median / layers:.3f} ms a layer, which reads {one.bytes / layers / 1e6:.2f} MB"
        )
    speed = products.bytes / timed[rate].median / 1e9
    print(f"{rate}: {speed:.1f} GB/s; {layers} layers, the largest cache has {cache_bytes() / 1e6:.0f} MB")
    return figures, timed, {name: one.bytes for name, one in {**named, rate: products}.items()}


def train(width: int, args: argparse.Namespace) -> tuple[list[Figure], dict[str, Timed]]:
    """Return figures of a training step of a feed-forward part, and the turns behind them."""
    hidden = 4 * width
    block = min(64, hidden)
    dense = f"a training step, D {width}, {DENSE}"
    parts: dict[str, tuple[FeedForward, float]] = {
        "weighting all units": (SparseFeedForward(width, hidden, block, quantized=0.0), 1 / 1.15),
        "choosing units": (SparseFeedForward(width, hidden, block, quantized=1.0), 1 / 1.5),
    }
    contenders = {dense: TrainingStep(DenseFeedForward(width, hidden), width, args.tokens)}
    contenders |= {name: TrainingStep(part, width, args.tokens) for name, (part, _) in parts.items()}
    timed = in_turns(contenders, args)
    figures = [ratio(f"{dense} / {name}", timed[dense], timed[name], least) for name, (_, least) in parts.items()]
    return figures, {f"a training step, D {width}, {name}" if name != dense else dense: timed[name] for name in timed}


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "sparse-decode", devices=False)
    made.add_argument("--widths", type=int, nargs="+", default=[512, 1024, 2048], help="(default: 512 1024 2048)")
    made.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help=f"of them {DENSE} first")
    made.add_argument("--layers", type=int, help="(default: dense weights of eight caches)")
    made.add_argument("--memory", type=int, default=16, help="vectors (default: 16)")
    made.add_argument("--steps", type=int, default=12, help="of a turn (default: 12)")
    made.add_argument("--training-width", type=int, default=512, help="(default: 512)")
    made.add_argument("--tokens", type=int, default=512, help="of a training step (default: 512)")
    args = made.parse_args()
    if args.rows[0] != DENSE:
        made.error(f"--rows must begin with {DENSE}, but begins with {args.rows[0]}.")
    torch.manual_seed(args.seed)
    figures, timed = train(args.training_width, args)
    read: dict[str, int] = {}
    for width in args.widths:
        found, turns, weights = decode(width, args)
        figures, timed, read = [*figures, *found], timed | turns, read | weights
    finish(args, figures, timed, bytes_read=read)


if __name__ == "__main__":
    main()

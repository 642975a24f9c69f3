"""What a step of the decoder costs with sparse parts and with dense ones: one sequence, one token, on a CPU.

    python lab/benchmarks/sparse_decode.py --out lab/benchmarks/results/sparse.csv
    python lab/benchmarks/sparse_decode.py --widths 64 --layers 2 --repeats 2 --steps 2 \\
        --rows dense "sparse feed-forward"

Such a step is bound by the weights that it reads. So there are enough layers to make the dense weights several times
the processor's cache, and every row states the bytes that its step reads, and how near it comes to the rate at which
this machine multiplies matrices with a vector. Seconds are those that the processor worked for this program, in turns
of all rows. The memory is short, as in the paper (16 vectors), and so is the vocabulary: the output layer has figures
of its own. Steps are also timed as decoders take them after a while, captured (`nn/decoder/captured.py`), beside dense
steps that are not. The parts of all layers are timed alone as well.

A further row is an entry of ROWS: the fields in which its model differs, given the width, and what it must reach.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from contenders import Timed, finish, parser, ratio
from decode_contenders import MatrixVectors, Outputs, Parts, Reader, Stepper
from figures import Figure

from pyramidions.models import build, preset
from pyramidions.nn import Decoder
from pyramidions.nn.output import OUTPUT

HEAD_DIM, MODULES, TIMES_THE_CACHE = 64, 16, 8
#: sublayers, and what their parts are called
PARTS = {"self_attention": "self-attention", "cross_attention": "cross-attention", "feed_forward": "feed-forward parts"}
OUTPUT_TARGETS = {2: None, 4: 2.5, 8: None}  # by modules


@dataclass(frozen=True)
class Row:
    """A decoder beside the dense one.

    Attributes:
        fields: in which its config differs, given the width.
        targets: how many times as fast as the dense one it must be, by width.
        captured: the same of captured steps beside dense ones that are not.
    """

    fields: Callable[[int], Mapping[str, Any]]
    targets: Mapping[int, float] = field(default_factory=dict)
    captured: Mapping[int, float] = field(default_factory=dict)


def _qkv(width: int) -> dict[str, Any]:
    # So many more hidden units keep the number of weights (Jaszczur et al. 2021, section 3.2).
    more = {"ffn_embed_dim": 6 * width}
    return {"decoder_projections": f"multiplicative_conv(modules={MODULES})", **more}


def _cross(width: int) -> dict[str, Any]:
    return {"cross_projections": f"multiplicative(modules={MODULES})"}


FEED_FORWARD = {"feed_forward": "sparse"}
DENSE = "dense"
ROWS = {
    DENSE: Row(lambda width: {}),
    "sparse feed-forward": Row(
        lambda width: FEED_FORWARD, {512: 1.5, 1024: 1.8, 2048: 2.0}, {512: 1.8, 1024: 1.9, 2048: 1.95}
    ),
    "sparse QKV": Row(_qkv),
    "sparse feed-forward and QKV": Row(
        lambda width: FEED_FORWARD | _qkv(width),
        {512: 1.8, 1024: 3.0, 2048: 3.5},
        {512: 2.7, 1024: 3.2, 2048: 3.5},
    ),
    "+ sparse cross-attention": Row(
        lambda width: FEED_FORWARD | _qkv(width) | _cross(width),
        {512: 2.0, 1024: 4.0, 2048: 5.0},
        {512: 3.9, 1024: 5.0, 2048: 5.9},
    ),
    "experts": Row(lambda width: {"feed_forward": "experts"}),
}


def in_turns(contenders: Mapping[str, Reader], args: argparse.Namespace) -> dict[str, Timed]:
    """Time contenders in turns; the first turn does not count."""
    with torch.inference_mode():
        turns = [{name: one.seconds(args.steps) for name, one in contenders.items()} for _ in range(1 + args.repeats)]
    return {name: Timed([turn[name] for turn in turns[1:]], None) for name in contenders}


def cache_bytes() -> int:
    """Return the size of the processor's largest cache; 0 if nobody says."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 2**10, "M": 2**20}
    return max((int(size[:-1]) * units[size[-1]] for size in sizes), default=0)


def copies_of(weights: int) -> int:
    """Return how many times so many weights are several times the cache."""
    return max(2, math.ceil(TIMES_THE_CACHE * cache_bytes() / (4 * weights)))


def decoder_of(row: Row, width: int, layers: int) -> Decoder:
    """Return a decoder without training."""
    heads = max(1, width // HEAD_DIM)
    shape = {"embed_dim": width, "ffn_embed_dim": 4 * width, "num_heads": heads, "decoder_layers": layers}
    fields = {**shape, "encoder_layers": 1, "normalize_before": True, **row.fields(width)}
    return build(preset("vanilla", **fields), 32).decoder.eval()


def share(name: str, contender: Reader, took: Timed, rate: MatrixVectors, products: Timed) -> Figure:
    """Return the share of the machine's rate that a contender reads its bytes at, in percent."""
    turns = [100 * contender.bytes / rate.bytes * b / a for a, b in zip(took.seconds, products.seconds, strict=True)]
    value = 100 * contender.bytes / rate.bytes * products.median / took.median
    return Figure(name, value, min(turns), max(turns), unit="%")


@dataclass
class Found:
    """What was measured: figures, the turns behind them, and the bytes that contenders read."""

    figures: list[Figure] = field(default_factory=list)
    timed: dict[str, Timed] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)


@torch.no_grad()
def decode(width: int, args: argparse.Namespace, found: Found) -> None:
    """Time decoders of a width."""
    # Of 14 D * D weights: self-attention, queries and output of cross-attention, and the feed-forward part.
    layers = args.layers or copies_of(14 * width**2)
    decoders = {name: decoder_of(ROWS[name], width, layers) for name in args.rows}
    readers: dict[str, Reader] = {}
    for name, decoder in decoders.items():
        readers[f"a step, D {width}, {name}"] = Stepper(decoder, args.memory)
        readers[f"a step, D {width}, {name}, captured"] = stepper = Stepper(decoder, args.memory, captures=True)
        first = f"to capture a step, D {width}, {name}, {layers} layers"
        took = stepper.captured_in
        found.figures.append(Figure(first, statistics.median(took), min(took), max(took), unit=" s"))
        for sublayer, part in PARTS.items():
            readers[f"{part}, D {width}, {name}"] = Parts(decoder, sublayer, args.memory)
    products, rate = MatrixVectors(width, 2 * layers), f"matrices times a vector, D {width}"
    timed = in_turns({**readers, rate: products}, args)
    slow = timed[f"a step, D {width}, {DENSE}"]
    for name in decoders:
        step = f"a step, D {width}, {name}"
        if name != DENSE:
            target = ROWS[name].targets.get(width)
            found.figures.append(ratio(f"a step, D {width}, {DENSE} / {name}", slow, timed[step], target))
        captured = f"{name}, captured"
        title = f"a step, D {width}, {DENSE} / {captured}"
        found.figures.append(
            ratio(title, slow, timed[f"a step, D {width}, {captured}"], ROWS[name].captured.get(width))
        )
        found.figures.append(share(f"{step}: share of the rate", readers[step], timed[step], products, timed[rate]))
    speed = products.bytes / timed[rate].median / 1e9
    print(f"{rate}: {speed:.1f} GB/s; {layers} layers, the largest cache has {cache_bytes() / 1e6:.0f} MB")
    found.timed |= timed
    found.read |= {name: one.bytes for name, one in {**readers, rate: products}.items()}


@torch.no_grad()
def outputs(args: argparse.Namespace, found: Found) -> None:
    """Time output layers alone."""
    width, vocab_size = args.output_width, args.vocab_size
    count, sizes = args.layers or copies_of(vocab_size * width), {"embed_dim": width, "vocab_size": vocab_size}
    named: dict[str, tuple[str, dict[str, Any]]] = {DENSE: ("untied", {})} | {
        f"{each} modules": ("multiplicative", {"modules": each}) for each in OUTPUT_TARGETS
    }
    readers: dict[str, Reader] = {
        name: Outputs([OUTPUT.build(kind, options, **sizes) for _ in range(count)], width)
        for name, (kind, options) in named.items()
    }
    products, rate, title = MatrixVectors(width, 2 * count), "matrices times a vector", f"output layer, D {width}"
    timed = in_turns({**readers, rate: products}, args)
    for name, target in zip(readers, (None, *OUTPUT_TARGETS.values()), strict=True):
        if name != DENSE:
            figure = ratio(f"{title}, V {vocab_size}, {DENSE} / {name}", timed[DENSE], timed[name], target)
            found.figures.append(figure)
        shared = f"{title}, {name}: share of the rate"
        found.figures.append(share(shared, readers[name], timed[name], products, timed[rate]))
    found.timed |= {f"{title}, {name}": took for name, took in timed.items()}
    found.read |= {f"{title}, {name}": one.bytes for name, one in {**readers, rate: products}.items()}


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "sparse-decode", devices=False)
    made.add_argument("--widths", type=int, nargs="+", default=[512, 1024, 2048], help="(default: 512 1024 2048)")
    made.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help=f"of them {DENSE} first")
    made.add_argument(
        "--layers", type=int, help="of decoders, and output layers (default: dense weights of eight caches)"
    )
    made.add_argument("--memory", type=int, default=16, help="vectors (default: 16)")
    made.add_argument("--steps", type=int, default=12, help="of a turn (default: 12)")
    made.add_argument("--output-width", type=int, default=1024, help="D of output layers (default: 1024)")
    made.add_argument("--vocab-size", type=int, default=32768, help="V of output layers (default: 32768)")
    args = made.parse_args()
    if args.rows[0] != DENSE:
        made.error(f"--rows must begin with {DENSE}, but begins with {args.rows[0]}.")
    torch.manual_seed(args.seed)
    found = Found()
    outputs(args, found)
    for width in args.widths:
        decode(width, args, found)
    finish(args, found.figures, found.timed, bytes_read=found.read)


if __name__ == "__main__":
    main()

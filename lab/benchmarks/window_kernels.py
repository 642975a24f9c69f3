"""How fast a window of attention is on its own: against FlexAttention, and torch's fused attention with and without it.

    python lab/benchmarks/window_kernels.py --out lab/benchmarks/results/window-kernels-cuda.json

Queries, keys and values of one document without padding, 12 heads of 64; forward and backward, and the outputs side by
side. It takes a GPU: FlexAttention has no gradients on a CPU. It has no dropout either, so nothing is dropped. It is
compiled first, which does not count. The fused attention gets the window as a matrix of all pairs; without a window it
is what `full` computes.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from side_by_side import DTYPES, Figure, finish, parser, ratio, take_turns
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from lab.timing import Timed
from pyramidions.nn.attention import SlidingWindowAttention

HEADS, HEAD_DIM = 12, 64
OURS, FLEX, MASKED, EVERYTHING = "sliding_window", "FlexAttention", "SDPA with a mask", "SDPA of all pairs"
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def contenders(length: int, args: argparse.Namespace) -> dict[str, Attend]:
    """Return ways to attend, each from (1, H, L, E) three times."""
    side = args.window // 2

    def near(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() <= side

    blocks = create_block_mask(near, None, None, length, length, device=args.device)
    places = torch.arange(length, device=args.device)
    window = (places[:, None] - places).abs() <= side
    return {
        OURS: SlidingWindowAttention(args.window),
        FLEX: partial(torch.compile(flex_attention, dynamic=False), block_mask=blocks),
        MASKED: partial(F.scaled_dot_product_attention, attn_mask=window),
        EVERYTHING: F.scaled_dot_product_attention,
    }


def compare(length: int, args: argparse.Namespace) -> tuple[list[Figure], dict[str, Timed]]:
    """Time all ways at a length."""
    torch.manual_seed(args.seed)
    shape, device, dtype = (1, HEADS, length, HEAD_DIM), args.device, DTYPES[args.dtype]
    inputs = [torch.randn(shape, device=device, dtype=dtype).requires_grad_() for _ in range(3)]
    of_out, outputs = torch.randn(shape, device=device, dtype=dtype), {}

    def step(attend: Attend) -> Tensor:
        out = attend(*inputs)
        out.backward(of_out)
        for x in inputs:
            x.grad = None
        return out.detach().float()

    ways = contenders(length, args)
    for name, attend in ways.items():
        outputs[name] = step(attend)
    timed = take_turns({name: partial(step, way) for name, way in ways.items()}, args.repeats, 3, device)
    figures = [ratio(f"{length:,} tokens, {name} / {OURS}", timed[name], timed[OURS]) for name in ways if name != OURS]
    for name in (FLEX, MASKED):
        apart = (outputs[name] - outputs[OURS]).norm().div(outputs[OURS].norm()).item()
        figures.append(Figure(f"{length:,} tokens, {name}: distance of outputs", apart, apart, apart, unit=""))
    return figures, {f"{name}, {length:,} tokens": found for name, found in timed.items()}


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "window-kernels", repeats=20, devices=False)
    made.set_defaults(device="cuda")
    made.add_argument("--lengths", type=int, nargs="+", default=[8192, 16384], help="tokens (default: 8192 16384)")
    made.add_argument("--window", type=int, default=512, help="positions on both sides together (default: 512)")
    made.add_argument("--dtype", choices=DTYPES, default="bf16", help="(default: bf16)")
    args = made.parse_args()
    figures: list[Figure] = []
    timed: dict[str, Timed] = {}
    for length in args.lengths:
        found, took = compare(length, args)
        figures += found
        timed |= took
    finish(args, figures, timed)


if __name__ == "__main__":
    main()

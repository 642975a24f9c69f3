"""How long a training step takes: against blockwise attention, LED, fairseq's Transformer, and the machine itself.

    python benchmarks/train_step.py --out benchmarks/results/train-step-cpu.json
    python benchmarks/train_step.py --dropout 0 --compile
    python benchmarks/train_step.py --device cuda --dtype bf16 --batch 8
    python benchmarks/train_step.py --tiny --source 64 --target 8 --vocab-size 100 --repeats 2

One document of 8,192 tokens and 256 tokens of its summary, 32,768 pieces; forward, cross entropy, backward. The same
probability of dropout everywhere: of sublayer outputs, of activations, and of attention weights. Of a model's
multiplications, forward and twice as many backward, the time gives a rate, which is compared with that of plain matrix
products in the same run. At the end a profile of deep_pyramidion names the operations that its time goes to.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from rivals import fairseq_task, fairseq_transformer, led
from side_by_side import EOS, PAD, Figure, MatrixProducts, finish, parser, ratio, share, take_turns, texts
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from pyramidions.measure import Lengths, multiplications
from pyramidions.models import PyramidionConfig, build, preset

OURS = ("deep_pyramidion", "deep_blockwise", "vanilla", "blockwise")
LED, FAIRSEQ, PRODUCTS = "LED", "fairseq's transformer", "matrix products"
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
TINY = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2}


@dataclass
class Step:
    """Forward and backward of one model.

    Attributes:
        model: in training mode.
        predict: from documents (B, L) and shifted summaries (B, T) to logits (B, T, V).
        source: (B, L).
        target: (B, T).
        dtype: of what autocast computes; float32 is without.
    """

    model: nn.Module
    predict: Callable[[Tensor, Tensor], Tensor]
    source: Tensor
    target: Tensor
    dtype: torch.dtype

    def __call__(self) -> None:
        """Take a step, gradients of the one before dropped."""
        self.model.zero_grad()
        with torch.autocast(self.source.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            logits = self.predict(self.source, F.pad(self.target[:, :-1], (1, 0), value=EOS))
        F.cross_entropy(logits.flatten(0, 1).float(), self.target.flatten()).backward()


class Bench:
    """Builds the contenders.

    Args:
        args: what the user said.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.source = texts(args.batch, args.source, args.vocab_size, args.device, args.seed)
        self.target = texts(args.batch, args.target, args.vocab_size, args.device, args.seed + 1)
        self.left_out: dict[str, str] = {}
        self.steps: dict[str, Step] = {}
        for name in OURS:
            torch.manual_seed(args.seed)
            model = build(self.config(name), args.vocab_size, PAD)
            self._add(name, model, model)
        if args.compile:
            model = build(self.config("deep_pyramidion"), args.vocab_size, PAD)
            self._add("deep_pyramidion, compiled", model, torch.compile(model))
        for name, builder in ((LED, self._led), (FAIRSEQ, self._fairseq)):
            try:
                self._add(name, *builder())
            except ImportError as error:
                self.left_out[name] = str(error)
                print(f"left out: {name}. {error}", file=sys.stderr)

    def config(self, name: str) -> PyramidionConfig:
        """Return a preset with the dropout that was asked for, shrunk where asked to."""
        probability = self.args.dropout
        same = {"dropout": probability, "attention_dropout": probability, "activation_dropout": probability}
        return preset(name, **same, **(TINY if self.args.tiny else {}))

    def _add(self, name: str, model: nn.Module, predict: Callable[[Tensor, Tensor], Tensor]) -> None:
        model.to(self.args.device).train()
        self.steps[name] = Step(model, predict, self.source, self.target, DTYPES[self.args.dtype])

    def _led(self) -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
        probability, args = self.args.dropout, self.args
        shape = self.config("deep_blockwise"), 16 if args.tiny else 512
        model = led(args.vocab_size, probability, probability, args.source, args.target, *shape)
        return model, lambda source, prefix: model(input_ids=source, decoder_input_ids=prefix).logits

    def _fairseq(self) -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
        args = self.args
        task = fairseq_task(args.vocab_size, args.source, args.target)
        model = fairseq_transformer(self.config("vanilla"), task)
        lengths = torch.full((args.batch,), args.source, device=args.device)
        return model, lambda source, prefix: model(source, lengths, prefix)[0]

    def multiplications(self, name: str) -> int:
        """Return those of a step."""
        args = self.args
        lengths = Lengths(args.source, args.target, args.batch, args.vocab_size)
        return 3 * multiplications(self.config(name), lengths).total()


def profiled(step: Step, rows: int = 12) -> list[tuple[str, float]]:
    """Return the operations that most of a step's time goes to, with their shares in percent."""
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if step.source.is_cuda else [])]
    with profile(activities=kinds) as watched:
        step()
    own = "self_device_time_total" if step.source.is_cuda else "self_cpu_time_total"
    spent = {event.key: float(getattr(event, own)) for event in watched.key_averages()}
    whole = sum(spent.values())
    ranked = sorted(spent.items(), key=lambda item: -item[1])
    return [(name, 100 * time / whole) for name, time in ranked[:rows]]


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "train-step")
    made.add_argument("--batch", type=int, default=1, help="documents (default: 1)")
    made.add_argument("--source", type=int, default=8192, help="tokens of each (default: 8192)")
    made.add_argument("--target", type=int, default=256, help="tokens of each summary (default: 256)")
    made.add_argument("--vocab-size", type=int, default=32768)
    made.add_argument("--dropout", type=float, default=0.1, help="everywhere (default: 0.1)")
    made.add_argument("--dtype", choices=DTYPES, default="fp32", help="bf16 is autocast (default: fp32)")
    made.add_argument("--compile", action="store_true", help="also deep_pyramidion under torch.compile")
    made.add_argument("--tiny", action="store_true", help="models 16 wide, to try the program")
    return made.parse_args()


def main() -> None:
    """Run the benchmark."""
    args = arguments()
    bench = Bench(args)
    products = MatrixProducts(args.device, DTYPES[args.dtype])
    timed = take_turns({PRODUCTS: products, **bench.steps}, args.repeats, device=args.device)
    pooled, blockwise = timed["deep_pyramidion"], timed["deep_blockwise"]
    figures = [ratio("deep_blockwise / deep_pyramidion", blockwise, pooled, 2.5)]
    if LED in timed:
        figures.append(ratio("LED / deep_pyramidion", timed[LED], pooled, 6.0))
    if FAIRSEQ in timed:
        figures += [ratio(f"{FAIRSEQ} / our {name}", timed[FAIRSEQ], timed[name], 1.0) for name in OURS[2:]]
    if args.compile:
        figures.append(ratio("deep_pyramidion, as it is / compiled", pooled, timed["deep_pyramidion, compiled"]))
    for name in OURS:
        least = {"deep_pyramidion": 80.0, "deep_blockwise": 70.0}.get(name)
        count = bench.multiplications(name)
        figures.append(share(f"{name}, share of the matrix rate", timed[name], count, products, timed[PRODUCTS], least))
    figures.append(_rate(products, timed[PRODUCTS]))
    spent = profiled(bench.steps["deep_pyramidion"])
    print(table(bench, timed))
    print("deep_pyramidion spends its time on:", ", ".join(f"{name} {part:.1f}%" for name, part in spent))
    finish(args, figures, timed, profile=dict(spent), left_out=bench.left_out, dropout=args.dropout)


def _rate(products: MatrixProducts, took: Any) -> Figure:
    rates = [products.multiplications / seconds / 1e9 for seconds in took.seconds]
    middle = products.multiplications / took.median / 1e9
    return Figure("matrix products, 10^9 multiplications a second", middle, min(rates), max(rates), unit="")


def table(bench: Bench, timed: dict[str, Any]) -> str:
    """Return medians in seconds, and peaks of memory where they are known."""
    lines = ["| | median, s | fastest, s | slowest, s |", "|---|---|---|---|"]
    for name in bench.steps:
        seconds = timed[name].seconds
        lines.append(f"| {name} | {timed[name].median:.2f} | {min(seconds):.2f} | {max(seconds):.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""How long a training step takes: against blockwise attention, LED, fairseq's Transformer, and the machine itself.

    python lab/benchmarks/train_step.py --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/train_step.py --dropout 0
    python lab/benchmarks/train_step.py --device cuda --dtype bf16 --batch 8
    python lab/benchmarks/train_step.py --only lecture
    python lab/benchmarks/train_step.py --tiny --source 64 --target 8 --vocab-size 100 --repeats 2

One document of 8,192 tokens and 256 tokens of its summary, 32,768 pieces; forward, cross entropy, backward. The same
probability of dropout everywhere: of sublayer outputs, of activations, and of attention weights. LED comes twice, with
8 heads as ours have, and with 12 as the released one of this width has. Of a model's multiplications, forward and twice
as many backward, the time gives a rate, which is compared with that of plain matrix products in the same run.

pointer, where the output also copies, and lecture run only where they are asked for. lecture has the presets of others'
systems at BART's base size, beside ours that also reads the unpooled vectors (look_back). A sentence starts at every
32nd token.
"""

import argparse
import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import torch
import torch.nn.functional as F
from contenders import (
    DTYPES,
    EOS,
    FIRST,
    PAD,
    TINY,
    MatrixProducts,
    Timed,
    add_sizes,
    finish,
    parser,
    ratio,
    share,
    take_turns,
    texts,
)
from figures import Entry, figure, markdown
from rivals import fairseq_task, fairseq_transformer, led
from torch import Tensor, nn

from pyramidions.models import PRESETS, PyramidionConfig, build, preset
from pyramidions.runs.measure import Lengths, cost_of, shrink

LED, LED_12 = "LED", "LED with 12 heads"
FAIRSEQ, PRODUCTS = "fairseq's transformer", "matrix products"
POINTING = "deep_pyramidion, pointing"
#: Those that take turns; one group is freed before the next is built.
GROUPS = {
    "deep": ("deep_pyramidion", "deep_blockwise", LED, LED_12),
    "shallow": ("vanilla", "blockwise", FAIRSEQ),
    "pointer": ("deep_pyramidion", POINTING),
    "lecture": (
        *("led", "led_pyramidion", "bigbird", "stride", "linformer", "sinkhorn", "lsh_window", "lsh_hepos"),
        *("sinkhorn_hepos", "reformer", "hat", "hmnet", "look_back"),
    ),
}
MARKER, SENTENCE = FIRST, 32
Predict = Callable[[Tensor, Tensor], Tensor]


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
    predict: Predict
    source: Tensor
    target: Tensor
    dtype: torch.dtype

    def __call__(self) -> None:
        """Compute gradients, and drop them: the others need the memory."""
        with torch.autocast(self.source.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            logits = self.predict(self.source, F.pad(self.target[:, :-1], (1, 0), value=EOS))
        F.cross_entropy(logits.flatten(0, 1).float(), self.target.flatten()).backward()
        self.model.zero_grad()


class Bench:
    """Builds contenders."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.source = texts(args.batch, args.source, args.vocab_size, args.device, args.seed)
        self.source[:, :-1:SENTENCE] = MARKER
        self.target = texts(args.batch, args.target, args.vocab_size, args.device, args.seed + 1)

    def steps(self, names: Iterable[str]) -> dict[str, Step]:
        """Return a training step of each model, but for those whose package is missing."""
        found = {}
        for name in names:
            torch.manual_seed(self.args.seed)
            try:
                model, predict = {
                    LED: self._led,
                    LED_12: partial(self._led, 4 if self.args.tiny else 12),
                    FAIRSEQ: self._fairseq,
                }.get(name, partial(self._ours, name))()
            except ImportError as error:
                print(f"left out: {name}. {error}", flush=True)
                continue
            model.to(self.args.device).train()
            found[name] = Step(model, predict, self.source, self.target, DTYPES[self.args.dtype])
        return found

    def config(self, name: str) -> PyramidionConfig:
        """Return a preset with the dropout that was asked for, shrunk where asked to."""
        probability = self.args.dropout
        same = {"dropout": probability, "attention_dropout": probability, "activation_dropout": probability}
        if self.args.tiny and name in GROUPS["lecture"]:
            return replace(shrink(preset(name), Lengths())[0], **same)
        return preset(name, **same, **(TINY if self.args.tiny else {}))

    def _ours(self, name: str) -> tuple[nn.Module, Predict]:
        config = self.config("deep_pyramidion" if name == POINTING else name)
        config = replace(config, output="pointer") if name == POINTING else config
        model = build(config, self.args.vocab_size, PAD, MARKER)
        return model, model

    def _led(self, num_heads: int | None = None) -> tuple[nn.Module, Predict]:
        probability, args = self.args.dropout, self.args
        config = self.config("deep_blockwise")
        config = replace(config, num_heads=num_heads or config.num_heads)
        model = led(config, args.vocab_size, probability, args.source, args.target, 16 if args.tiny else 512)
        return model, lambda source, prefix: model(input_ids=source, decoder_input_ids=prefix).logits

    def _fairseq(self) -> tuple[nn.Module, Predict]:
        args = self.args
        task = fairseq_task(args.vocab_size, args.source, args.target)
        model = fairseq_transformer(self.config("vanilla"), task)
        lengths = torch.full((args.batch,), args.source, device=args.device)
        return model, lambda source, prefix: model(source, lengths, prefix)[0]

    def multiplications(self, name: str) -> int:
        """Return those of a step."""
        args = self.args
        lengths = Lengths(args.source, args.target, args.batch, args.vocab_size)
        return 3 * cost_of(self.config(name), lengths).total()


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "train-step")
    add_sizes(made)
    made.add_argument("--target", type=int, default=256, help="tokens of each summary (default: 256)")
    made.add_argument("--dropout", type=float, default=0.1, help="everywhere (default: 0.1)")
    made.add_argument("--dtype", choices=DTYPES, default="fp32", help="bf16 is autocast (default: fp32)")
    made.add_argument(
        "--only", nargs="+", choices=GROUPS, default=["deep", "shallow"], metavar="GROUP", help=", ".join(GROUPS)
    )
    return made.parse_args()


def main() -> None:
    """Run the benchmark."""
    args = arguments()
    bench = Bench(args)
    products = MatrixProducts(args.device, DTYPES[args.dtype], 1e9 if args.tiny else None)
    timed: dict[str, Timed] = {}
    figures: list[Entry] = []
    for group in args.only:
        steps = bench.steps(GROUPS[group])
        took = take_turns({PRODUCTS: products, **steps}, args.repeats, device=args.device)
        figures += judged(bench, took, products, group)
        timed |= {f"{PRODUCTS}, {group}" if name == PRODUCTS else name: found for name, found in took.items()}
        del steps
        gc.collect()
    heads = ("", "median, s", "fastest, s", "slowest, s")
    numbers = {name: (found.median, min(found.seconds), max(found.seconds)) for name, found in timed.items()}
    rows = [(name, *(f"{number:.2f}" for number in of)) for name, of in numbers.items()]
    print(markdown(pd.DataFrame(rows, columns=heads)))
    finish(args, figures, timed)


def judged(bench: Bench, timed: dict[str, Timed], products: MatrixProducts, group: str) -> Iterator[Entry]:
    """Yield what came out of one group beside its target."""
    for slow, fast, least in (
        ("deep_blockwise", "deep_pyramidion", 2.5),
        (LED, "deep_pyramidion", 6.0),
        (LED_12, "deep_pyramidion", 6.0),
        # A pointer may cost 5%.
        ("deep_pyramidion", POINTING, 0.952),
        (FAIRSEQ, "vanilla", 1.0),
        (FAIRSEQ, "blockwise", 1.0),
    ):
        if slow in timed and fast in timed:
            yield ratio(f"{slow} / {'our ' if slow == FAIRSEQ else ''}{fast}", timed[slow], timed[fast], least)
    if group == "lecture":
        yield from (ratio(f"led / {name}", timed["led"], timed[name]) for name in GROUPS[group] if name != "led")
    shares = {"deep_pyramidion": 80.0, "deep_blockwise": 70.0}
    for name, least in ((name, shares.get(name)) for name in GROUPS[group]):
        if name in timed and name in PRESETS:
            count = bench.multiplications(name)
            yield share(f"{name}, share of the matrix rate", timed[name], count, products, timed[PRODUCTS], least)
    took = timed[PRODUCTS]
    rates = [products.multiplications / seconds / 1e9 for seconds in took.seconds]
    middle = products.multiplications / took.median / 1e9
    yield figure(f"matrix products beside {group}, 10^9 multiplications a second", middle, rates, unit="")


if __name__ == "__main__":
    main()

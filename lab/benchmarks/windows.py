"""How fast windowed attention is: against the LED of transformers with the very same weights, and by length.

    python lab/benchmarks/windows.py --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/windows.py --only step --device cuda
    python lab/benchmarks/windows.py --only length --kind lsh
    python lab/benchmarks/windows.py --tiny --source 64 --target 8 --lengths 64 128 --repeats 2

LED has random weights in the shape of the released base model: 6+6 layers, 768 wide, 12 heads, 50,265 pieces; windows
of --window positions in all, and a first token that is global. `pyramidions import` gives them to `led`, and to
`led_pyramidion`, which pools.

step
    Outputs side by side; then forward, cross entropy and backward of one document of --source tokens and --target of
    its summary, with the same dropout everywhere.
memory
    The peak of such a step beyond what the process held before it, each in a process of its own.
summary
    A document of --source tokens to a summary of --target, by beam search under transformers' `generate` and under
    ours, with the same settings. The end cannot come before, and a table of positions is changed so that it comes then:
    the two searches differ in what they do at a limit.
length
    The encoder's self-attention alone, projections included, forward and backward, by length; with --kind another kind
    in place of windows, with the options that it has by default. Linear would be the seconds at the least length times
    the ratio of the lengths.
"""

import argparse
import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from contenders import (
    DTYPES,
    EOS,
    MatrixProducts,
    Timed,
    finish,
    parser,
    peak,
    peak_of_process,
    ratio,
    share,
    take_turns,
    texts,
)
from figures import Figure, plain
from rivals import led
from torch import Tensor

from pyramidions.models import PyramidionConfig, preset
from pyramidions.models.config import MAX_TARGET_POSITIONS
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.attention import ATTENTION, Feature, SelfAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.structure import StructureOf
from pyramidions.nn.sublayer import LayerContext
from pyramidions.pretrained.families import shape_of
from pyramidions.pretrained.reading import pretrained_weights
from pyramidions.pretrained.source import Source
from pyramidions.pretrained.transfer import transferred
from pyramidions.runs.measure import Lengths, cost_of

GROUPS = ("step", "memory", "summary", "length")
THEIRS, OURS, POOLED = "LED of transformers", "led", "led_pyramidion"
PRODUCTS = "matrix products"
MODELS = (THEIRS, OURS, POOLED)
TINY = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 4}
BASE = {"embed_dim": 768, "ffn_embed_dim": 3072, "num_heads": 12}
LINEAR = 1 / 1.15  # within 15% of it
KINDS = tuple(kind for kind in ATTENTION.names if Feature.ITSELF in ATTENTION[kind].supports)
WINDOWS = "sliding_window"


@dataclass
class Bench:
    """What the arguments say, and the models."""

    args: argparse.Namespace

    def __post_init__(self) -> None:
        args = self.args
        self.source = texts(1, args.source, args.vocab_size, args.device, args.seed)
        self.target = texts(1, args.target, args.vocab_size, args.device, args.seed + 1)
        self.first = torch.zeros_like(self.source).index_fill_(1, self.source.new_tensor([0]), 1)

    def theirs(self, dropout: float) -> Any:
        """Return the LED of transformers."""
        args = self.args
        torch.manual_seed(args.seed)
        size = PyramidionConfig(**(TINY if args.tiny else BASE), encoder_layers=6, decoder_layers=6)
        model = led(
            args.vocab_size,
            dropout,
            dropout,
            args.source,
            max(args.target + 2, MAX_TARGET_POSITIONS),
            size,
            args.window,
        )
        return model.to(args.device)

    def ours(self, theirs: Any, *, pooled: bool = False) -> Transformer:
        """Return our model with the weights of theirs."""
        source, args = as_read(theirs), self.args
        shape = shape_of(source)
        known = pretrained_weights(source, shape, torch.arange(args.vocab_size))
        config = replace(shape.config, **self.pooling()) if pooled else shape.config
        return transferred(known, config, shape.max_target_positions)[0].to(args.device)

    def multiplications(self, theirs: Any) -> int:
        """Return those of a training step of our model."""
        lengths = Lengths(self.args.source, self.args.target, 1, self.args.vocab_size)
        return 3 * cost_of(shape_of(as_read(theirs)).config, lengths).total()

    def pooling(self) -> dict[str, str]:
        """Return what led_pyramidion has beside led."""
        lengths = preset(POOLED).pooling_lengths
        if self.args.tiny:
            lengths = f"None,None,{self.args.source // 4},{self.args.source // 16},None,None"
        return {"pooling_lengths": lengths}

    def step(self, name: str, model: Any) -> Callable[[], None]:
        """Return a training step."""
        model.train()
        prefix = F.pad(self.target[:, :-1], (1, 0), value=EOS)

        def run() -> None:
            low = self.args.dtype == "bf16"
            with torch.autocast(self.args.device, torch.bfloat16, enabled=low):
                logits = self.logits(name, model, prefix)
            F.cross_entropy(logits.flatten(0, 1).float(), self.target.flatten()).backward()
            model.zero_grad()

        return run

    def logits(self, name: str, model: Any, prefix: Tensor) -> Tensor:
        """Return what a model says after each token of ``prefix`` (B, T): (B, T, V)."""
        if name != THEIRS:
            return model(self.source, prefix)  # type: ignore[no-any-return]
        made = model(input_ids=self.source, decoder_input_ids=prefix, global_attention_mask=self.first)
        return made.logits  # type: ignore[no-any-return]


def as_read(theirs: Any) -> Source:
    """Return the LED of transformers as `pyramidions import` reads it from a folder."""
    settings = theirs.config.to_dict()
    weights = {name: value.cpu() for name, value in theirs.state_dict().items()}
    generation = settings | theirs.generation_config.to_dict()
    return Source(Path(THEIRS), THEIRS, None, settings, generation, weights, None)


def compare_steps(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Compare outputs, then time a training step."""
    theirs = bench.theirs(bench.args.dropout)
    models = {THEIRS: theirs, OURS: bench.ours(theirs), POOLED: bench.ours(theirs, pooled=True)}
    with torch.inference_mode():
        same = [bench.logits(name, models[name].eval(), bench.target) for name in (THEIRS, OURS)]
    apart = float((same[0] - same[1]).abs().max())
    del same
    products = MatrixProducts(bench.args.device, DTYPES[bench.args.dtype])
    works: dict[str, Callable[[], object]] = {f"a step, {name}": bench.step(name, m) for name, m in models.items()}
    timed = take_turns({**works, PRODUCTS: products}, bench.args.repeats, 1, bench.args.device)
    steps = [timed[f"a step, {name}"] for name in MODELS]
    multiplications = bench.multiplications(theirs)
    return [
        plain("1e-5 over the largest difference of outputs", 1e-5 / max(apart, 1e-12), 1.0),
        ratio(f"a step, {THEIRS} / {OURS}", steps[0], steps[1], 2.2),
        ratio(f"a step, {OURS} / {POOLED}", steps[1], steps[2], 1.8),
        share(
            f"a step, {OURS}, share of the matrix rate", steps[1], multiplications, products, timed["matrix products"]
        ),
    ], timed


def compare_memory(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Compare the peaks of a training step."""
    peaks = {}
    for name in MODELS:
        peaks[name] = megabytes = peak_of_process(["--peak", name, *sizes(bench.args)])
        print(f"peak of a step, {name}: {megabytes:.0f} MB" if megabytes else f"{name}: out of memory", flush=True)
    if None in peaks.values():
        return [], {}
    found = {name: float(megabytes or 0) for name, megabytes in peaks.items()}
    figures = [plain(f"peak of a step, {name}", megabytes, None, " MB") for name, megabytes in found.items()]
    figures.append(plain(f"peak of a step, {THEIRS} / {OURS}", found[THEIRS] / found[OURS], 2.0))
    return [*figures, plain(f"peak of a step, {OURS} / {POOLED}", found[OURS] / found[POOLED])], {}


def sizes(args: argparse.Namespace) -> list[object]:
    """Return the arguments that a process of its own needs."""
    named = ("source", "target", "vocab_size", "window", "dropout", "seed", "device", "dtype", "kind")
    given = [word for name in named for word in (f"--{name.replace('_', '-')}", getattr(args, name))]
    return [*given, *(["--tiny"] if args.tiny else [])]


def peak_of_one(bench: Bench) -> float:
    """Return the peak of what --peak names, in this process."""
    name = bench.args.peak
    if name == "length":
        return peak(attention_at(bench.args.source, bench.args), bench.args.device)
    theirs = bench.theirs(bench.args.dropout)
    model = theirs if name == THEIRS else bench.ours(theirs, pooled=name == POOLED)
    del theirs  # its weights are freed, unless it is measured
    gc.collect()
    return peak(bench.step(name, model), bench.args.device)


def compare_summaries(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Time a summary; compare the tokens."""
    args = bench.args
    theirs = bench.theirs(0.0).eval()
    with torch.no_grad():
        # Where the end is due, its own embedding says so.
        end = theirs.get_input_embeddings().weight[EOS]
        theirs.led.decoder.embed_positions.weight[args.target - 1] = 100 * end / end.norm()
    models = {OURS: bench.ours(theirs), POOLED: bench.ours(theirs, pooled=True)}
    written: dict[str, Tensor] = {}

    def generate() -> None:
        # Its lengths count the first input of the decoder.
        written[THEIRS] = theirs.generate(
            input_ids=bench.source,
            global_attention_mask=bench.first,
            num_beams=args.beam,
            min_length=args.target,
            max_length=args.target + 2,
            early_stopping=True,
        )[0, 1:]

    search = BeamSearch(args.beam, args.target - 1, args.target, eos=EOS, best=1)

    def write(name: str) -> None:
        written[name] = search(models[name].eval(), bench.source)[0][0].tokens

    works: dict[str, Callable[[], object]] = {THEIRS: generate, **{name: partial(write, name) for name in models}}
    with torch.inference_mode():
        # Hundreds of steps: the first few are all that a warm-up would be for.
        timed = take_turns(works, args.repeats, 0, args.device)
    same = [*written[THEIRS].tolist()] == [*written[OURS].tolist()]
    print(f"tokens of the summary: {len(written[THEIRS])} by {THEIRS}, {len(written[OURS])} by {OURS}")
    timed = {f"a summary, {name}": found for name, found in timed.items()}
    summaries = [timed[f"a summary, {name}"] for name in MODELS]
    return [
        plain("summaries with the same tokens", 100.0 * same, 100.0, "%"),
        ratio(f"a summary, {THEIRS} / {OURS}", summaries[0], summaries[1], 6.0),
        ratio(f"a summary, {THEIRS} / {POOLED}", summaries[0], summaries[2]),
    ], timed


def attention_at(length: int, args: argparse.Namespace) -> Callable[[], None]:
    """Return a turn of self-attention on a text of ``length``, forward and backward."""
    torch.manual_seed(args.seed)
    size = TINY if args.tiny else BASE
    width, heads = size["embed_dim"], size["num_heads"]
    options = {"window": args.window} if args.kind == WINDOWS else {}
    shape = {"num_heads": heads, "head_dim": width // heads, "embed_dim": width, "max_length": length}
    kind = ATTENTION.build(args.kind, options, dropout=args.dropout, **shape)
    attention = SelfAttention(DenseProjections(width, heads), kind).to(args.device).train()
    x = torch.randn(1, length, width, device=args.device, requires_grad=True)
    tokens = torch.zeros(1, length, dtype=torch.long, device=args.device)
    context = LayerContext(None, marks=StructureOf(global_tokens=1)(tokens, tokens.bool()).marks)

    def run() -> None:
        attention(x, context).sum().backward()
        x.grad = None
        attention.zero_grad()

    return run


def compare_lengths(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Time attention at each length, and take its peaks."""
    args = bench.args
    works = {f"attention at {length}": attention_at(length, args) for length in args.lengths}
    timed = take_turns(works, args.repeats, 1, args.device)
    small = argparse.Namespace(**vars(args))
    peaks = []
    for length in args.lengths:
        small.source = length
        peaks.append(peak_of_process(["--peak", "length", *sizes(small)]))
    figures = []
    least, *longer = args.lengths
    first = timed[f"attention at {least}"]
    for length, megabytes in zip(longer, peaks[1:], strict=True):
        grown, name = length / least, f"from {least} to {length} tokens"
        linear = Timed([seconds * grown for seconds in first.seconds], None)
        figures.append(ratio(f"linear time / time {name}", linear, timed[f"attention at {length}"], LINEAR))
        if megabytes is not None and peaks[0] is not None:
            figures.append(plain(f"linear memory / memory {name}", peaks[0] * grown / megabytes, LINEAR))
    return figures, timed


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "windows", repeats=3)
    made.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    made.add_argument("--source", type=int, default=8192, help="tokens of a document (default: 8192)")
    made.add_argument("--target", type=int, default=256, help="tokens of its summary (default: 256)")
    made.add_argument("--lengths", type=int, nargs="+", default=[2**p for p in range(13, 17)], help="8k to 64k")
    made.add_argument("--kind", choices=KINDS, default=WINDOWS, help="of attention, by length (default: %(default)s)")
    made.add_argument("--window", type=int, help="positions on both sides together (default: 512)")
    made.add_argument("--beam", type=int, default=4, help="hypotheses (default: 4)")
    made.add_argument("--dropout", type=float, default=0.1, help="of a training step, everywhere (default: 0.1)")
    made.add_argument("--dtype", choices=DTYPES, default="fp32", help="of a training step (default: fp32)")
    made.add_argument("--vocab-size", type=int, help="pieces (default: 50265)")
    made.add_argument("--tiny", action="store_true", help="models 16 wide, to try the program")
    made.add_argument("--peak", choices=(*MODELS, "length"), help="print the peak of this one, in this process")
    args = made.parse_args()
    args.window = args.window or (16 if args.tiny else 512)
    args.vocab_size = args.vocab_size or (100 if args.tiny else 50265)
    return args


def main() -> None:
    """Run the benchmark."""
    bench = Bench(args := arguments())
    if args.peak:
        print(peak_of_one(bench))
        return
    figures: list[Figure] = []
    timed: dict[str, Timed] = {}
    compare = {
        "step": compare_steps,
        "memory": compare_memory,
        "summary": compare_summaries,
        "length": compare_lengths,
    }
    for group in GROUPS:
        if group in args.only:
            found, seconds = compare[group](bench)
            figures += found
            timed |= seconds
            gc.collect()
    finish(args, figures, timed)


if __name__ == "__main__":
    main()

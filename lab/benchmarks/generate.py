"""How fast summaries are written: against fairseq's decoder, blockwise attention and LED.

    python lab/benchmarks/generate.py --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/generate.py --only led --device cuda
    python lab/benchmarks/generate.py --tiny --batch 2 --source 64 --steps 3 --after 0 5 --vocab-size 100 --repeats 2

float32; every token is forced (the least is the greatest length). "A step" is the mean over as many steps as --steps
says, after each number of tokens that --after says: those are in the caches before the clock starts, and so are the
memory's keys and values, which are timed apart ("memory"). Copied memory and LED take over a second a step, so that
--slow-steps of them are enough. Two steps before each of these windows are not timed.

What the encoder hands on is drawn at random for the steps; encoders are timed on texts of full length. Seconds of a
whole summary are the encoder's, the memory's, and --tokens times those of a step.

- decoder: our decoder and fairseq's under fairseq's own `SequenceGenerator`, with the same weights and memory.
- blockwise: deep_pyramidion and deep_blockwise under our `BeamSearch`; and deep_blockwise where each hypothesis has its
  own copy of the memory's keys and values, which follows it at each step (they are projected once all the same).
- led: deep_pyramidion under our `BeamSearch`, and LED under its `generate` without global attention.

The decoders take turns first, and are freed; then the models of the other two groups.
"""

import argparse
import gc
import statistics
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pandas as pd
import torch
from contenders import FIRST, Timed, add_sizes, deep_preset, finish, parser, ratio, take_turns, texts
from figures import Entry, figure, markdown
from rival_writers import FairseqPast, FairseqWriter, LedWriter
from rivals import fairseq_task, fairseq_transformer, led, ours_in_fairseq
from torch import Tensor
from writers import CopyingCache, Given, OwnWriter, Past, Writer

from pyramidions.models import PyramidionConfig, build
from pyramidions.models.stages import parse_pooling_lengths
from pyramidions.nn import Transformer

GROUPS = ("decoder", "blockwise", "led")
POOLED, BLOCKWISE, COPIED, LED = "deep_pyramidion", "deep_blockwise", "deep_blockwise, copied memory", "LED"
TARGETS = {BLOCKWISE: 2.5, COPIED: 4.5, LED: 5.0}


class Contender(NamedTuple):
    """What is timed; an encoder that is timed with another contender, or not at all, is None."""

    name: str
    writer: Writer
    encoder: Callable[[Tensor], object] | None = None


class Bench:
    """What the arguments say: sizes and texts; and what has been timed."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.source = texts(args.batch, args.source, args.vocab_size, args.device, args.seed)
        self.timed: dict[str, Timed] = {}
        self.steps: dict[str, int] = {}

    def config(self, name: str) -> PyramidionConfig:
        """Return a preset, shrunk where asked to."""
        return deep_preset(name, self.args.source if self.args.tiny else None)

    def given(self, name: str) -> Given:
        """Return random memory, as many vectors as a model hands on, and what is written."""
        args, config = self.args, self.config(name)
        pooled = parse_pooling_lengths(config.pooling_lengths, config.encoder_layers)
        vectors = min([args.source, *pooled.values()])
        draw = torch.Generator().manual_seed(args.seed)
        written = torch.randint(FIRST, args.vocab_size, (args.batch, max([1, *args.after])), generator=draw)
        memory = torch.randn(args.batch, vectors, config.embed_dim, generator=draw)
        return Given(memory.to(args.device), written.to(args.device), args.beam, tuple(args.after))

    def race(self, contenders: list[Contender]) -> None:
        """Let contenders take turns, and keep what these took."""
        works: dict[str, Callable[[], object]] = {}
        for name, writer, encoder in contenders:
            if encoder is not None:
                encoder(self.source[:1])
                works[f"{name}: encoder"] = partial(encoder, self.source)
            works[f"{name}: memory"] = writer.project
            for n in self.args.after:
                works[f"(ready) {name} after {n}"] = partial(writer.ready, n)
                works[f"{name} after {n}"] = writer.write
            works[f"(done) {name}"] = writer.forget
        timed = take_turns(works, self.args.repeats, 0, self.args.device)
        # Neither what got ready nor what was freed is a result.
        self.timed |= {name: found for name, found in timed.items() if not name.startswith("(")}
        self.steps |= {name: writer.steps for name, writer, _ in contenders}

    def step(self, name: str) -> Timed:
        """Return seconds of a step, the mean over the windows, in each turn."""
        windows = [self.timed[f"{name} after {n}"].seconds for n in self.args.after]
        return Timed([statistics.mean(turn) / self.steps[name] for turn in zip(*windows, strict=True)], None)

    def encoder(self, name: str) -> Timed | None:
        """Return seconds of a model's encoder; None where decoders alone are compared."""
        return self.timed.get(f"{BLOCKWISE if name == COPIED else name}: encoder")

    def whole(self, name: str) -> Timed:
        """Return seconds of whole summaries, in each turn."""
        encoder = self.encoder(name)
        assert encoder is not None
        turns = zip(encoder.seconds, self.timed[f"{name}: memory"].seconds, self.step(name).seconds, strict=True)
        return Timed([read + projected + self.args.tokens * step for read, projected, step in turns], None)

    def table(self) -> str:
        """Return a table of medians, a row for each contender."""
        windows = [f"after {n}, ms a step" for n in self.args.after]
        heads = ["", "encoder, s", "memory, s", *windows, "steps timed", f"{self.args.tokens} tokens, s"]
        lines = []
        for name, steps in self.steps.items():
            encoder = self.encoder(name)
            numbers = [self.timed[f"{name}: memory"].median]
            numbers += [1000 * self.timed[f"{name} after {n}"].median / steps for n in self.args.after]
            ends = [f"{encoder.median:.4g}", f"{self.whole(name).median:.4g}"] if encoder else ["", ""]
            lines.append([name, ends[0], *(f"{number:.4g}" for number in numbers), str(steps), ends[1]])
        return markdown(pd.DataFrame(lines, columns=heads))


def compare_decoders(bench: Bench) -> list[Entry]:
    """Time fairseq's decoder beside ours, with the memory of either model."""
    args, config = bench.args, bench.config(BLOCKWISE)
    try:
        task = fairseq_task(args.vocab_size, args.source)
    except ImportError as error:
        print(f"left out: decoder. {error}", flush=True)
        return []
    words = task.target_dictionary
    theirs = fairseq_transformer(config, task).to(args.device).eval()
    ours = ours_in_fairseq(config, task, theirs.state_dict()).to(args.device).eval()
    contenders: list[Contender] = []
    pairs: list[tuple[str, str, FairseqWriter, FairseqWriter]] = []
    for given in (bench.given(BLOCKWISE), bench.given(POOLED)):
        vectors = given.memory.size(1)
        fast = FairseqWriter(ours, words, given, args.steps, Past(ours.decoder.core, given, args.beam))
        slow = FairseqWriter(theirs, words, given, args.steps, FairseqPast(theirs.decoder, given))
        pairs.append((f"our decoder, memory {vectors}", f"fairseq's decoder, memory {vectors}", fast, slow))
        contenders += [Contender(pairs[-1][0], fast), Contender(pairs[-1][1], slow)]
    bench.race(contenders)
    figures = []
    for our_name, their_name, fast, slow in pairs:
        figures.append(ratio(f"a step, {their_name} / ours", bench.step(their_name), bench.step(our_name), 2.0))
        same = [a == b for n in args.after for a, b in zip(fast.found[n], slow.found[n], strict=True)]
        percent = 100 * statistics.mean(same)
        # Rounding may decide between two hypotheses that score alike; another seed will tell.
        name = f"documents with the same hypotheses, {our_name}"
        figures.append(figure(name, percent, target=100.0, unit="%"))
    return figures


def compare_models(bench: Bench) -> list[Entry]:
    """Time deep_blockwise and LED, where asked to, beside deep_pyramidion, from document to summary."""
    args, given = bench.args, bench.given(BLOCKWISE)

    def ours(name: str, given: Given) -> tuple[Contender, Transformer]:
        model = build(bench.config(name), args.vocab_size).to(args.device).eval()
        writer = OwnWriter(model, given, args.steps, Past(model.decoder, given, args.beam))
        reader = lambda tokens: model.encoder(tokens, torch.zeros_like(tokens, dtype=torch.bool))  # noqa: E731
        return Contender(name, writer, reader), model

    rivals: list[Contender] = []
    if "blockwise" in args.only:
        blockwise, model = ours(BLOCKWISE, given)
        rivals.append(blockwise)
        # A hypothesis is a document of its own: one is the width of each.
        copies = Past(model.decoder, given, 1, CopyingCache)
        rivals.append(Contender(COPIED, OwnWriter(model, given, args.slow_steps, copies)))
    if "led" in args.only:
        lengths = args.source, max(args.after) + max(args.steps, args.slow_steps) + 1
        try:
            model = led(bench.config(BLOCKWISE), args.vocab_size, 0.0, *lengths, 16 if args.tiny else 512)
            reader = model.to(args.device).eval().get_encoder()
            writer = LedWriter(model, given, args.slow_steps)
            rivals.append(Contender(LED, writer, lambda tokens: reader(tokens, torch.ones_like(tokens))))
        except ImportError as error:
            print(f"left out: led. {error}", flush=True)
    if not rivals:
        return []
    pooled, _ = ours(POOLED, bench.given(POOLED))
    bench.race([pooled, *rivals])
    return [
        ratio(f"{args.tokens} tokens, {name} / {POOLED}", bench.whole(name), bench.whole(POOLED), TARGETS[name])
        for name, *_ in rivals
    ]


def arguments() -> argparse.Namespace:
    """Return what the user said."""
    made = parser(__doc__, "generate", repeats=3)
    add_sizes(made, batch=8)
    made.add_argument("--beam", type=int, default=2, help="hypotheses of each (default: 2)")
    made.add_argument("--steps", type=int, default=64, help="timed steps (default: 64)")
    made.add_argument("--slow-steps", type=int, default=8, help="those of copied memory and of LED (default: 8)")
    made.add_argument("--after", type=int, nargs="+", default=[0, 256, 448], help="tokens before them")
    made.add_argument("--tokens", type=int, default=512, help="of a whole summary (default: 512)")
    made.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    return made.parse_args()


@torch.inference_mode()
def main() -> None:
    """Run the benchmark."""
    args = arguments()
    bench = Bench(args)
    figures: list[Entry] = []
    groups = {("decoder",): compare_decoders, ("blockwise", "led"): compare_models}
    for needed_by, compare in groups.items():
        if not set(needed_by).isdisjoint(args.only):
            torch.manual_seed(args.seed)
            figures += compare(bench)
            gc.collect()  # states of the first are gone before the second's are there
    if not figures:
        raise SystemExit("Nothing is left to time.")
    print(bench.table())
    finish(args, figures, bench.timed, steps=bench.steps)


if __name__ == "__main__":
    main()

"""How fast an imported LongT5 or PEGASUS-X is, against that of transformers with the very same weights.

    python lab/benchmarks/imported.py longt5 --out lab/benchmarks/results/longt5-cpu.json
    python lab/benchmarks/imported.py pegasus_x --only step --device cuda
    python lab/benchmarks/imported.py longt5 --tiny --source 64 --target 8 --repeats 2

Random weights in the base shapes of their papers: 12+12 layers, 768 wide, 12 heads. LongT5 has windows of 127 tokens on
either side, and sums of blocks of 16; PEGASUS-X has blocks of 512, and 128 learned vectors.

step
    Outputs side by side; then forward, cross entropy and backward of one document of --source tokens and --target of
    its summary, with the same dropout.
summary
    A document of --source tokens to a summary of --target, by beam search under transformers' `generate` and under
    ours. The end cannot come before; at the limit the two searches differ, so the tokens before it are compared.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rivals import LONG_MODELS
from side_by_side import EOS, Figure, finish, parser, ratio, take_turns, texts
from torch import Tensor
from windows import plain

from lab.timing import Timed
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.pretrained.families import shape_of
from pyramidions.pretrained.reading import pretrained_weights
from pyramidions.pretrained.source import Source
from pyramidions.pretrained.transfer import transferred

GROUPS = ("step", "summary")
THEIRS, OURS = "transformers", "imported"


class Bench:
    """The models, and what they read and write.

    Args:
        args: the arguments.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.source = texts(1, args.source, args.vocab_size, args.device, args.seed)
        self.target = texts(1, args.target, args.vocab_size, args.device, args.seed + 1)
        torch.manual_seed(args.seed)
        self.theirs = LONG_MODELS[args.model](args.vocab_size, args.dropout, tiny=args.tiny).to(args.device)
        self.ours = self._imported().to(args.device)

    def _imported(self) -> Transformer:
        settings = self.theirs.config.to_dict()
        weights = {name: value.cpu() for name, value in self.theirs.state_dict().items()}
        generation = settings | self.theirs.generation_config.to_dict()
        source = Source(Path(THEIRS), THEIRS, None, settings, generation, weights, None)
        shape = shape_of(source)
        known = pretrained_weights(source, shape, torch.arange(self.args.vocab_size))
        # Rows are in their order: ours starts from the id that theirs starts from.
        return transferred(known, shape.config, self.args.target + 2)[0]

    def logits(self, name: str, prefix: Tensor) -> Tensor:
        """Return what a model says after each token of ``prefix`` (B, T): (B, T, V)."""
        if name == OURS:
            return self.ours(self.source, prefix)
        found: Tensor = self.theirs(input_ids=self.source, decoder_input_ids=prefix).logits
        return found

    def step(self, name: str) -> Callable[[], None]:
        """Return a training step."""
        model: Any = (self.ours if name == OURS else self.theirs).train()
        prefix = F.pad(self.target[:, :-1], (1, 0), value=EOS)

        def run() -> None:
            F.cross_entropy(self.logits(name, prefix).flatten(0, 1), self.target.flatten()).backward()
            model.zero_grad()

        return run


def compare_steps(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Compare outputs, then time a training step."""
    bench.theirs.eval(), bench.ours.eval()
    with torch.inference_mode():
        theirs, ours = (bench.logits(name, bench.target) for name in (THEIRS, OURS))
    apart = float((theirs - ours).abs().max() / theirs.abs().max())
    works = {f"a step, {name}": bench.step(name) for name in (THEIRS, OURS)}
    timed = take_turns(works, bench.args.repeats, 1, bench.args.device)
    steps = ratio(f"a step, {THEIRS} / {OURS}", timed[f"a step, {THEIRS}"], timed[f"a step, {OURS}"], 1.5)
    return [plain("1e-5 over the largest relative difference of outputs", 1e-5 / max(apart, 1e-12), 1.0), steps], timed


def compare_summaries(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Time a summary; compare the tokens."""
    args, written = bench.args, {}
    bench.theirs.eval(), bench.ours.eval()
    search = BeamSearch(args.beam, args.target - 1, args.target, eos=EOS, best=1)

    def generate() -> None:
        # Its lengths count the first input of the decoder.
        lengths = {"min_length": args.target, "max_length": args.target + 1}
        written[THEIRS] = bench.theirs.generate(
            input_ids=bench.source, num_beams=args.beam, early_stopping=True, eos_token_id=EOS, **lengths
        )[0, 1:]

    def write() -> None:
        written[OURS] = search(bench.ours, bench.source)[0][0].tokens

    with torch.inference_mode():
        # Hundreds of steps: the first few are all that a warm-up would be for.
        timed = take_turns(
            {f"a summary, {THEIRS}": generate, f"a summary, {OURS}": write}, args.repeats, 0, args.device
        )
    most = args.target - 1
    same = written[THEIRS][:most].tolist() == written[OURS][:most].tolist()
    return [
        plain("summaries with the same tokens", 100.0 * same, 100.0, "%"),
        ratio(f"a summary, {THEIRS} / {OURS}", *timed.values(), 3.0),
    ], timed


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "imported", repeats=3)
    made.add_argument("model", choices=tuple(LONG_MODELS), help="which one")
    made.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    made.add_argument("--source", type=int, default=4096, help="tokens of a document (default: 4096)")
    made.add_argument("--target", type=int, default=128, help="tokens of its summary (default: 128)")
    made.add_argument("--beam", type=int, default=4, help="hypotheses (default: 4)")
    made.add_argument("--dropout", type=float, default=0.1, help="of a training step (default: 0.1)")
    made.add_argument("--vocab-size", type=int, default=32_128, help="pieces (default: 32128)")
    made.add_argument("--tiny", action="store_true", help="models 16 wide, to try the program")
    args = made.parse_args()
    bench = Bench(args)
    figures: list[Figure] = []
    timed: dict[str, Timed] = {}
    for group, compare in (("step", compare_steps), ("summary", compare_summaries)):
        if group in args.only:
            found, seconds = compare(bench)
            figures += found
            timed |= seconds
    finish(args, figures, timed)


if __name__ == "__main__":
    main()

"""What a training step of an hourglass language model takes, beside that of a model that shortens nothing.

    python lab/benchmarks/language_models.py --out lab/benchmarks/results/language-models.csv
    python lab/benchmarks/language_models.py --length 128 --embed-dim 32 --num-heads 2 --layers 1,2,1 --repeats 2

Nawrot et al. 2023, figure 5: one text of 2,048 characters, models 512 wide with 12 layers, 2,8,2 in an hourglass.
Segments of 2 and 4 characters have fixed boundaries, those of 5.7 characters end at spaces. Forward, cross entropy,
backward. Steps are timed in turns, in seconds that the processor worked for this program. Memory is the peak of a step
beyond weights and gradients, each in a process of its own. Dropout is 0.1 throughout, as in the presets.

Printed beside them is what the multiplications of layers say. For a character, a layer makes 12 D^2 of them with
weights and 3 L D in attention to a text of L; a layer that reads segments of S characters makes both for each segment,
in a text of L / S. Memory follows the number of positions, so that of attention does not count.
"""

import argparse

import torch
import torch.nn.functional as F
from contenders import finish, parser, peak, peak_of_process, processor_clock, ratio, take_turns
from figures import figure
from torch import Tensor

from pyramidions.models import build_language_model, language_model_preset
from pyramidions.models.parse import parse_layers
from pyramidions.nn import LanguageModel

VANILLA = "hourglass_vanilla"
#: Preset to characters of a segment, and the most of the vanilla model's time and memory that a step may take.
HOURGLASSES = {
    "hourglass_fixed_2": (2.0, 0.63, 0.70),
    "hourglass_fixed_4": (4.0, 0.48, 0.53),
    "hourglass_whitespace": (5.7, 0.45, 0.48),
}
MODELS = (VANILLA, *HOURGLASSES)
PAD, SPACE, VOCABULARY = 1, 4, 31  # as `pyramidions prepare --characters en` has them


def text(length: int, word: float, seed: int = 1) -> Tensor:
    """Return letters and spaces, a word every so many characters with the space behind it: (1, length)."""
    letters = torch.randint(SPACE + 1, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed))
    words = (torch.arange(length + 1, dtype=torch.float64) / word).floor()
    return letters.where(words.diff() == 0, SPACE)[None]


class Step:
    """A training step of a preset."""

    def __init__(self, name: str, args: argparse.Namespace) -> None:
        shape = {"embed_dim": args.embed_dim, "ffn_embed_dim": 4 * args.embed_dim, "num_heads": args.num_heads}
        torch.manual_seed(args.seed)
        config = language_model_preset(name, **shape, layers=args.layers)
        self.model: LanguageModel = build_language_model(config, VOCABULARY, PAD, SPACE).train()
        self.text = text(args.length + 1, HOURGLASSES["hourglass_whitespace"][0], args.seed)
        for weight in self.model.parameters():
            weight.grad = torch.zeros_like(weight)

    def __call__(self) -> None:
        self._learn(self.text)

    def begin(self) -> None:
        """Load what is loaded at the first use."""
        self._learn(self.text[:, :17])

    def shortening(self) -> float:
        """Return characters over segments, of those that end; 1 without any."""
        with torch.no_grad():
            found = self.model.features(self.text[:, :-1]).segmentations
        return found[0].boundaries.size(1) / int(found[0].closed.sum()) if found else 1.0

    def _learn(self, tokens: Tensor) -> None:
        logits = self.model(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()


def expected(factor: float, args: argparse.Namespace) -> dict[str, float]:
    """Return the shares of the vanilla model's time and memory that the multiplications of layers say."""
    outer, inner, last = parse_layers(args.layers)
    outer += last
    weights, attention = 12 * args.embed_dim, 3 * args.length
    time = outer * (weights + attention) + inner * (weights / factor + attention / factor**2)
    memory = (outer + inner / factor) / (outer + inner)
    return {"time": time / ((outer + inner) * (weights + attention)), "memory": memory}


def peaks(args: argparse.Namespace) -> dict[str, float]:
    """Return the peak of each model's step in 10^6 bytes."""
    names = ("length", "embed_dim", "num_heads", "layers", "seed")
    sizes = [word for name in names for word in ("--" + name.replace("_", "-"), getattr(args, name))]
    found: dict[str, float] = {}
    for name in MODELS:
        size = peak_of_process(["--one", name, *sizes])
        if size is None:
            raise SystemExit(f"Memory does not suffice for a step of {name}; choose a shorter --length.")
        found[name] = size
        print(f"{name}: {size:,.0f} MB", flush=True)
    return found


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "language-models", repeats=3, devices=False)
    made.add_argument("--length", type=int, default=2048, help="characters of the text (default: 2048)")
    made.add_argument("--embed-dim", type=int, default=512, help="(default: 512)")
    made.add_argument("--num-heads", type=int, default=8, help="(default: 8)")
    made.add_argument("--layers", default="2,8,2", help="three numbers (default: 2,8,2)")
    made.add_argument("--one", choices=MODELS, help="print the peak of this one, in this process")
    args = made.parse_args()
    if args.one:
        step = Step(args.one, args)
        step.begin()
        print(peak(step))
        return
    megabytes = peaks(args)
    steps = {name: Step(name, args) for name in MODELS}
    timed = take_turns(steps, args.repeats, watch=processor_clock)
    shortening = {name: step.shortening() for name, step in steps.items()}
    figures, counted = [], {}
    for name, (factor, most_time, most_memory) in HOURGLASSES.items():
        memory = megabytes[VANILLA] / megabytes[name]
        figures.append(figure(f"peak of a step, vanilla / {name}", memory, target=1 / most_memory))
        figures.append(ratio(f"a step, vanilla / {name}", timed[VANILLA], timed[name], 1 / most_time))
        for kind, share in expected(factor, args).items():
            counted[f"{name}, {kind}"] = share
            print(f"{name}: multiplications say {share:.0%} of vanilla's {kind}")
    finish(args, figures, timed, peak_megabytes=megabytes, shortening_factor=shortening, counted=counted)


if __name__ == "__main__":
    main()

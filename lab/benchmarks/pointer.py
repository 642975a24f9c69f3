"""What a pointer costs: a training step and a step of beam search, with it and without; and what pooling saves with it.

    python lab/benchmarks/pointer.py --out lab/benchmarks/results/pointer-cpu.json
    python lab/benchmarks/pointer.py --only decode --device cuda
    python lab/benchmarks/pointer.py --tiny --source 64 --target 8 --tokens 5 --vocab-size 100 --repeats 2

deep_pyramidion and deep_blockwise, each with the tied output and with the pointer; one document of 8,192 tokens and
256 tokens of its summary, dropout 0.1. Decoding reads vectors that are drawn at random, made of random tokens as the
encoder's poolings would have it; every token is forced. Seconds of a step of decoding are those of --tokens tokens over
their number, the projection of the memory included.
"""

import argparse
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from side_by_side import EOS, PAD, Figure, Timed, finish, parser, ratio, take_turns, texts
from torch import Tensor
from writers import forced

from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.nn.sublayer import Memory

NAMES = ("deep_pyramidion", "deep_blockwise")
POINTING = ", pointing"
GROUPS = ("train", "decode")
#: 1 / (1 + the cost that is allowed): 5% of a training step, 8% of a step of decoding.
TRAIN, DECODE, POOLED = 0.952, 0.926, 3.0


class Bench:
    """Builds models and what they read.

    Args:
        args: what the user said.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.source = texts(args.batch, args.source, args.vocab_size, args.device, args.seed)
        self.target = texts(args.batch, args.target, args.vocab_size, args.device, args.seed + 1)

    def model(self, name: str, output: str) -> Transformer:
        """Return a preset with an output layer, shrunk where asked to."""
        args, small = self.args, {}
        if args.tiny:
            small = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "self_attention": "blockwise(block_size=16)"}
            if name == "deep_pyramidion":
                small["pooling_lengths"] = f"None,{args.source // 4},{args.source // 16},None,None,None"
        config = replace(preset(name, **small), output=output)
        torch.manual_seed(args.seed)
        longest = max(args.target, args.tokens) + 2
        return build(config, args.vocab_size, PAD, max_target_positions=longest).to(args.device)

    def memory(self, model: Transformer) -> Memory:
        """Return random vectors, as many as a model hands on, with the origins that its poolings give them."""
        with torch.inference_mode():
            memory, *_ = model.encoder(self.source, self.source.eq(PAD)).memories
        return memory._replace(x=torch.randn_like(memory.x))

    def step(self, model: Transformer) -> None:
        """Compute gradients of a batch, and drop them."""
        prefix = F.pad(self.target[:, :-1], (1, 0), value=EOS)
        logits: Tensor = model.train()(self.source, prefix)
        F.cross_entropy(logits.flatten(0, 1).float(), self.target.flatten()).backward()
        model.zero_grad()


def train(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Time training steps of deep_pyramidion with both output layers."""
    name = NAMES[0]
    models = {name: bench.model(name, "tied"), name + POINTING: bench.model(name, "pointer")}
    took = take_turns(
        {f"step, {name}": partial(bench.step, model) for name, model in models.items()},
        *(bench.args.repeats, 1, bench.args.device),
    )
    plain, pointing = (took[f"step, {name}"] for name in models)
    return [ratio("a training step, without / with a pointer", plain, pointing, TRAIN)], took


def decode(bench: Bench) -> tuple[list[Figure], dict[str, Timed]]:
    """Time beam search of both models with both output layers."""
    args, works = bench.args, {}
    search = forced(args.beam, args.tokens)
    for name in NAMES:
        for end, output in (("", "tied"), (POINTING, "pointer")):
            model = bench.model(name, output).eval()
            works[name + end] = partial(search.write, model, (bench.memory(model),))
            # Decoders are all that is timed.
            model.encoder.layers, model.encoder.poolers = torch.nn.ModuleList(), torch.nn.ModuleDict()
    took = take_turns(works, args.repeats, 1, args.device)
    first, second = NAMES
    return [
        ratio("a step of decoding, without / with a pointer", took[first], took[first + POINTING], DECODE),
        ratio("the same of deep_blockwise", took[second], took[second + POINTING]),
        ratio(
            f"{args.tokens} tokens with a pointer, {second} / {first}",
            took[second + POINTING],
            took[first + POINTING],
            POOLED,
        ),
    ], took


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "pointer")
    made.add_argument("--batch", type=int, default=1, help="documents (default: 1)")
    made.add_argument("--source", type=int, default=8192, help="tokens of each (default: 8192)")
    made.add_argument("--target", type=int, default=256, help="tokens of a summary in training (default: 256)")
    made.add_argument("--tokens", type=int, default=512, help="tokens that are written (default: 512)")
    made.add_argument("--beam", type=int, default=4, help="hypotheses of each document (default: 4)")
    made.add_argument("--vocab-size", type=int, default=32768)
    made.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    made.add_argument("--tiny", action="store_true", help="models 16 wide, to try the program")
    args = made.parse_args()
    bench = Bench(args)
    figures, timed = [], {}
    for group in args.only:
        found, took = {"train": train, "decode": decode}[group](bench)
        figures += found
        timed |= took
    finish(args, figures, timed)


if __name__ == "__main__":
    main()

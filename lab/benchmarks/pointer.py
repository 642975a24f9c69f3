"""What a pointer costs in a step of beam search, and what pooling saves where models have one.

    python lab/benchmarks/pointer.py --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/pointer.py --tiny --source 64 --tokens 5 --vocab-size 100 --repeats 2

deep_pyramidion and deep_blockwise, each with the tied output and with the pointer. Decoders read vectors that are drawn
at random, made of random tokens as the encoder's poolings would have it; every token is forced. Seconds of a step are
those of --tokens tokens over their number, the projection of the memory included. `train_step.py --only pointer` times
a training step.
"""

import argparse
from dataclasses import replace
from functools import partial

import torch
from contenders import PAD, add_sizes, deep_preset, finish, parser, ratio, take_turns, texts
from writers import forced

from pyramidions.models import build
from pyramidions.nn import Transformer
from pyramidions.nn.sublayer import Memory

NAMES = ("deep_pyramidion", "deep_blockwise")
POINTING = ", pointing"
#: 1 / (1 + the 8% of a step that are allowed), and how much faster pooling should write
DECODE, POOLED = 0.926, 3.0


def built(name: str, output: str, args: argparse.Namespace) -> Transformer:
    """Return a preset with an output layer, shrunk where asked to."""
    config = replace(deep_preset(name, args.source if args.tiny else None), output=output)
    torch.manual_seed(args.seed)
    return build(config, args.vocab_size, PAD, max_target_positions=args.tokens + 2).to(args.device).eval()


def memory_of(model: Transformer, args: argparse.Namespace) -> Memory:
    """Return random vectors, as many as a model hands on, with the origins that its poolings give them."""
    source = texts(args.batch, args.source, args.vocab_size, args.device, args.seed)
    with torch.inference_mode():
        memory, *_ = model.encoder(source, source.eq(PAD)).memories
    return memory._replace(x=torch.randn_like(memory.x))


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "pointer-decode")
    add_sizes(made)
    made.add_argument("--tokens", type=int, default=512, help="tokens that are written (default: 512)")
    made.add_argument("--beam", type=int, default=4, help="hypotheses of each document (default: 4)")
    args = made.parse_args()
    search, works = forced(args.beam, args.tokens), {}
    for name in NAMES:
        for end, output in (("", "tied"), (POINTING, "pointer")):
            model = built(name, output, args)
            works[name + end] = partial(search.write, model, (memory_of(model, args),))
            # Decoders are all that is timed.
            model.encoder.layers, model.encoder.poolers = torch.nn.ModuleList(), torch.nn.ModuleDict()
    took = take_turns(works, args.repeats, 1, args.device)
    first, second = NAMES
    whole = f"{args.tokens} tokens with a pointer, {second} / {first}"
    figures = [
        ratio("a step of decoding, without / with a pointer", took[first], took[first + POINTING], DECODE),
        ratio("the same of deep_blockwise", took[second], took[second + POINTING]),
        ratio(whole, took[second + POINTING], took[first + POINTING], POOLED),
    ]
    finish(args, figures, took)


if __name__ == "__main__":
    main()

"""Does a CPU that multiplies bfloat16 faster train faster in it, and as well?

    python lab/benchmarks/training_precision.py sumpubmed --work work/precision \\
        --out lab/benchmarks/results/training-precision-cpu.json
    python lab/benchmarks/training_precision.py sumpubmed --work work/deep --arch deep_pyramidion --updates 16 \\
        --embed-dim 768 --ffn-embed-dim 3072 --pooling-lengths None,2048,512,None,None,None --vocab-size 4000 \\
        --source 2048 --target 256 --batch 2 --documents 8

An architecture learns to write summaries from nothing, with and without `--bf16`, in turns. Equal updates, rate and
order of the documents; each is read once, so there is no dropout; several seeds.

Reported are the loss on the summaries of validation documents in nats a token, in float32, and its difference between
the two of a seed, with 95% bootstrap intervals over seeds and documents; how far two seeds of float32 differ, which is
the noise; and how many times as many updates a second there are in bfloat16, of each seed. For comparison, matrices are
multiplied in both.

Every step is a command; one that is done is not run again, and a training that was interrupted goes on.
"""

import statistics
from itertools import combinations
from typing import Any

import numpy as np
import torch
from likelihoods import likelihoods, shown
from side_by_side import MatrixProducts, record, take_turns
from trainings import Trainings, parser, summary

from pyramidions.models import PRESETS

FLOAT32, BFLOAT16 = "float32", "bfloat16"


def run(trainings: Trainings, seeds: list[int]) -> dict[str, Any]:
    """Train with all seeds; return losses, differences and ratios."""
    trainings.prepared()
    documents = trainings.documents()
    found: dict[str, list[np.ndarray]] = {FLOAT32: [], BFLOAT16: []}
    for seed in seeds:
        for name, values in found.items():
            values.append(trainings.measured(name, seed, "loss", lambda model: -likelihoods(model, documents)))
            print(f"{name}, seed {seed}: {values[-1].mean():.3f}", flush=True)
    # (seeds, documents)
    losses = {name: np.stack(values) for name, values in found.items()}
    pairs = list(combinations(losses[FLOAT32], 2))
    faster = [trainings.seconds(FLOAT32, [seed]) / trainings.seconds(BFLOAT16, [seed]) for seed in seeds]
    return {
        **trainings.about([*found]),
        "nats a token": {name: summary(of) for name, of in losses.items()},
        "bfloat16 minus float32": summary(losses[BFLOAT16] - losses[FLOAT32]),
        "between seeds of float32": max(abs(float((one - other).mean())) for one, other in pairs) if pairs else None,
        "times the updates a second": {"median": statistics.median(faster), "seeds": faster},
        "times the rate of products": products(),
    }


def products() -> float:
    """Return how many times as fast this machine multiplies large matrices in bfloat16."""
    # Few: a machine without bfloat16 takes a hundred times as long.
    both = {str(dtype): MatrixProducts("cpu", dtype, 1e10) for dtype in (torch.float32, torch.bfloat16)}
    took = take_turns(both, 5)
    slow, fast = (took[name].median / each.multiplications for name, each in both.items())
    return slow / fast


def main() -> None:
    """Run the experiment and write what it found."""
    made = parser(__doc__)
    made.add_argument("--arch", choices=PRESETS, metavar="NAME", default="pyramidion", help="(default: %(default)s)")
    made.add_argument(
        "--pooling-lengths",
        default="256,128",
        help="vectors that each layer of the encoder hands on (default: 256,128)",
    )
    made.set_defaults(embed_dim=512, ffn_embed_dim=2048, num_heads=8, source=512, updates=500)
    args = made.parse_args()
    fields = {"arch": args.arch, "pooling_lengths": args.pooling_lengths}
    models = {FLOAT32: fields, BFLOAT16: {**fields, "bf16": True}}
    found = run(Trainings(args, models), args.seeds)
    for name, values in found["nats a token"].items():
        print(f"{name:10} {shown(values)}")
    print(f"bfloat16 minus float32: {shown(found['bfloat16 minus float32'])}")
    faster = found["times the updates a second"]
    print(f"times the updates a second: {faster['median']:.2f}", *(f"{each:.2f}" for each in faster["seeds"]))
    args.device, args.seed = "cpu", args.seeds[0]
    record(args, seeds=args.seeds, **found)


if __name__ == "__main__":
    main()

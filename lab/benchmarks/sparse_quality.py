"""Does a model with sparse parts learn as much as a dense one in equal updates?

    python lab/benchmarks/sparse_quality.py sumpubmed --work work/sparse \\
        --out lab/benchmarks/results/sparse-quality-cpu.json

Models of one shape are trained on summaries from nothing: with dense parts, and with the sparse feed-forward part of
Jaszczur et al. (2021). Others can be asked for (`--models`): sparse projections in the decoder as well, with half as
many hidden units again, as in the paper; experts; other options of the sparse part; and a dense model with as few
hidden units as the sparse one uses for a token. Equal updates, rate and order of the documents; each is read
once, so there is no dropout; several seeds. The program reports the loss on the summaries of validation documents in
nats a token, and its difference to the loss of the dense model of the same seed, with 95% bootstrap intervals over
seeds and documents.

In evaluation a sparse part chooses one unit of each block. The loss is also reported for choices with the noise of
training, and for weighting all units, as most calls do in training.

Every step is a command; one that is done is not run again, and a training that was interrupted goes on.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from likelihoods import likelihoods_as_set, shown
from side_by_side import record
from trainings import Trainings, parser, summary

from pyramidions.inference.saved_model import SavedModel
from pyramidions.models.notation import written
from pyramidions.models.spec import Part
from pyramidions.nn.feed_forward.sparse import ChosenUnits

TARGET = 0.03  # nats a token that a sparse model may lose
DENSE = "dense"
CHOSEN = "chosen"
#: Share of calls that choose, with noise; None for evaluation.
READINGS = {CHOSEN: None, "chosen with noise": 1.0, "weighted": 0.0}


def models(ffn_embed_dim: int, block_size: int) -> dict[str, dict[str, Any]]:
    """Return the preset of each model, and the fields in which it differs from the dense one.

    Args:
        ffn_embed_dim: of the dense model.
        block_size: of sparse feed-forward parts; as many experts read as many rows.
    """

    def sparse(**options: Any) -> dict[str, Any]:
        return {"feed_forward": written(Part("sparse", {"block_size": block_size, **options}))}

    differences: dict[str, dict[str, Any]] = {
        DENSE: {},
        "sparse": sparse(),
        "sparse_qkv": {
            **sparse(),
            "ffn_embed_dim": ffn_embed_dim * 3 // 2,
            "decoder_projections": "multiplicative_conv",
        },
        "experts": {"feed_forward": f"experts(experts={block_size})"},
        # as many hidden units as a sparse one uses for a token
        "narrow": {"ffn_embed_dim": ffn_embed_dim // block_size},
        "half_block": sparse(block_size=block_size // 2),
        "twice_rank": sparse(rank=2 * ffn_embed_dim // block_size),
        "always_chosen": sparse(quantized=1.0),
        "more_noise": sparse(temperature=0.5),
    }
    return {name: {"arch": "vanilla", **fields} for name, fields in differences.items()}


def set_reading(model: SavedModel, quantized: float | None, seed: int) -> None:
    """Set sparse parts to evaluation (None), or to training with this share of calls that choose; seed their noise."""
    model.transformer.eval()
    torch.manual_seed(seed)
    if quantized is not None:
        for module in model.transformer.modules():
            if isinstance(module, ChosenUnits):
                module.train()
                module.quantized = quantized


def losses(trainings: Trainings, name: str, seed: int) -> dict[str, np.ndarray]:
    """Train a model; return the loss of each document for each way to read it that the model has: (documents,)."""

    def read(quantized: float | None, model: SavedModel) -> np.ndarray:
        set_reading(model, quantized, seed)
        return -likelihoods_as_set(model, trainings.documents())

    found = {}
    for reading, quantized in READINGS.items() if "feed_forward" in trainings.models[name] else [(CHOSEN, None)]:
        found[reading] = trainings.measured(name, seed, reading, partial(read, quantized))
        print(f"{name}, seed {seed}, {reading}: {found[reading].mean():.3f}", flush=True)
    return found


def run(trainings: Trainings, names: list[str], seeds: list[int]) -> dict[str, Any]:
    """Return the losses of all models, and their differences to the dense one."""
    rows: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in names}
    for seed in seeds:
        for name in names:
            rows[name].append(losses(trainings, name, seed))
    # (seeds, documents)
    values = {
        name: {reading: np.stack([each[reading] for each in found]) for reading in found[0]}
        for name, found in rows.items()
    }
    dense = values[DENSE][CHOSEN]
    return {
        **trainings.about(names),
        "nats a token": {name: {reading: summary(of) for reading, of in ways.items()} for name, ways in values.items()},
        "minus dense": {
            name: {reading: summary(of - dense) for reading, of in ways.items()}
            for name, ways in values.items()
            if name != DENSE
        },
        "target": TARGET,
    }


def report(found: dict[str, Any]) -> None:
    """Print what was found."""
    for name, ways in found["nats a token"].items():
        for reading, loss in ways.items():
            print(f"{name:15} {reading:18} {shown(loss)}", end="")
            if name == DENSE:
                print()
                continue
            less = found["minus dense"][name][reading]
            print(f"  minus dense {shown(less)}  by seed", *(f"{each:+.3f}" for each in less["seeds"]))
    for name, ways in found["minus dense"].items():
        difference = ways[CHOSEN]["mean"]
        print(f"{name}: {difference:+.3f} nats, asked {TARGET} at most{'' if difference <= TARGET else ': MISSED'}")


def main() -> None:
    """Run the experiment and write what it found."""
    made = parser(__doc__)
    known = list(models(1024, 16))
    made.add_argument(
        "--models", nargs="+", choices=known, default=known[:2], help=f"{DENSE} among them (default: {DENSE} sparse)"
    )
    made.add_argument("--block-size", type=int, default=16, help="of sparse feed-forward parts (default: 16)")
    args = made.parse_args()
    if DENSE not in args.models:
        made.error(f"--models must name {DENSE}, with which the others are compared.")
    trainings = Trainings(args, models(args.ffn_embed_dim, args.block_size))
    found = run(trainings, args.models, args.seeds)
    report(found)
    args.device, args.seed = "cpu", args.seeds[0]
    record(args, seeds=args.seeds, **found)


if __name__ == "__main__":
    main()

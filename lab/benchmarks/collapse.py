"""At which learning rates do scorers collapse, what prevents it, and does the loss suffer?

    python lab/benchmarks/collapse.py sumpubmed --work work/collapse --out lab/benchmarks/results/collapse-cpu.json
    python lab/benchmarks/collapse.py sumpubmed --work work/pointer --norms pre --scorers plain --outputs tied pointer

A Transpooler with a linear scorer learns to write summaries from nothing, at several rates, with norms behind
sublayers (post) or before them (pre). The scorer is as the paper has it (plain), has a norm before it (norm), learns
at a tenth of the rate (slow), or meets a softmax of another base than the paper's 20 (base-e, base-400). With the
output `pointer` the decoder can copy tokens through the pooling. Equal updates and documents, no dropout, several
seeds.

Reported of each training are the spread of scores, that is, the highest less the lowest of a document, and the
sharpness of the pooled vectors, that is, how much of each is the heaviest of the vectors behind it; both are means over
validation documents. A scorer has collapsed if the spread is below the limit at which training warns. The loss on the
summaries is in nats a token, and what another document costs is how much higher it is with the next document.

Every step is a command; one that is done is not run again, and a training that was interrupted goes on.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from likelihoods import likelihoods
from segment_pooling import with_text_of_next
from side_by_side import record
from trainings import Trainings, parser

from pyramidions.data.readers import Document
from pyramidions.inference.saved_model import SavedModel
from pyramidions.nn.pooling import Pooled, Pooler
from pyramidions.plugin.criterions.collapse import COLLAPSED

SCORERS: dict[str, dict[str, object]] = {
    "plain": {},
    "norm": {"scorer": "linear(layer_norm=True)"},
    "slow": {"scorer_lr_scale": 0.1},
    "base-e": {"pooling": "soft_topk(base=None)"},
    "base-400": {"pooling": "soft_topk(base=400)"},
}
NORMS = {"post": False, "pre": True}
OUTPUTS = {"tied": "", "pointer": "-pointer"}  # what it adds to the name of a training
OWN, ANOTHER = "own text", "another text"
_FIGURES = ("spread", "sharpness", "loss")


def read(documents: Sequence[Document], model: SavedModel) -> np.ndarray:
    """Return spread, sharpness and the loss of the summary of each document: (3, documents)."""
    found: list[tuple[float, float]] = []

    def note(_: object, given: object, pooled: Pooled) -> None:
        sharpness = pooled.sharpness()
        if pooled.spread is None or sharpness is None:
            raise ValueError("A document is shorter than what it is pooled to.")
        shares, meaningful = sharpness
        found.append((float(pooled.spread.mean()), float(shares[meaningful].mean())))

    for part in model.transformer.modules():
        if isinstance(part, Pooler):
            part.register_forward_hook(note)
    losses = -likelihoods(model, documents)
    return np.vstack([np.array(found).T, losses])


def run(trainings: Trainings, seeds: Sequence[int]) -> dict[str, Any]:
    """Train all models; return of each what it came to, by seed."""
    trainings.prepared()
    documents = trainings.documents()
    found: dict[str, dict[str, Any]] = {}
    for name in trainings.models:
        of_seeds: dict[str, list[float]] = {figure: [] for figure in (*_FIGURES, "another costs")}
        for seed in seeds:
            own = trainings.measured(name, seed, OWN, partial(read, documents))
            another = trainings.measured(name, seed, ANOTHER, partial(read, with_text_of_next(documents)))
            for figure, value in zip(_FIGURES, own.mean(axis=1), strict=True):
                of_seeds[figure].append(float(value))
            of_seeds["another costs"].append(float((another - own)[-1].mean()))
            print(f"{name}, seed {seed}:", *(f"{each} {of_seeds[each][-1]:.3f}" for each in of_seeds), flush=True)
        found[name] = {**of_seeds, "collapsed": sum(spread < COLLAPSED for spread in of_seeds["spread"])}
    return found


def report(found: dict[str, Any], seeds: Sequence[int]) -> None:
    """Print a table of what was found."""
    print("| norms-scorer-output-rate | collapsed | spread | sharpness | loss | another costs |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, of_seeds in found.items():
        cells = (", ".join(f"{value:.2f}" for value in of_seeds[each]) for each in (*_FIGURES, "another costs"))
        print(f"| {name} | {of_seeds['collapsed']} of {len(seeds)} | {' | '.join(cells)} |")


def main() -> None:
    """Run the experiment and write what it found."""
    made = parser(__doc__, rates=(5e-4, 1e-3, 2e-3, 4e-3))
    scorers = ["plain", "norm", "slow"]
    made.add_argument("--scorers", nargs="+", choices=SCORERS, default=scorers, help="(default: %(default)s)")
    made.add_argument("--norms", nargs="+", choices=NORMS, default=[*NORMS], help="(default: %(default)s)")
    made.add_argument("--outputs", nargs="+", choices=OUTPUTS, default=["tied"], help="(default: %(default)s)")
    made.add_argument("--pooled", type=int, default=64, help="vectors that a document is pooled to (default: 64)")
    made.set_defaults(embed_dim=128, ffn_embed_dim=512, source=512, updates=300, documents=50)
    args = made.parse_args()
    models = {
        f"{norms}-{scorer}{OUTPUTS[output]}-{rate:g}": {
            "arch": "transpooler",
            "pooling_lengths": f"None,{args.pooled}",
            "lr": rate,
            "normalize_before": NORMS[norms],
            "output": output,
            **SCORERS[scorer],
        }
        for norms in args.norms
        for scorer in args.scorers
        for output in args.outputs
        for rate in args.lr
    }
    found = run(Trainings(args, models, free=("norms", "scorers", "outputs", "lr")), args.seeds)
    report(found, args.seeds)
    args.device, args.seed = "cpu", args.seeds[0]
    record(args, seeds=args.seeds, limit=COLLAPSED, settings=found)


if __name__ == "__main__":
    main()

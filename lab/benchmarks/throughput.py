"""Documents a second of training on a corpus as it is: batches by length beside batches padded to the longest.

    python lab/benchmarks/throughput.py --data PREPARED_FOLDER --out lab/benchmarks/results/throughput-cpu.json
    python lab/benchmarks/throughput.py --data PREPARED_FOLDER --source 1024 --documents 4 \\
        --embed-dim 16 --ffn-embed-dim 32 --num-heads 2

Both ways train the same model on the same documents, with the task, the criterion and the loader of a training run:

padded
    Random batches of --batch documents, each padded to --source tokens, and every position computed. The padding stays
    padding, so that the loss is the same (with --dropout 0, to the last digits); the encoder's `BlockLayout` is
    replaced by one that leaves out no block.
by length
    The task's own batches: documents of similar length, --max-tokens of them together, padded to the longest among
    them; blocks of pure padding are left out.

The sample is every n-th of the task's batches, which are in order of length, so that its lengths are spread as the
corpus's. A turn is the whole sample, forward and backward. The optimizer's step is left out: with the paper's 256
documents an update it comes once in about a hundred batches. Instead of a warm-up turn, each contender trains on one
document before the first.

Beside each ratio stands what the lengths allow: the multiplications of the sample's documents, each at --source tokens,
over those of each at its own length. Waiting for data is the time that a step spends in asking the loader for its
batch; the first batch of a turn, for which the loader starts as at the beginning of an epoch, is not counted there, and
its seconds are in the file.

Flags that are not listed are those of fairseq-train: sizes of a smaller model, for instance, which has no targets.
"""

import argparse
import logging
import random
import statistics
import warnings

import numpy as np
from corpus_training import Training, Way
from side_by_side import Figure, finish, parser, ratio, take_turns

from lab.timing import Timed
from pyramidions.models.config import MAX_SOURCE_POSITIONS

#: what batches by length must at least gain, at full size
TARGETS = {"deep_pyramidion": 1.2, "deep_blockwise": 1.35}
COMPUTING = 99.0  # least percentage of a step
WAYS = PADDED, BY_LENGTH = ("padded", "by length")


def describe(tokens: np.ndarray, longest: int) -> dict[str, float]:
    """Return how ``tokens`` (documents,) are spread, before what is beyond ``longest`` is cut off."""
    percentiles = {f"percentile_{p}": float(np.percentile(tokens, p)) for p in (10, 50, 90)}
    truncated = float((tokens > longest).mean())
    return {"documents": len(tokens), "mean": float(tokens.mean()), **percentiles, "share_truncated": truncated}


def figures_of(
    arch: str, timed: dict[str, Timed], documents: int, ceiling: float, waiting: list[float], target: float | None
) -> list[Figure]:
    """Return the figures of an architecture.

    Args:
        arch: its name.
        timed: what the turns of each of its ways took.
        documents: of a turn.
        ceiling: the ratio that the lengths allow.
        waiting: percentages of the turns by length that passed in waiting for data.
        target: the least ratio; None where nothing is asked.
    """
    figures = []
    for way in WAYS:
        rates = [documents / seconds for seconds in timed[way].seconds]
        rate = documents / timed[way].median
        figures.append(Figure(f"{arch}, {way}", rate, min(rates), max(rates), unit=" documents/s"))
    gain = ratio(f"{arch}, by length over padded", timed[PADDED], timed[BY_LENGTH], target)
    percent = 100 / ceiling
    reached = Figure(
        f"{arch}, of the {ceiling:.2f}x that the lengths allow",
        gain.value * percent,
        gain.low * percent,
        gain.high * percent,
        unit="%",
    )
    computing = [100 - share for share in waiting]
    name = f"{arch}, share of a step that does not wait for data"
    busy = Figure(name, statistics.median(computing), min(computing), max(computing), COMPUTING, "%")
    return [*figures, gain, reached, busy]


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return what the user said, and flags of fairseq-train."""
    made = parser(__doc__, "throughput", repeats=2)
    made.add_argument("--data", required=True, help="folder made by `pyramidions prepare`; its train split is read")
    made.add_argument("--arch", nargs="+", default=list(TARGETS), help="presets (default: both that have a target)")
    made.add_argument("--source", type=int, default=MAX_SOURCE_POSITIONS, help="longest document (%(default)s tokens)")
    made.add_argument(
        "--documents",
        type=int,
        default=16,
        help="about how many, in whole batches (default: %(default)s: a turn of two presets in two ways then takes "
        "about ten minutes on two CPU cores)",
    )
    made.add_argument("--batch", type=int, default=2, help="documents of a padded batch (default: %(default)s)")
    made.add_argument("--max-tokens", type=int, help="of a batch by length; --batch times --source if not given")
    made.add_argument("--dropout", type=float, default=0.1, help="everywhere (default: 0.1, as the presets train)")
    return made.parse_known_args()


def main() -> None:
    """Run the benchmark."""
    args, flags = arguments()
    logging.disable(logging.WARNING)  # fairseq's and Hydra's, about how they read the flags
    warnings.simplefilter("ignore")
    trainings = {arch: Training(arch, args, flags) for arch in args.arch}
    first = trainings[args.arch[0]]
    batches = first.batches(args.max_tokens or args.batch * args.source, args.documents, args.seed)
    documents = np.concatenate(batches)
    shuffled = documents.tolist()
    random.Random(args.seed).shuffle(shuffled)
    padded = [shuffled[start : start + args.batch] for start in range(0, len(shuffled), args.batch)]
    contenders = {}
    for arch, training in trainings.items():
        contenders[f"{arch}, {PADDED}"] = Way(training, padded, args.source)
        contenders[f"{arch}, {BY_LENGTH}"] = Way(training, batches)
    for way in contenders.values():
        way.warm_up()
    timed = take_turns(contenders, args.repeats, warmup=0, device=args.device)
    targets = TARGETS if args.source == MAX_SOURCE_POSITIONS and not flags else {}
    figures = []
    for arch, training in trainings.items():
        of_ways = {way: timed[f"{arch}, {way}"] for way in WAYS}
        ceiling = training.ceiling(documents, args.source)
        waiting = contenders[f"{arch}, {BY_LENGTH}"].waiting()
        figures += figures_of(arch, of_ways, len(documents), ceiling, waiting, targets.get(arch))
    lengths = first.full_lengths()
    finish(
        args,
        figures,
        timed,
        dropout=args.dropout,
        source_tokens=args.source,
        documents_a_batch={PADDED: [len(batch) for batch in padded], BY_LENGTH: [len(batch) for batch in batches]},
        lengths={"corpus": describe(lengths, args.source), "sample": describe(lengths[documents], args.source)},
        contenders={
            name: {
                "source_positions": way.source_positions,
                "target_positions": way.target_positions,
                "loss": way.loss,
                "waiting_percent": way.waiting(),
                "first_wait_seconds": [waits[0] for waits in way.waits],
            }
            for name, way in contenders.items()
        },
    )


if __name__ == "__main__":
    main()

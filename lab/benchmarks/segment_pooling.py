"""Does a pooling that learns where segments end beat the top-k of a Transpooler in equal updates?

    python lab/benchmarks/segment_pooling.py sumpubmed --work work/segments \\
        --out lab/benchmarks/results/segment-pooling-cpu.json

Models of one shape learn to write summaries from nothing: `transpooler`, whose soft top-k selects by a learned score;
`transpooler_mean`, the mean of each window; and `transpooler_segments`, the mean of each segment, whose ends are
learned (Nawrot et al. 2023, in an encoder). All hand on the same number of vectors (`--pooled`), segments at most so
many. Equal updates, rate and order of the documents; each is read once, so there is no dropout; several seeds.

Reported are the loss on the summaries of validation documents in nats a token, and its difference to that of the top-k
of the same seed, with 95% bootstrap intervals over seeds and documents; and how many vectors a document is pooled to.
In evaluation a segment ends where its end is more probable than not; the loss is also reported for ends that are drawn,
as in training. Differences can only be large where the text matters to a model at all: what it is worth to it is the
difference between the loss with the text of another document and that with its own.

Every step is a command; one that is done is not run again, and a training that was interrupted goes on.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from likelihoods import likelihoods, shown
from side_by_side import record
from trainings import Trainings, parser, summary

from pyramidions.data.readers import Document
from pyramidions.inference.saved_model import SavedModel
from pyramidions.nn.boundaries import GumbelBoundaries
from pyramidions.nn.pooling import Pooler

TOPK, MEAN, SEGMENTS = PRESETS = ("transpooler", "transpooler_mean", "transpooler_segments")
OWN, DRAWN, ANOTHER = "own text", "own text, ends drawn", "another text"
_COMPARED = ((MEAN, TOPK), (SEGMENTS, TOPK), (SEGMENTS, MEAN))


def with_text_of_next(documents: Sequence[Document]) -> list[Document]:
    """Return each summary with the text of the document after it; the last one gets the first one's."""
    return [
        document._replace(source=after.source)
        for document, after in zip(documents, [*documents[1:], documents[0]], strict=True)
    ]


def read(documents: Sequence[Document], reading: str, seed: int, model: SavedModel) -> np.ndarray:
    """Return the loss of each document's summary, and how many vectors its text is pooled to: (2, documents)."""
    vectors: list[int] = []
    for part in model.transformer.modules():
        if isinstance(part, Pooler):
            part.register_forward_hook(lambda _, given, pooled: vectors.append(int((~pooled.padding_mask).sum())))
        if isinstance(part, GumbelBoundaries) and reading == DRAWN:
            part.evaluation = "sample"
    torch.manual_seed(seed)
    losses = -likelihoods(model, with_text_of_next(documents) if reading == ANOTHER else documents)
    return np.stack([losses, np.array(vectors)])


def run(trainings: Trainings, names: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Train all models; return their losses, the differences, and the numbers of vectors."""
    trainings.prepared()
    documents = trainings.documents()
    # Of each model, seeds of (2, documents).
    found: dict[str, dict[str, list[np.ndarray]]] = {
        name: {reading: [] for reading in (OWN, DRAWN, ANOTHER) if name == SEGMENTS or reading != DRAWN}
        for name in names
    }
    for seed in seeds:
        for name, ways in found.items():
            for reading, values in ways.items():
                values.append(trainings.measured(name, seed, reading, partial(read, documents, reading, seed)))
                loss, vectors = values[-1].mean(axis=1)
                print(f"{name}, seed {seed}, {reading}: {loss:.3f}, {vectors:.0f} vectors", flush=True)
    # (seeds, documents)
    losses, vectors = (
        {name: {reading: np.stack(values)[:, of] for reading, values in ways.items()} for name, ways in found.items()}
        for of in (0, 1)
    )
    own = {name: ways[OWN] for name, ways in losses.items()}
    return {
        **trainings.about(names),
        "nats a token": {
            name: {reading: summary(of) for reading, of in ways.items() if reading != ANOTHER}
            for name, ways in losses.items()
        },
        "differences": {
            f"{one} minus {other}": summary(own[one] - own[other])
            for one, other in _COMPARED
            if {one, other} <= own.keys()
        },
        "what its text is worth": {name: summary(ways[ANOTHER] - ways[OWN]) for name, ways in losses.items()},
        "vectors": {
            name: {reading: float(of.mean()) for reading, of in ways.items() if reading != ANOTHER}
            for name, ways in vectors.items()
        },
    }


def report(found: dict[str, Any]) -> None:
    """Print what was found."""
    for name, ways in found["nats a token"].items():
        for reading, loss in ways.items():
            print(f"{name:20} {reading:21} {shown(loss)}  {found['vectors'][name][reading]:.0f} vectors")
    for name, values in found["differences"].items():
        print(f"{name}: {shown(values)}  by seed", *(f"{each:+.3f}" for each in values["seeds"]))
    for name, values in found["what its text is worth"].items():
        print(f"another text minus its own, {name}: {shown(values)}")


def main() -> None:
    """Run the experiment and write what it found."""
    made = parser(__doc__)
    made.add_argument("--models", nargs="+", choices=PRESETS, default=PRESETS, help="(default: all)")
    made.add_argument("--pooled", type=int, default=128, help="vectors that a document is pooled to (default: 128)")
    made.set_defaults(embed_dim=128, ffn_embed_dim=512, source=512, updates=1500)
    args = made.parse_args()
    models = {name: {"arch": name, "pooling_lengths": f"None,{args.pooled}"} for name in PRESETS}
    found = run(Trainings(args, models), args.models, args.seeds)
    report(found)
    args.device, args.seed = "cpu", args.seeds[0]
    record(args, seeds=args.seeds, **found)


if __name__ == "__main__":
    main()

"""How much does a trained model lose when it gets poolers, and how fast does training win it back?

    python lab/benchmarks/pooled_start.py sumpubmed --model work/start/pretrained/checkpoint_best.pt \\
        --work work/poolers --out lab/benchmarks/results/pooled-start-cpu.json

The model, which has no pooler, gets one with a fresh scorer, behind a layer in the middle of the encoder or behind its
last. The scorer starts in one of three ways: as built, with scores that spread by the statistics of the layer before
(`spread_scores`), or calibrated on a few training documents (`calibrate`). Reported is the log-likelihood of the
summaries of test documents minus the unpooled model's, at the start and after some updates of all weights in the first
of the places; the unpooled model takes the same updates. Intervals are over documents and seeds, which decide about
scorers, calibration, and the documents of the updates.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from likelihoods import documents_of, interval, likelihoods, shown
from side_by_side import record
from torch.nn.functional import cross_entropy

from pyramidions.conversion.calibration import calibrate, spread_scores
from pyramidions.data.readers import Document
from pyramidions.files.atomic import atomic_file
from pyramidions.inference.saved_model import SavedModel, load_model
from pyramidions.models import PyramidionConfig
from pyramidions.models.config import config_as
from pyramidions.pretrained.transfer import transferred
from pyramidions.text.tokenizer import EOS, PAD

UNPOOLED = "unpooled"
STARTS = AS_BUILT, SPREAD, CALIBRATED = "as built", "spread", "calibrated"
_WARMUP = 20

Pair = tuple[list[int], list[int]]


def pooled(original: SavedModel, lengths: str | None, start: str, texts: Sequence[str], seed: int) -> SavedModel:
    """Return a copy of a model with other pooling.

    Args:
        original: to copy.
        lengths: vectors that each layer hands on.
        start: of the scorers.
        texts: to calibrate on.
        seed: of the scorers.
    """
    config = config_as(PyramidionConfig, {**asdict(original.config), "pooling_lengths": lengths})
    transformer, transfer = transferred(original.transformer.state_dict(), config, original.max_target_positions, seed)
    made = SavedModel(
        transformer, config, original.tokenizer, original.max_source_positions, original.max_target_positions
    )
    new = {name.removeprefix("encoder.") for name in transfer.new}
    if start == SPREAD and not spread_scores(transformer.encoder, new):
        sys.exit("No scorer could be scaled: the model must be post-norm, and its scorer linear.")
    if start == CALIBRATED:
        calibrate(made, texts)
    return made


def pairs(model: SavedModel, documents: Sequence[Document]) -> list[Pair]:
    """Return documents and summaries as ids."""
    return [(model.source_ids(each.source), model.target_ids(each.target)) for each in documents]


def update(model: SavedModel, optimizer: torch.optim.Optimizer, batch: Sequence[Pair]) -> None:
    """Take a step on documents with their summaries."""
    model.transformer.train()
    source = padded([source for source, _ in batch])
    target = padded([target for _, target in batch])
    given = torch.cat([torch.full_like(target[:, :1], EOS), target[:, :-1]], dim=1)
    logits = model.transformer(source, given)
    # (B, T, V) -> (B * T, V)
    cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD).backward()
    torch.nn.utils.clip_grad_norm_(model.transformer.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def padded(rows: Sequence[list[int]]) -> torch.Tensor:
    """Return ids as one tensor: (B, longest)."""
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)


class Experiment:
    """Gives a model poolers, and trains it.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.original = load_model(args.model)
        if self.original.config.pooling_lengths not in (None, "", "None"):
            sys.exit(f"--model must have no pooling, but hands on {self.original.config.pooling_lengths}.")
        train = documents_of(args.documents, "train", args.train_documents)
        self.texts = [document.source for document in train]
        self.pairs = pairs(self.original, train)
        self.test = documents_of(args.documents, "test", args.test_documents)

    def model(self, lengths: str, start: str, seed: int) -> SavedModel:
        """Return the original with poolers, or a copy of it."""
        if start == UNPOOLED:
            return pooled(self.original, self.original.config.pooling_lengths, AS_BUILT, [], seed)
        # Each seed calibrates on other documents.
        few = self.args.calibration_documents
        return pooled(self.original, lengths, start, self.texts[(seed - 1) * few : seed * few], seed)

    def once(self, name: str, work: Callable[[], np.ndarray]) -> np.ndarray:
        """Return figures, which are kept in the work folder."""
        path = self.args.work / f"{name.replace(' ', '-')}.npy"
        if not path.exists():
            found = work()
            with atomic_file(path) as file:
                np.save(file, found)
        values: np.ndarray = np.load(path)
        print(f"{name}: {', '.join(f'{each:.3f}' for each in np.atleast_2d(values).mean(axis=1))}", flush=True)
        return values

    def starts(self, lengths: str) -> dict[str, np.ndarray]:
        """Return the likelihoods at the start with pooling in a place: (seeds, documents) each."""

        def row(start: str, seed: int) -> np.ndarray:
            name = f"{lengths} {start} seed {seed}"
            return self.once(name, lambda: likelihoods(self.model(lengths, start, seed), self.test))

        return {start: np.stack([row(start, seed) for seed in self.args.seeds]) for start in STARTS}

    def course(self, start: str, seed: int) -> np.ndarray:
        """Train a model; return the likelihoods after each of the numbers of updates: (numbers, documents)."""
        args, found = self.args, []
        model = self.model(args.pooling_lengths[0], start, seed)
        optimizer = torch.optim.Adam(model.transformer.parameters(), betas=(0.9, 0.98), fused=True)
        order = np.random.default_rng(seed).permutation(max(args.updates) * args.batch) % len(self.pairs)
        for count, numbers in enumerate(order.reshape(-1, args.batch), 1):
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1, count / _WARMUP)
            update(model, optimizer, [self.pairs[number] for number in numbers])
            if count in args.updates:
                found.append(likelihoods(model, self.test))
        return np.stack(found)

    def courses(self) -> dict[str, dict[int, np.ndarray]]:
        """Return the likelihoods by start and updates: (seeds, documents) each."""
        numbers = sorted(self.args.updates)
        rows: dict[str, list[np.ndarray]] = {start: [] for start in (UNPOOLED, *STARTS)}
        for seed in self.args.seeds:
            for start, found in rows.items():
                found.append(self.once(f"{start} seed {seed} updates", partial(self.course, start, seed)))
        return {start: dict(zip(numbers, np.stack(found, axis=1), strict=True)) for start, found in rows.items()}

    def run(self) -> dict[str, Any]:
        """Return what is gained or lost against the unpooled model, at the start and after updates."""
        before = self.once(UNPOOLED, lambda: likelihoods(self.original, self.test))
        starts = {lengths: self.starts(lengths) for lengths in self.args.pooling_lengths}
        courses = self.courses()
        return {
            "unpooled": interval(before),
            "at the start, minus unpooled": {
                lengths: {start: interval(values - before) for start, values in of.items()}
                for lengths, of in starts.items()
            },
            "after updates": {
                start: {count: interval(values) for count, values in course.items()}
                for start, course in courses.items()
            },
            "after updates, minus unpooled with as many": {
                start: {count: interval(values - courses[UNPOOLED][count]) for count, values in course.items()}
                for start, course in courses.items()
                if start != UNPOOLED
            },
            "after updates, minus as built": {
                start: {count: interval(courses[start][count] - courses[AS_BUILT][count]) for count in courses[start]}
                for start in (SPREAD, CALIBRATED)
            },
        }


def main() -> None:
    """Run the experiment and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, help="folder with train and test files")
    parser.add_argument("--model", type=Path, required=True, help="checkpoint of a trained model without pooling")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what was measured")
    parser.add_argument(
        "--pooling-lengths", nargs="+", default=["None,256,None", "None,None,256"], help="places of the pooler"
    )
    parser.add_argument("--updates", type=int, nargs="+", default=[50, 200], help="after which to measure")
    parser.add_argument("--batch", type=int, default=2, help="documents an update (default: 2)")
    parser.add_argument("--lr", type=float, default=3e-4, help="rate, after 20 updates of warm-up (default: 3e-4)")
    parser.add_argument("--train-documents", type=int, default=1000, help="read (default: 1000)")
    parser.add_argument("--calibration-documents", type=int, default=8, help="of each seed (default: 8)")
    parser.add_argument("--test-documents", type=int, default=60, help="to measure on (default: 60)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--out", type=Path, help="write a JSON file")
    args = parser.parse_args()
    args.device, args.seed = "cpu", args.seeds[0]
    args.work.mkdir(parents=True, exist_ok=True)
    found = Experiment(args).run()
    for start, course in found["after updates, minus unpooled with as many"].items():
        print(f"{start:12}", *(f"{count}: {shown(each)}" for count, each in course.items()), sep="  ")
    record(args, seeds=args.seeds, **found)


if __name__ == "__main__":
    main()

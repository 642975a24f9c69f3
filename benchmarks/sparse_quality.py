"""Does a model with sparse parts learn as much as a dense one in equal updates?

    python benchmarks/sparse_quality.py sumpubmed --work work/sparse --out benchmarks/results/sparse-quality-cpu.json

Models of one shape are trained on summaries from nothing: with dense parts, and with the sparse feed-forward part of
Jaszczur et al. (2021). Others can be asked for (`--models`): sparse projections in the decoder as well, with half as
many hidden units again, as in the paper; experts; other options of the sparse part; and a dense model with as few
hidden units as the sparse one uses for a token. Equal updates, rate and order of the documents, each of which is read
once, so without dropout; several seeds. The program reports the loss on the summaries of validation documents in nats a
token, and its difference to the loss of the dense model of the same seed, with 95% bootstrap intervals over seeds and
documents.

In evaluation a sparse part chooses one unit of each block. The loss is also reported for choices with the noise of
training, and for weighting all units, as most calls do in training.

Every step is a command; one that is done is not run again, and a training that was interrupted goes on.
"""

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from likelihoods import documents_of, interval, likelihoods_as_set, shown
from side_by_side import record
from steps import check_settings, first_documents, logged, step

from pyramidions.data.readers import find_splits
from pyramidions.files.atomic import atomic_file
from pyramidions.files.processes import USER_DIR
from pyramidions.inference.saved_model import SavedModel, load_model
from pyramidions.measure.recipe import model_flags
from pyramidions.nn.feed_forward.chosen_units import ChosenUnits

TARGET = 0.03  # nats a token that a sparse model may lose
DENSE = "dense"
CHOSEN = "chosen"
#: Share of calls that choose, with noise; None for evaluation.
READINGS = {CHOSEN: None, "chosen with noise": 1.0, "weighted": 0.0}


def models(ffn_embed_dim: int, block_size: int) -> dict[str, dict[str, Any]]:
    """Return the fields in which each model differs from the dense one.

    Args:
        ffn_embed_dim: of the dense model.
        block_size: of sparse feed-forward parts; as many experts read as many rows.
    """

    def sparse(**options: Any) -> dict[str, Any]:
        return {"feed_forward": "sparse", "feed_forward_args": json.dumps({"block_size": block_size, **options})}

    return {
        DENSE: {},
        "sparse": sparse(),
        "sparse_qkv": {
            **sparse(),
            "ffn_embed_dim": ffn_embed_dim * 3 // 2,
            "decoder_projections": "multiplicative_conv",
        },
        "experts": {"feed_forward": "experts", "feed_forward_args": json.dumps({"experts": block_size})},
        # as many hidden units as a sparse one uses for a token
        "narrow": {"ffn_embed_dim": ffn_embed_dim // block_size},
        "half_block": sparse(block_size=block_size // 2),
        "twice_rank": sparse(rank=2 * ffn_embed_dim // block_size),
        "always_chosen": sparse(quantized=1.0),
        "more_noise": sparse(temperature=0.5),
    }


def set_reading(model: SavedModel, quantized: float | None, seed: int) -> None:
    """Set sparse parts to evaluation (None), or to training with this share of calls that choose; seed their noise."""
    model.transformer.eval()
    torch.manual_seed(seed)
    if quantized is not None:
        for module in model.transformer.modules():
            if isinstance(module, ChosenUnits):
                module.train()
                module.quantized = quantized


def summary(losses: np.ndarray) -> dict[str, Any]:
    """Return mean and interval of (seeds, documents), and the mean of each seed."""
    return {**interval(losses), "seeds": [float(mean) for mean in losses.mean(axis=1)]}


class Experiment:
    """Prepares, trains and evaluates.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.work: Path = args.work
        check_settings(self.work, args, free=("models", "seeds", "work", "out"))
        self.models = models(args.ffn_embed_dim, args.block_size)

    def prepared(self) -> Path:
        """Return the data folder."""
        args, folder = self.args, self.work / "data"
        if not folder.exists():
            counts = {"train": args.updates * args.batch, "valid": args.documents, "test": 1}
            for split, path in find_splits(str(args.corpus)).items():
                first_documents(path, counts[split], self.work / f"{split}.jsonl")
        step(
            self.work,
            folder / "manifest.json",
            *("pyramidions", "prepare", self.work, "--out", folder, "--vocab-size", args.vocab_size),
            *("--sentences", 100_000, "--workers", 1),
        )
        return folder

    def folder(self, name: str, seed: int) -> Path:
        """Return where a training is kept."""
        return self.work / f"{name}-{seed}"

    def trained(self, name: str, seed: int) -> SavedModel:
        """Return a model after all updates."""
        args, data, save = self.args, self.prepared(), self.folder(name, seed)
        save.mkdir(exist_ok=True)
        shape = {"embed_dim": args.embed_dim, "ffn_embed_dim": args.ffn_embed_dim, "num_heads": args.num_heads}
        fields = {**shape, "normalize_before": True, "dropout": 0, "attention_dropout": 0, "activation_dropout": 0}
        # Validates, too.
        every = max(1, args.updates // 2)
        step(
            self.work,
            save / "done",
            *("fairseq-train", data, "--user-dir", USER_DIR, "--cpu", "--task", "long_document_summarization"),
            *("--arch", "vanilla", *model_flags({**fields, **self.models[name]})),
            *("--max-source-positions", args.source, "--max-target-positions", args.target),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
            *("--lr", args.lr, "--lr-scheduler", "polynomial_decay", "--warmup-updates", args.updates // 10),
            *("--total-num-update", args.updates, "--max-update", args.updates, "--clip-norm", 1),
            *("--batch-size", args.batch, "--batch-size-valid", 8, "--num-workers", 0, "--seed", seed),
            *("--save-dir", save, "--save-interval-updates", every, "--keep-interval-updates", 1),
            *("--no-epoch-checkpoints", "--log-format", "json", "--log-interval", max(1, args.updates // 8)),
        )
        (save / "done").touch()
        return load_model(save / "checkpoint_last.pt")

    def logged(self, name: str, seed: int) -> list[dict[str, Any]]:
        """Return what the training logged."""
        return logged(self.work / f"{self.folder(name, seed).name}-done.log")

    def course(self, name: str, seed: int) -> dict[int, float]:
        """Return the loss on validation documents by updates, in nats a token."""
        # fairseq logs bits
        return {
            int(each["valid_num_updates"]): round(float(each["valid_loss"]) * math.log(2), 4)
            for each in self.logged(name, seed)
            if "valid_loss" in each
        }

    def seconds(self, name: str) -> float:
        """Return the median time of an update over all seeds: only a remark, for each training ran by itself."""
        speeds = [
            float(each["ups"])
            for seed in self.args.seeds
            for each in self.logged(name, seed)
            if float(each.get("ups", 0))
        ]
        return 1 / statistics.median(speeds)

    def losses(self, name: str, seed: int) -> dict[str, np.ndarray]:
        """Train a model; return the loss of each document for each way to read it that the model has: (documents,)."""
        model, found = self.trained(name, seed), {}
        documents = documents_of(self.work, "valid", self.args.documents)
        for reading, quantized in READINGS.items() if "feed_forward" in self.models[name] else [(CHOSEN, None)]:
            path = self.folder(name, seed) / f"{reading.replace(' ', '-')}.npy"
            if not path.exists():
                set_reading(model, quantized, seed)
                values = -likelihoods_as_set(model, documents)
                with atomic_file(path) as file:
                    np.save(file, values)
            found[reading] = np.load(path)
            print(f"{name}, seed {seed}, {reading}: {found[reading].mean():.3f}", flush=True)
        return found

    def parameters(self, name: str) -> int:
        """Return how many a model has."""
        transformer = self.trained(name, self.args.seeds[0]).transformer
        return sum(each.numel() for each in transformer.parameters())

    def run(self) -> dict[str, Any]:
        """Return the losses of all models, and their differences to the dense one."""
        names, seeds = self.args.models, self.args.seeds
        losses: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in names}
        for seed in seeds:
            for name in names:
                losses[name].append(self.losses(name, seed))
        # (seeds, documents)
        values = {
            name: {reading: np.stack([each[reading] for each in rows]) for reading in rows[0]}
            for name, rows in losses.items()
        }
        dense = values[DENSE][CHOSEN]
        return {
            "parameters": {name: self.parameters(name) for name in names},
            "seconds an update": {name: self.seconds(name) for name in names},
            "courses": {name: {seed: self.course(name, seed) for seed in seeds} for name in names},
            "nats a token": {
                name: {reading: summary(of) for reading, of in ways.items()} for name, ways in values.items()
            },
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder with train, valid and test files")
    parser.add_argument("--work", type=Path, required=True, help="folder for data, models and losses")
    known = list(models(1024, 16))
    parser.add_argument(
        "--models", nargs="+", choices=known, default=known[:2], help=f"{DENSE} among them (default: {DENSE} sparse)"
    )
    parser.add_argument("--embed-dim", type=int, default=256)
    parser.add_argument("--ffn-embed-dim", type=int, default=1024)
    parser.add_argument("--num-heads", type=int, default=4)
    parser.add_argument("--block-size", type=int, default=16, help="of sparse feed-forward parts (default: 16)")
    parser.add_argument("--vocab-size", type=int, default=4000)
    parser.add_argument("--source", type=int, default=256, help="tokens of a document that are read (default: 256)")
    parser.add_argument("--target", type=int, default=192, help="most tokens of a summary (default: 192)")
    parser.add_argument("--updates", type=int, default=400, help="of each model (default: 400)")
    parser.add_argument("--batch", type=int, default=4, help="documents an update (default: 4)")
    parser.add_argument("--lr", type=float, default=1e-3, help="peak of the rate (default: 1e-3)")
    parser.add_argument("--documents", type=int, default=100, help="to validate on (default: 100)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--out", type=Path, help="write a JSON file")
    args = parser.parse_args()
    if DENSE not in args.models:
        parser.error(f"--models must name {DENSE}, with which the others are compared.")
    found = Experiment(args).run()
    report(found)
    args.device, args.seed = "cpu", args.seeds[0]
    record(args, seeds=args.seeds, **found)


if __name__ == "__main__":
    main()

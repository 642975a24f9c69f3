"""Models that learn to write summaries from nothing, for equal updates: each model and seed is one command."""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from likelihoods import documents_of, interval
from steps import check_settings, first_documents, logged, step

from pyramidions.data.readers import Document, find_splits
from pyramidions.files.atomic import atomic_file
from pyramidions.files.processes import USER_DIR
from pyramidions.inference.saved_model import SavedModel, load_model
from pyramidions.runs.recipe import model_flags


class Trainings:
    """Prepares documents, trains models on the first of them, each read once, and keeps what was measured.

    Args:
        args: of the command line, those of `parser` among them.
        models: name to the fields in which each model differs from the others, ``arch`` among them. ``lr`` and other
            flags of fairseq-train may be, too.
        free: names of arguments that say which models there are.
    """

    def __init__(
        self, args: argparse.Namespace, models: Mapping[str, Mapping[str, Any]], free: Sequence[str] = ()
    ) -> None:
        self.args, self.models = args, models
        self.work: Path = args.work
        # Before anything is written, so that the corrected command finds an empty folder.
        if not args.corpus.is_dir():
            sys.exit(f"CORPUS must be a folder with train, valid and test files, but {args.corpus} is not a folder.")
        check_settings(self.work, args, free=("models", "seeds", "work", "out", *free))

    def documents(self) -> list[Document]:
        """Return those to validate on."""
        return documents_of(self.work, "valid", self.args.documents)

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
        fields |= {"lr": args.lr, **self.models[name]}
        # Validates, too.
        every = max(1, args.updates // 2)
        step(
            self.work,
            save / "done",
            *("fairseq-train", data, "--user-dir", USER_DIR, "--cpu", "--task", "long_document_summarization"),
            *model_flags(fields),
            *("--max-source-positions", args.source, "--max-target-positions", args.target),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
            *("--lr-scheduler", "polynomial_decay", "--warmup-updates", args.updates // 10),
            *("--total-num-update", args.updates, "--max-update", args.updates, "--clip-norm", 1),
            *("--batch-size", args.batch, "--batch-size-valid", 8, "--num-workers", 0, "--seed", seed),
            *("--save-dir", save, "--save-interval-updates", every, "--keep-interval-updates", 1),
            *("--no-epoch-checkpoints", "--log-format", "json", "--log-interval", max(1, args.updates // 8)),
        )
        (save / "done").touch()
        return load_model(save / "checkpoint_last.pt")

    def measured(self, name: str, seed: int, what: str, measure: Callable[[SavedModel], np.ndarray]) -> np.ndarray:
        """Return what is measured of a trained model: a figure of each document, or a few, (..., documents)."""
        model = self.trained(name, seed)
        path = self.folder(name, seed) / f"{what.replace(' ', '-')}.npy"
        if not path.exists():
            values = measure(model)
            with atomic_file(path) as file:
                np.save(file, values)
        found: np.ndarray = np.load(path)
        return found

    def course(self, name: str, seed: int) -> dict[int, float]:
        """Return the loss on validation documents by updates, in nats a token."""
        # fairseq logs bits
        return {
            int(each["valid_num_updates"]): round(float(each["valid_loss"]) * math.log(2), 4)
            for each in self._logged(name, seed)
            if "valid_loss" in each
        }

    def about(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what is written of each model beside its losses."""
        seeds = self.args.seeds
        return {
            "parameters": {name: self._parameters(name) for name in names},
            "seconds an update": {name: self.seconds(name, seeds) for name in names},
            "courses": {name: {seed: self.course(name, seed) for seed in seeds} for name in names},
        }

    def _logged(self, name: str, seed: int) -> list[dict[str, Any]]:
        return logged(self.work / f"{self.folder(name, seed).name}-done.log")

    def seconds(self, name: str, seeds: Sequence[int]) -> float:
        """Return the median time of an update over seeds; each training ran by itself."""
        # `ups` has two digits only.
        return statistics.median(
            float(each["wpb"]) / float(each["wps"])
            for seed in seeds
            for each in self._logged(name, seed)
            if float(each.get("wps", 0))
        )

    def _parameters(self, name: str) -> int:
        transformer = self.trained(name, self.args.seeds[0]).transformer
        return sum(each.numel() for each in transformer.parameters())


def summary(losses: np.ndarray) -> dict[str, Any]:
    """Return mean and interval of (seeds, documents), and the mean of each seed."""
    return {**interval(losses), "seeds": [float(mean) for mean in losses.mean(axis=1)]}


def parser(text: str | None, *, rates: Sequence[float] = ()) -> argparse.ArgumentParser:
    """Return a parser with the arguments of all such experiments but the models.

    Args:
        text: what the experiment is.
        rates: where its models differ in their rates, those that are tried; ``args.lr`` is a list then.
    """
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("corpus", type=Path, help="folder with train, valid and test files")
    made.add_argument("--work", type=Path, required=True, help="folder for data, models and losses")
    made.add_argument("--embed-dim", type=int, default=256, help="(default: %(default)s)")
    made.add_argument("--ffn-embed-dim", type=int, default=1024, help="(default: %(default)s)")
    made.add_argument("--num-heads", type=int, default=4, help="(default: %(default)s)")
    made.add_argument("--vocab-size", type=int, default=4000, help="pieces (default: %(default)s)")
    made.add_argument(
        "--source", type=int, default=256, help="tokens of a document that are read (default: %(default)s)"
    )
    made.add_argument("--target", type=int, default=192, help="most tokens of a summary (default: %(default)s)")
    made.add_argument("--updates", type=int, default=400, help="of each model (default: %(default)s)")
    made.add_argument("--batch", type=int, default=4, help="documents an update (default: %(default)s)")
    if rates:
        made.add_argument(
            "--lr", type=float, nargs="+", default=list(rates), help="peaks of the rate (default: %(default)s)"
        )
    else:
        made.add_argument("--lr", type=float, default=1e-3, help="peak of the rate (default: %(default)s)")
    made.add_argument("--documents", type=int, default=100, help="to validate on (default: %(default)s)")
    made.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="(default: %(default)s)")
    made.add_argument("--out", type=Path, help="write a JSON file")
    return made

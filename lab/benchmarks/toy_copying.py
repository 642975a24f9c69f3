"""Does copying generalise to longer sequences with the Terraformer, and not with a plain Transformer?

    python lab/benchmarks/toy_copying.py --work work/toy --out lab/benchmarks/results/toy-copying-cpu.json

Table 4 of Jaszczur et al. 2021 in a small size: the presets `toy_terraformer` and `toy_vanilla`, made narrower and
shallower alike, learn to copy digits by `fairseq-train --task toy_sequences`, with equal updates, rate and data. Then
they write greedily, for sequences as long as those of training, and for longer ones. Reported are the shares of symbols
and of whole sequences that are right, with 95% bootstrap intervals over seeds and sequences, and the paired
differences of the two; of whole sequences also for those in which no pair of digits stands twice, so that the last two
written say which comes next. A symbol is right if it stands in its place; the end counts as one.

The Transformer has the preset's sinusoidal positions. The Terraformer has none: its convolutions tell neighbours apart.
Ablations (`--ablations`) change one part of either, with the first seed alone.

A training that was interrupted goes on from its checkpoint, and what is finished is not run again.
"""

import argparse
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from likelihoods import interval, shown
from side_by_side import PAD, record
from steps import check_settings, step

from pyramidions.files.atomic import atomic_file
from pyramidions.files.processes import USER_DIR
from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.nn.beam_search import BeamSearch
from pyramidions.plugin.tasks.config import ToySequencesConfig
from pyramidions.plugin.tasks.toy_sequences import SYMBOLS, ToySequencesTask
from pyramidions.runs.recipe import model_flags
from pyramidions.text.tokenizer import SPECIALS

#: What makes the presets small; without dropout, copying is learned in fewer updates.
SMALL: dict[str, Any] = {
    "embed_dim": 64,
    "ffn_embed_dim": 128,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}
SHARES = ("symbols", "sequences")
_BATCH = 100  # sequences that are written at once


class Contender(NamedTuple):
    """A model.

    Attributes:
        arch: its preset.
        changes: fields that differ from the preset, beside those of `SMALL`.
    """

    arch: str
    changes: Mapping[str, Any]

    def but(self, **changes: Any) -> "Contender":
        """Return this model with other fields."""
        return self._replace(changes={**self.changes, **changes})

    def fields(self, layers: tuple[int, int]) -> dict[str, Any]:
        """Return the fields that differ from the preset, with ``layers`` in encoder and decoder."""
        return {**SMALL, "encoder_layers": layers[0], "decoder_layers": layers[1], **self.changes}


_WITHOUT_POSITIONS = {"encoder_positions": "none", "decoder_positions": "none"}
_TERRAFORMER = Contender("toy_terraformer", _WITHOUT_POSITIONS)
CONTENDERS = {"Transformer": Contender("toy_vanilla", {}), "Terraformer": _TERRAFORMER}
ABLATIONS = {
    "Transformer without positions": Contender("toy_vanilla", _WITHOUT_POSITIONS),
    "Terraformer with convolutions over 5 tokens": _TERRAFORMER.but(
        decoder_projections="multiplicative_conv(length_kernel=5)"
    ),
    "Terraformer without convolutions": _TERRAFORMER.but(decoder_projections="dense"),
    "Terraformer with positions": Contender("toy_terraformer", {}),
    "Terraformer without recurrence": _TERRAFORMER.but(recurrence="none"),
    "Terraformer with a pointer": _TERRAFORMER.but(output="pointer"),
}


def examples(lengths: tuple[int, int], count: int) -> list[dict[str, torch.Tensor]]:
    """Return sequences to test on, the same for all models."""
    task = ToySequencesTask(ToySequencesConfig(test_shortest=lengths[0], test_longest=lengths[1], test_examples=count))
    task.load_dataset("test")
    return [task.dataset("test")[number] for number in range(count)]


def right(model: Transformer, items: list[dict[str, torch.Tensor]]) -> np.ndarray:
    """Return of sequences the share of symbols that a model writes right, and 1 if all are: (2, N)."""
    longest, shares = max(len(item["target"]) for item in items), []
    search = BeamSearch(beam=1, min_len=1, max_len=longest)
    for begin in range(0, len(items), _BATCH):
        batch = items[begin : begin + _BATCH]
        sources = [item["source"] for item in batch]
        written = search(model, torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=PAD))
        for item, (best, *_) in zip(batch, written, strict=True):
            shares.append(right_places(best.tokens, item["target"]).double().mean().item())
    return np.array([shares, np.equal(shares, 1)], dtype=float)


def repeats_a_pair(item: dict[str, torch.Tensor]) -> bool:
    """Say whether two digits that follow one another do so twice."""
    digits = item["source"].tolist()[:-1]
    return len(set(pairwise(digits))) < len(digits) - 1


def right_places(written: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return where a written sequence equals its target; both end with the end: (T',), (T,) -> (T,)."""
    places = torch.full_like(target, PAD)
    places[: len(written)] = written[: len(target)]
    return places.eq(target)


class Experiment:
    """Trains and tests.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        check_settings(args.work, args, free=("seeds", "ablations", "work", "out"))
        #: to test on: those seen in training, and longer ones
        self.lengths = [args.lengths, *args.test_lengths]
        self.items = [examples(lengths, args.test) for lengths in self.lengths]
        self.keys = [f"{low}-{high} {share}" for low, high in self.lengths for share in SHARES]

    def trained(self, name: str, contender: Contender, seed: int) -> Path:
        """Return the checkpoint of a training."""
        args, save = self.args, self.args.work / f"{name.replace(' ', '-')}-{seed}"
        save.mkdir(exist_ok=True)
        step(
            args.work,
            save / "done",
            *("fairseq-train", "--user-dir", USER_DIR, "--cpu", "--task", "toy_sequences"),
            *("--shortest", args.lengths[0], "--longest", args.lengths[1], "--examples", args.batch * args.updates),
            *("--arch", contender.arch, *model_flags(contender.fields(args.layers))),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
            *("--lr", args.lr, "--lr-scheduler", "polynomial_decay", "--warmup-updates", args.updates // 10),
            *("--total-num-update", args.updates, "--max-update", args.updates, "--clip-norm", 1),
            *("--batch-size", args.batch, "--disable-validation", "--no-epoch-checkpoints", "--num-workers", 0),
            *("--save-interval-updates", 100, "--keep-interval-updates", 1, "--save-dir", save),
            *("--seed", seed, "--log-format", "json", "--log-interval", 50),
        )
        (save / "done").touch()
        return save / "checkpoint_last.pt"

    def tested(self, name: str, contender: Contender, seed: int) -> np.ndarray:
        """Return what is right, in percent: (2 lengths, N), in the order of ``keys``."""
        checkpoint = self.trained(name, contender, seed)
        path = checkpoint.with_name("right.npy")
        if not path.exists():
            model = self.loaded(contender, checkpoint)
            found = np.concatenate([right(model, items) for items in self.items])
            with atomic_file(path) as file:
                np.save(file, 100 * found)
        values: np.ndarray = np.load(path)
        print(f"{name}, seed {seed}: {', '.join(f'{mean:.1f}' for mean in values.mean(axis=1))}", flush=True)
        return values

    def loaded(self, contender: Contender, checkpoint: Path) -> Transformer:
        """Return a trained model."""
        model = build(preset(contender.arch, **contender.fields(self.args.layers)), len(SPECIALS) + len(SYMBOLS), PAD)
        weights = torch.load(checkpoint, weights_only=True)["model"]
        weights.pop("vocabulary")
        # What fairseq's face calls encoder.core.x is encoder.x of the model itself.
        model.load_state_dict({name.replace(".core.", ".", 1): value for name, value in weights.items()})
        return model.eval()

    def shares(self, contenders: Mapping[str, Contender], seeds: list[int]) -> dict[str, np.ndarray]:
        """Return what is right of each contender, in percent: (2 lengths, seeds, N), in the order of ``keys``."""
        return {
            name: np.stack([self.tested(name, contender, seed) for seed in seeds], axis=1)
            for name, contender in contenders.items()
        }

    def intervals(self, shares: np.ndarray) -> dict[str, dict[str, float]]:
        """Return mean and interval of each share: (2 lengths, seeds, N)."""
        return {key: interval(values) for key, values in zip(self.keys, shares, strict=True)}

    def without_repeats(self, shares: np.ndarray) -> dict[str, dict[str, float | None]]:
        """Return how many sequences of each range of lengths repeat no pair, and what percentage of them is right.

        Args:
            shares: (2 lengths, seeds, N).

        Returns:
            ``sequences`` and ``right``, which is None without any, by the range.
        """
        found: dict[str, dict[str, float | None]] = {}
        for (low, high), items, whole in zip(self.lengths, self.items, shares[1::2], strict=True):
            chosen = whole[:, [not repeats_a_pair(item) for item in items]]
            found[f"{low}-{high}"] = {
                "sequences": chosen.shape[1],
                "right": float(chosen.mean()) if chosen.size else None,
            }
        return found


def span(text: str) -> tuple[int, int]:
    """Return both ends of lengths such as 24-32."""
    low, high = text.split("-")
    return int(low), int(high)


def main() -> None:
    """Run the experiment and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for models and what they got right")
    parser.add_argument("--layers", type=int, nargs=2, default=[1, 2], help="of encoder and decoder (default: 1 2)")
    parser.add_argument("--lengths", type=span, default=(3, 16), help="to train on (default: 3-16)")
    parser.add_argument(
        "--test-lengths", type=span, nargs="+", default=[(24, 32), (32, 37)], help="(default: 24-32 32-37)"
    )
    parser.add_argument("--updates", type=int, default=800, help="of each model (default: 800)")
    parser.add_argument("--batch", type=int, default=32, help="sequences an update (default: 32)")
    parser.add_argument("--lr", type=float, default=2e-3, help="highest rate (default: 2e-3)")
    parser.add_argument("--test", type=int, default=500, help="sequences to test on, of either lengths (default: 500)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--ablations", nargs="*", choices=list(ABLATIONS), default=[], help="which to run as well")
    parser.add_argument("--out", type=Path, help="write a JSON file")
    args = parser.parse_args()
    args.device, args.seed = "cpu", args.seeds[0]
    args.work.mkdir(parents=True, exist_ok=True)
    experiment = Experiment(args)
    both = experiment.shares(CONTENDERS, args.seeds)
    found = {name: experiment.intervals(of) for name, of in both.items()}
    found["Terraformer minus Transformer"] = experiment.intervals(both["Terraformer"] - both["Transformer"])
    ablations = experiment.shares({name: ABLATIONS[name] for name in args.ablations}, args.seeds[:1])
    one_seed = {name: experiment.intervals(of) for name, of in ablations.items()}
    for name, of in {**found, **one_seed}.items():
        print(f"{name:32}", *(f"{key}: {shown(each, 1)}" for key, each in of.items()), sep="  ")
    each_seed = {name: dict(zip(experiment.keys, of.mean(axis=2).tolist(), strict=True)) for name, of in both.items()}
    unambiguous = {name: experiment.without_repeats(of) for name, of in both.items()}
    print("whole sequences that repeat no pair of digits:", unambiguous)
    details = {"each_seed": each_seed, "ablations": one_seed, "without_repeated_pairs": unambiguous}
    record(args, seeds=args.seeds, percent_right=found, **details)


if __name__ == "__main__":
    main()

"""Do segments help a small language model of characters that trains for equal seconds?

    python lab/benchmarks/language_model_quality.py sumpubmed --work work/language-models \\
        --out lab/benchmarks/results/language-model-quality-cpu.json

Nawrot et al. 2023, table 1, in a small size: models of 8 layers, 128 wide, 2,4,2 of them in an hourglass, read the
papers of SumPubMed as a stream of letters and spaces (`pyramidions prepare --characters`). Segments have two to four
characters (fixed), or end at spaces, where the language model itself wants them (gumbel), or where a predictor expects
the end of a Unigram piece or a character that is hard to predict (entropy). Longformer's model (Beltagy et al. 2020)
reads windows that grow from layer to layer, with two dilated heads in the upper half; it normalises before each
sublayer, and has a vanilla model that does so, too, beside it. Each model trains for as many updates as it makes in
--seconds, so that one with fewer operations for a character reads more of them. How long an update takes is measured
once, before all trainings, with all models in turns, so what else the machine does later changes nothing. Few
characters, if any, are read twice in the default time, so there is no dropout.

Reported are bits per character of the validation stream, each scored once behind --context others; shortening factors
there; and the F1 of boundaries against spaces and against what their predictor learns from. Gumbel draws its
boundaries, as in the published figures; those for rounded ones stand beside them.

An interrupted run goes on where it last saved, and what is finished is not run again.
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from side_by_side import PAD, record
from steps import check_settings, step

from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.readers import find_splits
from pyramidions.files.atomic import atomic_file
from pyramidions.models import build_language_model, language_model_preset
from pyramidions.models.fields import parse_layers
from pyramidions.nn.boundaries import GumbelBoundaries
from pyramidions.plugin.criterions.boundary_cross_entropy import BoundaryCrossEntropyCriterion
from pyramidions.plugin.models.architectures import index_of
from pyramidions.plugin.models.pyramidion_lm import PyramidionLanguageDecoder, PyramidionLanguageModel
from pyramidions.plugin.tasks.character_language_modeling import CharacterLanguageModelingTask
from pyramidions.plugin.tasks.character_windows import CharacterWindows
from pyramidions.plugin.tasks.config import CharacterLanguageModelingConfig
from pyramidions.text.tokenizer import SPACE

VANILLA, FIXED, WHITESPACE, GUMBEL, UNIGRAM = "vanilla", "fixed_4", "whitespace", "gumbel", "unigram"
LEARNED = (GUMBEL, UNIGRAM, "entropy")
LONGFORMER, PRE_NORM = "longformer", "vanilla_pre_norm"
ROWS = (VANILLA, PRE_NORM, LONGFORMER, "fixed_2", "fixed_3", FIXED, WHITESPACE, *LEARNED)
PRIOR = 0.2
#: What is asked: bits that whitespace is below others with each seed; how far gumbel's shortening factor may be from
#: one over its prior; the F1 of the predictor against pieces.
LESS, NEAR, F1 = 0.03, 0.25, 0.8
_WARMUP = 0.05  # of the updates
_SAVES = 20  # of a training, at least
_CLIP = 0.25


class Training:
    """One model, its optimizer, and how far they are.

    Args:
        args: of the command line.
        row: of `ROWS`.
        seed: of weights and windows.
        most: updates of the training.
    """

    def __init__(self, args: argparse.Namespace, row: str, seed: int, most: int) -> None:
        self.args, self.row, self.seed, self.most = args, row, seed, most
        self.folder: Path = args.work / f"{row}-{seed}"
        self.data = CharacterFolder(args.work / "data")
        task = CharacterLanguageModelingTask(CharacterLanguageModelingConfig(data=str(self.data.path)))
        self.criterion = BoundaryCrossEntropyCriterion(task, boundary_weight=1.0, sentence_avg=False)
        options: dict[str, Any] = {"layers": args.layers}
        if row == PRE_NORM:
            options["normalize_before"] = True
        if row == GUMBEL:
            options["boundaries"] = f"gumbel(prior={PRIOR})"
        if row == LONGFORMER:
            layers = sum(parse_layers(args.layers))
            options = {"layers": str(layers), "self_attention": growing_windows(layers, args.length)}
        config = language_model_preset(
            {LONGFORMER: "longformer_lm", PRE_NORM: "hourglass_vanilla"}.get(row, f"hourglass_{row}"),
            embed_dim=args.embed_dim,
            ffn_embed_dim=4 * args.embed_dim,
            num_heads=args.num_heads,
            dropout=0.0,
            attention_dropout=0.0,
            activation_dropout=0.0,
            **options,
        )
        torch.manual_seed(seed)
        dictionary = task.dictionary
        core = build_language_model(config, len(dictionary), PAD, index_of(dictionary, SPACE))
        self.model = PyramidionLanguageModel(PyramidionLanguageDecoder(dictionary, core))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.updates = 0
        self.course: list[dict[str, float]] = []
        self._training = self.windows("train", args.length)
        self._load()

    def train(self) -> None:
        """Make the updates that are left."""
        self.folder.mkdir(exist_ok=True)
        every = max(1, self.most // _SAVES)
        while self.updates < self.most:
            nats = read = 0.0
            for _ in range(min(every, self.most - self.updates)):
                log = self.update()
                nats, read = nats + float(log["nll_loss"]), read + log["ntokens"]
            bits = nats / read / math.log(2)
            self.course.append({"updates": self.updates, "train_bpc": round(bits, 4)})
            self._save()
            print(f"{self.row}, seed {self.seed}: {self.updates} of {self.most} updates, {bits:.3f} bits", flush=True)

    def windows(self, split: str, length: int, context: int = 0) -> CharacterWindows:
        """Return the windows of a split; those of training are rolled and shuffled."""
        tokens, ends = self.data.tokens(split), self.data.boundaries(split)
        seed = self.seed if split == "train" else None
        return CharacterWindows(tokens, length, context=context, boundaries=ends, seed=seed)

    def update(self) -> dict[str, Any]:
        """Make an update; return what the criterion logs."""
        args, windows, done = self.args, self._training, self.updates / self.most
        self.model.train()
        # The paper's schedule: up to the rate, and down to nothing in a cosine.
        rate = done / _WARMUP if done < _WARMUP else 0.5 + 0.5 * math.cos(math.pi * (done - _WARMUP) / (1 - _WARMUP))
        for group in self.optimizer.param_groups:
            group["lr"] = args.lr * rate
        epoch, number = divmod(self.updates, len(windows) // args.batch)
        windows.set_epoch(epoch + 1)
        chosen = windows.ordered_indices()[number * args.batch : (number + 1) * args.batch]
        loss, characters, log = self.criterion(self.model, windows.collater([windows[i] for i in chosen.tolist()]))
        (loss / characters).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.updates += 1
        return log

    def validated(self) -> dict[str, Any]:
        """Return bits per character of the validation stream, and what its boundaries are like."""
        path = self.folder / "valid.json"
        if not path.exists():
            found: dict[str, Any] = self._scored()
            drawing = [part for part in self.model.modules() if isinstance(part, GumbelBoundaries)]
            if drawing:
                for part in drawing:
                    part.evaluation = "sample"
                found = {**self._scored(), "rounded": found}
            with atomic_file(path) as file:
                file.write(json.dumps(found).encode())
        validated: dict[str, Any] = json.loads(path.read_text())
        return validated

    @torch.no_grad()
    def _scored(self) -> dict[str, float]:
        args = self.args
        windows = self.windows("valid", args.length - args.context, args.context)
        self.model.eval()
        torch.manual_seed(self.seed)
        sums: dict[str, float] = {}
        for begin in range(0, len(windows), args.batch_valid):
            items = [windows[i] for i in range(begin, min(begin + args.batch_valid, len(windows)))]
            for name, value in self.criterion(self.model, windows.collater(items))[2].items():
                sums[name] = sums.get(name, 0.0) + float(value)
        found = {"bpc": sums["nll_loss"] / sums["ntokens"] / math.log(2), "characters": sums["ntokens"]}
        if sums.get("segments"):
            found["shortening_factor"] = sums["positions"] / sums["segments"]
        return found | {
            f"{name}_f1": 2 * sums[f"{name}_both"] / sums[f"{name}_either"]
            for name in ("spaces", "targets")
            if sums.get(f"{name}_either")
        }

    def _save(self) -> None:
        parts = {name: getattr(self, name).state_dict() for name in ("model", "optimizer")}
        about = {name: getattr(self, name) for name in ("updates", "course")}
        with atomic_file(self.folder / "state.pt") as file:
            torch.save({**parts, **about, "random": torch.get_rng_state()}, file)

    def _load(self) -> None:
        path = self.folder / "state.pt"
        if path.exists():
            state: dict[str, Any] = torch.load(path, weights_only=True)
            self.model.load_state_dict(state.pop("model"))
            self.optimizer.load_state_dict(state.pop("optimizer"))
            torch.set_rng_state(state.pop("random"))
            vars(self).update(state)


def growing_windows(layers: int, length: int) -> str:
    """Return attention to windows that double from layer to layer up to half a text, as in table 12 of the paper."""
    kinds = []
    for layer in range(layers):
        window = min(8 << layer, length // 2)
        dilated = f", dilation={2 + (6 * layer - 3 * layers) // layers}, dilated_heads=2" if 2 * layer >= layers else ""
        kinds.append(f"relative_window(window={window}{dilated})")
    return " | ".join(kinds)


def prepare(args: argparse.Namespace) -> None:
    """Make the streams, unless they are there."""
    limits = {"train": args.train_characters, "valid": args.valid_characters, "test": args.valid_characters}
    words: list[object] = []
    for split, path in find_splits(str(args.corpus)).items():
        words += [f"--{split}", path, f"--{split}-characters", limits[split]]
    step(
        args.work,
        args.work / "data" / "manifest.json",
        *("pyramidions", "prepare", "--characters", "en", "--source-field", "article", *words),
        *("--pieces", args.pieces, "--workers", 1, "--out", args.work / "data"),
    )


def updates_of(args: argparse.Namespace) -> dict[str, int]:
    """Return how many updates each model makes in the time, measured in turns unless that was done before."""
    path = args.work / "updates.json"
    known: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
    if rows := [row for row in ROWS if row not in known]:
        trainings = {row: Training(args, row, args.seeds[0], most=1000) for row in rows}
        # At first every second character ends a segment where that is learned, which makes updates slow.
        for row in set(LEARNED) & set(rows):
            for _ in range(args.settle):
                trainings[row].update()
        seconds: dict[str, list[float]] = {row: [] for row in rows}
        for turn in range(1 + args.turns):
            for row, training in trainings.items():
                begin = time.process_time()
                training.update()
                seconds[row].append(time.process_time() - begin)
            print(f"turn {turn}:", *(f"{row} {took[-1]:.2f} s" for row, took in seconds.items()), flush=True)
        # The first turn does not count.
        found = {row: max(1, round(args.seconds / statistics.median(took[1:]))) for row, took in seconds.items()}
        with atomic_file(path) as file:
            file.write(json.dumps(known | found).encode())
    updates: dict[str, int] = json.loads(path.read_text())
    return updates


def trained(args: argparse.Namespace, seed: int, updates: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Train the models of a seed; return what came out of each."""
    found = {}
    for row in args.rows:
        if seed == args.seeds[0] or row not in args.once:
            training = Training(args, row, seed, updates[row])
            training.train()
            read = training.updates * args.batch * args.length
            found[row] = {**training.validated(), "updates": training.updates, "read": read, "course": training.course}
    return found


def judged(runs: dict[int, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return each figure that is asked for, with its value, what is asked, and whether it is met, seed by seed."""
    figures = []

    def ask(name: str, seed: int, value: float | None, asked: str, met: bool) -> None:
        figures.append({"name": name, "seed": seed, "value": value, "asked": asked, "met": met})

    for seed, found in runs.items():
        for other in (VANILLA, FIXED):
            if {WHITESPACE, other} <= found.keys():
                less = found[WHITESPACE]["bpc"] - found[other]["bpc"]
                ask(f"bits, whitespace minus {other}", seed, less, f"at most -{LESS}", less <= -LESS)
        if GUMBEL in found:
            factor = found[GUMBEL].get("shortening_factor")
            near = factor is not None and abs(factor * PRIOR - 1) <= NEAR
            ask("shortening factor of gumbel", seed, factor, f"within {NEAR:.0%} of {1 / PRIOR:g}", near)
        if UNIGRAM in found:
            f1 = found[UNIGRAM].get("targets_f1", 0.0)
            ask("F1 of the predictor against pieces", seed, f1, f"at least {F1}", f1 >= F1)
    return figures


def report(runs: dict[int, dict[str, dict[str, Any]]], figures: list[dict[str, Any]]) -> None:
    """Print a table and the figures that are asked for."""
    names = ("bpc", "shortening_factor", "spaces_f1", "targets_f1")
    print(
        "| | seed | characters read | bits | shortening factor | F1, spaces | F1, targets |", "|---" * 7 + "|", sep="\n"
    )
    for seed, found in runs.items():
        for row, of in found.items():
            ways = {row: of} | ({f"{row}, rounded": {**of["rounded"], "read": of["read"]}} if "rounded" in of else {})
            for way, values in ways.items():
                cells = [f"{values[name]:.3f}" if name in values else "" for name in names]
                print("|", " | ".join([way, str(seed), f"{values['read']:,}", *cells]), "|")
    for figure in figures:
        value = "nothing" if figure["value"] is None else f"{figure['value']:.3f}"
        missed = "" if figure["met"] else ": MISSED"
        print(f"{figure['name']}, seed {figure['seed']}: {value}, asked {figure['asked']}{missed}")


def main() -> None:
    """Run the experiment and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder with train, valid and test files")
    parser.add_argument("--work", type=Path, required=True, help="folder for data and models")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, help="which to train (default: all)")
    parser.add_argument("--once", nargs="+", choices=ROWS, default=[], help="rows with the first seed alone")
    parser.add_argument("--seconds", type=float, default=600, help="of a core: as many updates fit (default: 600)")
    parser.add_argument("--turns", type=int, default=20, help="updates of each model that are timed (default: 20)")
    parser.add_argument("--settle", type=int, default=150, help="untimed ones, if ends are learned (default: 150)")
    parser.add_argument("--embed-dim", type=int, default=128, help="(default: 128)")
    parser.add_argument("--num-heads", type=int, default=4, help="(default: 4)")
    parser.add_argument("--layers", default="2,4,2", help="vanilla has as many in all (default: 2,4,2)")
    parser.add_argument("--length", type=int, default=512, help="characters of a window (default: 512)")
    parser.add_argument("--context", type=int, default=384, help="of them unscored in validation (default: 384)")
    parser.add_argument("--batch", type=int, default=4, help="windows an update (default: 4)")
    parser.add_argument("--batch-valid", type=int, default=16, help="windows at once in validation (default: 16)")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest rate (default: 1e-3)")
    parser.add_argument("--train-characters", type=int, default=10_000_000, help="(default: 10 million)")
    parser.add_argument("--valid-characters", type=int, default=200_000, help="(default: 200,000)")
    parser.add_argument("--pieces", type=int, default=10_000, help="of the Unigram model (default: 10,000)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--out", type=Path, help="write a JSON file")
    args = parser.parse_args()
    if not 0 <= args.context < args.length:
        parser.error(f"--context must be at least 0 and below --length ({args.length}), but is {args.context}.")
    check_settings(args.work, args, free=("rows", "once", "seeds", "batch_valid", "work", "out"))
    prepare(args)
    updates = updates_of(args)
    runs = {seed: trained(args, seed, updates) for seed in args.seeds}
    figures = judged(runs)
    report(runs, figures)
    args.device, args.seed = "cpu", args.seeds[0]
    record(args, seeds=args.seeds, figures=figures, updates=updates, runs=runs)


if __name__ == "__main__":
    main()

"""Does a pretrained start write better summaries at equal updates, with and without pooling?

    python lab/benchmarks/pretraining.py sumpubmed --work work/pretrained --minutes 60
    python lab/benchmarks/pretrained_start.py sumpubmed --pretrained work/pretrained --work work/start \\
        --out lab/benchmarks/results/pretrained-start-cpu.json

A pretrained BART is imported with more positions and blockwise attention, without and with pooling. Both are trained on
summaries, and so are two models of the very same shapes from nothing: equal updates, rate, seed, and order of the data.
Reported are the loss on validation documents in the course of the training, the log-likelihood of their summaries with
95% bootstrap intervals, and ROUGE on test documents with intervals and paired differences, beside the lead of the same
length. Any folder of a BART as the hub has it will do.

Every step is a command; one that is done is not run again.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from likelihoods import documents_of, interval, likelihoods, shown
from side_by_side import record
from steps import first_documents, logged, step

from pyramidions.data.readers import find_splits
from pyramidions.files.processes import USER_DIR
from pyramidions.inference.saved_model import load_model
from pyramidions.models import PyramidionConfig
from pyramidions.runs.recipe import model_flags


class Contender(NamedTuple):
    """A way to begin.

    Attributes:
        pretrained: with the weights of the pretrained model.
        pooled: with pooling in the encoder.
    """

    pretrained: bool
    pooled: bool

    @property
    def name(self) -> str:
        """Name of its folders."""
        return ("pretrained" if self.pretrained else "scratch") + ("-pooled" if self.pooled else "")


CONTENDERS = [Contender(pretrained, pooled) for pretrained in (True, False) for pooled in (False, True)]


class Experiment:
    """Imports, prepares, trains, summarizes and scores.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.work: Path = args.work
        splits = find_splits(str(args.documents))
        self.train = splits["train"]
        self.valid, self.test = (
            first_documents(splits[name], args.documents_scored, self.work / f"{name}.jsonl")
            for name in ("valid", "test")
        )

    def step(self, made: Path, name: str, *words: object) -> None:
        """Run a command unless what it makes is there."""
        step(self.work, made, name, *words)

    def imported(self, *, pooled: bool) -> Path:
        """Return the pretrained model as a checkpoint of ours."""
        args, made = self.args, self.work / ("imported-pooled.pt" if pooled else "imported.pt")
        pooling = ("--pooling-lengths", args.pooling_lengths) if pooled else ()
        self.step(
            made,
            *("pyramidions", "import", args.pretrained, "-o", made, "--max-source-positions", args.source),
            *("--max-target-positions", args.target, "--self-attention", f"blockwise(block_size={args.block})"),
            *("--seed", args.seed, *pooling),
        )
        return made

    def prepared(self) -> Path:
        """Return the data folder."""
        folder = self.work / "data"
        self.step(
            folder / "manifest.json",
            *("pyramidions", "prepare", "--train", self.train, "--valid", self.valid, "--test", self.test),
            *("--out", folder, "--tokenizer", self.imported(pooled=False)),
        )
        return folder

    def trained(self, contender: Contender) -> Path:
        """Return the checkpoint of a contender."""
        args, data, save = self.args, self.prepared(), self.work / contender.name
        start = self.imported(pooled=contender.pooled)
        config, default = asdict(load_model(start).config), asdict(PyramidionConfig())
        model = model_flags({name: value for name, value in config.items() if value != default[name]})
        save.mkdir(exist_ok=True)
        self.step(
            save / "done",
            *("fairseq-train", data, "--user-dir", USER_DIR, "--cpu", "--task", "long_document_summarization"),
            *("--arch", "vanilla", *model, "--max-target-positions", args.target),
            *(("--finetune-from-model", start) if contender.pretrained else ()),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
            *("--lr", args.lr, "--lr-scheduler", "polynomial_decay", "--warmup-updates", args.updates // 10),
            *("--total-num-update", args.updates, "--clip-norm", 1, "--batch-size", args.batch),
            *("--max-update", args.updates, "--validate-interval-updates", max(1, args.updates // 2)),
            *("--save-dir", save, "--no-epoch-checkpoints", "--no-last-checkpoints", "--seed", args.seed),
            *("--log-format", "json", "--log-interval", 50),
        )
        (save / "done").touch()
        return save / "checkpoint_best.pt"

    def course(self, contender: Contender) -> dict[str, Any]:
        """Return the loss on validation documents by updates, and updates per second."""
        lines = logged(self.work / f"{contender.name}-done.log")
        valid = {int(each["valid_num_updates"]): float(each["valid_loss"]) for each in lines if "valid_loss" in each}
        # Whole seconds: a few updates may take 0.
        seconds = max(1.0, float(lines[-1]["train_train_wall"]))
        return {"valid_loss": valid, "updates_per_second": self.args.updates / seconds}

    def summaries(self, contender: Contender) -> Path:
        """Return the summaries of the test documents."""
        out = self.work / f"{contender.name}.jsonl"
        options = ("--no-repeat-ngram-size", 3, "--beam", 2, "--min-len", self.args.target // 2, "--device", "cpu")
        options += ("--precision", "float32")
        model = self.trained(contender)
        self.step(out, "pyramidions", "summarize", model, self.test, "--field", "article", *options, "-o", out)
        return out

    def rouge(self) -> dict[str, Any]:
        """Score all contenders, and compare each with each and the lead of the same length with all."""
        found: dict[str, Any] = {"systems": {}, "differences": {}}
        files = {contender.name: self.summaries(contender) for contender in CONTENDERS}
        words = [len(json.loads(line)["summary"].split()) for file in files.values() for line in file.open()]
        found["lead_words"] = round(sum(words) / len(words))
        lead = ("--lead", "--lead-words", found["lead_words"])
        for name, file in files.items():
            made = self.work / f"{name}-scores.json"
            others = [word for other in files.values() if other != file for word in ("--baseline", other)]
            self.step(made, "pyramidions", "score", file, "--data", self.work / "data", *others, *lead, "--json", made)
            scores = json.loads(made.read_text())
            found["signature"] = scores["signature"]
            found["systems"] |= {Path(system).stem: rouge for system, rouge in scores["systems"].items()}
            for other, differences in scores["comparisons"].items():
                found["differences"][f"{name} minus {Path(other).stem}"] = differences
        return found

    def likelihood(self) -> dict[str, Any]:
        """Return how probable each contender finds the summaries of validation documents, and the differences."""
        documents = documents_of(self.work, "valid", self.args.documents_scored)
        values = {each.name: likelihoods(load_model(self.trained(each)), documents) for each in CONTENDERS}
        return {
            "systems": {name: interval(each) for name, each in values.items()},
            "differences": {f"{a} minus {b}": interval(values[a] - values[b]) for a, b in combinations(values, 2)},
        }


def report(found: dict[str, Any]) -> None:
    """Print what was found."""
    for name, course in found["courses"].items():
        print(name, *(f"{updates}: {loss:.3f}" for updates, loss in course["valid_loss"].items()), sep="  ")
    for name, likelihood in found["likelihood"]["systems"].items():
        print(f"{name:20} log-likelihood {shown(likelihood)}")
    for name, rouge in found["rouge"]["systems"].items():
        print(f"{name:20}", "  ".join(f"{label} {shown(each, 2)}" for label, each in rouge.items()))
    for name, difference in found["likelihood"]["differences"].items():
        print(f"{name:40} log-likelihood {shown(difference)}")
    for name, rouge in found["rouge"]["differences"].items():
        mean = {**rouge["rouge1"], "mean": rouge["rouge1"]["difference"]}
        print(f"{name:40} ROUGE-1 {shown(mean, 2)}")


def main(words: Sequence[str] | None = None) -> None:
    """Run the experiment and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, help="folder with train, valid and test files")
    parser.add_argument("--pretrained", type=Path, required=True, help="folder of a BART")
    parser.add_argument("--work", type=Path, required=True, help="folder for data, models and summaries")
    parser.add_argument("--source", type=int, default=1024, help="tokens of a document that are read (default: 1024)")
    parser.add_argument("--target", type=int, default=200, help="most tokens of a summary (default: 200)")
    parser.add_argument("--block", type=int, default=512, help="block size (default: 512)")
    parser.add_argument("--pooling-lengths", default="None,256,None", help="of pooled models (default: None,256,None)")
    parser.add_argument("--updates", type=int, default=600, help="of each model (default: 600)")
    parser.add_argument("--batch", type=int, default=2, help="documents an update (default: 2)")
    parser.add_argument("--lr", type=float, default=1e-3, help="peak of the rate (default: 1e-3)")
    parser.add_argument("--documents-scored", type=int, default=200, help="for validation and test (default: 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write a JSON file")
    args = parser.parse_args(words)
    args.device = "cpu"
    args.work.mkdir(parents=True, exist_ok=True)
    experiment = Experiment(args)
    rouge = experiment.rouge()
    found = {
        "courses": {each.name: experiment.course(each) for each in CONTENDERS},
        "likelihood": experiment.likelihood(),
        "rouge": rouge,
    }
    report(found)
    pretraining = args.pretrained / "pretraining.json"
    about = {"pretraining": json.loads(pretraining.read_text())} if pretraining.exists() else {}
    record(args, **found, **about)


if __name__ == "__main__":
    main()

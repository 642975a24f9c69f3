"""Which way to train on long documents writes the better summaries, at equal updates and equal length?

    python lab/benchmarks/long_training.py sumpubmed --work work --out lab/benchmarks/results/long-training-cpu

Three small models of one shape: trained on the beginning of each document (truncate), on the sentences that HipoRank
selects (extract, then abstract), and on sections with their parts of the summary (divide and conquer, DANCER). Each
reads at most as many tokens, takes as many updates of as many pairs, and writes summaries of the whole test documents
in its own way. Reported are ROUGE with 95% bootstrap intervals and the paired differences to truncation, beside the
lead and HipoRank. The folder has train, valid and test files for `prepare`, with article and abstract.

Every step is a command; one that is done is not run again.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.environment import commit, hardware, versions


class Way(NamedTuple):
    """A way to read long documents.

    Attributes:
        name: of its folders.
        prepare: options of `pyramidions prepare`.
        summarize: options of `pyramidions summarize`.
    """

    name: str
    prepare: list[str]
    summarize: list[str]


class Experiment:
    """Prepares, trains, summarizes and scores.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.work: Path = args.work
        tokenizer = ["--tokenizer", str(self.work / "truncate" / "sentencepiece.model")]
        self.ways = [
            Way("truncate", ["--vocab-size", "8000", "--sentences", "300000"], ["--long", "truncate"]),
            Way(
                "extract",
                [*tokenizer, "--select", "hiporank", "--budget", str(args.source)],
                ["--long", "extract", "--select", "hiporank"],
            ),
            Way("sections", [*tokenizer, "--divide", "sections"], ["--long", "sections"]),
        ]

    def step(self, made: Path, *command: object) -> None:
        """Run a command unless what it makes is there; its output is kept in the work folder."""
        if made.exists():
            return
        words = [str(word) for word in command]
        print(" ".join(words), flush=True)
        name = "-".join(made.relative_to(self.work).parts)
        with (self.work / f"{name}.log").open("w") as log:
            done = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            sys.exit(f"{words[0]} failed; all of its output is in {log.name}.")

    def train(self, way: Way) -> Path:
        """Return the checkpoint of a way."""
        args, folder = self.args, self.work / way.name
        self.step(folder / "manifest.json", "pyramidions", "prepare", args.documents, "--out", folder, *way.prepare)
        save = self.work / f"{way.name}-{args.seed}"
        user_dir = Path(__file__).resolve().parents[2] / "pyramidions"
        save.mkdir(exist_ok=True)
        self.step(
            save / "done",
            *("fairseq-train", folder, "--user-dir", user_dir, "--cpu", "--task", "long_document_summarization"),
            *("--arch", "pyramidion", "--embed-dim", 128, "--ffn-embed-dim", 512, "--num-heads", 4),
            *("--self-attention", "blockwise(block_size=256)", "--pooling-lengths", "512,256"),
            *("--normalize-before", "--max-source-positions", args.source, "--max-target-positions", 512),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
            *("--lr", 2e-3, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 200, "--clip-norm", 1),
            *("--batch-size", 8, "--max-update", args.updates, "--disable-validation", "--no-epoch-checkpoints"),
            *("--save-dir", save, "--seed", args.seed, "--log-format", "simple", "--log-interval", 50),
        )
        (save / "done").touch()
        return save / "checkpoint_last.pt"

    def summaries(self, way: Way) -> Path:
        """Return the summaries of the test documents."""
        out = self.work / f"{way.name}-{self.args.seed}.jsonl"
        test = next(iter(sorted(self.args.documents.glob("test.jsonl*"))))
        options = ["--no-repeat-ngram-size", 3, "--beam", 2, "--min-len", 150, "--max-len", 400, "--device", "cpu"]
        options += ["--precision", "float32"]
        model = self.train(way)
        self.step(
            out, "pyramidions", "summarize", model, test, "--field", "article", *way.summarize, *options, "-o", out
        )
        return out

    def scores(self) -> dict[str, Any]:
        """Score all of them against the whole references."""
        first, *others = [self.summaries(way) for way in self.ways]
        extracts, scored = self.work / "extracts.jsonl", self.work / f"scores-{self.args.seed}.json"
        test = next(iter(sorted(self.args.documents.glob("test.jsonl*"))))
        self.step(extracts, "pyramidions", "extract", test, "--field", "article", "--words", 220, "-o", extracts)
        compared = [word for other in (first, extracts) for word in ("--baseline", other)]
        for way, summaries in zip(self.ways[1:], others, strict=True):
            made = scored.with_name(f"{way.name}-{scored.name}")
            data = ["--data", self.work / "truncate", "--lead", "--lead-words", 220]
            self.step(made, "pyramidions", "score", summaries, *data, *compared, "--json", made)
        return {
            way.name: json.loads(scored.with_name(f"{way.name}-{scored.name}").read_text()) for way in self.ways[1:]
        }


def main() -> None:
    """Run the experiment and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, help="folder with train, valid and test files")
    parser.add_argument("--work", type=Path, required=True, help="folder for data, models and summaries")
    parser.add_argument("--source", type=int, default=1024, help="tokens that a model reads (default: 1024)")
    parser.add_argument("--updates", type=int, default=2000, help="of each model (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the training (default: 1)")
    parser.add_argument("--out", type=Path, help="write PATH.json")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    found = Experiment(args).scores()
    for name, each in found.items():
        print(f"\n{name}:")
        for system, rouge in each["systems"].items():
            print(f"  {Path(system).name:25}", "  ".join(f"{e['mean']:5.2f}" for e in rouge.values()))
        for other, differences in each["comparisons"].items():
            d = differences["rouge1"]
            print(f"  ROUGE-1 minus {Path(other).name}: {d['difference']:+.2f} [{d['low']:+.2f}, {d['high']:+.2f}]")
    if args.out is not None:
        for each in found.values():
            each.pop("documents")
            for part in ("systems", "comparisons"):
                each[part] = {Path(name).name: value for name, value in each[part].items()}
        about = {
            "command": " ".join(["python", "lab/benchmarks/long_training.py", *sys.argv[1:]]),
            "commit": commit(),
            "versions": versions(),
            "hardware": hardware("cpu"),
            "ways": found,
        }
        args.out.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()

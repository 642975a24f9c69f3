"""What the harmed commands read: small corpora, data folders and models, each made when it is first asked for."""

import json
import lzma
import sys
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from pathlib import Path

from fault_runs import run

from pyramidions.files.atomic import atomic_folder

ROOT = Path(__file__).parents[2]
PLUGIN = str(ROOT / "pyramidions")
SAMPLE = ROOT / "data" / "sample"
# The tests know how to make tiny presets, pretrained models and results.
sys.path.append(str(ROOT / "tests"))

LAST = "checkpoints/checkpoint_last.pt"
#: by its name, the vocabulary of a data folder: sentences, lines or nothing are marked
DATA = {"data": [], "labelled": ["--labels"], "turns": ["--turn-markers"]}
_SPLITS = {"train": 24, "valid": 6, "test": 6}


class Materials:
    """Whole inputs in a folder, which are kept for the next sitting.

    Args:
        folder: in which they lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return a folder, which `make` fills the first time."""
        path = self._folder / name
        if not path.exists():
            print(f"making {name}", flush=True)
            with atomic_folder(path) as partial:
                make(partial)
        return path

    @cached_property
    def corpus(self) -> Path:
        """A few papers of the sample, as train.jsonl, valid.jsonl and test.jsonl."""

        def make(folder: Path) -> None:
            for split, count in _SPLITS.items():
                with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers:
                    (folder / f"{split}.jsonl").write_text("".join(islice(papers, count)))

        return self.made("corpus", make)

    @cached_property
    def papers(self) -> Path:
        """The papers of the test split."""
        return self.corpus / "test.jsonl"

    @cached_property
    def text(self) -> Path:
        """A plain text, and three short ones in a .jsonl file."""

        def make(folder: Path) -> None:
            articles = [json.loads(line)["article"] for line in self.papers.read_text().splitlines()]
            (folder / "text.txt").write_text("\n".join(articles)[:20_000])
            short = "".join(json.dumps({"text": article[:600]}) + "\n" for article in articles[:3])
            (folder / "texts.jsonl").write_text(short)

        return self.made("text", make)

    def data(self, name: str = "data") -> Path:
        """A prepared folder, one of DATA."""
        flags = ["--vocab-size", "800", *DATA[name]]
        return self._of_command(
            name, lambda out: ["prepare", str(self.corpus), "--out", str(out / "data"), *flags], "data"
        )

    @cached_property
    def characters(self) -> Path:
        """A prepared folder of characters."""
        return self._of_command("characters", lambda out: prepare_characters(self, out / "data"), "data")

    def model(self, name: str, train: Callable[[Path], list[str]]) -> Path:
        """The last checkpoint of a training."""
        return self.made(name, lambda folder: _succeed(train(folder))) / LAST

    @cached_property
    def pretrained(self) -> Path:
        """A tiny BART with random weights."""

        def make(folder: Path) -> None:
            from small_pretrained import model_of, save

            save(model_of("bart"), folder)

        return self.made("pretrained", make)

    @cached_property
    def imported(self) -> Path:
        """The checkpoint that `import` makes of it."""
        return self._of_command("imported", lambda out: import_bart(self, out), "bart.pt")

    @cached_property
    def imported_data(self) -> Path:
        """The corpus in the pieces of the imported model."""
        tokenizer = ["--tokenizer", str(self.imported)]
        corpus = str(self.corpus)
        return self._of_command(
            "imported-data", lambda out: ["prepare", corpus, "--out", str(out / "data"), *tokenizer], "data"
        )

    @cached_property
    def summaries(self) -> Path:
        """Summaries of the test split: their first sentences."""
        return self._of_command(
            "summaries",
            lambda out: ["extract", str(self.papers), "--method", "lead", "-o", str(out / "summaries.jsonl")],
            "summaries.jsonl",
        )

    def _of_command(self, name: str, command: Callable[[Path], list[str]], made: str) -> Path:
        return self.made(name, lambda folder: _succeed(["pyramidions", *command(folder)])) / made


def prepare_characters(materials: Materials, out: Path) -> list[str]:
    """Return the words that make a folder of characters."""
    text = str(materials.text / "text.txt")
    sizes = ["--valid-characters", "500", "--test-characters", "500", "--pieces", "60"]
    return ["prepare", text, "--characters", "en", *sizes, "--out", str(out)]


def import_bart(materials: Materials, out: Path) -> list[str]:
    """Return the words that make a checkpoint of the pretrained model, with blocks and pooling."""
    attention = ["--self-attention", "blockwise(block_size=40)"]
    sizes = ["--max-source-positions", "120", "--pooling-lengths", "None,8"]
    return ["import", str(materials.pretrained), "-o", str(out / "bart.pt"), *sizes, *attention]


def _succeed(command: list[str]) -> None:
    if (done := run(command)).status:
        sys.exit(done.output)

"""What runs of all kinds have in common: their documents, and the systems that models are compared with."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.data.holdout import survey, write_splits
from pyramidions.data.readers import Corpus, Document
from pyramidions.documents.record_fields import sectioned_text
from pyramidions.extract import Budget, HipoRank, Lead, Ranker, SelectionRules
from pyramidions.extract.extraction import extract
from pyramidions.files.atomic import atomic_file
from pyramidions.files.parallel import available_cores, ordered_map
from pyramidions.files.processes import program
from pyramidions.files.progress import progress_bar
from pyramidions.runs.arguments import Arguments
from pyramidions.runs.plan import Plan
from pyramidions.runs.steps import Command, Say, State, Step, run
from pyramidions.text.detection import detect_language
from pyramidions.text.language import ENGLISH
from pyramidions.text.turns import read_outline

# Documents that tell the language of a corpus, and characters of each.
_FIRST, _BEGINNING = 20, 200
#: Methods that need no training, with which a model is compared; their extracts lie in files of these names.
UNTRAINED: Mapping[str, Ranker] = {"lead": Lead(), "hiporank": HipoRank()}


class Places:
    """Where the files of a run lie."""

    def __init__(self, model: Path) -> None:
        if model.name in ("", ".."):
            raise UserError(f"MODEL must end in the name of a folder to make, but is {model}.")
        self.model = model
        #: everything but the export; training can go on from it by hand
        self.work = work = model.with_name(f"{model.name}.work")
        self.state = work / "run.json"  #: what is done
        self.documents = work / "documents"  #: the splits, where some documents were held out
        self.data = work / "data"  #: the prepared documents
        self.checkpoints = work / "checkpoints"  #: what fairseq-train saves
        self.best = self.checkpoints / "checkpoint_best.pt"  #: the best model so far
        self.last = self.checkpoints / "checkpoint_last.pt"  #: what a training goes on from
        self.train_log = work / "train.log"  #: what fairseq-train prints
        self.papers = work / "papers"  #: documents as a model of concepts reads them
        self.fitted = work / "fitted"  #: a model of concepts
        self.references = work / "references.jsonl"  #: summaries of the test split, where no data folder has them
        self.summaries = work / "generate-test.txt"  #: those of the test split, as fairseq-generate writes them
        self.scores = work / "scores.json"  #: all figures
        self.table = work / "scores.txt"  #: the scores as one reads them


@dataclass
class Run(ABC):
    """A run, with a method for each of its steps."""

    arguments: Arguments
    plan: Plan
    places: Places
    state: State
    say: Say

    def go(self) -> None:
        run(self.steps(), self.state, self.say)

    def steps(self) -> list[Step]:
        divide = [self.step("documents", self.divide, self.places.documents)] if self.plan.held_out else []
        return [*divide, *self.own_steps()]

    @abstractmethod
    def own_steps(self) -> list[Step]:
        """Return the steps that follow when documents are held out."""

    def kept(self) -> str:
        return ""

    def step(self, name: str, work: Callable[[], list[Command]], made: Path, **options: Any) -> Step:
        """Return a step that makes one file or folder, with its log in the work folder."""
        logs = {"summaries": "generate.log", "scores": "score.log"}
        return Step(name, work, (made,), self.places.work / logs.get(name, f"{name}.log"), **options)

    def divide(self) -> list[Command]:
        corpus = self.arguments.corpus(self.plan.given["train"], "train", sections=self.plan.by_sections)
        write_splits(self.places.documents, corpus, survey(corpus).hashes, self.plan.held_out)
        return []

    def documents(self, split: str) -> Corpus:
        """Return the documents of a split; those of the train split without the ones held out."""
        divided = str(self.places.documents / f"{split}.jsonl")
        name = divided if split in self.plan.held_out else self.plan.given[split]
        return self.arguments.corpus(name, split, sections=self.plan.by_sections)

    def language(self) -> str:
        """Return the language that was asked for, or that of the first documents."""
        first = islice(self.documents("train"), _FIRST)
        return self.arguments.language or detect_language("\n".join(each.source[:_BEGINNING] for each in first))

    def write_extracts(self, number: int, words: int, rankers: Mapping[str, Ranker]) -> None:
        """Write what each ranker extracts from the test split, in a file of its name."""
        language = self.language()
        for name, ranker in rankers.items():
            rules = SelectionRules(Budget(words), stops=ranker.stops)
            documents = (each._replace(language=language) for each in with_headings(self.documents("test")))
            write_extracts(self.places.work / name, documents, number, ranker, rules)

    def score_command(self, *against: str) -> list[Command]:
        """Return how the file of the kind's name is scored in the work folder: systems are called by their files."""
        rivals = (word for name in UNTRAINED for word in ("--baseline", name))
        language = self.language()
        of_language = () if language == ENGLISH else ("--language", language)
        told = ("--json", self.places.scores.name)
        return [Command(program("pyramidions", "score", self.plan.kind, *against, *rivals, *of_language, *told))]


def with_headings(corpus: Corpus) -> Iterator[Document]:
    """Yield the documents of a corpus, with headings where their records have sections.

    They are the same documents whether the corpus takes them from the sections or not.
    """
    for document, record in corpus.with_records():
        yield document._replace(source=sectioned_text(record.value, record.place) or document.source)


def write_extracts(
    path: Path, documents: Iterable[Document], number: int, ranker: Ranker, rules: SelectionRules
) -> None:
    """Write extracts, one a line."""
    lines = ordered_map(partial(_extract_line, ranker=ranker, rules=rules), documents, available_cores())
    description = f"extracting with {type(ranker).__name__}"
    with atomic_file(path) as file, progress_bar(description, number, "documents", items=lines) as bar:
        file.writelines(bar)


def _extract_line(document: Document, ranker: Ranker, rules: SelectionRules) -> bytes:
    read = read_outline(document.source, language=document.language)
    return extract(read, ranker.rank(read), rules).text.encode("utf-8", "replace") + b"\n"

"""One command from documents to a model: prepares, trains, summarizes the test split, scores and exports."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.holdout import survey, write_splits
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.select_sentences import SelectSentences
from pyramidions.data.vocabulary import Settings, VocabSizeError
from pyramidions.documents.record_fields import sectioned_text
from pyramidions.extract import Budget, HipoRank, Lead, Ranker, SelectionRules
from pyramidions.extract.concepts import ConceptRanker, load_concepts
from pyramidions.extract.concepts.files import files_of
from pyramidions.extract.extraction import extract
from pyramidions.files.atomic import atomic_file, atomic_folder, hold_folder, write_file
from pyramidions.files.parallel import available_cores, ordered_map
from pyramidions.files.processes import USER_DIR, as_typed, program
from pyramidions.files.progress import counted, note, progress_bar
from pyramidions.files.run_facts import RunFacts
from pyramidions.inference.export_folder import refuse_foreign
from pyramidions.runs.arguments import Arguments, changed, near, stamps
from pyramidions.runs.concepts import count, fit, read_papers
from pyramidions.runs.kinds import CONCEPTS, Schedule
from pyramidions.runs.plan import Plan, estimated, make_plan
from pyramidions.runs.progress import NewLines, TrainingBar, as_time, begun
from pyramidions.runs.recipe import CorpusSize
from pyramidions.runs.steps import Command, Say, State, Step, run
from pyramidions.text.turns import read_outline

_CANNOT_TRAIN = "Training needs fairseq, which is not installed: scripts/setup.sh train brings it."
_CARD = """# {model}

A model of concepts: it predicts which words and pairs of words of a document its summary holds, and extracts the
sentences that cover them. Trained on {documents:,} documents by `pyramidions train --kind concepts`.

    pyramidions extract --method {model} paper.pdf

Extracts of {words} words of the test split:

```
{scores}
```
"""
_LINES = 200  # of the log for a whole training, about
#: Methods that need no training, with which a model is compared; their extracts lie in files of these names.
_UNTRAINED: Mapping[str, Ranker] = {"lead": Lead(), "hiporank": HipoRank()}
_RIVALS = tuple(word for name in _UNTRAINED for word in ("--baseline", name))


class Places(NamedTuple):
    """Where the files of a run lie.

    Attributes:
        model: the export, which appears in the end.
        work: everything else; training can go on from it by hand.
        state: what is done.
        documents: the splits, where some were held out.
        data: the prepared documents.
        checkpoints: what fairseq-train saves.
        train_log: what it prints.
        summaries: those of the test split, as fairseq-generate writes them.
        scores: all figures.
        table: the scores as one reads them.
        papers: documents as a model of concepts reads them.
        fitted: a model of concepts.
        references: the summaries of the test split, where the data folder has none.
    """

    model: Path
    work: Path
    state: Path
    documents: Path
    data: Path
    checkpoints: Path
    train_log: Path
    summaries: Path
    scores: Path
    table: Path
    papers: Path
    fitted: Path
    references: Path

    @classmethod
    def of(cls, model: Path) -> "Places":
        """Return the places for an export.

        Raises:
            UserError: the path has no name of its own, so that nothing can lie beside it under the same name.
        """
        if model.name in ("", ".."):
            raise UserError(f"MODEL must end in the name of a folder to make, but is {model}.")
        work = model.with_name(f"{model.name}.work")
        folders = ("run.json", "documents", "data", "checkpoints")
        files = ("train.log", "generate-test.txt", "scores.json", "scores.txt")
        more = ("papers", "fitted", "references.jsonl")
        return cls(model, work, *(work / name for name in (*folders, *files, *more)))

    @property
    def best(self) -> Path:
        """The best model so far."""
        return self.checkpoints / "checkpoint_best.pt"

    @property
    def last(self) -> Path:
        """What a training goes on from."""
        return self.checkpoints / "checkpoint_last.pt"


@dataclass
class Training:
    """A run, with a method for each of its steps.

    Args:
        arguments: what was asked for.
        plan: what follows from it.
        places: where its files lie.
        state: what is done.
        say: receives progress, one line at a time.
    """

    arguments: Arguments
    plan: Plan
    places: Places
    state: State
    say: Say

    def go(self) -> None:
        """Take the steps that are not done yet."""
        run(self.steps(), self.state, self.say)

    def steps(self) -> list[Step]:
        """Return the steps in their order."""
        places, plan = self.places, self.plan
        divide = [self._step("documents", self.divide, places.documents)] if plan.held_out else []
        if plan.kind == CONCEPTS:
            return [
                *divide,
                self._step("papers", self.read, places.papers),
                self._step("training", self.fit, places.fitted),
                self._step("summaries", self.extract, places.work / CONCEPTS),
                self._step("scores", self.score_extracts, places.table, out=places.table, cwd=places.work),
                self._step("export", self.write, places.model),
            ]
        return [
            *divide,
            self._step("data", self.prepare, places.data),
            Step(
                *("training", self.train, (places.best,), places.train_log),
                watch=self._training_bar,
                after=self._say_where_it_ended,
                saves=True,
            ),
            self._step("summaries", self.summarize, places.summaries, watch=self._summaries_bar),
            self._step("scores", self.score, places.table, out=places.table, cwd=places.work),
            self._step("export", self.export, places.model),
        ]

    def _step(self, name: str, work: Callable[[], list[Command]], made: Path, **options: Any) -> Step:
        logs = {"summaries": "generate.log", "scores": "score.log"}
        return Step(name, work, (made,), self.places.work / logs.get(name, f"{name}.log"), **options)

    def divide(self) -> list[Command]:
        """Hold documents out for validation and testing."""
        corpus = self.arguments.corpus(self.plan.given["train"], "train", sections=self.plan.by_sections)
        write_splits(self.places.documents, corpus, survey(corpus).hashes, self.plan.held_out)
        return []

    def prepare(self) -> list[Command]:
        """Make the data folder, with as large a vocabulary as the corpus allows."""
        vocab_size = self.state.facts.get("vocab_size", self.plan.vocab_size)
        try:
            self._prepare(vocab_size)
        except VocabSizeError as error:
            if self.arguments.vocab_size is not None:
                raise
            note(f"{vocab_size:,} pieces are too many for this corpus, which allows {error.most:,}")
            # The next run takes the same, should this one be stopped.
            self.state.note(vocab_size=error.most)
            self._prepare(error.most)
        return []

    def _prepare(self, vocab_size: int) -> None:
        corpora = {split: self._documents(split) for split in (*self.plan.given, *self.plan.held_out)}
        settings, selecting, pairings = Settings(vocab_size=vocab_size), self.plan.selecting, {}
        if selecting is not None:
            select = SelectSentences(HipoRank, selecting.budget, {"method": "hiporank"})
            pairings = dict.fromkeys(corpora, select)
        prepare(
            *(self.places.data, corpora, settings),
            labels=self.plan.of_kind.labels,
            pairings=pairings,
            workers=available_cores(),
            overwrite=True,
        )

    def _documents(self, split: str) -> Corpus:
        """Return the documents of a split; those of the train split without the ones held out."""
        divided = str(self.places.documents / f"{split}.jsonl")
        name = divided if split in self.plan.held_out else self.plan.given[split]
        return self.arguments.corpus(name, split, sections=self.plan.by_sections)

    def train(self) -> list[Command]:
        """Return how the model is trained until fairseq is done."""
        schedule = self._schedule()
        words = train_command(self.places, self.arguments, self.plan, schedule)
        self.say(f"{schedule}. The command, to go on from by hand:\n\n{as_typed(words)}\n")
        updates = begun(words, self.places.last)[0].updates
        if updates:
            self.say(f"It goes on after {counted(updates, 'update')}.")
        return [Command(words)]

    def read(self) -> list[Command]:
        """Read the documents as a model of concepts does, and count the words of their summaries."""
        words: list[int] = []

        def documents() -> Iterator[Document]:
            for document in self._documents("train"):
                words.append(len(document.target.split()))
                yield document

        read_papers(documents(), self.plan.documents, self.places.papers, available_cores())
        self.state.note(words=round(sum(words) / len(words)))
        return []

    def fit(self) -> list[Command]:
        """Count concepts, and fit the trees."""
        known = count(self.places.papers)
        model = fit(self.places.papers, known, self.arguments.seed, self.say)
        about = {"documents": self.plan.documents, "seed": self.arguments.seed}
        with atomic_folder(self.places.fitted) as partial:
            for name, content in files_of(model, about).items():
                write_file(partial / name, content)
        return []

    def extract(self) -> list[Command]:
        """Extract from the test split by concepts, by HipoRank and by lead."""
        words, places = self.state.facts["words"], self.places
        number = 0
        with atomic_file(places.references) as file:
            for document in self._documents("test"):
                number += 1
                file.write(json.dumps({"id": document.id, "summary": document.target}).encode() + b"\n")
        concepts = ConceptRanker(load_concepts(places.fitted), Budget(words))
        self._write_extracts(number, words, {**_UNTRAINED, CONCEPTS: concepts})
        return []

    def _write_extracts(self, number: int, words: int, rankers: Mapping[str, Ranker]) -> None:
        for name, ranker in rankers.items():
            rules = SelectionRules(Budget(words), stops=ranker.stops)
            write_extracts(self.places.work / name, with_headings(self._documents("test")), number, ranker, rules)

    def score_extracts(self) -> list[Command]:
        """Return how the extracts are scored."""
        places = self.places
        against = ("--references", places.references.name, *_RIVALS, "--json", places.scores.name)
        return [Command(program("pyramidions", "score", CONCEPTS, *against))]

    def write(self) -> list[Command]:
        """Write the model with a card."""
        words, scores = self.state.facts["words"], self.places.table.read_text().rstrip()
        card = _CARD.format(documents=self.plan.documents, words=words, scores=scores, model=self.places.model.name)
        with atomic_folder(self.places.model) as partial:
            for file in self.places.fitted.iterdir():
                shutil.copyfile(file, partial / file.name)
            write_file(partial / "README.md", card.encode())
        return []

    @contextmanager
    def _training_bar(self) -> Iterator[Callable[[object], None]]:
        schedule = self._schedule()
        progress, hours = begun(schedule.flags, self.places.last)
        left = None if self.arguments.hours is None else max(0.0, self.arguments.hours - hours)
        with TrainingBar(self.places.train_log, progress, schedule.updates, left) as bar:
            yield lambda _: bar.show()

    def _say_where_it_ended(self) -> None:
        # Not every update is in the log.
        schedule = self._schedule()
        progress, hours = begun(schedule.flags, self.places.last)
        if progress.updates < schedule.updates:
            over = self.arguments.hours is not None and hours >= self.arguments.hours
            reason = f"{self.arguments.hours:g} hours are over" if over else "validation no longer improved"
            self.say(f"It ended after {progress.updates:,} of {schedule.updates:,} updates: {reason}.")

    def kept(self) -> str:
        """Describe the saved state of an unfinished training."""
        if "training" in self.state.facts["done"] or not self.places.train_log.exists():
            return ""
        facts = RunFacts.of(self.places.last) if self.places.last.is_file() else None
        if facts is None:
            return " No update is saved yet."
        return f" {counted(facts.updates, 'update')} {'is' if facts.updates == 1 else 'are'} saved."

    def _schedule(self) -> Schedule:
        """Return how the model is trained, the same whenever the run goes on."""
        if "schedule" not in self.state.facts:
            folder = DataFolder(self.places.data)
            pieces, train = folder.manifest["vocab_size"], folder.manifest["splits"]["train"]
            lengths = train["source_tokens"], train["target_tokens"]
            corpus = CorpusSize(train["documents"], pieces, *lengths, folder.has_queries, self.plan.selecting)
            schedule = self.plan.of_kind.schedule(corpus, self.plan.machine, self.arguments.hours)
            self.state.note(schedule=schedule._asdict())
        return Schedule.read(self.state.facts["schedule"])

    def summarize(self) -> list[Command]:
        """Summarize the test split with methods that need no training; return how the model does."""
        places, splits = self.places, DataFolder(self.places.data).manifest["splits"]
        words = round(splits["train"]["target_words"]["mean"])
        self._write_extracts(splits["test"]["documents"], words, _UNTRAINED)
        # Summaries of an interrupted run are written anew.
        places.summaries.unlink(missing_ok=True)
        return [Command(generate_command(places, self.plan, self._schedule()))]

    @contextmanager
    def _summaries_bar(self) -> Iterator[Callable[[object], None]]:
        number = DataFolder(self.places.data).manifest["splits"]["test"]["documents"]
        with (
            progress_bar("summarizing the test split", number, "documents") as bar,
            closing(NewLines(self.places.summaries)) as written,
        ):
            yield lambda _: bar.update(sum(line.startswith("S-") for line in written.read()))

    def score(self) -> list[Command]:
        """Return how the summaries are scored, in the work folder: systems are called by their files there."""
        places, kind = self.places, self.plan.kind
        # The table then says "extractor".
        shutil.copyfile(places.summaries, places.work / kind)
        # Not --lead: the data may hold selected sentences.
        words = program(
            "pyramidions", "score", kind, "--data", places.data.name, *_RIVALS, "--json", places.scores.name
        )
        return [Command(words)]

    def export(self) -> list[Command]:
        """Return how the model is written without what only training needs."""
        places = self.places
        about = ("--data", places.data, "--scores", places.scores)
        return [Command(program("pyramidions", "export", places.best, places.model, *about))]


def train_command(places: Places, arguments: Arguments, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    """Return how the model is trained."""
    interval = max(1, min(100, schedule.updates // _LINES))
    flags = [*schedule.flags, "--seed", str(arguments.seed), "--save-dir", str(places.checkpoints)]
    if arguments.hours is not None:
        flags += ["--stop-time-hours", f"{arguments.hours:g}"]
    flags += ["--log-format", "json", "--log-interval", str(interval), *plan.machine.flags]
    return program("fairseq-train", *_task(places, plan), *flags)


def generate_command(places: Places, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    """Return how the test split is summarized."""
    device = ("--distributed-world-size", "1") if plan.gpus else ("--cpu",)
    flags = ("--gen-subset", "test", "--path", places.best, "--batch-size", schedule.batch)
    return program("fairseq-generate", *_task(places, plan), *flags, *device, "--results-path", places.work)


def _task(places: Places, plan: Plan) -> tuple[object, ...]:
    return places.data, "--user-dir", USER_DIR, "--task", plan.of_kind.task


def with_headings(corpus: Corpus) -> Iterator[Document]:
    """Yield the documents of a corpus, with headings where their records have sections.

    They are the same documents whether the corpus takes them from the sections or not.

    Raises:
        UserError: a document or its sections are invalid.
    """
    for document, record in corpus.with_records():
        yield document._replace(source=sectioned_text(record.value, record.place) or document.source)


def write_extracts(
    path: Path, documents: Iterable[Document], number: int, ranker: Ranker, rules: SelectionRules
) -> None:
    """Write extracts, one a line.

    Args:
        path: the file.
        documents: in the order of the references.
        number: of them.
        ranker, rules: select the sentences.
    """
    work = partial(_extract_line, ranker=ranker, rules=rules)
    description = f"extracting with {type(ranker).__name__}"
    with atomic_file(path) as file, progress_bar(description, number, "documents") as bar:
        for line in ordered_map(work, documents, available_cores()):
            file.write(line)
            bar.update()


def _extract_line(document: Document, ranker: Ranker, rules: SelectionRules) -> bytes:
    read = read_outline(document.source)
    return extract(read, ranker.rank(read), rules).text.encode("utf-8", "replace") + b"\n"


def advice(scores: Path, kind: str, ours: str) -> list[str]:
    """Return in words which system scored best, and its command.

    Args:
        scores: the file of scores.
        kind: of the model, whose name there it is.
        ours: the command of the model.
    """
    found = json.loads(scores.read_text())
    means = {name: system["rouge1"]["mean"] for name, system in found["systems"].items()}
    # Of equal ones the model, which comes first.
    best = max(means, key=lambda name: means[name])
    if best == kind:
        return [f"Next: {ours}"]
    rival = found["comparisons"][best]["rouge1"]
    low, high = -rival["high"], -rival["low"]
    sure = "better" if low > 0 else "higher, though that may be chance"
    told = (
        f"{best} needs no training, and scored {sure}: ROUGE-1 {means[best]:.1f}, the {kind} has {means[kind]:.1f} "
        f"(difference {-rival['difference']:.1f}, 95% interval {low:.1f} to {high:.1f}). More documents make a better "
        "model."
    )
    return [told, f"Next: pyramidions extract --method {best} paper.pdf", f"The model: {ours}"]


def train(arguments: Arguments, model: Path, *, name: str, overwrite: bool, say: Say) -> None:
    """Make a model of documents, from where an interrupted run stopped.

    Args:
        arguments: what to make it of.
        model: the folder to export to; the work lies beside it, in MODEL.work.
        name: of the documents, as the user gave it.
        overwrite: begin anew, and replace what was made of other documents or with other arguments.
        say: receives progress, one line at a time.

    Raises:
        UserError: wrong documents or arguments, another run, or a command that failed.
    """
    places = Places.of(model)
    _check_places(places)
    _hold(places)
    is_new = not places.work.exists()
    state = None if overwrite else _read(places.state)
    if state is None:
        state = _begin(arguments, places, name, overwrite, say)
    else:
        _refuse_differences(state, arguments, places)
        say(f"Goes on with {places.work}.")
    plan = Plan(**state.facts["plan"])
    training = Training(arguments, plan, places, state, say)
    try:
        training.go()
    except VocabSizeError:
        # A wrong argument, which shows before anything is encoded.
        if is_new:
            shutil.rmtree(places.work)
        raise
    except BaseException as error:
        if not isinstance(error, Exception):
            # --overwrite would begin anew.
            same = "The same command without --overwrite" if overwrite else "The same command"
            note(f"Stopped.{training.kept()} {same} goes on from here.")
        raise
    say(f"\n{places.table.read_text().rstrip()}\n")
    say(f"The model is in {model}. {places.work} holds data, checkpoints, logs and scores.")
    for sentence in advice(places.scores, plan.kind, plan.of_kind.next_command(model)):
        say(sentence)


def show_plan(arguments: Arguments, model: Path, *, name: str, overwrite: bool, say: Say) -> None:
    """Say what a run would do, and write nothing; arguments are those of `train`.

    Raises:
        UserError: wrong documents or arguments.
    """
    places = Places.of(model)
    _check_places(places)
    state = _read(places.state)
    if state is not None and not overwrite:
        _refuse_differences(state, arguments, places)
    plan, found = make_plan(arguments)
    schedule = estimated(plan, found, arguments)
    for sentence in plan.sentences(name, places.work):
        say(sentence)
    if not plan.of_kind.task:
        say(f"{schedule.about}, about {as_time(schedule.hours)} if this machine is as fast as assumed.")
        return
    say(f"Vocabulary: {plan.vocab_size:,} pieces, or fewer where the corpus allows no more.")
    say(f"{schedule}. The command, its lengths estimated:")
    say(f"\n{as_typed(train_command(places, arguments, plan, schedule))}")
    if not _can_train():
        say(f"\n{_CANNOT_TRAIN}")


def _read(path: Path) -> State | None:
    anew = "--overwrite begins anew"
    return State.read(path, "arguments", "inputs", writer="pyramidions train", remedy=anew)


def _can_train() -> bool:
    return find_spec("fairseq") is not None


def _check_places(places: Places) -> None:
    refuse_foreign(places.model)
    work = places.work
    if work.exists() and not work.is_dir():
        raise UserError(f"The work folder {work} must be a folder, but is a file.")
    if work.is_dir() and any(work.iterdir()) and not places.state.exists():
        raise UserError(f"{work} holds files that `pyramidions train` did not make; give another MODEL.")


def _hold(places: Places) -> None:
    try:
        hold_folder(places.work)
    except BlockingIOError:
        raise UserError(f"Another `pyramidions train` works on {places.model}: wait for it, or stop it.") from None


def _begin(arguments: Arguments, places: Places, name: str, overwrite: bool, say: Say) -> State:
    if places.model.exists() and any(places.model.iterdir()) and not overwrite:
        raise UserError(f"{places.model} holds a model of another run; give another MODEL, or --overwrite.")
    if arguments.kind != CONCEPTS and not _can_train():
        raise UserError(_CANNOT_TRAIN)
    inputs = stamps(arguments.documents)
    plan, _ = make_plan(arguments)
    for sentence in plan.sentences(name, places.work):
        say(sentence)
    places.work.mkdir(parents=True, exist_ok=True)
    _hold(places)
    for entry in places.work.iterdir():
        # Replaced last: without it the folder would be refused as one that we did not make.
        if entry != places.state:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    return State.new(places.state, arguments=asdict(arguments), inputs=inputs, plan=asdict(plan))


def _refuse_differences(state: State, arguments: Arguments, places: Places) -> None:
    anew = "give another MODEL, or --overwrite to begin anew"
    if difference := arguments.difference(state.facts["arguments"]):
        raise UserError(f"{places.work} was begun with other arguments ({difference}): {anew}.")
    before = state.facts["inputs"]
    now = stamps(arguments.documents, before)
    if file := changed(before, now):
        raise UserError(f"{near(file)} has changed since {places.work} was begun: {anew}.")

"""The steps of a run, from documents to an exported model."""

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyramidions.data.folder import DataFolder
from pyramidions.data.holdout import survey, write_splits
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.data.vocabulary import Settings, VocabSizeError
from pyramidions.files.parallel import available_cores
from pyramidions.files.processes import as_typed
from pyramidions.files.progress import counted, note, progress_bar
from pyramidions.files.run_facts import RunFacts
from pyramidions.runs.measure.recipe import CorpusSize
from pyramidions.runs.training.arguments import Arguments
from pyramidions.runs.training.baseline import with_headings, write_hiporank
from pyramidions.runs.training.child import run_child
from pyramidions.runs.training.commands import export_command, generate_command, score_command, train_command
from pyramidions.runs.training.kinds import Schedule
from pyramidions.runs.training.places import Places
from pyramidions.runs.training.plan import Plan
from pyramidions.runs.training.progress import NewLines, TrainingBar, begun
from pyramidions.runs.training.state import State

Say = Callable[[str], None]


@dataclass
class Run:
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
        steps = self.steps()
        names, again = list(steps), False
        for number, (name, (step, made)) in enumerate(steps.items(), 1):
            title = f"{number} of {len(names)}: {name}"
            # What comes later was made from what is made anew.
            if self.state.is_done(name) and made.exists() and not again:
                self.say(f"{title}, done before")
                continue
            self.say(title)
            again = True
            self.state.begin(name, names[names.index(name) :])
            start = time.monotonic()
            step()
            self.state.finish(name, time.monotonic() - start)

    def steps(self) -> dict[str, tuple[Callable[[], None], Path]]:
        """Return the steps in their order, each with what it makes."""
        places = self.places
        divide = {"documents": (self.divide, places.documents)} if self.plan.held_out else {}
        return {
            **divide,
            "data": (self.prepare, places.data),
            "training": (self.train, places.best),
            "summaries": (self.summarize, places.summaries),
            "scores": (self.score, places.table),
            "export": (self.export, places.model),
        }

    def divide(self) -> None:
        """Hold documents out for validation and testing."""
        corpus = self.arguments.corpus(self.plan.given["train"], "train", sections=self.plan.of_kind.labels)
        write_splits(self.places.documents, corpus, survey(corpus).hashes, self.plan.held_out)

    def prepare(self) -> None:
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

    def _prepare(self, vocab_size: int) -> None:
        splits = (*self.plan.given, *self.plan.held_out)
        corpora = {split: self._documents(split) for split in splits}
        settings = Settings(vocab_size=vocab_size)
        labels, workers = self.plan.of_kind.labels, available_cores()
        prepare(self.places.data, corpora, settings, labels=labels, workers=workers, overwrite=True)

    def _documents(self, split: str) -> Corpus:
        """Return the documents of a split; those of the train split without the ones held out."""
        divided = str(self.places.documents / f"{split}.jsonl")
        name = divided if split in self.plan.held_out else self.plan.given[split]
        return self.arguments.corpus(name, split, sections=self.plan.of_kind.labels)

    def train(self) -> None:
        """Train until fairseq is done; show one bar."""
        schedule, places = self._schedule(), self.places
        words = train_command(places, self.arguments, self.plan, schedule)
        self.say(f"{schedule}. The command, to go on from by hand:\n\n{as_typed(words)}\n")
        progress, hours = begun(words, places.last)
        if progress.updates:
            self.say(f"It goes on after {counted(progress.updates, 'update')}.")
        left = None if self.arguments.hours is None else max(0.0, self.arguments.hours - hours)
        places.train_log.touch()
        with TrainingBar(places.train_log, progress, schedule.updates, left) as bar:
            run_child(words, places.train_log, tick=bar.show, saves=True)
        # Not every update is in the log.
        progress, hours = begun(words, places.last)
        if progress.updates < schedule.updates:
            over = self.arguments.hours is not None and hours >= self.arguments.hours
            reason = f"{self.arguments.hours:g} hours are over" if over else "validation no longer improved"
            self.say(f"It ended after {progress.updates:,} of {schedule.updates:,} updates: {reason}.")

    def kept(self) -> str:
        """Return what is saved of a training that is not over, in words."""
        if self.state.is_done("training") or not self.places.train_log.exists():
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
            corpus = CorpusSize(train["documents"], pieces, *lengths, folder.has_queries)
            schedule = self.plan.of_kind.schedule(corpus, self.plan.machine, self.arguments.hours)
            self.state.note(schedule=schedule._asdict())
        return Schedule.read(self.state.facts["schedule"])

    def summarize(self) -> None:
        """Summarize the test split, with the model and with HipoRank."""
        places = self.places
        manifest = DataFolder(places.data).manifest["splits"]
        number, words = manifest["test"]["documents"], round(manifest["train"]["target_words"]["mean"])
        write_hiporank(places.hiporank, with_headings(self._documents("test")), number, words)
        # Summaries of an interrupted run are written anew.
        places.summaries.unlink(missing_ok=True)
        command = generate_command(places, self.plan, self._schedule())
        with (
            progress_bar("summarizing the test split", number, "documents") as bar,
            closing(NewLines(places.summaries)) as written,
        ):
            run_child(
                command,
                places.work / "generate.log",
                tick=lambda: bar.update(sum(line.startswith("S-") for line in written.read())),
            )

    def score(self) -> None:
        """Score the summaries, and show the table."""
        places = self.places
        # The table then says "extractor".
        shutil.copyfile(places.summaries, places.work / self.plan.kind)
        run_child(score_command(places, self.plan), places.work / "score.log", out=places.table, folder=places.work)

    def export(self) -> None:
        """Write the model without what only training needs."""
        run_child(export_command(self.places), self.places.work / "export.log")

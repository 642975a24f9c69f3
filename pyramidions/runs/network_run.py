"""Trains a network by fairseq-train, and summarizes and scores the test split with it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from pyramidions.base.notes import note
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.select_sentences import SelectSentences
from pyramidions.data.vocabulary import Settings, VocabSizeError
from pyramidions.extract import HipoRank
from pyramidions.files.parallel import available_cores
from pyramidions.files.processes import USER_DIR, as_typed, program
from pyramidions.files.progress import counted, progress_bar
from pyramidions.files.run_facts import RunFacts
from pyramidions.runs.arguments import Arguments
from pyramidions.runs.plan import Plan
from pyramidions.runs.progress import NewLines, TrainingBar, begun
from pyramidions.runs.recipe import CorpusSize, Schedule
from pyramidions.runs.run import UNTRAINED, Places, Run
from pyramidions.runs.steps import Command, Step

_LINES = 200  # of the log for a whole training, about


class NetworkRun(Run):
    """Prepares documents, trains a summarizer or an extractor, and exports it."""

    def own_steps(self) -> list[Step]:
        places = self.places
        return [
            self.step("data", self.prepare, places.data),
            Step(
                *("training", self.train, (places.best,), places.train_log),
                watch=self._training_bar,
                after=self._say_where_it_ended,
                saves=True,
            ),
            self.step("summaries", self.summarize, places.summaries, watch=self._summaries_bar),
            self.step("scores", self.score, places.table, out=places.table, cwd=places.work),
            self.step("export", self.export, places.model),
        ]

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
        corpora = {split: self.documents(split) for split in (*self.plan.given, *self.plan.held_out)}
        settings = Settings(vocab_size=vocab_size, fold_case=self.plan.fold_case)
        selecting, pairings = self.plan.selecting, {}
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

    def train(self) -> list[Command]:
        """Return how the model is trained until fairseq is done."""
        schedule = self._schedule()
        words = train_command(self.places, self.arguments, self.plan, schedule)
        self.say(f"{schedule}. The command, to go on from by hand:\n\n{as_typed(words)}\n")
        updates = begun(words, self.places.last)[0].updates
        if updates:
            self.say(f"It goes on after {counted(updates, 'update')}.")
        return [Command(words)]

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
        self.write_extracts(splits["test"]["documents"], words, UNTRAINED)
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
        places = self.places
        # The table then says "extractor".
        shutil.copyfile(places.summaries, places.work / self.plan.kind)
        # Not --lead: the data may hold selected sentences.
        return self.score_command("--data", places.data.name)

    def export(self) -> list[Command]:
        places = self.places
        about = ("--data", places.data, "--scores", places.scores)
        return [Command(program("pyramidions", "export", places.best, places.model, *about))]


def train_command(places: Places, arguments: Arguments, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    interval = max(1, min(100, schedule.updates // _LINES))
    flags = [*schedule.flags, "--seed", str(arguments.seed), "--save-dir", str(places.checkpoints)]
    if arguments.hours is not None:
        flags += ["--stop-time-hours", f"{arguments.hours:g}"]
    flags += ["--log-format", "json", "--log-interval", str(interval), *plan.machine.flags]
    return program("fairseq-train", *_task(places, plan), *flags)


def generate_command(places: Places, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
    device = ("--distributed-world-size", "1") if plan.gpus else ("--cpu",)
    flags = ("--gen-subset", "test", "--path", places.best, "--batch-size", schedule.batch)
    return program("fairseq-generate", *_task(places, plan), *flags, *device, "--results-path", places.work)


def _task(places: Places, plan: Plan) -> tuple[object, ...]:
    return places.data, "--user-dir", USER_DIR, "--task", plan.of_kind.task

"""What a run will do, decided before anything is written."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.folder import SPLITS
from pyramidions.data.holdout import Survey, held_out, survey
from pyramidions.data.manifest import distribution
from pyramidions.files.progress import counted
from pyramidions.runs.arguments import Arguments, absolute, find_sources
from pyramidions.runs.kinds import CONCEPTS, KINDS, Kind, Machine, choose_kind, find_machine
from pyramidions.runs.recipe import CorpusSize, Schedule, Selecting

_MOST_SMALL, _FEW_CAPITALS = 0.5, 0.01  # of the words; a first word of a sentence is one of 20 or 30
_PIECES = 1.5  # of a word, about, in vocabularies of these sizes


@dataclass(frozen=True)
class Plan:
    """What a run will do."""

    given: dict[str, str]  # the input of each split that was given
    # Documents of each split where some must be held out of the train split; empty where none must.
    held_out: dict[str, int]
    documents: int  # to train on
    skipped: int  # empty documents of the train split, which are left out
    kind: str  # a name in `KINDS`
    why: str  # this kind
    vocab_size: int  # number of pieces
    # gpus, memory: of the machine.
    gpus: int
    memory: float
    has_queries: bool = False  # documents have queries; sentences are then not selected without them
    trimmed: int = 0  # summaries that are cut for training, where keywords or notices begin
    fold_case: bool = False  # a model that writes reads capitals as small letters: the summaries have hardly any

    @property
    def selecting(self) -> Selecting | None:
        """How the model reads selected sentences; None if it reads whole documents."""
        return None if self.has_queries else self.of_kind.selecting(self.documents, self.gpus)

    @property
    def by_sections(self) -> bool:
        """Whether documents are read by their sections, since sentences are labelled or selected."""
        return self.of_kind.labels or self.selecting is not None

    @property
    def machine(self) -> Machine:
        return Machine(self.gpus if self.of_kind.task else 0, self.memory)

    @property
    def of_kind(self) -> Kind:
        return KINDS[self.kind]

    def sentences(self, name: str, work: Path) -> list[str]:
        """Return the plan in words."""
        told = []
        if self.held_out:
            others = " and ".join(f"{n:,} for {split}" for split, n in self.held_out.items() if split != "train")
            told.append(
                f"{name}: {counted(sum(self.held_out.values()), 'document')}; held out by a hash of their ids: "
                f"{others} ({work / 'documents'})."
            )
        else:
            told.append(f"{name}: {counted(self.documents, 'document')} to train on, with valid and test splits.")
        if self.skipped:
            told.append(f"{counted(self.skipped, 'empty document')} of the train split left out.")
        if self.trimmed:
            told.append(f"{counted(self.trimmed, 'summary')} cut for training, where keywords or notices begin.")
        if self.fold_case and self.of_kind.task:
            told.append("The summaries have hardly any capitals: the model reads them as small letters.")
        article = "An" if self.kind[0] in "aeiou" else "A"
        model = "A model of concepts" if self.kind == CONCEPTS else f"{article} {self.kind}"
        told.append(f"{model} will be trained on {self.machine}: {self.why}.")
        return told


def make_plan(arguments: Arguments) -> tuple[Plan, Survey]:
    """Read the documents of all given splits once, and decide."""
    if arguments.kind == CONCEPTS:
        for name in ("hours", "gpus"):
            if getattr(arguments, name):
                raise UserError(f"--{name} is an option of networks, but --kind is {CONCEPTS}.")
    machine = find_machine(0 if arguments.kind == CONCEPTS else arguments.gpus)
    sources = find_sources(arguments.documents, arguments.config)
    train = partial(arguments.corpus, sources["train"], "train")
    # Those who select sentences read sections; the others' documents are then read again.
    found = survey(train(sections=True))
    documents, has_queries = _sizes(found, sources).get("train", found.documents), arguments.query_field is not None
    name, why = choose_kind(arguments.kind, documents, machine, has_queries)
    if arguments.vocab_size is not None and not KINDS[name].task:
        raise UserError(
            f"--vocab-size is an option of networks, but a model of concepts would be trained: {why}. Give --kind "
            "summarizer or extractor."
        )
    vocab_size = arguments.vocab_size or KINDS[name].vocab_size(documents, machine.gpus)
    given = {split: absolute(name) for split, name in sources.items()}

    def plan_of(found: Survey) -> Plan:
        sizes = _sizes(found, sources)
        documents = sizes.get("train", found.documents)
        # Other scripts have no small letters either.
        told = found.trimmed, found.small > _MOST_SMALL and found.capitalized < _FEW_CAPITALS
        return Plan(given, sizes, documents, found.skipped, name, why, vocab_size, *machine, has_queries, *told)

    plan = plan_of(found)
    if not plan.by_sections:
        found = survey(train(sections=False))
        plan = plan_of(found)
    _check_others(arguments, sources, plan.by_sections)
    return plan, found


def _sizes(found: Survey, sources: dict[str, str]) -> dict[str, int]:
    missing = [split for split in SPLITS if split not in sources]
    return held_out(found.hashes, missing, sources["train"]) if missing else {}


def _check_others(arguments: Arguments, sources: dict[str, str], by_sections: bool) -> None:
    """Read the given splits except `train` once, so that errors show before anything is written."""
    for split, name in sources.items():
        if split != "train":
            # HipoRank reads the sections of the test split for every kind of model.
            for sections in {by_sections, by_sections or split == "test"}:
                survey(arguments.corpus(name, split, sections=sections))


def estimated(plan: Plan, found: Survey, arguments: Arguments) -> Schedule:
    """Return how the model would be trained, before the documents are prepared: their tokens are estimated."""
    source, target = (distribution(np.ceil(_PIECES * words)) for words in (found.source_words, found.target_words))
    target = {name: int(value) for name, value in target.items()}
    if plan.selecting is not None:
        source = {name: min(value, plan.selecting.budget) for name, value in source.items()}
    corpus = CorpusSize(plan.documents, plan.vocab_size, source, target, plan.has_queries, plan.selecting)
    return plan.of_kind.schedule(corpus, plan.machine, arguments.hours)

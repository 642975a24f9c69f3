"""Learns the context of concepts: what it adds to the log odds that trees predict."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyramidions.extract.concepts.context import SIZE, Around, Context, around
from pyramidions.extract.concepts.features import ORDERS, Concepts
from pyramidions.extract.concepts.model import ConceptModel
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.runs.concepts import Counts, Example, fit, learned_from, load_some, spread

#: Documents to learn from, beyond those of the trees: at least and at most. Documents of a step.
LEAST, MOST, BATCH = 1_000, 9_000, 8
#: Trees of each order; what is learned adds to their log odds.
TREES = 50
_LEAST_CHANCE = 1e-6
#: Size of a step, and what the sums of squares begin with, both chosen on training documents that were held out.
RATE, FIRST_SQUARES = 0.03, 10.0


class Seen(NamedTuple):
    """The concepts of one order in a document."""

    around: Around
    concepts: Concepts
    expected: np.ndarray  # (concepts,): log odds without what is around them
    held: np.ndarray  # (concepts,), bool: the summary has it


class _Table:
    """Weights that Adagrad changes (Duchi et al. 2011)."""

    def __init__(self) -> None:
        self.weights = np.zeros(SIZE)
        self._squares = np.full(SIZE, FIRST_SQUARES)

    def step(self, places: Sequence[np.ndarray], slopes: Sequence[np.ndarray]) -> None:
        total = np.bincount(np.concatenate(places), np.concatenate(slopes), minlength=SIZE)
        self._squares += total * total
        self.weights -= RATE * total / np.sqrt(self._squares)


class _Learner:
    """Learns the weights of one order."""

    def __init__(self) -> None:
        self._occurrences, self._sentences = _Table(), _Table()

    @property
    def context(self) -> Context:
        return Context(self._occurrences.weights, self._sentences.weights)

    def learn(self, some: Iterable[Seen]) -> None:
        """Make a step down the log loss of some documents."""
        near: list[tuple[np.ndarray, np.ndarray]] = []
        held: list[tuple[np.ndarray, np.ndarray]] = []
        for around_, concepts, expected, is_held in some:
            total, _, _, of_sentences, _ = self.context.features(around_, concepts)
            slopes = 1 / (1 + np.exp(-expected - total - of_sentences)) - is_held
            of_occurrences = (slopes / np.sqrt(concepts.counts))[around_.concept]
            by_sentence = np.bincount(around_.sentence, of_occurrences, minlength=len(around_.lengths))
            near += [_repeated(around_.near, of_occurrences), _repeated(around_.of_sentence, by_sentence)]
            sizes = np.bincount(concepts.concept, minlength=len(slopes))
            of_stems = np.bincount(concepts.sentence, (slopes / sizes)[concepts.concept], len(around_.lengths))
            held.append((around_.held, (of_stems / around_.scale)[around_.holder]))
        self._occurrences.step(*zip(*near, strict=True))
        self._sentences.step(*zip(*held, strict=True))


def _repeated(places: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return places.ravel(), np.repeat(slopes, places.shape[1])


def learn_contexts(
    folder: Path, counts: Counts, seed: int, workers: int, on_step: Callable[[str], object] = lambda _: None
) -> tuple[Context, Context] | None:
    """Learn from documents that trees do not learn from, in one pass; None where these are fewer than `LEAST`."""
    number = counts.known[0].documents
    of_trees = set(learned_from(number))
    others = [place for place in range(number) if place not in of_trees]
    if len(others) < LEAST:
        return None
    places = spread(others, MOST)
    model = fit(folder, counts, seed, on_step, trees=TREES)
    learners = _Learner(), _Learner()
    work = partial(_seen, model=model, counts=counts)
    with progress_bar("learning the context of concepts", len(places), "documents") as bar:
        for some in chunks(ordered_map(work, load_some(folder, places), workers), BATCH):
            for learner, of_order in zip(learners, zip(*some, strict=True), strict=True):
                learner.learn(of_order)
            bar.update(len(some))
    # The trees that follow see them as they are kept.
    words, pairs = (Context.of(*learner.context.in_bytes()) for learner in learners)
    return words, pairs


def _seen(numbered: tuple[int, Example], model: ConceptModel, counts: Counts) -> list[Seen]:
    place, example = numbered
    wanted = model._replace(known=counts.without(place)).wanted(example.paper)
    return [
        Seen(
            around(example.paper, order, concepts),
            concepts,
            np.log(chances.clip(_LEAST_CHANCE) / (1 - chances).clip(_LEAST_CHANCE)),
            np.isin(concepts.keys, held),
        )
        for order, concepts, chances, held in zip(ORDERS, *wanted, example.held, strict=True)
    ]

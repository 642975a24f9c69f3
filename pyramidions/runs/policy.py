"""Trains the policy of a model of concepts: it chooses sentences, and learns what each choice would have added."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyramidions.data.readers import Document
from pyramidions.extract.concepts.features import pair_keys
from pyramidions.extract.concepts.model import ConceptModel, WantedConcepts
from pyramidions.extract.concepts.policy import FEATURE_NAMES, History, PolicyChoice
from pyramidions.extract.concepts.ranker import choose
from pyramidions.extract.concepts.trees import Trees
from pyramidions.extract.oracle import Overlap
from pyramidions.extract.selection import Budget
from pyramidions.files.parallel import ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.runs import concepts
from pyramidions.runs.concepts import Counts, Example, learned_from, load_some, read_example

#: Sentences of a leaf, at least.
LEAST_SENTENCES = 200
#: Of the sentences that are open at a step, how many of the best and how many others are learned from.
BEST, OTHERS = 12, 8
# Chance that one of so many best ones is chosen in place of the best: other histories are seen, too.
_STRAYING, _STRAYS = 0.25, 8


class Steps(NamedTuple):
    """Sentences at the steps of a choice."""

    rows: np.ndarray  # (sentences, features): what was known of each
    added: np.ndarray  # (sentences,): the recall of the summary's words and of its pairs that each would have added
    lengths: np.ndarray  # (sentences,): words of each


def fit_policy(
    folder: Path,
    model: ConceptModel,
    counts: Counts,
    seed: int,
    workers: int,
    on_step: Callable[[str], object] = lambda _: None,
) -> Trees:
    """Fit trees to what sentences add, at steps of choices by coverage, then by the first trees (Ross et al. 2011)."""

    places = learned_from(counts.known[0].documents)

    def look(trees: Trees | None, turn: int) -> list[Steps]:
        work = partial(choose_and_see, model=model, counts=counts, trees=trees, seed=seed, turn=turn)
        chosen = ordered_map(work, load_some(folder, places), workers)
        with progress_bar("choosing sentences", len(places), "documents", items=chosen) as bar:
            return list(bar)

    def fitted(seen: list[Steps]) -> Trees:
        rows, added, lengths = (np.concatenate(column) for column in zip(*seen, strict=True))
        on_step(f"fitting {concepts.TREES} trees of the policy to {len(rows):,} sentences")
        # What a summary of such sentences would recall.
        rates = added * (model.words or 1) / lengths
        trees = concepts.boosting(seed, LEAST_SENTENCES, classifies=False)
        return Trees.of(trees.fit(rows, rates, sample_weight=lengths))

    by_coverage = look(None, 0)
    return fitted(by_coverage + look(fitted(by_coverage), 1))


def gain(documents: Sequence[Document], model: ConceptModel, policy: Trees, workers: int) -> float:
    """Return by how much a policy raises the mean of ROUGE-1 and ROUGE-2 (F1) of extracts over coverage."""
    gains = ordered_map(partial(_gain, model=model, policy=policy), documents, workers)
    with progress_bar("comparing the policy with coverage", len(documents), "documents", items=gains) as bar:
        return float(np.mean(list(bar)))


def _gain(document: Document, model: ConceptModel, policy: Trees) -> float:
    example = read_example(document)
    if not len(example.paper.sizes):
        return 0.0
    wanted = model.wanted(example.paper)
    by_policy, by_coverage = (_f1(example, wanted, model._replace(policy=trees)) for trees in (policy, None))
    return by_policy - by_coverage


def _f1(example: Example, wanted: WantedConcepts, model: ConceptModel) -> float:
    overlaps = _overlaps(example)
    for sentence in choose(model, example.paper, wanted, Budget(model.words or 1)).chosen:
        for overlap in overlaps:
            overlap.add(sentence)
    return sum(overlap.f1() for overlap in overlaps) / len(overlaps)


def choose_and_see(
    numbered: tuple[int, Example], model: ConceptModel, counts: Counts, trees: Trees | None, seed: int, turn: int
) -> Steps:
    """Choose sentences of one document, and note what some of those that were open at each step would have added."""
    number, example = numbered
    generator = np.random.default_rng((seed, turn, number))
    wanted = model._replace(known=counts.without(number)).wanted(example.paper)
    cover = wanted.cover(example.paper)
    history = History(example.paper, wanted, cover)
    choice = cover if trees is None else PolicyChoice(history, cover, trees)
    overlaps = _overlaps(example)
    steps: list[Steps] = []

    def pick(rates: np.ndarray) -> int:
        open_ = np.flatnonzero(rates > 0)
        ranked = open_[np.argsort(-rates[open_], kind="stable")]
        some = np.concatenate([ranked[:BEST], generator.permutation(ranked[BEST:])[:OTHERS]])
        added = np.sum([each.gained()[some] / max(each.total, 1) for each in overlaps], axis=0)
        steps.append(Steps(history.features()[some], added, cover.lengths[some]))
        taken = int(generator.choice(ranked[:_STRAYS]) if generator.random() < _STRAYING else ranked[0])
        for each in overlaps:
            each.add(taken)
        return taken

    choice.fill(Budget(model.longest), pick)
    nothing = Steps(np.zeros((0, len(FEATURE_NAMES)), np.float32), np.zeros(0), np.zeros(0, np.int64))
    return Steps(*(np.concatenate(column) for column in zip(nothing, *steps, strict=True)))


def _overlaps(example: Example) -> tuple[Overlap, Overlap]:
    """Return what the sentences share with the summary, in stems and in pairs of stems, stop words among them."""
    words, sentence, expected = example.paper.words.hashes, example.paper.sentence, example.summary.hashes
    # No pair crosses sentences.
    inside = sentence[:-1] == sentence[1:]
    pairs, expected_pairs = (pair_keys(each[:-1], each[1:]) for each in (words, expected))
    number = len(example.paper.sizes)
    return (
        Overlap(words, sentence, number, expected),
        Overlap(pairs[inside], sentence[:-1][inside], number, expected_pairs),
    )

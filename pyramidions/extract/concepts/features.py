"""Concepts of a document, and what tells whether a summary would hold them."""

from typing import NamedTuple

import numpy as np

from pyramidions.extract.concepts.paper import SECTION_KINDS, Paper
from pyramidions.extract.concepts.words import Words

#: Words of a concept.
ORDERS = (1, 2)
#: Documents that weigh as much as what all concepts have in common.
_PRIOR = 4


class Concepts(NamedTuple):
    """The distinct concepts of one order in a document."""

    keys: np.ndarray  # (concepts,), uint32: a hash of each
    counts: np.ndarray  # (concepts,): how often each occurs
    places: np.ndarray  # (concepts,): the first word of the first occurrence of each
    # concept, sentence: (pairs,): all pairs of a concept and a sentence that has it, by concept, then by sentence.
    concept: np.ndarray
    sentence: np.ndarray


def concepts_of(paper: Paper, order: int) -> Concepts:
    """Return the content words of a document, or its pairs of neighbours of which at least one is a content word."""
    sentence = paper.sentence
    keys, places = keys_of(paper.words, order, sentence)
    distinct, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    number = len(paper.sizes)
    pairs = np.unique(inverse.astype(np.int64) * number + sentence[places])
    return Concepts(distinct, counts, places[first], pairs // number, pairs % number)


def keys_of(words: Words, order: int, sentence: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of each concept of a text, and the place of its first word; none crosses a sentence."""
    if order == 1:
        places = np.flatnonzero(words.content)
        return words.hashes[places], places
    inside = words.content[:-1] | words.content[1:]
    if sentence is not None:
        inside &= sentence[:-1] == sentence[1:]
    places = np.flatnonzero(inside)
    return pair_keys(words.hashes[places], words.hashes[places + 1]), places


def pair_keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the hash of two neighbours by the hashes of each: uint32."""
    mixed = first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + second.astype(np.uint64) * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    return (mixed >> np.uint64(32)).astype(np.uint32)


class Frequencies(NamedTuple):
    """In how many training documents a concept stood, and in how many of these in the summary, too."""

    documents: int  # number of training documents
    least: int  # documents that a concept must stand in to be known
    base: float  # share of all concepts that stood in the summary
    keys: np.ndarray  # (known,), uint32, rising
    # seen, hits: (known,), the two numbers of each concept.
    seen: np.ndarray
    hits: np.ndarray

    def of(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the two numbers of each concept of (concepts,), 0 for those of too few documents."""
        if not len(self.keys):
            return np.zeros(len(keys)), np.zeros(len(keys))
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = (self.keys[at] == keys) & (self.seen[at] >= self.least)
        return np.where(known, self.seen[at], 0.0), np.where(known, self.hits[at], 0.0)

    def log_odds(self, seen: np.ndarray, hits: np.ndarray) -> np.ndarray:
        """Return the log odds that the summary of a document with a concept has it, too, smoothed by all concepts."""
        chance = (hits + _PRIOR * self.base) / (seen + _PRIOR)
        return np.log(chance / (1 - chance))


class _Group:
    """Aggregates what is known of pairs of a concept and a sentence, for each concept."""

    def __init__(self, concepts: Concepts) -> None:
        self.starts = np.flatnonzero(np.diff(concepts.concept, prepend=-1))
        self.sizes = np.diff(self.starts, append=len(concepts.concept))

    def total(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values.astype(np.float64), self.starts)

    def mean(self, values: np.ndarray) -> np.ndarray:
        return self.total(values) / self.sizes

    def best(self, values: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, self.starts)


class Measured(NamedTuple):
    """The concepts of both orders, and the features of each."""

    concepts: tuple[Concepts, Concepts]  # of each order
    features: tuple[np.ndarray, np.ndarray]  # of each order: (concepts, features), float32


def measure(paper: Paper, known: tuple[Frequencies, Frequencies]) -> Measured:
    """Return the concepts of a document and their features, given frequencies of words and of pairs elsewhere."""
    words, pairs = (concepts_of(paper, order) for order in ORDERS)
    odds = []
    for concepts, frequencies in zip((words, pairs), known, strict=True):
        seen, hits = frequencies.of(concepts.keys)
        odds.append((seen, frequencies.log_odds(seen, hits)))
    # What a sentence is about, by the words and pairs in it.
    cues = [
        _sentence_means(concepts, each[1], len(paper.sizes))
        for concepts, each in zip((words, pairs), odds, strict=True)
    ]
    shared = [
        _features(paper, concepts, seen, log_odds, frequencies.documents, cues)
        for concepts, (seen, log_odds), frequencies in zip((words, pairs), odds, known, strict=True)
    ]
    in_heading = np.isin(paper.words.hashes, paper.headings)
    return Measured(
        (words, pairs),
        (
            np.column_stack([*shared[0], in_heading[words.places]]).astype(np.float32),
            np.column_stack([*shared[1], *_of_parts(paper, words, pairs, odds[0][1], in_heading)]).astype(np.float32),
        ),
    )


def with_chances(paper: Paper, measured: Measured, chances: np.ndarray) -> np.ndarray:
    """Return the features of pairs, and behind them what is expected of their words and of their sentences' words.

    For each word, ``chances`` has the probability that the summary holds it: (words,).
    """
    words, pairs = measured.concepts
    expected = np.bincount(words.sentence, chances[words.concept], minlength=len(paper.sizes)) / paper.sizes.clip(1)
    group, at = _Group(pairs), expected[pairs.sentence]
    of_words = []
    for place in (pairs.places, pairs.places + 1):
        words_of, content = _places_among(words, paper, place)
        of_words.append(np.where(content, chances[words_of], 0))
    return np.column_stack([measured.features[1], *of_words, group.best(at), group.mean(at)]).astype(np.float32)


def _places_among(words: Concepts, paper: Paper, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which concept the word at each place is, and whether it is a content word: it is none otherwise."""
    at = np.minimum(np.searchsorted(words.keys, paper.words.hashes[place]), max(len(words.keys) - 1, 0))
    return at, paper.words.content[place]


def _sentence_means(concepts: Concepts, values: np.ndarray, sentences: int) -> np.ndarray:
    number = np.bincount(concepts.sentence, minlength=sentences)
    sums: np.ndarray = np.bincount(concepts.sentence, values[concepts.concept], minlength=sentences)
    return sums / np.maximum(number, 1)


def _features(
    paper: Paper, concepts: Concepts, seen: np.ndarray, log_odds: np.ndarray, documents: int, cues: list[np.ndarray]
) -> list[np.ndarray]:
    group, at = _Group(concepts), concepts.sentence
    number, sections = len(paper.sizes), paper.sections
    last, sizes = int(sections[-1]), np.bincount(sections)
    first_at, last_at = at[group.starts], at[group.starts + group.sizes - 1]
    # A section counts where its number rises among the sentences of a concept.
    rises = np.diff(sections[at], prepend=-1) != 0
    rises[group.starts] = True
    opens = np.diff(sections, prepend=-1) != 0
    return [
        np.log1p(concepts.counts),
        np.log1p(group.sizes),
        group.sizes / number,
        np.log((documents + 1) / (seen + 1)),
        log_odds,
        first_at / number,
        last_at / number,
        group.total(rises) / (last + 1),
        group.total(sections[at] == 0) / sizes[0],
        group.total(sections[at] == last) / sizes[last],
        group.total(opens[at]),
        group.best(paper.centrality[at]),
        group.mean(paper.centrality[at]),
        np.full(len(concepts.keys), number),
        *(each for cue in cues for each in (group.best(cue[at]), group.mean(cue[at]))),
        *(group.mean(paper.kinds[sections[at]] == kind) for kind in range(len(SECTION_KINDS))),
    ]


def _of_parts(
    paper: Paper, words: Concepts, pairs: Concepts, log_odds: np.ndarray, in_heading: np.ndarray
) -> list[np.ndarray]:
    """Return what is known of the two words of each pair; a stop word counts 0."""
    columns = []
    for place in (pairs.places, pairs.places + 1):
        at, content = _places_among(words, paper, place)
        columns += [
            np.where(content, log_odds[at], 0),
            np.where(content, np.log1p(words.counts[at]), 0),
            in_heading[place],
        ]
    return columns

"""The context of concepts: weights of hashed features (Weinberger et al. 2009) of what stands around them."""

from typing import NamedTuple

import numpy as np

from pyramidions.extract.concepts.features import ORDERS, Concepts, Frequencies, Measured, keys_of, measure
from pyramidions.extract.concepts.paper import Paper

#: Weights of a table.
SIZE = 2**18
#: Features that `Context.features` adds to those of a concept.
FEATURES = 5
# Weights are kept in steps of this size: few are beyond a half, and smaller steps gain nothing.
_STEP = 1 / 256
# Numbers that mix the bits of a hash.
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
# Places from an end of a sentence, and sentences from one of a section, that are told apart.
_WORDS, _SENTENCES = 12, 5


class Around(NamedTuple):
    """What stands around the concepts of one order in a document."""

    concept: np.ndarray  # (occurrences,): which one occurs, rising
    sentence: np.ndarray  # (occurrences,): where
    near: np.ndarray  # (occurrences, n): features of it, its neighbours and its place in the sentence
    of_sentence: np.ndarray  # (sentences, m): features of the place and the beginning of each sentence
    held: np.ndarray  # (stems and pairs,): a feature of each stem and of each pair of stems in a sentence
    holder: np.ndarray  # (stems and pairs,): the sentence of each
    lengths: np.ndarray  # (sentences,): words of each

    @property
    def scale(self) -> np.ndarray:
        """What the sum over a sentence's stems and pairs is divided by: the square root of about their number."""
        return np.sqrt(2 * self.lengths.clip(1))


class Context(NamedTuple):
    """Weights of what stands around the concepts of one order: what their features add to a concept's log odds."""

    occurrences: np.ndarray  # (SIZE,): of features of an occurrence and its sentence's place
    sentences: np.ndarray  # (SIZE,): of what a sentence holds

    @classmethod
    def of(cls, *kept: np.ndarray) -> "Context":
        """Return the weights of what `in_bytes` returned."""
        return cls(*(weights * np.float32(_STEP) for weights in kept))

    def in_bytes(self) -> tuple[np.ndarray, ...]:
        """Return the weights as whole steps, int8."""
        return tuple((weights / _STEP).round().clip(-127, 127).astype(np.int8) for weights in self)

    def features(self, around: Around, concepts: Concepts) -> tuple[np.ndarray, ...]:
        """Return `FEATURES` columns: sum, mean and best of a concept's occurrences, mean and best of its sentences.

        The sum is divided by the square root of the number of occurrences. It and the mean of the sentences are added
        to the log odds in training.
        """
        of_sentence = self.occurrences[around.of_sentence].sum(axis=1)
        total, best = _aggregated(
            self.occurrences[around.near].sum(axis=1) + of_sentence[around.sentence], concepts.counts
        )
        held = np.bincount(around.holder, self.sentences[around.held], minlength=len(around.lengths)) / around.scale
        sizes = np.bincount(concepts.concept, minlength=len(concepts.keys))
        of_sentences, best_sentence = _aggregated(held[concepts.sentence], sizes)
        return total / np.sqrt(concepts.counts), total / concepts.counts, best, of_sentences / sizes, best_sentence


def measure_around(
    paper: Paper, known: tuple[Frequencies, Frequencies], contexts: tuple[Context, Context] | None
) -> Measured:
    """Return what `measure` does; with ``contexts``, each concept has features of its context, too."""
    measured = measure(paper, known)
    if contexts is None:
        return measured
    words, pairs = (
        np.column_stack([features, *context.features(around(paper, order, concepts), concepts)]).astype(np.float32)
        for order, context, concepts, features in zip(ORDERS, contexts, *measured, strict=True)
    )
    return measured._replace(features=(words, pairs))


def _aggregated(values: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum and the best of runs of values."""
    starts = np.cumsum(sizes) - sizes
    return np.add.reduceat(values, starts), np.maximum.reduceat(values, starts)


def around(paper: Paper, order: int, concepts: Concepts) -> Around:
    """Return what stands around the concepts of one order in a document."""
    sentence = paper.sentence
    keys, places = keys_of(paper.words, order, sentence)
    concept = np.searchsorted(concepts.keys, keys)
    by_concept = np.argsort(concept, kind="stable")
    keys, places = keys[by_concept], places[by_concept]
    stems, lengths = paper.words.hashes.astype(np.uint64), paper.sizes
    first = np.cumsum(lengths) - lengths
    at = sentence[places]
    kind = (paper.kinds[paper.sections] + 1)[at]

    def beside(distance: int) -> np.ndarray:
        """Return the stem so many words from each occurrence; beyond the sentence the distance stands for it."""
        there = np.clip(places + distance, 0, len(stems) - 1)
        inside = (there == places + distance) & (sentence[there] == at)
        return np.where(inside, stems[there], np.uint64(distance + 8))

    before, behind, further, far_behind = beside(-1), beside(order), beside(-2), beside(order + 1)
    inside = places - first[at]
    near = [
        (before,),
        (behind,),
        (further,),
        (far_behind,),
        (further, before),
        (behind, far_behind),
        (before, behind),
        (np.minimum(inside, _WORDS),),
        (np.minimum(lengths[at] - order - inside, _WORDS),),
        (keys,),
        (keys, kind),
        (keys, before),
        (keys, behind),
        *((stems[places + part], kind) for part in range(order if order > 1 else 0)),
    ]
    pairs = sentence[:-1] == sentence[1:]
    held = [_hashed(0, stems), _hashed(1, stems[:-1][pairs], stems[1:][pairs])]
    return Around(
        concept[by_concept],
        at,
        _columns(near, 2),
        _columns(_of_sentences(paper, stems, first), 2 + len(near)),
        np.concatenate(held),
        np.concatenate([sentence, sentence[:-1][pairs]]),
        lengths,
    )


def _of_sentences(paper: Paper, stems: np.ndarray, first: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    number, sections = len(first), paper.sections
    kind, last = paper.kinds[sections] + 1, sections[-1]
    sizes, place = np.bincount(sections)[sections], np.arange(number) - np.searchsorted(sections, sections)
    edge = np.where(sections == 0, 0, np.where(sections == last, 1, 2))
    ended = np.append(stems, np.uint64(1))
    begins = [np.where(paper.sizes > n, ended[np.minimum(first + n, len(stems))], np.uint64(1)) for n in range(3)]
    return [
        (kind, edge),
        (np.arange(number) * 20 // number,),
        (kind, np.minimum(place, _SENTENCES)),
        (kind, np.minimum(sizes - 1 - place, _SENTENCES)),
        (kind, place * 5 // sizes),
        (np.minimum(paper.sizes // 4, 15),),
        ((paper.centrality * 15).astype(int), edge),
        *(tuple(begins[: n + 1]) for n in range(3)),
    ]


def _columns(features: list[tuple[np.ndarray, ...]], salt: int) -> np.ndarray:
    return np.column_stack([_hashed(salt + number, *each) for number, each in enumerate(features)])


def _hashed(salt: int, *parts: np.ndarray) -> np.ndarray:
    """Return the place in a table of a feature that consists of ``parts``; ``salt`` tells features apart."""
    # Numbers that are no arrays would warn of an overflow.
    mixed = np.array([salt + 1], dtype=np.uint64) * _MIX
    for part in parts:
        mixed = (mixed ^ part.astype(np.uint64)) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX_AGAIN
    return ((mixed >> np.uint64(40)) % np.uint64(SIZE)).astype(np.int32)

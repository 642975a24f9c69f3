"""Trains a model of concepts on the CPU: reads papers, counts, fits; each piece of work that is done is kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.readers import Document
from pyramidions.extract.concepts.context import Context, measure_around
from pyramidions.extract.concepts.features import ORDERS, Frequencies, concepts_of, keys_of, with_chances
from pyramidions.extract.concepts.model import ConceptModel
from pyramidions.extract.concepts.paper import Paper, paper_of
from pyramidions.extract.concepts.trees import MOST_LEAVES, Trees
from pyramidions.extract.concepts.words import Words, words_in
from pyramidions.files.atomic import atomic_file
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.text.language import ENGLISH
from pyramidions.text.turns import read_outline

#: Documents of a file of papers.
BLOCK = 250
#: Documents that trees learn from, and concepts of an order in them, at most.
DOCUMENTS, MOST_ROWS = 3_000, 1_200_000
#: Trees of words, of pairs, and of a policy.
TREES = 200
#: Concepts of a leaf, at least.
LEAST_CONCEPTS = 50
#: Documents that a concept must stand in to be known by itself.
LEAST = 5
#: Parts of the training documents; what is known of a document comes from the other parts.
FOLDS = 5


class Example(NamedTuple):
    """A document and its summary."""

    paper: Paper  # the document
    summary: Words  # the words of its summary

    @property
    def held(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of the summary's concepts, of each order."""
        words, pairs = (np.unique(keys_of(self.summary, order)[0]) for order in ORDERS)
        return words, pairs


def read_papers(documents: Iterable[Document], number: int, folder: Path, workers: int) -> None:
    """Write documents as arrays, `BLOCK` to a file; files that are there are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    read = sum(path.suffix == ".npz" for path in folder.iterdir())
    left = islice(documents, read * BLOCK, None)
    with progress_bar("reading papers", number, "documents", read * BLOCK) as bar:
        for place, some in enumerate(chunks(ordered_map(read_example, left, workers), BLOCK), read):
            with atomic_file(folder / f"{place:05}.npz") as file:
                np.savez(file, allow_pickle=False, **_packed(some))
            bar.update(len(some))


def load_papers(folder: Path) -> Iterable[Example]:
    """Yield the documents that `read_papers` wrote, in their order."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        if not arrays.keys() >= set(_NAMES):
            raise UserError(f"{path} is of another version of pyramidions: delete {folder}, and it is made again.")
        parts = [np.split(arrays[name], np.cumsum(arrays[f"{name}_sizes"])[:-1]) for name in _NAMES]
        for hashes, content, *paper, summary_hashes, summary_content in zip(*parts, strict=True):
            yield Example(Paper(Words(hashes, content), *paper), Words(summary_hashes, summary_content))


def learned_from(number: int) -> list[int]:
    """Return the places of at most `DOCUMENTS` among a number of documents, spread over all."""
    return spread(range(number), DOCUMENTS)


def spread(places: Sequence[int], most: int) -> list[int]:
    """Return at most ``most`` of some places, evenly spread."""
    most = min(len(places), most)
    return [places[index * len(places) // most] for index in range(most)]


def load_some(folder: Path, places: Sequence[int]) -> Iterator[tuple[int, Example]]:
    """Yield the documents of `read_papers` at some places, each with its place, but for those without a sentence."""
    chosen = set(places)
    for place, example in enumerate(load_papers(folder)):
        if place in chosen and len(example.paper.sizes):
            yield place, example


def read_example(document: Document) -> Example:
    """Return a document as arrays; its words are those of its language, English if that is not known."""
    language = document.language or ENGLISH
    words, _ = words_in([document.target], language)
    return Example(paper_of(read_outline(document.source, language=language), language), words)


_NAMES = ("hashes", "content", *Paper._fields[1:], "summary_hashes", "summary_content")


def _packed(examples: Sequence[Example]) -> dict[str, np.ndarray]:
    """Return each array of all examples on end, and how long each is."""
    flat = [[*example.paper.words, *example.paper[1:], *example.summary] for example in examples]
    columns = dict(zip(_NAMES, zip(*flat, strict=True), strict=True))
    found = {name: np.concatenate(column) for name, column in columns.items()}
    return found | {f"{name}_sizes": np.array(list(map(len, column))) for name, column in columns.items()}


class Counts(NamedTuple):
    """Frequencies of words, and of pairs."""

    known: tuple[Frequencies, Frequencies]  # of all training documents
    # For each fold of them, of the documents outside: what is known of a document that was not counted.
    others: tuple[tuple[Frequencies, Frequencies], ...]

    def without(self, number: int) -> tuple[Frequencies, Frequencies]:
        """Return the frequencies in documents of other folds than that of a document, by its number."""
        return self.others[number % FOLDS]


def count(folder: Path, least: int = LEAST) -> Counts:
    """Count in how many documents each concept stands, and in how many of their summaries."""
    folds = [_Fold([], []) for _ in range(FOLDS)], [_Fold([], []) for _ in range(FOLDS)]
    for number, example in enumerate(load_papers(folder)):
        for of_order, order, held in zip(folds, ORDERS, example.held, strict=True):
            keys = concepts_of(example.paper, order).keys
            fold = of_order[number % FOLDS]
            fold.seen.append(keys)
            fold.hits.append(keys[np.isin(keys, held)])
    if not all(sum(sum(map(len, fold.hits)) for fold in of_order) for of_order in folds):
        raise UserError(
            "A model of concepts needs documents whose summaries share words and pairs of words with them, but these "
            "share none by the words of their --language: --kind extractor trains a network."
        )
    words, pairs = (_counted(of_order, least) for of_order in folds)
    (known, *others) = zip(words, pairs, strict=True)
    return Counts(known, tuple(others))


class _Fold(NamedTuple):
    """The concepts of each document of a fold, and those of them that its summary has."""

    seen: list[np.ndarray]
    hits: list[np.ndarray]


def _counted(folds: list[_Fold], least: int) -> list[Frequencies]:
    """Return the frequencies in all documents, then those outside each fold."""
    keys, seen = np.unique(np.concatenate([each for fold in folds for each in fold.seen]), return_counts=True)
    base = sum(len(each) for fold in folds for each in fold.hits) / int(seen.sum())
    keys = keys[seen >= least]
    counts = np.array([[_times(keys, some) for some in fold] for fold in folds])
    documents = np.array([len(fold.seen) for fold in folds])
    # Of all folds, then of all but each.
    whole = counts.sum(axis=0, dtype=np.int32)
    numbers = [whole, *(whole - fold for fold in counts)]
    sizes = [documents.sum(), *(documents.sum() - documents)]
    return [
        Frequencies(int(size), least, base, keys, seen, hits) for size, (seen, hits) in zip(sizes, numbers, strict=True)
    ]


def _times(keys: np.ndarray, some: list[np.ndarray]) -> np.ndarray:
    """Return how often each of rising keys occurs in some lists of keys: (keys,), int32."""
    found = np.concatenate([keys[:0], *some])
    at = np.searchsorted(keys, found)
    known = np.append(keys, 0)[at] == found
    return np.bincount(at[known & (at < len(keys))], minlength=len(keys)).astype(np.int32)


def fit(
    folder: Path,
    counts: Counts,
    seed: int,
    on_step: Callable[[str], object] = lambda _: None,
    contexts: tuple[Context, Context] | None = None,
    trees: int | None = None,
) -> ConceptModel:
    """Fit the trees of both orders, `TREES` by default; those of pairs see what those of words expect."""

    def fitted(name: str, words: Trees | None = None) -> Trees:
        x, y = _sample(folder, counts, words, seed, contexts)
        fitting = boosting(seed, LEAST_CONCEPTS, trees, classifies=True)
        on_step(f"fitting {fitting.max_iter} trees of {name} to {len(x):,} concepts")
        return Trees.of(fitting.fit(x, y))

    words = fitted("words")
    return ConceptModel(counts.known, (words, fitted("pairs", words)), contexts=contexts)


def _sample(
    folder: Path, counts: Counts, words: Trees | None, seed: int, contexts: tuple[Context, Context] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return features of words, or of pairs, and whether the summary has each."""
    order = int(words is not None)
    generator = np.random.default_rng((seed, order))
    places = learned_from(counts.known[0].documents)
    # How many concepts there are is not counted before; documents with few known ones hardly change it.
    share = min(1.0, MOST_ROWS / (len(places) * (620, 2_350)[order]))
    rows: list[np.ndarray] = []
    held: list[np.ndarray] = []
    for place, example in load_some(folder, places):
        measured = measure_around(example.paper, counts.without(place), contexts)
        x = measured.features[0]
        if words is not None:
            x = with_chances(example.paper, measured, words.chances(x))
        taken = generator.random(len(x)) < share
        rows.append(x[taken])
        held.append(np.isin(measured.concepts[order].keys, example.held[order])[taken])
    return np.concatenate(rows), np.concatenate(held)


def boosting(seed: int, least_rows: int, trees: int | None = None, *, classifies: bool) -> Any:
    """Return trees to be fitted, with at least so many rows in a leaf, that tell a class or a number."""
    # Nothing else needs it, and it takes a second.
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return (HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor)(
        max_iter=trees or TREES,
        learning_rate=0.08,
        max_leaf_nodes=MOST_LEAVES - 1,
        min_samples_leaf=least_rows,
        early_stopping=False,
        random_state=seed,
    )

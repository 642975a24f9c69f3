"""Trains a model of concepts on the CPU: reads papers, counts, fits; each piece of work that is done is kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.readers import Document
from pyramidions.extract.concepts.features import ORDERS, Frequencies, concepts_of, keys_of, measure
from pyramidions.extract.concepts.model import ConceptModel
from pyramidions.extract.concepts.paper import Paper, paper_of
from pyramidions.extract.concepts.trees import MOST_LEAVES, Trees
from pyramidions.extract.concepts.words import Words, words_in
from pyramidions.files.atomic import atomic_file
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.text.turns import read_outline

#: Documents of a file of papers.
BLOCK = 250
#: Concepts that the trees of an order are fitted to: a sample, if there are more.
MOST_ROWS = 800_000
#: Trees of each order.
ROUNDS = 200
#: Documents that a concept must stand in to be known by itself.
LEAST = 5


class Example(NamedTuple):
    """A document and its summary.

    Attributes:
        paper: the document.
        summary: the words of its summary.
    """

    paper: Paper
    summary: Words

    @property
    def held(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of the summary's concepts, of each order."""
        words, pairs = (np.unique(keys_of(self.summary, order)[0]) for order in ORDERS)
        return words, pairs


def read_papers(documents: Iterable[Document], number: int, folder: Path, workers: int) -> None:
    """Write documents in numbers, `BLOCK` to a file; files that are there are kept.

    Args:
        documents: with their summaries, always the same ones.
        number: of them.
        folder: gets the files.
        workers: processes that read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    read = sum(path.suffix == ".npz" for path in folder.iterdir())
    left = islice(documents, read * BLOCK, None)
    with progress_bar("reading papers", number, "documents", read * BLOCK) as bar:
        for place, some in enumerate(chunks(examples(left, workers), BLOCK), read):
            with atomic_file(folder / f"{place:05}.npz") as file:
                np.savez(file, allow_pickle=False, **_packed(some))
            bar.update(len(some))


def load_papers(folder: Path) -> Iterable[Example]:
    """Yield the documents that `read_papers` wrote, in their order."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        yield from _unpacked(arrays)


def examples(documents: Iterable[Document], workers: int) -> Iterator[Example]:
    """Yield documents in numbers; ``workers`` processes read them."""
    return ordered_map(_example, documents, workers)


def _example(document: Document) -> Example:
    words, _ = words_in([document.target])
    return Example(paper_of(read_outline(document.source)), words)


def _flat(example: Example) -> list[np.ndarray]:
    return [*example.paper.words, *example.paper[1:], *example.summary]


def _packed(examples: Sequence[Example]) -> dict[str, np.ndarray]:
    """Return each array of all examples on end, and how long each is."""
    columns = list(zip(*map(_flat, examples), strict=True))
    found = {f"values{n}": np.concatenate(column) for n, column in enumerate(columns)}
    return found | {f"sizes{n}": np.array(list(map(len, column))) for n, column in enumerate(columns)}


def _unpacked(arrays: dict[str, np.ndarray]) -> Iterable[Example]:
    number = len(arrays) // 2
    parts = [np.split(arrays[f"values{n}"], np.cumsum(arrays[f"sizes{n}"])[:-1]) for n in range(number)]
    for hashes, content, *paper, expected, kinds in zip(*parts, strict=True):
        yield Example(Paper(Words(hashes, content), *paper), Words(expected, kinds))


def count(folder: Path, least: int = LEAST) -> tuple[Frequencies, Frequencies]:
    """Count in how many documents each concept stands, and in how many of their summaries.

    Args:
        folder: of `read_papers`.
        least: documents that a concept must stand in to be kept.

    Raises:
        UserError: no summary has a concept of its document.
    """
    seen: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    hits: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    documents = 0
    for example in load_papers(folder):
        documents += 1
        for place, (order, held) in enumerate(zip(ORDERS, example.held, strict=True)):
            keys = concepts_of(example.paper, order).keys
            seen[place].append(keys)
            hits[place].append(keys[np.isin(keys, held)])
    if not all(sum(map(len, each)) for each in hits):
        raise UserError(
            "A model of concepts needs English documents whose summaries share words and pairs of words with them, but "
            "these share none: --kind extractor trains a network."
        )
    words, pairs = (_counted(documents, least, *each) for each in zip(seen, hits, strict=True))
    return words, pairs


def _counted(documents: int, least: int, seen: list[np.ndarray], hits: list[np.ndarray]) -> Frequencies:
    base = sum(map(len, hits)) / max(sum(map(len, seen)), 1)
    keys, number = np.unique(np.concatenate(seen), return_counts=True)
    found = np.zeros(len(keys), dtype=np.int64)
    held, times = np.unique(np.concatenate(hits), return_counts=True)
    found[np.searchsorted(keys, held)] = times
    kept = number >= least
    return Frequencies(documents, least, base, keys[kept], number[kept].astype(np.int32), found[kept].astype(np.int32))


def fit(
    folder: Path, known: tuple[Frequencies, Frequencies], seed: int, on_step: Callable[[str], object] = lambda _: None
) -> ConceptModel:
    """Fit the trees of both orders.

    Args:
        folder: of `read_papers`.
        known: what `count` returned.
        seed: of the sample of concepts.
        on_step: told what begins.
    """
    rows, held = _sample(folder, known, seed)
    trees = []
    for name, x, y in zip(("words", "pairs"), rows, held, strict=True):
        on_step(f"fitting {ROUNDS} trees of {name} to {len(x):,} concepts")
        trees.append(Trees.of(_classifier(seed).fit(x, y)))
    return ConceptModel(known, (trees[0], trees[1]))


def _classifier(seed: int) -> Any:
    # Nothing else needs it, and it takes a second.
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        learning_rate=0.08,
        max_leaf_nodes=MOST_LEAVES - 1,
        min_samples_leaf=50,
        early_stopping=False,
        random_state=seed,
    )


def _sample(
    folder: Path, known: tuple[Frequencies, Frequencies], seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return features of concepts, and whether the summary has them, of each order."""
    generator = np.random.default_rng(seed)
    # How many concepts there are is not counted before; documents with few known ones hardly change it.
    rows: tuple[list[np.ndarray], ...] = ([], [])
    held: tuple[list[np.ndarray], ...] = ([], [])
    shares = [min(1.0, MOST_ROWS / max(known[0].documents * each, 1)) for each in (620, 2_350)]
    for example in load_papers(folder):
        measured = measure(example.paper, known, example.held)
        for place, (concepts, x) in enumerate(zip(measured.concepts, measured.features, strict=True)):
            taken = generator.random(len(x)) < shares[place]
            rows[place].append(x[taken])
            held[place].append(np.isin(concepts.keys, example.held[place])[taken])
    return [np.concatenate(each) for each in rows], [np.concatenate(each) for each in held]

"""The documents that a page of scores shows: the worst and the best by each figure, and where their sentences stand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyramidions.files.progress import progress_bar
from pyramidions.pages.page import MOST, Room, Sentence
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import Example, Figure
from pyramidions.text.fragments import fragments
from pyramidions.text.normalization import split_sentences
from pyramidions.text.support import SupportIndex
from pyramidions.text.words import word_places

#: documents on a page, at most; with many figures and systems each has fewer
MOST_DOCUMENTS = 400
_FEWEST = 3
# No word: keeps fragments from going across two references.
_BREAK = "\n"

Sentences = Callable[[str], list[str]]
_Places = list[tuple[str, int, int]]  # words, and where each begins and ends


def number(value: float) -> float | None:
    """Round a figure for the page; None if it is not a number."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


class Shown:
    """The documents that a page shows, each once, gathered one by one.

    Args:
        examples: of each system.
        ids: of the documents.
        values: (systems, documents, figures).
        most: bytes of all of them.
        sentences_of: splits a text.
    """

    def __init__(
        self,
        examples: Sequence[Examples],
        ids: Sequence[str],
        values: np.ndarray,
        most: int = MOST,
        sentences_of: Sentences = split_sentences,
    ) -> None:
        self._sentences_of = sentences_of
        self._examples = examples
        self._ids = ids
        self._values = values
        self._room = Room(most)
        self._places: dict[int, int | None] = {}
        self.found: list[dict[str, Any]] = []

    @property
    def left_out(self) -> int:
        """The number of documents that found no room."""
        return sum(place is None for place in self._places.values())

    def place(self, document: int) -> int | None:
        """Return where a document is in `found`, and add it if need be; None if there is no room."""
        if document not in self._places:
            texts = document_texts([of_system[document] for of_system in self._examples], self._sentences_of)
            scores = [[number(value) for value in row] for row in self._values[:, document]]
            shown = {"id": self._ids[document], "scores": scores, **texts}
            size = self._room.reserve(shown)
            self._places[document] = len(self.found) if size else None
            if size:
                self.found.append(shown)
        return self._places[document]


def extremes(
    values: np.ndarray, figures: Mapping[str, Figure], shown: Shown, documents: int
) -> list[list[dict[str, list[int]]]]:
    """Choose the documents that are shown.

    Args:
        values: (systems, documents, figures).
        figures: in this order.
        shown: takes the documents.
        documents: how many at either end.

    Returns:
        For each order, for each figure, the "worst" and the "best" first, as places in `Shown.found`. The first order
        is by the first system's scores, the others by their differences to each other system's. The lowest figure is
        the worst, unless lower ones are better.
    """
    orders = [values[0], *(values[0] - other for other in values[1:])]
    lists = 2 * len(orders) * len(figures)
    documents = min(documents, max(_FEWEST, MOST_DOCUMENTS // lists))
    chosen: list[list[dict[str, list[int]]]] = [[] for _ in orders]
    with progress_bar("choosing documents for the page", lists // 2, "lists") as bar:
        for place, figure in enumerate(figures.values()):
            for order, of_order in zip(orders, chosen, strict=True):
                ends = _ends(order[:, place], documents, lower_is_better=figure.better == "lower")
                kept = {
                    end: [at for document in found if (at := shown.place(document)) is not None]
                    for end, found in ends.items()
                }
                of_order.append(kept)
                bar.update()
    return chosen


def _ends(scores: np.ndarray, documents: int, *, lower_is_better: bool) -> dict[str, list[int]]:
    """Return the worst and the best documents, none of them twice."""
    known = np.flatnonzero(np.isfinite(scores))
    order = known[np.argsort(-scores[known] if lower_is_better else scores[known], kind="stable")].tolist()
    best = order[::-1][: min(documents, (len(order) + 1) // 2)]
    worst = order[: min(documents, len(order) - len(best))]
    return {"worst": worst, "best": best}


def document_texts(examples: Sequence[Example], sentences_of: Sentences = split_sentences) -> dict[str, Any]:
    """Return the summaries of one document with what each copied, and its references.

    Args:
        examples: of the document, one a system. What summaries copied is looked for in the document; in
            the references if it is not at hand.
        sentences_of: splits a text.

    Returns:
        "base", "document" or "reference", where things were looked for; "source", by index the sentences of it that
        support any; "references" and "summaries", texts as lists of sentences.
    """
    first = examples[0]
    sources = [first.source] if first.source is not None else list(first.references)
    base = _Base(sources, sentences_of, "the document" if first.source is not None else "the references")
    references = [
        base.marked(text) if first.source is not None else [_plain(text) for text in sentences_of(text)]
        for text in first.references
    ]
    summaries = [base.marked(example.prediction) for example in examples]
    return {
        "base": "document" if first.source is not None else "reference",
        "references": references,
        "summaries": summaries,
        "source": base.used,
    }


class _Base:
    """The texts in which the origin of summaries is looked for.

    Args:
        texts: no fragment goes across two of them.
        sentences_of: splits a text.
        name: what to call them.
    """

    def __init__(self, texts: Sequence[str], sentences_of: Sentences, name: str) -> None:
        self._sentences_of = sentences_of
        self._name = name
        of_texts = [[(sentence, list(word_places(sentence))) for sentence in sentences_of(text)] for text in texts]
        self._sentences = [sentence for sentences in of_texts for sentence, _ in sentences]
        self._index = SupportIndex(self._sentences)
        self._words: list[str] = []
        for sentences in of_texts:
            self._words += [word for _, words in sentences for word, _, _ in words]
            self._words.append(_BREAK)
        self.used: dict[int, str] = {}  #: sentences that support any, by index

    def marked(self, text: str) -> list[Sentence]:
        """Return the sentences of a text, what was copied in them, and what supports them."""
        sentences = self._sentences_of(text)
        places = [list(word_places(sentence)) for sentence in sentences]
        copied = _lengths([word for words in places for word, _, _ in words], self._words)
        marked: list[Sentence] = []
        start = 0
        for sentence, words in zip(sentences, places, strict=True):
            pieces = _pieces(sentence, words, copied[start : start + len(words)])
            marked.append(self._supported(pieces, sentence))
            start += len(words)
        return marked

    def _supported(self, pieces: list[tuple[str, int]], sentence: str) -> Sentence:
        support = self._index.support(sentence)
        if support is None:
            return {"pieces": pieces, "enough": None, "support": []}
        self.used.update((index, self._sentences[index]) for index in support.sentences)
        count = len(support.sentences)
        title = f"{support.recall:.0%} in {count} sentence{'' if count == 1 else 's'}"
        places = [[float(f"{share:.6g}"), index] for index, share in support.shares]
        title = title if count else f"none of its pairs of words stand in {self._name}"
        return {"pieces": pieces, "enough": support.is_enough, "support": [{"title": title, "places": places}]}


def _plain(sentence: str) -> Sentence:
    return {"pieces": [(sentence, 0)], "enough": None, "support": []}


def _lengths(summary: Sequence[str], source: Sequence[str]) -> list[tuple[int, int]]:
    """Return of each word which fragment it belongs to and its length, (-1, 0) for none."""
    lengths = [(-1, 0)] * len(summary)
    for fragment in fragments(summary, source):
        end = fragment.start + fragment.length
        lengths[fragment.start : end] = [(fragment.start, fragment.length)] * fragment.length
    return lengths


def _pieces(sentence: str, words: _Places, copied: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    """Cut a sentence where fragments begin and end; what stands between words of a fragment is part of it."""
    pieces: list[tuple[str, int]] = []
    done = 0
    place = 0
    while place < len(words):
        fragment, length = copied[place]
        last = place
        while last + 1 < len(words) and copied[last + 1][0] == fragment:
            last += 1
        start, end = words[place][1], words[last][2]
        if length:
            pieces += [(sentence[done:start], 0)] * (start > done) + [(sentence[start:end], length)]
            done = end
        place = last + 1
    return [*pieces, (sentence[done:], 0)] if done < len(sentence) else pieces

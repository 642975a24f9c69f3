"""Replaces documents by their most important sentences, to train a model on what an extractor will hand it."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.pairing import Pairing, Pairs
from pyramidions.data.readers import Document
from pyramidions.extract import Budget, HipoRank, Oracle, Ranker, SelectionRules, select
from pyramidions.extract.fitness import fit_for_summary
from pyramidions.text.outline import Outline
from pyramidions.text.several_documents import DOCUMENT_END
from pyramidions.text.tokenizer import Tokenizer
from pyramidions.text.turns import read_outline, spoken, with_speakers


class SelectSentences(Pairing):
    """Keeps the sentences of a document that a ranker prefers, in reading order, as far as a budget of tokens allows.

    A text has at most ``budget`` tokens, its query and its end included, as in the model's `max_source_positions`; the
    best sentence is kept even if it is longer alone.
    """

    whole_because = "no sentence to select"

    def __init__(self, make_ranker: Callable[[], Ranker], budget: int, about: dict[str, Any]) -> None:
        self.budget = require_budget(budget)
        self._make_ranker = make_ranker
        self._about = about

    @cached_property
    def _ranker(self) -> Ranker:
        return self._make_ranker()

    def __call__(self, document: Document, tokenizer: Tokenizer) -> Pairs:
        """Return the shortened document with its whole summary; it is taken as it is if no sentence has a score.

        Several documents have equal shares of the budget; one without a score is taken as it is.
        """
        texts = tokenizer.documents(document.source)
        budget = self.budget if document.query is None else self._beside(document.query, document.id, tokenizer)
        room = tokenizer.room(budget, "budget")
        budget -= room - max(tokenizer.share(room, len(texts)), 1)
        selected = [self._selected(text, document, tokenizer, budget) for text in texts]
        if not any(selected):
            return Pairs([document], is_whole=True)
        source = DOCUMENT_END.join(short or text for short, text in zip(selected, texts, strict=True))
        return Pairs([document._replace(source=source)])

    def _selected(self, text: str, document: Document, tokenizer: Tokenizer, budget: int) -> str:
        """Return the selected sentences of one of a document's texts, "" if there are none."""
        found = read_outline(text, language=document.language)
        if not found.sentences:
            return ""
        chosen = select_tokens(found, self._scores(found, document), tokenizer, budget, self._ranker.stops)
        return " ".join(selected_texts(found, chosen))

    def _beside(self, query: str, name: str, tokenizer: Tokenizer) -> int:
        """Return the budget that a query leaves to the document, which it stands before."""
        tokens = len(tokenizer.asked(query))
        if tokens > (most := tokenizer.query_room(self.budget, "budget")):
            raise UserError(
                f"The query of a document must have at most {most:,} tokens, half of `budget`, with the end of the "
                f"text behind it, but that of {name!r} has {tokens:,}."
            )
        return self.budget - tokens

    def _scores(self, found: Outline, document: Document) -> np.ndarray:
        return self._ranker.rank(found)

    def about(self) -> dict[str, Any]:
        return {"kind": "sentences", **self._about, "budget": self.budget}


class SelectByOracle(SelectSentences):
    """Keeps the sentences that the greedy oracle chooses by the reference; HipoRank fills the rest of the budget.

    Texts are then as long as those that an extractor selects later; Manakul and Gales (2021, "Long-Span Summarization")
    fill up, too. The reference decides, so this is for training and validation, never for test.
    """

    def __init__(self, budget: int) -> None:
        super().__init__(HipoRank, budget, {"method": "oracle"})

    def _scores(self, found: Outline, document: Document) -> np.ndarray:
        others = self._ranker.rank(found)
        chosen = Oracle(document.target).rank(found)
        # Ranks of HipoRank, below all scores of the oracle, which are at least 1.
        below = np.argsort(np.argsort(others, kind="stable"), kind="stable") - float(len(others))
        return np.where(chosen > -np.inf, chosen, below)


def select_tokens(
    found: Outline, scores: np.ndarray, tokenizer: Tokenizer, budget: int, stops: bool = False
) -> list[int]:
    """Select sentences by score, up to a budget of tokens, among those that `fit_for_summary` accepts.

    The budget counts the prefix and the end of the text, and markers of sentences where the tokenizer has them.
    """
    texts = list(with_speakers(found))
    markers = int(tokenizer.marker_id is not None)
    # A turn has one in front, and one behind its speaker.
    of_each = markers + int(tokenizer.name_end_id is not None and bool(found.speakers))
    lengths = [count + of_each for count in tokenizer.counts(texts)]
    # A marker between sentences is one less than there are sentences.
    room = tokenizer.room(require_budget(budget), "budget") + markers * (not tokenizer.marks_first)
    rules = SelectionRules(Budget(words=room), stops=stops)
    return select(texts, fit_for_summary(found, scores), rules, lengths, found.language)


def selected_texts(found: Outline, chosen: list[int]) -> Iterator[str]:
    """Yield sentences of an outline; of a dialogue with each speaker before what he or she says."""
    return spoken((found.speakers[place] if found.speakers else "", found.texts[place]) for place in chosen)


def require_budget(budget: int) -> int:
    if budget < 2:
        raise UserError(f"`budget` must be at least 2, a token and the end of the text, but is {budget}.")
    return budget

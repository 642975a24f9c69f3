"""How many names in a summary its document holds."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, CountingMetric, Example, Figure
from pyramidions.text.language import Language
from pyramidions.text.normalization import SPLITTER, normalize
from pyramidions.text.words import WORD

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from pyramidions.scoring.encoders.readers import EntityTagger

# That say nothing about whether a name was found.
_FUNCTION_WORDS = frozenset(["a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"])
_COMPARED = "found if a word of it is; whole: word by word | any case"
_TOKEN = re.compile(r"\w+(?:[.,:/'’-]\w+)*|[^\w\s]")
# A number with its separators is one word: 1,000 and 2,000 have nothing in common.
_WORD = re.compile(rf"\d+(?:[.,:/]\d+)+|{WORD}")


class EntityMetric(CountingMetric):
    """Precision of the names in a summary by its document, and recall of those in the reference; 0 to 100.

    Figures, in this order: the share of the summary's names with a word, "of" and the like aside, that is in the
    document (Nan et al. 2021, precision-source: "Obama" for "Barack Obama"); the share of those that are in the
    document as they are, word by word; and the share of the reference's names that are in the summary in the first
    way (recall-target), of several references the highest. Case makes no difference; each mention counts.

    A summary that is not empty and names nothing has a precision of 100, as nothing in it is false; a reference that
    names nothing has a recall of 100. Remarks say how many there were.
    """

    reads_source: ClassVar[bool] = True
    batch_size: ClassVar[int] = 32
    #: As users call it, and what it counts.
    name: ClassVar[str]
    counted: ClassVar[str]

    @abstractmethod
    def names(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the names in texts that are normalised."""

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        predictions = [normalize(example.prediction) for example in examples]
        references = [[normalize(reference) for reference in example.references] for example in examples]
        found = iter(self.names([*predictions, *(text for texts in references for text in texts)]))
        named = [[name_words(name) for name in next(found)] for _ in examples]
        expected = [[[name_words(name) for name in next(found)] for _ in texts] for texts in references]
        sources = [name_words(normalize(example.source or "")) for example in examples]
        return 100 * np.array(list(map(self._row, predictions, sources, named, expected)))

    def _row(
        self, prediction: str, source: list[str], named: list[list[str]], expected: list[list[list[str]]]
    ) -> list[float]:
        self.counts["documents"] += 1
        if not prediction:
            return [0.0, 0.0, 0.0]
        self.counts.update({"summaries": not named, "documents' references": not any(expected)})
        in_source, in_summary = frozenset(source), frozenset(name_words(prediction))
        text = _joined(source)
        return [
            _share([_is_known(name, in_source) for name in named]),
            _share([_joined(name) in text for name in named]),
            max((_share([_is_known(name, in_summary) for name in names]) for names in expected if names), default=1.0),
        ]

    def remarks(self) -> list[str]:
        return [
            f"{self.name}: {nameless:,} of {self.counts['documents']:,} {whose} hold no {self.counted}, which counts "
            f"as a {figure} of 100."
            for whose, figure in (("summaries", "precision"), ("documents' references", "recall"))
            if (nameless := self.counts[whose])
        ]


class Entities(EntityMetric):
    """Precision and recall of the entities that a tagger finds; see `EntityMetric`."""

    name: ClassVar = "entities"
    counted: ClassVar = "entity"
    figures: ClassVar = {
        "entity_precision": Figure("entity precision"),
        "entity_precision_whole": Figure("whole-entity precision"),
        "entity_recall": Figure("entity recall"),
    }

    def __init__(self, tags: "EntityTagger", language: str = "en") -> None:
        super().__init__()
        self._language = Language(language)
        self._tags = tags

    def names(self, texts: Sequence[str]) -> list[list[str]]:
        cut = [self._language.sentences(text) for text in texts]
        spans = iter(self._tags.entities([sentence for sentences in cut for sentence in sentences]))
        return [
            [sentence[span.start : span.end] for sentence in sentences for span in next(spans)] for sentences in cut
        ]

    def signature(self) -> str:
        splitter = f"sentences: {SPLITTER}, language {self._language.code}"
        return f"entities | {self._tags.signature()} | {splitter} | {_COMPARED}"


@METRICS.register("entities")
def entities(tagger: str | None = None, device: str = "cpu", language: str = "en") -> Entities:
    from pyramidions.scoring.encoders.readers import EntityTagger

    return Entities(EntityTagger(tagger, device), language)


@METRICS.register("capitalized")
class Capitalized(EntityMetric):
    """Precision and recall of numbers and capitalized words; see `EntityMetric`. It needs no weights.

    A name is a run of words with a capital letter in front, without the first word of a sentence; or a word with a
    figure in it. Languages that capitalize all nouns, or have no capitals, need `entities`.
    """

    name: ClassVar = "capitalized"
    counted: ClassVar = "number and no capitalized word"
    figures: ClassVar = {
        "capitalized_precision": Figure("precision of numbers and capitalized words"),
        "capitalized_precision_whole": Figure("whole precision of numbers and capitalized words"),
        "capitalized_recall": Figure("recall of numbers and capitalized words"),
    }

    def __init__(self, language: str = "en") -> None:
        super().__init__()
        self._language = Language(language)

    def names(self, texts: Sequence[str]) -> list[list[str]]:
        return [[name for part in self._language.sentences(text) for name in _capitalized(part)] for text in texts]

    def signature(self) -> str:
        return f"numbers and capitalized words | sentences: {SPLITTER}, language {self._language.code} | {_COMPARED}"


def name_words(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in any script, to compare names and answers by."""
    return _WORD.findall(text.lower())


def _capitalized(sentence: str) -> list[str]:
    names: list[str] = []
    goes_on = False
    is_first = True
    for token in _TOKEN.findall(sentence):
        has_figure = any(character.isdigit() for character in token)
        is_capitalized = token[0].isupper() and not is_first and not has_figure
        if is_capitalized and goes_on:
            names[-1] += f" {token}"
        elif is_capitalized or has_figure:
            names.append(token)
        goes_on = is_capitalized
        is_first = is_first and not token[0].isalnum()
    return names


def _joined(text: Sequence[str]) -> str:
    return f" {' '.join(text)} "


def _is_known(name: Sequence[str], among: frozenset[str]) -> bool:
    return any(word in among for word in name if word not in _FUNCTION_WORDS)


def _share(are: Sequence[bool]) -> float:
    return sum(are) / len(are) if are else 1.0

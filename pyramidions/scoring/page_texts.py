"""What the summaries of one document copied, and which sentences of it support theirs."""

from collections.abc import Callable, Sequence
from typing import Any

from pyramidions.scoring.metric import Example
from pyramidions.scoring.page_charts import number
from pyramidions.text.fragments import fragments
from pyramidions.text.normalization import split_sentences
from pyramidions.text.support import SupportIndex
from pyramidions.text.words import word_places

# No word: keeps fragments from going across two references.
_BREAK = "\n"

Sentences = Callable[[str], list[str]]
_Places = list[tuple[str, int, int]]  # words, and where each begins and ends


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
    base = _Base(sources, sentences_of)
    references = [
        base.marked(text) if first.source is not None else [{"pieces": [[text, 0]]} for text in sentences_of(text)]
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
    """

    def __init__(self, texts: Sequence[str], sentences_of: Sentences) -> None:
        self._sentences_of = sentences_of
        of_texts = [[(sentence, list(word_places(sentence))) for sentence in sentences_of(text)] for text in texts]
        self._sentences = [sentence for sentences in of_texts for sentence, _ in sentences]
        self._index = SupportIndex([_words(words) for sentences in of_texts for _, words in sentences])
        self._words: list[str] = []
        for sentences in of_texts:
            self._words += [word for _, words in sentences for word, _, _ in words]
            self._words.append(_BREAK)
        self.used: dict[int, str] = {}  #: sentences that support any, by index

    def marked(self, text: str) -> list[dict[str, Any]]:
        """Return the sentences of a text.

        Each has "pieces", its text and of each piece the length in words of the fragment that it belongs to, 0 for
        none; and "support", pairs of a source sentence and the share of pairs of words that it adds, in "recall" all
        of them together, and "enough", whether that is support; these are None for a sentence of less than two words.
        """
        sentences = self._sentences_of(text)
        places = [list(word_places(sentence)) for sentence in sentences]
        copied = _lengths([word for words in places for word, _, _ in words], self._words)
        marked = []
        start = 0
        for sentence, words in zip(sentences, places, strict=True):
            pieces = _pieces(sentence, words, copied[start : start + len(words)])
            marked.append({"pieces": pieces, **self._support(words)})
            start += len(words)
        return marked

    def _support(self, words: _Places) -> dict[str, Any]:
        support = self._index.support(_words(words))
        if support is None:
            return {"support": None, "recall": None, "enough": None}
        self.used.update((index, self._sentences[index]) for index in support.sentences)
        shares = map(number, support.shares)
        return {
            "support": [list(pair) for pair in zip(support.sentences, shares, strict=True)],
            "recall": number(support.recall),
            "enough": support.is_enough,
        }


def _words(places: _Places) -> list[str]:
    return [word for word, _, _ in places]


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

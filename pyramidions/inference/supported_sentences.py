"""Which sentences of a document support those of its summary: by words that they share, and by attention."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor

from pyramidions.inference.pieces import sentence_starts
from pyramidions.text.support import MOST, SupportIndex


class Supporting(NamedTuple):
    """A sentence of the document.

    Attributes:
        text: on one line.
        start, end: its first token, and the one behind its last.
        share: of the pairs of words of the summary's sentence, what this one adds to those before it; or the share of
            its attention that goes here.
    """

    text: str
    start: int
    end: int
    share: float


class SummarySentence(NamedTuple):
    """A sentence of a summary.

    Attributes:
        text: on one line.
        recall: share of its pairs of words that ``by_words`` have together; None where no pair of its words counts.
        is_supported: whether that is enough, see `pyramidions.text.support`; likewise.
        by_words: the sentences of the document that share most of its pairs of words, three at most.
        by_attention: those that got most of the decoder's attention, carried back through the poolings, three at most;
            None where that is unknown.
    """

    text: str
    recall: float | None
    is_supported: bool | None
    by_words: tuple[Supporting, ...]
    by_attention: tuple[Supporting, ...] | None


def supported_sentences(
    document: Sequence[str], written: Sequence[str], drew_on: Tensor | None
) -> tuple[SummarySentence, ...]:
    """Return the sentences of a summary and what supports them in the document as far as it was read.

    Args:
        document, written: the text of each token, as in `Explanation`.
        drew_on: (T, L), how much each token of the summary drew on each of the document; None where that is unknown.
    """
    sources = [(_text(document[start:end]), start, end) for start, end in _sentences(document)]
    index = SupportIndex([text for text, _, _ in sources])
    found = []
    for start, end in _sentences(written):
        text = _text(written[start:end])
        by_words = index.support(text)
        found.append(
            SummarySentence(
                text,
                None if by_words is None else by_words.recall,
                None if by_words is None else by_words.is_enough,
                tuple(Supporting(*sources[place], share) for place, share in (by_words.shares if by_words else ())),
                None if drew_on is None else _most_attended(sources, drew_on[start:end].mean(dim=0)),
            )
        )
    return tuple(found)


def _most_attended(sources: Sequence[tuple[str, int, int]], shares: Tensor) -> tuple[Supporting, ...]:
    attended = [Supporting(text, start, end, float(shares[start:end].sum())) for text, start, end in sources]
    return tuple(sorted(attended, key=lambda sentence: -sentence.share)[:MOST])


def _sentences(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return where sentences start and end; an empty line ends one, and so does a marker."""
    texts = [" ".join(token.split("\n")) for token in tokens]
    starts = sentence_starts(texts)
    starts |= {place for place, token in enumerate(tokens) if token.startswith("\n\n")}
    starts |= {place + 1 for place, token in enumerate(tokens) if not token}
    cuts = sorted({0, *starts, len(tokens)})
    found = []
    for start, end in pairwise(cuts):
        inside = [place for place in range(start, min(end, len(tokens))) if tokens[place].strip()]
        if inside:
            found.append((inside[0], inside[-1] + 1))
    return found


def _text(tokens: Sequence[str]) -> str:
    return " ".join("".join(tokens).split())

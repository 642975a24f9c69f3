"""Which sentences of a document support those of its summary: by words that they share, and by attention."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from torch import Tensor

from pyramidions.inference.pieces import sentence_starts
from pyramidions.text.support import MOST, SummarySentence, SupportIndex, Supporting


def supported_sentences(
    document: Sequence[str], written: Sequence[str], drew_on: Tensor | None
) -> tuple[SummarySentence, ...]:
    """Return the sentences of a summary and what supports them in the document as far as it was read.

    Tokens are given by their texts, as in `Explanation`. How much each token of the summary drew on each of the
    document, (T, L), may be unknown.
    """
    places = _sentences(document)
    texts = [_text(document[start:end]) for start, end in places]
    index = SupportIndex(texts, places=places)

    def supported(start: int, end: int) -> SummarySentence:
        sentence = index.support(_text(written[start:end]))
        if drew_on is None:
            return sentence
        shares = drew_on[start:end].mean(dim=0)
        attended = (
            Supporting(text, first, last, float(shares[first:last].sum()))
            for text, (first, last) in zip(texts, places, strict=True)
        )
        return replace(sentence, by_attention=tuple(sorted(attended, key=lambda each: -each.share)[:MOST]))

    return tuple(supported(*place) for place in _sentences(written))


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

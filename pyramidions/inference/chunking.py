"""Documents that are longer than a model reads, in pieces that it does."""

from collections.abc import Iterator

from pyramidions.data.tokenizer import Tokenizer
from pyramidions.data.windows import sentences, windows


def pieces(text: str, tokenizer: Tokenizer, most: int) -> Iterator[str]:
    """Cut a text between sentences into pieces, each as long as may be.

    Args:
        text: the document, of any length.
        tokenizer: counts tokens.
        most: tokens of a piece, its end included. A sentence that is longer is cut between words, a word that is
            longer between characters.

    Yields:
        The pieces in order; a text that fits is its own only piece.
    """
    room = most - 1
    piece: list[str] = []
    taken = 0
    for part in _parts(text, tokenizer, room):
        # A tokenizer with markers puts one between two sentences.
        size = len(tokenizer.encode(part)) + (1 if piece and tokenizer.marker_id is not None else 0)
        if piece and taken + size > room:
            yield from _joined(piece, tokenizer, room)
            piece, taken = [], 0
        piece.append(part)
        taken += size
    if piece:
        yield from _joined(piece, tokenizer, room)


def _parts(text: str, tokenizer: Tokenizer, room: int) -> Iterator[str]:
    """Yield the sentences of a text, those that do not fit in parts, each with the space before it."""
    before = ""
    for found in sentences(windows(text)):
        for sentence in found:
            yield from _fitting(before + sentence, tokenizer, room)
            before = " "


def _joined(parts: list[str], tokenizer: Tokenizer, room: int) -> Iterator[str]:
    """Yield parts as one piece, or as two or more where that does not fit.

    The ends of sentences may be found elsewhere in a piece than in the whole text, and more markers then.
    """
    text = "".join(parts).strip()
    if len(parts) == 1 or len(tokenizer.encode(text)) <= room:
        yield text
    else:
        middle = len(parts) // 2
        yield from _joined(parts[:middle], tokenizer, room)
        yield from _joined(parts[middle:], tokenizer, room)


def _fitting(text: str, tokenizer: Tokenizer, room: int) -> Iterator[str]:
    """Yield a text, or its halves, or theirs, so that each fits."""
    if len(text) <= 1 or len(tokenizer.encode(text)) <= room:
        yield text
    else:
        for half in _halves(text):
            yield from _fitting(half, tokenizer, room)


def _halves(text: str) -> tuple[str, str]:
    """Cut a text before the space that is nearest to its middle; where there is none, in the middle."""
    middle = len(text) // 2
    spaces = [place for place in (text.rfind(" ", 1, middle), text.find(" ", middle)) if place >= 0]
    place = min(spaces, key=lambda place: abs(place - middle), default=middle)
    return text[:place], text[place:]

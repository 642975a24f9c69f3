"""Processes texts of any length window by window, in memory that does not grow with the text."""

from collections.abc import Callable, Iterable, Iterator

from pyramidions.text.normalization import normalize, split_sentences

#: Most characters of a window. A shorter text is a single window.
WINDOW = 100_000


def windows(text: str, most: int = WINDOW) -> Iterator[str]:
    """Cut a text at white space into windows of at most so many characters.

    Normalised one by one and joined with single spaces, they are the normalised text: NFKC composes nothing across
    white space. Only text without any white space in a whole window is cut inside a word.
    """
    start = 0
    while len(text) - start > most:
        full = start + most
        end = next((place for place in range(full, start, -1) if text[place].isspace()), full)
        yield text[start:end]
        start = end
    yield text[start:]


def lines(text: str, most: int = WINDOW) -> Iterator[str]:
    """Yield the lines of a text, as `str.splitlines` cuts it, without holding all of them."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + most) + 1 or len(text)
        yield from text[start:end].splitlines()
        start = end


def holds_text(text: str) -> bool:
    """Return whether the normalised text is not empty."""
    return any(normalize(window) for window in windows(text))


def sentences(
    of_windows: Iterable[str], most: int = WINDOW, split: Callable[[str], list[str]] = split_sentences
) -> Iterator[list[str]]:
    """Split windows into sentences, or other units, and yield those that have ended by the end of each window.

    Those of a single window are what `split_sentences` returns. In a longer text, a sentence may begin in one window
    and end in the next; but a sentence may end inside a quotation or brackets that a window's end cuts, and one of
    ``most`` characters is cut where a window ends.
    """
    begun = ""
    for window in of_windows:
        parts = split(f"{begun} {window}" if begun else window)
        # White space at a window's end may hold a line break.
        begun = parts.pop() + window[len(window.rstrip()) :] if parts and len(parts[-1]) < most else ""
        if parts:
            yield parts
    if begun:
        yield [begun.rstrip()]

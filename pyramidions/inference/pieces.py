"""Cuts the tokens of a long document into pieces that a model can read."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from pyramidions.text.normalization import split_line


def pieces(tokens: Iterable[list[str]], most: int, has_markers: bool, marks_first: bool = False) -> Iterator[list[str]]:
    """Cut tokens, as `Tokenizer.surfaces` gives them, between sentences into the longest possible pieces.

    A longer sentence is cut between words, a longer word between tokens. Where the tokenizer puts markers, empty
    tokens, between sentences, one where a piece ends is left out, unless the first sentence has one, too.
    """
    piece: list[str] = []
    sentence = 0  # where the last sentence of the piece begins
    for some in tokens:
        markers = {index for index, token in enumerate(some) if not token}
        starts = markers if has_markers else sentence_starts(some)
        for index, token in enumerate(some):
            if index in starts:
                sentence = len(piece)
            if len(piece) == most:
                end = sentence or _last_word([*piece, token]) or most
                yield piece[:end]
                piece = piece[end:]
                if has_markers and not marks_first and piece and not piece[0]:
                    del piece[0]
                sentence = 0
            if piece or token or marks_first or not has_markers:
                piece.append(token)
    if piece:
        yield piece


def sentence_starts(tokens: list[str]) -> set[int]:
    """Return which tokens begin a sentence, but for the first token, before which a sentence may have begun."""
    # Sentences and tokens share their visible characters; spaces may differ.
    ends = set(accumulate(map(_visible, split_line(" ".join("".join(tokens).split())))))
    starts = set()
    for index, before in enumerate(accumulate(map(_visible, tokens), initial=0)):
        if before in ends:
            starts.add(index)
            ends.remove(before)
    return starts


def _visible(text: str) -> int:
    return len(text) - text.count(" ")


def _last_word(tokens: list[str]) -> int:
    """Return which token begins the last word, 0 if none but the first does."""
    return next((index for index in range(len(tokens) - 1, 0, -1) if tokens[index].startswith(" ")), 0)

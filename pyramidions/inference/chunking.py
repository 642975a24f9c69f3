"""Documents that are longer than a model reads, in pieces that it does."""

from pyramidions.data.text import split_sentences
from pyramidions.data.tokenizer import Tokenizer


def pieces(text: str, tokenizer: Tokenizer, most: int) -> list[str]:
    """Cut a text between sentences into pieces, each as long as may be.

    Args:
        text: the document.
        tokenizer: counts tokens.
        most: tokens of a piece, its end included; a sentence that is longer is a piece of its own.

    Returns:
        The pieces in order; a text that fits is its own only piece.
    """
    found: list[list[str]] = []
    room = 0
    for sentence in split_sentences(text):
        # The marker that a tokenizer may put between two sentences counts, too.
        size = len(tokenizer.encode(sentence)) + 1
        if size > room or not found:
            found.append([])
            room = most - 1
        found[-1].append(sentence)
        room -= size
    return [" ".join(piece) for piece in found]

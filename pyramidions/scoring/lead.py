"""The lead baseline."""

from pyramidions.text.normalization import split_sentences


def lead(text: str, num_words: int) -> str:
    """Return as many first sentences as fit into ``num_words`` words, and at least one."""
    kept: list[str] = []
    words = 0
    for sentence in split_sentences(text):
        words += len(sentence.split())
        if kept and words > num_words:
            break
        kept.append(sentence)
    return " ".join(kept)

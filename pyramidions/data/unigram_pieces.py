"""The Unigram model whose pieces may supervise the boundaries of a character model, and where they end in a text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import sentencepiece

from pyramidions.data.vocabulary import train_model
from pyramidions.text.tokenizer import SPACE

#: Characters of a piece (Nawrot et al. 2023, released code), the space before a word included.
LONGEST_PIECE = 16
# The most frequent words are nearly all of a text. Memory for training is about a gigabyte for a million.
_MOST_WORDS = 1_000_000
# sentencepiece leaves out longer words, which are no words.
_MAX_BYTES = 4096
_WHITE = re.compile("[ \n]")


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the words of a text that comes in parts; a word may be cut between two of them."""
    words: Counter[str] = Counter()
    cut = ""
    for text in texts:
        *whole, cut = _WHITE.split(cut + text)
        words.update(whole)
    words[cut] += 1
    del words[""]
    return words


def train_pieces(words: Mapping[str, int], pieces: int) -> bytes:
    """Train a Unigram model on words and how often they come (Kudo 2018); the same words give the same bytes.

    Words are neither normalised nor joined: no piece crosses a space, and one that begins a word begins with `▁`.
    """
    kept = sorted(words.items(), key=lambda each: (-each[1], each[0]))[:_MOST_WORDS]
    return train_model(
        (f"{word}\t{count}" for word, count in kept),
        "pieces",
        pieces,
        input_format="tsv",
        normalization_rule_name="identity",
        model_type="unigram",
        character_coverage=1.0,
        max_sentencepiece_length=LONGEST_PIECE,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        max_sentence_length=_MAX_BYTES,
    )


def piece_boundaries(texts: Iterable[str], model: bytes) -> Iterator[np.ndarray]:
    """Return where the pieces of a text end, word by word: at the last character of a piece.

    The last piece of a word takes the space or line end that follows it, so that each of these is a boundary (Nawrot et
    al. 2023, section 3.1.2). The end of the text is one as well.

    The arrays, of 0 and 1 in uint8, are joined as long as the text.
    """
    ends = _Ends(model)
    cut = ""
    for text in texts:
        *whole, cut = _WHITE.split(cut + text)
        yield np.frombuffer(b"".join(map(ends.__getitem__, whole)), np.uint8)
    if cut:
        yield np.frombuffer(ends[cut][:-2] + b"\1", np.uint8)


class _Ends(dict[str, bytes]):
    """A byte for each character of a word and for the white space behind it: 1 where a piece ends."""

    def __init__(self, model: bytes) -> None:
        super().__init__()
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __missing__(self, word: str) -> bytes:
        ends = bytearray(len(word) + 1)
        ends[-1] = 1
        end = 0
        for piece in self._model.encode(word, out_type=str)[:-1]:
            end += len(piece.replace(SPACE, ""))
            # A piece of the space before the word alone ends before it.
            if end:
                ends[end - 1] = 1
        self[word] = bytes(ends)
        return self[word]

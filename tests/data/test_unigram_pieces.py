"""Words, the pieces that they are cut into, and where these end in a text."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from pyramidions.data.unigram_pieces import count_words, piece_boundaries, train_pieces


@pytest.fixture(scope="module")
def model() -> bytes:
    """A model with the pieces `▁`, `▁avi`, `vi`, `ation`, `▁vation` and single letters."""
    return train_pieces({"civil": 900, "avi": 800, "ation": 700, "aviation": 900, "nation": 900, "vation": 90}, 14)


def test_words_are_counted_wherever_the_text_is_cut() -> None:
    text = " the cat the dog "
    for size in (1, 3, 100):
        parts = [text[begin : begin + size] for begin in range(0, len(text), size)]
        assert count_words(parts) == Counter({"the": 2, "cat": 1, "dog": 1})


def naive(text: str, model: bytes) -> list[int]:
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    ends = [int(character == " ") for character in text]
    begin = 0
    for word in text.split(" "):
        end = begin
        for piece in pieces.encode(word, out_type=str):
            end += len(piece.replace("▁", ""))
            if piece != "▁" and end < begin + len(word):
                ends[end - 1] = 1
        begin += len(word) + 1
    if not text.endswith(" "):
        ends[-1] = 1
    return ends


def test_the_last_piece_of_a_word_takes_the_space_that_follows(model: bytes) -> None:
    text = " nation civil aviation "
    (ends,) = piece_boundaries([text], model)
    assert ends.dtype == np.uint8
    cuts = [0, *(np.flatnonzero(ends) + 1).tolist()]
    expected = [" ", "n", "ation ", "c", "i", "vi", "l ", "avi", "ation "]
    assert [text[begin:end] for begin, end in pairwise(cuts)] == expected


@pytest.mark.parametrize("size", [1, 5, 7, 99])
def test_pieces_cover_the_text_wherever_it_is_cut(model: bytes, size: int) -> None:
    text = " aviationation civilian nation zzz avi"
    found = np.concatenate(list(piece_boundaries((text[i : i + size] for i in range(0, len(text), size)), model)))
    assert found.tolist() == naive(text, model)
    assert found[0] == found[-1] == 1

"""Pieces of long documents: whole sentences that fit, and nothing lost."""

import json
import lzma

import pytest
from conftest import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference.pieces import pieces as cut
from pyramidions.inference.reader import Reader
from pyramidions.text.normalization import normalize, split_sentences
from pyramidions.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def article() -> str:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        return normalize(json.loads(papers.readline())["article"])


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "with markers"])
def tokenizer(article: str, request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer(split_sentences(article), Settings(300, sentence_markers=request.param))


def pieces(text: str, tokenizer: Tokenizer, most: int) -> list[list[str]]:
    """Return the tokens of each piece, as text."""
    found = list(Reader(tokenizer, most).pieces(text, "a text"))
    assert [each.whole for each in found] == [len(each.tokens) + 1 for each in found]
    assert max(each.whole for each in found) <= most
    return [each.tokens for each in found]


def texts(text: str, tokenizer: Tokenizer, most: int) -> list[str]:
    return ["".join(piece).strip() for piece in pieces(text, tokenizer, most)]


def test_pieces_are_whole_sentences_that_fit(article: str, tokenizer: Tokenizer) -> None:
    parts = texts(article, tokenizer, 400)
    assert " ".join(parts) == article and len(parts) > 3
    # None could have taken the next one's first sentence.
    assert min(len(tokenizer.encode(part)) for part in parts[:-1]) > 150
    starts = {sentence.split()[0] for sentence in split_sentences(article)}
    assert all(part.split()[0] in starts for part in parts)


def test_the_tokens_of_pieces_are_those_of_the_document(article: str, tokenizer: Tokenizer) -> None:
    found = pieces(article, tokenizer, 400)
    ids = [i for piece in found for i in tokenizer.ids_of(piece)]
    whole = tokenizer.encode(article)
    assert ids == whole
    if tokenizer.marker_id is not None:
        # Each piece begins with the marker of its first sentence.
        assert all(not piece[0] and piece[-1] for piece in found)


def test_a_marker_between_pieces_is_left_out_if_the_first_sentence_has_none() -> None:
    tokens = [" a", " b", "", " c", " d", "", " e"]
    assert list(cut([tokens], 5, True)) == [[" a", " b", "", " c", " d"], [" e"]]
    assert list(cut([["", *tokens]], 6, True, True)) == [["", " a", " b", "", " c", " d"], ["", " e"]]


def test_a_text_that_just_fits_is_its_only_piece_however_many_sentences_it_has(tokenizer: Tokenizer) -> None:
    text = " ".join(f"Cells are {number}." for number in range(60))
    whole = len(tokenizer.encode(text)) + 1
    assert texts(text, tokenizer, whole) == [text]
    first, last = texts(text, tokenizer, whole - 1)
    assert (first + " " + last, last) == (text, "Cells are 59.")
    with refused("hold text"):
        texts(" ", tokenizer, 400)


def test_what_is_too_long_is_cut_between_words_and_a_word_between_tokens(tokenizer: Tokenizer) -> None:
    sentence = " ".join(f"word{number}" for number in range(200))
    assert " ".join(texts(f"One. {sentence}. Two.", tokenizer, 64)) == f"One. {sentence}. Two."
    parts = texts("abcdefghij" * 50, tokenizer, 64)
    assert "".join(parts) == "abcdefghij" * 50 and len(parts) > 2


def test_sentences_of_a_text_of_several_windows_are_found(tokenizer: Tokenizer) -> None:
    sentence = "Cells divide by mitosis. "
    parts = texts(sentence * 6000, tokenizer, 100)
    assert " ".join(parts) == (sentence * 6000).strip()
    # A sentence that begins with a window is not known to do so.
    assert sum(not part.startswith("Cells") for part in parts) <= 1


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=[]), max_size=300) | st.text("ab .", max_size=300))
def test_pieces_of_any_text_fit_and_lose_nothing(text: str, tokenizer: Tokenizer) -> None:
    if normalize(text):
        parts = texts(text, tokenizer, 12)
        # A piece spells a space as ▁, so that nobody can tell the two apart.
        assert "".join("".join(parts).split()) == "".join(normalize(text).replace("▁", " ").split())

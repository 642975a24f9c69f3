"""Pieces of long documents: whole sentences that fit, and nothing lost."""

import json
import lzma

import pytest
from conftest import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st

from pyramidions.data.text import normalize, split_sentences
from pyramidions.data.tokenizer import Tokenizer
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference.chunking import pieces


@pytest.fixture(scope="module")
def article() -> str:
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        return normalize(json.loads(papers.readline())["article"])


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "with markers"])
def tokenizer(article: str, request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer(split_sentences(article), Settings(300, sentence_markers=request.param))


def test_pieces_are_whole_sentences_that_fit(article: str, tokenizer: Tokenizer) -> None:
    parts = list(pieces(article, tokenizer, 400))
    assert " ".join(parts) == article and len(parts) > 3
    assert max(len(tokenizer.encode(part)) for part in parts) < 400
    # None could have taken the next one's first sentence.
    assert min(len(tokenizer.encode(part)) for part in parts[:-1]) > 150
    starts = {sentence.split()[0] for sentence in split_sentences(article)}
    assert all(part.split()[0] in starts for part in parts)


def test_a_text_that_just_fits_is_its_only_piece_however_many_sentences_it_has(tokenizer: Tokenizer) -> None:
    text = " ".join(f"Cells are {number}." for number in range(60))
    whole = len(tokenizer.encode(text)) + 1
    assert list(pieces(text, tokenizer, whole)) == [text]
    assert len(list(pieces(text, tokenizer, whole - 1))) == 2


def test_a_text_that_fits_is_its_only_piece(tokenizer: Tokenizer) -> None:
    assert list(pieces("One. Two.", tokenizer, 400)) == ["One. Two."]
    assert list(pieces("", tokenizer, 400)) == []


def test_a_sentence_that_is_too_long_is_cut_between_words(tokenizer: Tokenizer) -> None:
    sentence = " ".join(f"word{number}" for number in range(200))
    parts = list(pieces(f"One. {sentence}. Two.", tokenizer, 64))
    assert " ".join(parts) == f"One. {sentence}. Two."
    assert max(len(tokenizer.encode(part)) for part in parts) < 64


def test_a_word_that_is_too_long_is_cut_between_characters(tokenizer: Tokenizer) -> None:
    parts = list(pieces("abcdefghij" * 50, tokenizer, 64))
    assert "".join(parts) == "abcdefghij" * 50
    assert max(len(tokenizer.encode(part)) for part in parts) < 64


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=[]), max_size=300) | st.text("ab .", max_size=300))
def test_pieces_of_any_text_fit_and_lose_nothing(text: str, tokenizer: Tokenizer) -> None:
    parts = list(pieces(text, tokenizer, 12))
    assert "".join("".join(parts).split()) == "".join(normalize(text).split())
    # A single character may take more tokens than there is room for.
    assert max((len(tokenizer.encode(part)) for part in parts if len(part) > 1), default=0) < 12
    assert all(parts)

"""Vectors of sentences by tf-idf, beside those of scikit-learn."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from pyramidions.extract import TfIdf, vectors
from pyramidions.extract.vectors import words_of_vectors

TEXTS = st.lists(st.lists(st.sampled_from("The cat cat's naïve x 10 ÉTÉ été_2 ...".split()), max_size=9), min_size=1)


def close(ours: object, theirs: object) -> None:
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-14, atol=0)


@given(TEXTS, TEXTS)
def test_weights_are_those_of_scikit_learn_fitted_to_the_sentences_or_to_a_corpus(sentences, corpus) -> None:
    sentences, corpus = ([*map(" ".join, texts), "the end"] for texts in (sentences, corpus))
    close(TfIdf()(sentences), TfidfVectorizer(sublinear_tf=True).fit_transform(sentences))
    close(TfIdf(iter(corpus))(sentences), TfidfVectorizer(sublinear_tf=True).fit(corpus).transform(sentences))


def test_sentences_without_words_have_no_length() -> None:
    assert TfIdf()(["a b", "..."]).toarray().tolist() == [[0], [0]]
    assert TfIdf(["the cat"])(["a", "dogs"]).toarray().tolist() == [[0, 0], [0, 0]]


def test_weights_are_the_same_however_many_sentences_are_computed_at_a_time(monkeypatch):
    sentences = [f"word{number % 5} word{number % 7} word{number % 3} and word{number}" for number in range(20)] + [""]
    at_once = TfIdf()(sentences)
    monkeypatch.setattr(vectors, "_BLOCK", 3)
    assert (TfIdf()(sentences) != at_once).nnz == 0
    for part in (slice(0, 4), slice(2, 21), slice(5, 5), slice(20, 21)):
        assert vectors.rows(at_once, part).toarray().tolist() == at_once[part].toarray().tolist()
    assert vectors.squares(at_once).tolist() == (at_once * at_once).sum(axis=1).tolist()


def test_pairs_of_characters_are_words_where_no_spaces_are_written() -> None:
    assert words_of_vectors("Python言語は 5 (Tokyo)") == ["python", "言語", "語は", "tokyo"]

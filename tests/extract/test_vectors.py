"""Vectors of sentences by tf-idf, beside those of scikit-learn."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from pyramidions.extract import TfIdf

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

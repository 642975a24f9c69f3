"""TextRank, against the stationary distribution of a matrix that is written down."""

import re

import numpy as np
import pytest
from nltk.stem.porter import PorterStemmer
from refusals import refused

from pyramidions.extract import TextRank, TfIdf
from pyramidions.text.outline import Outline, Unit

SENTENCES = (
    "Pooling keeps a few vectors of a long document.",
    "A long document has many vectors.",
    "The weather was fine.",
    "Few vectors make decoding fast, and pooling makes vectors few.",
    "Decoding reads the vectors that pooling kept.",
)


def outline(*sentences: str) -> Outline:
    return Outline(tuple(Unit(sentence, 0) for sentence in sentences), ("",))


def naive(similarity: np.ndarray) -> np.ndarray:
    """Return the stationary distribution of a walk that follows an edge with a chance of 0.85."""
    n = len(similarity)
    np.fill_diagonal(similarity, 0)
    moves = np.array([row / row.sum() if row.sum() else np.full(n, 1 / n) for row in similarity])
    values, vectors = np.linalg.eig(0.85 * moves.T + 0.15 / n)
    expected = vectors[:, np.argmax(values.real)].real
    return expected / expected.sum()


def test_sentences_are_as_similar_as_the_paper_says():
    stem = PorterStemmer().stem
    left_out = {"of", "has", "the", "was", "and", "that"}
    words = [
        [stem(word) for word in re.findall(r"\w\w+", sentence.lower()) if word not in left_out]
        for sentence in SENTENCES
    ]
    similarity = np.array([[len({*a} & {*b}) / (np.log(len(a)) + np.log(len(b))) for a in words] for b in words])
    np.testing.assert_allclose(TextRank().rank(outline(*SENTENCES)), naive(similarity), atol=1e-7)


def test_with_tf_idf_scores_are_those_of_lexrank():
    x = TfIdf()(SENTENCES).toarray()
    np.testing.assert_allclose(TextRank(vectors=TfIdf()).rank(outline(*SENTENCES)), naive(x @ x.T), atol=1e-7)


@pytest.mark.parametrize(
    "sentences",
    [("Pooling.", "Pooling!", "Rain 12."), ("Only this one.",), ("Red apples.", "Green pears."), ("1 2 3", "- - -")],
    ids=["one word each", "one sentence", "no common word", "no word"],
)
def test_where_nothing_is_similar_all_sentences_are_equal(sentences: tuple[str, ...]):
    np.testing.assert_allclose(TextRank().rank(outline(*sentences)), [1 / len(sentences)] * len(sentences))


def test_damping_of_1_is_refused():
    with refused("damping"):
        TextRank(damping=1.0)


def test_opposed_vectors_of_an_encoder_have_no_negative_weight():
    x = np.array([[1.0, 0.0], [0.9, 0.19**0.5], [-0.9, 0.19**0.5]])
    scores = TextRank(vectors=lambda sentences: x).rank(outline("a", "b", "c"))
    np.testing.assert_allclose(scores, naive((1 + x @ x.T) / 2), atol=1e-7)

"""Graphs of sentences: HipoRank and TextRank against their definitions, and tf-idf beside that of scikit-learn."""

import re
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from refusals import refused
from sklearn.feature_extraction.text import TfidfVectorizer

from pyramidions.extract import HipoRank, TextRank, TfIdf, hiporank, vectors
from pyramidions.extract.vectors import words_of_vectors
from pyramidions.text.outline import Outline, Unit

#: Cosines: ab 0.6, ac 0, ad 0.8, bc 0.8, bd 0.96, cd 0.6.
VECTORS = {"a": (1.0, 0.0), "b": (0.6, 0.8), "c": (0.0, 1.0), "d": (0.8, 0.6)}


def by_name(sentences: Sequence[str]) -> np.ndarray:
    return np.array([VECTORS[name] for name in sentences])


def paper(*sections: str) -> Outline:
    units = [Unit(name, index) for index, names in enumerate(sections) for name in names]
    return Outline(tuple(units), tuple(f"section {index}" for index in range(len(sections))))


def test_an_edge_from_a_sentence_closer_to_an_end_weighs_lambda_1():
    # Distances from an end: a 0, b 1, c 1, d 0.
    scores = HipoRank(mu=0.0, lambda_1=0.5, vectors=by_name).rank(paper("abcd"))
    a, b, c, d = 0.6 + 0.0 + 0.8, 0.8 + 0.5 * (0.6 + 0.96), 0.8 + 0.5 * (0.0 + 0.6), 0.8 + 0.96 + 0.6
    np.testing.assert_allclose(scores, np.array([a, b, c, d]) / 3)


def test_the_sections_add_their_mean_similarity():
    within = HipoRank(mu=0.0, vectors=by_name).rank(paper("ab", "cd"))
    scores = HipoRank(mu=2.0, vectors=by_name).rank(paper("ab", "cd"))
    # Sections point to (2, 1) and (1, 2); both are at an end of the document.
    first, second = np.array([2, 1]) / 5**0.5, np.array([1, 2]) / 5**0.5
    expected = [2 * (np.dot(VECTORS[name], first) + np.dot(VECTORS[name], second)) / 2 for name in "abcd"]
    np.testing.assert_allclose(within, [0.6, 0.6, 0.6, 0.6])
    np.testing.assert_allclose(scores - within, expected)


def test_no_sentence_has_no_score_and_a_single_one_has_one():
    assert HipoRank().rank(Outline((), ())).shape == (0,)
    assert HipoRank().rank(paper("a")).shape == (1,)
    with refused("alpha"):
        HipoRank(alpha=0.0)
    with refused("damping"):
        TextRank(damping=1.0)


def test_a_heading_without_text_is_no_section():
    empty = Outline((Unit("a", 0), Unit("Methods", 1, is_heading=True), Unit("b", 2)), ("A", "Methods", "B"))
    np.testing.assert_allclose(HipoRank(vectors=by_name).rank(empty), HipoRank(vectors=by_name).rank(paper("a", "b")))


def edge_by_edge(x: np.ndarray, section_of: list[int], mu: float, low: float, high: float, alpha: float) -> np.ndarray:
    """The definition, edge by edge."""
    sections = sorted(set(section_of))
    means = [x[[s == section for s in section_of]].mean(axis=0) for section in sections]
    scores = []
    for i, own in enumerate(section_of):
        members = [j for j, s in enumerate(section_of) if s == own]

        def distance(place: int, number: int) -> float:
            return min(place, alpha * (number - 1 - place))

        here = distance(members.index(i), len(members))
        within = 0.0
        for place, j in enumerate(members):
            if j != i:
                within += (high if here <= distance(place, len(members)) else low) * float(x[i] @ x[j])
        among = 0.0
        for place, mean in enumerate(means):
            norm = np.linalg.norm(mean)
            closer = distance(sections.index(own), len(sections)) <= distance(place, len(sections))
            among += (high if closer else low) * (float(x[i] @ mean / norm) if norm > 1e-9 else 0.0)
        scores.append(within / max(len(members) - 1, 1) + mu * among / len(sections))
    return np.array(scores)


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.floats(0, 2),
    st.floats(-0.5, 0.5),
    st.floats(0.5, 2),
    st.sampled_from([0.25, 0.5, 0.8, 1.0, 1.2]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_linear_time_equals_the_definition(sizes, mu, low, high, alpha, seed):
    section_of = [index for index, size in enumerate(sizes) for _ in range(size)]
    x = np.random.default_rng(seed).normal(size=(len(section_of), 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    outline = Outline(tuple(Unit(f"s{i}", s) for i, s in enumerate(section_of)), tuple(f"h{s}" for s in sizes))
    ranker, expected = HipoRank(mu, low, high, alpha, lambda _: x), edge_by_edge(x, section_of, mu, low, high, alpha)
    np.testing.assert_allclose(ranker.rank(outline), expected, atol=1e-9)
    with patch.object(hiporank, "_BLOCK", 3):
        np.testing.assert_allclose(ranker.rank(outline), expected, atol=1e-9)


SENTENCES = (
    "Pooling keeps a few vectors of a long document.",
    "A long document has many vectors.",
    "The weather was fine.",
    "Few vectors make decoding fast, and pooling makes vectors few.",
    "Decoding reads the vectors that pooling kept.",
)


def in_one_section(*sentences: str) -> Outline:
    return Outline(tuple(Unit(sentence, 0) for sentence in sentences), ("",))


def stationary(similarity: np.ndarray) -> np.ndarray:
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
    np.testing.assert_allclose(TextRank().rank(in_one_section(*SENTENCES)), stationary(similarity), atol=1e-7)


def test_with_tf_idf_scores_are_those_of_lexrank():
    x = TfIdf()(SENTENCES).toarray()
    np.testing.assert_allclose(
        TextRank(vectors=TfIdf()).rank(in_one_section(*SENTENCES)), stationary(x @ x.T), atol=1e-7
    )


@pytest.mark.parametrize(
    "sentences",
    [("Pooling.", "Pooling!", "Rain 12."), ("Only this one.",), ("Red apples.", "Green pears."), ("1 2 3", "- - -")],
    ids=["one word each", "one sentence", "no common word", "no word"],
)
def test_where_nothing_is_similar_all_sentences_are_equal(sentences: tuple[str, ...]):
    np.testing.assert_allclose(TextRank().rank(in_one_section(*sentences)), [1 / len(sentences)] * len(sentences))


def test_opposed_vectors_of_an_encoder_have_no_negative_weight():
    x = np.array([[1.0, 0.0], [0.9, 0.19**0.5], [-0.9, 0.19**0.5]])
    scores = TextRank(vectors=lambda sentences: x).rank(in_one_section("a", "b", "c"))
    np.testing.assert_allclose(scores, stationary((1 + x @ x.T) / 2), atol=1e-7)


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

"""HipoRank, against a graph of four sentences by hand and against double loops."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pyramidions.extract import HipoRank, hiporank
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


def test_a_heading_without_text_is_no_section():
    empty = Outline((Unit("a", 0), Unit("Methods", 1, is_heading=True), Unit("b", 2)), ("A", "Methods", "B"))
    np.testing.assert_allclose(HipoRank(vectors=by_name).rank(empty), HipoRank(vectors=by_name).rank(paper("a", "b")))


def naive(x: np.ndarray, section_of: list[int], mu: float, low: float, high: float, alpha: float) -> np.ndarray:
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
    ranker = HipoRank(mu, low, high, alpha, vectors=lambda sentences: x)
    np.testing.assert_allclose(ranker.rank(outline), naive(x, section_of, mu, low, high, alpha), atol=1e-9)


def test_blocks_do_not_change_the_scores(monkeypatch):
    x = np.random.default_rng(1).normal(size=(40, 5))
    outline = Outline(tuple(Unit(f"s{i}", 0) for i in range(40)), ("",))
    whole = HipoRank(vectors=lambda sentences: x).rank(outline)
    monkeypatch.setattr(hiporank, "_BLOCK", 3)
    np.testing.assert_allclose(HipoRank(vectors=lambda sentences: x).rank(outline), whole)

"""What stands around concepts."""

import numpy as np
import pytest

from pyramidions.extract.concepts.context import SIZE, Context, around, measure_around
from pyramidions.extract.concepts.features import ORDERS, Frequencies, concepts_of
from pyramidions.extract.concepts.paper import Paper, paper_of
from pyramidions.text.outline import outline

TEXT = "# Methods\n\nThe cells grew fast in water. Cells of mice grew in milk.\n\n# Results\n\nMice died of many cells."
NOTHING = Frequencies(10, 1, 0.2, *np.zeros((3, 0), dtype=np.uint32))


@pytest.fixture
def paper() -> Paper:
    return paper_of(outline(TEXT))


@pytest.mark.parametrize("order", ORDERS)
def test_features_are_those_of_loops_over_occurrences_and_sentences(paper: Paper, order: int) -> None:
    random = np.random.default_rng(order)
    context = Context(random.normal(size=SIZE), random.normal(size=SIZE))
    concepts = concepts_of(paper, order)
    seen = around(paper, order, concepts)
    held = np.zeros(3)
    for place, sentence in zip(seen.held, seen.holder, strict=True):
        held[sentence] += context.sentences[place] / (2 * paper.sizes[sentence]) ** 0.5
    for number, row in enumerate(np.column_stack(context.features(seen, concepts))):
        occurrences = [
            context.occurrences[seen.near[at]].sum() + context.occurrences[seen.of_sentence[seen.sentence[at]]].sum()
            for at in np.flatnonzero(seen.concept == number)
        ]
        sentences = held[concepts.sentence[concepts.concept == number]]
        total, count = sum(occurrences), len(occurrences)
        assert count == concepts.counts[number]
        expected = [total / count**0.5, total / count, max(occurrences), sentences.mean(), sentences.max()]
        assert row == pytest.approx(expected)


@pytest.mark.parametrize("order", ORDERS)
def test_neighbours_are_those_of_the_same_sentence(order: int) -> None:
    near = []
    for after in ("Old milk.", "New water flows."):
        read = paper_of(outline(f"Mice ate the grey cells. {after}"))
        concepts = concepts_of(read, order)
        seen = around(read, order, concepts)
        first = seen.sentence == 0
        near.append(sorted(map(tuple, seen.near[first].tolist())))
    assert near[0] == near[1]
    # With another word in the sentence, they differ.
    other = paper_of(outline("Mice ate the green cells."))
    assert sorted(map(tuple, around(other, order, concepts_of(other, order)).near.tolist())) != near[0]


def test_a_document_without_a_word_has_no_concept_and_no_neighbour() -> None:
    empty = paper_of(outline("?! ..."))
    context = Context(np.ones(SIZE), np.ones(SIZE))
    measured = measure_around(empty, (NOTHING, NOTHING), (context, context))
    assert [features.shape for features in measured.features] == [(0, 28), (0, 33)]

"""Training of a policy: what it sees, and what it learns."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.data.readers import Document
from pyramidions.extract.concepts import ConceptModel, ConceptRanker
from pyramidions.extract.concepts.model import FEATURES
from pyramidions.extract.concepts.trees import Trees
from pyramidions.extract.selection import Budget
from pyramidions.runs import concepts, policy
from pyramidions.text.outline import outline

FIRST, SECOND = "Many mice grew quickly in the warm water.", "The warm water was good for mice that grew."
OTHER = "We thank all of our friends for many hours of help with this."


def documents(number: int) -> Iterator[Document]:
    """Papers whose summary is always the sentence before the last, which has fewer concepts than others."""
    for place in range(number):
        topic = ("mice", "cells", "genes", "plants", "yeast", "virus")[place % 6]
        filler = [f"Small {topic} swam near {word} rocks below cliffs." for word in ("red", "green", "large", "wet")]
        summary = f"In the end it is the {topic} that grew."
        yield Document(f"{place}", " ".join([*filler, summary, OTHER]), summary)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConceptModel:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(policy, "LEAST_SENTENCES", 5)
    monkeypatch.setattr(concepts, "TREES", 5)
    concepts.read_papers(documents(40), 40, tmp_path, workers=1)
    return concepts.fit(tmp_path, concepts.count(tmp_path), seed=1)._replace(words=9)


def seen(document: Document, model: ConceptModel) -> policy.Steps:
    """What one document shows, of which nothing is known from others."""
    example = concepts.read_example(document)
    counts = concepts.Counts(model.known, (model.known,) * concepts.FOLDS)
    return policy.choose_and_see((0, example), model, counts, None, seed=1, turn=0)


def trained(folder: Path, model: ConceptModel, workers: int = 1) -> Trees:
    return policy.fit_policy(folder, model, concepts.count(folder), seed=1, workers=workers)


def test_what_a_sentence_adds_is_its_rouge_recall(tmp_path: Path, model: ConceptModel) -> None:
    document = Document("1", f"{FIRST} {SECOND} {OTHER}", "Mice grew in warm water, and many were good.")
    scorer = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)

    def recall(text: str) -> float:
        found = scorer.score(document.target, text)
        return float(found["rouge1"].recall + found["rouge2"].recall)

    # At the first step all sentences are seen, by their rates.
    expected = sorted(map(recall, (FIRST, SECOND, OTHER)))
    assert sorted(seen(document, model).added[:3]) == pytest.approx(expected)


def test_what_was_chosen_adds_nothing_again(model: ConceptModel) -> None:
    document = Document("1", f"{FIRST} Quickly grew, in the warm water, many mice. {OTHER}", "Many mice grew quickly.")
    added = seen(document, model._replace(words=20)).added
    # Both sentences have all the words, and one of them was chosen first.
    assert max(added[:3]) == pytest.approx(2.0)
    assert max(added[3:]) < 0.5


def blind(model: ConceptModel) -> ConceptModel:
    """The same model without trees: every concept has a chance of a half."""
    nothing = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int16), np.zeros(0)
    words, pairs = (Trees(0.0, *nothing, features) for features in FEATURES)
    return model._replace(trees=(words, pairs))


def first_choices(model: ConceptModel) -> list[str]:
    """The sentence of each document that is chosen first."""
    found = []
    for document in documents(6):
        read = outline(document.source)
        found.append(read.texts[int(ConceptRanker(model, Budget(9)).rank(read).argmax())])
    return found


def test_a_policy_learns_what_coverage_does_not_know_and_its_gain_is_that_of_its_extracts(
    tmp_path: Path, model: ConceptModel
) -> None:
    unknowing = blind(model)
    trees = trained(tmp_path, unknowing)
    summaries = [document.target for document in documents(6)]
    assert all(chosen != summary for chosen, summary in zip(first_choices(unknowing), summaries, strict=True))
    assert first_choices(unknowing._replace(policy=trees)) == summaries
    scorer = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)

    def mean(model: ConceptModel) -> float:
        pairs = zip(documents(6), first_choices(model), strict=True)
        return float(np.mean([score.fmeasure for d, text in pairs for score in scorer.score(d.target, text).values()]))

    expected = mean(unknowing._replace(policy=trees)) - mean(unknowing)
    assert policy.gain(list(documents(6)), unknowing, trees, workers=1) == pytest.approx(expected)


def test_a_policy_is_the_same_with_any_number_of_workers(tmp_path: Path, model: ConceptModel) -> None:
    one, two = (trained(tmp_path, model, workers) for workers in (1, 2))
    assert one.base == two.base
    assert all(np.array_equal(a, b) for a, b in zip(one.arrays, two.arrays, strict=True))

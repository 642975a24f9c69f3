"""Learning of what stands around concepts."""

from pathlib import Path

import numpy as np
import pytest

from pyramidions.data.readers import Document
from pyramidions.extract.concepts.context import Context, around
from pyramidions.extract.concepts.features import concepts_of
from pyramidions.extract.concepts.files import files_of, load_concepts
from pyramidions.extract.concepts.paper import paper_of
from pyramidions.runs import concepts, contexts
from pyramidions.text.outline import outline


def log_loss(context: Context, seen: contexts.Seen) -> float:
    total, _, _, of_sentences, _ = context.features(seen.around, seen.concepts)
    logits = seen.expected + total + of_sentences
    return float(np.logaddexp(0, np.where(seen.held, -logits, logits)).sum())


def test_a_step_follows_the_slope_of_the_log_loss() -> None:
    paper = paper_of(outline("The cells grew fast in water. Cells of mice grew in milk."))
    found = concepts_of(paper, 1)
    held = np.arange(len(found.keys)) % 2 == 0
    seen = contexts.Seen(around(paper, 1, found), found, np.linspace(-2, 1, len(held)), held)
    learner = contexts._Learner()
    before = Context(*(weights.copy() for weights in learner.context))
    learner.learn([seen])
    for table, places in zip(Context._fields, (seen.around.near[:, 0], seen.around.held), strict=True):
        for place in places[:5]:
            beside = [Context(*(weights.copy() for weights in before)) for _ in range(2)]
            for context, change in zip(beside, (-1e-4, 1e-4), strict=True):
                getattr(context, table)[place] += change
            slope = (log_loss(beside[1], seen) - log_loss(beside[0], seen)) / 2e-4
            step = contexts.RATE * slope / (contexts.FIRST_SQUARES + slope**2) ** 0.5
            assert getattr(learner.context, table)[place] == pytest.approx(-step, rel=1e-4)


def test_words_after_which_a_summary_word_stands_are_learned_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(concepts, "DOCUMENTS", 30)
    monkeypatch.setattr(concepts, "TREES", 3)
    # No name comes twice, so that only the word before it tells which one the summary has.
    some = [
        Document(f"{n}", f"We found alpha{n} in water. We lost beta{n} in milk.", f"We found alpha{n}.")
        for n in range(100)
    ]
    concepts.read_papers(some, 100, tmp_path / "papers", workers=1)
    counts = concepts.count(tmp_path / "papers", least=2)
    assert contexts.learn_contexts(tmp_path / "papers", counts, seed=3, workers=1) is None
    monkeypatch.setattr(contexts, "LEAST", 70)
    learned = contexts.learn_contexts(tmp_path / "papers", counts, seed=3, workers=1)
    assert learned is not None
    paper = concepts.read_example(Document("new", "We found gamma in water. We lost delta in milk.", "")).paper
    words = concepts_of(paper, 1)
    total, *_ = learned[0].features(around(paper, 1, words), words)
    gamma, delta = (float(total[words.keys == concepts.words_in([word])[0].hashes][0]) for word in ("gamma", "delta"))
    assert gamma > delta + 0.01
    model = concepts.fit(tmp_path / "papers", counts, seed=3, contexts=learned)
    for name, content in files_of(model, {}).items():
        (tmp_path / name).write_bytes(content)
    kept = load_concepts(tmp_path).contexts
    assert kept is not None
    for ours, theirs in zip((*learned[0], *learned[1]), (*kept[0], *kept[1]), strict=True):
        np.testing.assert_array_equal(ours, theirs)

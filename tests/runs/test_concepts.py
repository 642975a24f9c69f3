"""Training of a model of concepts."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from pyramidions.data.readers import Document
from pyramidions.extract.concepts.files import files_of, load_concepts
from pyramidions.inference.extractor import Extractor
from pyramidions.runs import concepts, policy

TOPICS = ("mice", "cells", "genes", "plants", "yeast", "virus")


def documents(number: int) -> Iterator[Document]:
    """Papers whose summaries hold the topic, and nothing of the rest."""
    for place in range(number):
        topic = TOPICS[place % len(TOPICS)]
        text = f"We study {topic} in water. Many {topic} grew there quickly. The weather was quite fine on day {place}."
        yield Document(f"{place}", text, f"Many {topic} grew quickly.")


def stopping(number: int, after: int) -> Iterator[Document]:
    for document in documents(number):
        if int(document.id) == after:
            raise KeyboardInterrupt
        yield document


def trained(folder: Path) -> dict[str, bytes]:
    pytest.importorskip("sklearn")
    counts = concepts.count(folder, least=2)
    return files_of(concepts.fit(folder, counts, seed=3), {})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concepts, "BLOCK", 8)
    monkeypatch.setattr(concepts, "TREES", 3)


def test_a_stopped_reading_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    concepts.read_papers(documents(60), 60, whole, workers=1)
    with pytest.raises(KeyboardInterrupt):
        concepts.read_papers(stopping(60, after=29), 60, stopped, workers=1)
    assert len(list(stopped.glob("*.npz"))) == 3
    concepts.read_papers(documents(60), 60, stopped, workers=1)
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == {
        path.name: path.read_bytes() for path in stopped.iterdir()
    }
    assert trained(whole) == trained(stopped)


def test_frequencies_count_documents_and_summaries_by_hand(tmp_path: Path) -> None:
    concepts.read_papers(documents(12), 12, tmp_path, workers=1)
    counts = concepts.count(tmp_path, least=1)
    words, _ = counts.known
    mice, water = (concepts.words_in([word])[0].hashes for word in ("mice", "water"))
    assert [numbers.tolist() for numbers in words.of(mice)] == [[2], [2]]
    assert [numbers.tolist() for numbers in words.of(water)] == [[12], [0]]
    # Mice are in documents 0 and 6, so in the folds 0 and 1, with documents 5 and 10, and 1 and 11.
    for number, (others, with_mice) in enumerate([(9, 1), (9, 1), (10, 2), (10, 2), (10, 2)]):
        words, _ = counts.without(number)
        assert words.documents == others
        assert [numbers.tolist() for numbers in words.of(mice)] == [[with_mice], [with_mice]]
        assert [numbers.tolist() for numbers in words.of(water)] == [[others], [0]]


def test_trees_learn_from_documents_of_all_parts_of_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concepts, "DOCUMENTS", 4)
    found = [concepts.learned_from(number) for number in (1, 4, 5, 9)]
    assert found == [[0], [0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 4, 6]]


def test_a_document_without_a_sentence_teaches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    empty = [Document("a", "# Methods\n\n# Results\n", "Mice grew."), Document("b", "#", "Mice grew.")]
    some = [*empty, *documents(30)]
    concepts.read_papers(some, 32, tmp_path, workers=1)
    counts = concepts.count(tmp_path, least=2)
    model = concepts.fit(tmp_path, counts, seed=3)._replace(words=5)
    trees = policy.fit_policy(tmp_path, model, counts, seed=3, workers=1)
    assert policy.gain(empty, model, trees, workers=1) == 0


def test_files_of_another_version_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "00000.npz", values0=np.zeros(3))
    with refused("00000.npz"):
        list(concepts.load_papers(tmp_path))


def test_papers_from_disk_are_those_that_were_read(tmp_path: Path) -> None:
    concepts.read_papers(documents(9), 9, tmp_path, workers=1)
    found = list(concepts.load_papers(tmp_path))
    assert len(found) == 9
    assert found[8].paper.sizes.tolist() == [5, 5, 8]
    assert found[8].paper.fit.tolist() == [True, True, True]


def test_a_model_knows_its_language(tmp_path: Path) -> None:
    text = "Viele {} wachsen dort. Das Wetter war an Tag {} schön."
    spoken = [
        Document(f"{n}", text.format(name, n), f"Viele {name} wachsen.", language="de")
        for n, name in zip(range(60), ("Ernten", "Rüben", "Pflanzen") * 20, strict=True)
    ]
    concepts.read_papers(spoken, 60, tmp_path / "papers", workers=1)
    model = concepts.fit(tmp_path / "papers", concepts.count(tmp_path / "papers", least=2), seed=3)
    for name, content in files_of(model._replace(language="de"), {}).items():
        (tmp_path / name).write_bytes(content)
    assert load_concepts(tmp_path).language == "de"
    extraction = Extractor(tmp_path).extract("Das Wetter war schön. Viele Rüben wachsen dort.", sentences=1)
    assert extraction.text == "Viele Rüben wachsen dort."
    assert (
        Extractor(tmp_path).extract("Rüben sind rot. Der Tag war sehr lang.", sentences=1, query="die Tage").sentences
    )
    with refused("stop word"):
        Extractor(tmp_path).check_query("die und der")

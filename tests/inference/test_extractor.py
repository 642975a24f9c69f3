"""Extraction in a few lines of Python."""

import json

import numpy as np

from pyramidions import Extraction, Extractor
from pyramidions.extract import Budget, SelectionRules
from pyramidions.extract.extraction import Extract
from pyramidions.inference import LearnedRanker, SavedExtractor
from pyramidions.text.outline import outline

PAPER = """Introduction

Long documents have many vectors. Nobody needs all vectors of a document.

Methods

Pooling keeps few vectors of a document. It was rainy in May.

Conclusions

Few vectors of a document are enough.
"""


def test_sentences_come_with_text_position_section_and_score():
    found = Extractor("lead").extract(PAPER, sentences=3)
    assert [sentence[:3] for sentence in found.sentences] == [
        ("Long documents have many vectors.", 0, "Introduction"),
        ("Nobody needs all vectors of a document.", 1, "Introduction"),
        ("Pooling keeps few vectors of a document.", 2, "Methods"),
    ]
    assert [sentence.score for sentence in found.sentences] == list(found.scores[:3])
    assert found.text.startswith("Long documents have many vectors. Nobody")


def test_220_words_are_the_default_and_a_budget_replaces_them():
    long = " ".join(f"Sentence number {n} has six words." for n in range(100))
    assert len(Extractor().extract(long).text.split()) == 216
    assert len(Extractor().extract(long, words=13).sentences) == 2
    assert len(Extractor().extract(long, sentences=50).sentences) == 50


def test_vectors_and_methods_decide_what_ranks_where():
    assert np.argmin(Extractor("textrank").extract(PAPER).scores) == 3
    oracle = Extractor("oracle").extract(PAPER, reference="It was rainy.")
    assert [sentence.position for sentence in oracle.sentences] == [3]
    one_way = Extractor("hiporank", vectors=lambda sentences: np.eye(len(sentences))).extract(PAPER, sentences=1)
    assert one_way.scores.std() < Extractor("hiporank").extract(PAPER).scores.std()


def test_a_notebook_shows_an_extraction_briefly_and_escaped():
    body = " ".join(f"Sentence {number} has <b>tags</b> & more." for number in range(500))
    found = Extractor("lead").extract(f"# One <i>\n\n{body}\n\n# Two\n\nThe end of it.", sentences=2)
    assert repr(found) == f"<Extraction of 2 of 501 sentences: {found.text!r}>"
    longer = Extractor("lead").extract(body)
    assert repr(longer) == f"<Extraction of {len(longer.sentences)} of 500 sentences: {f'{longer.text[:80]}…'!r}>"
    shown = "Sentence {} has &lt;b&gt;tags&lt;/b&gt; &amp; more."
    assert found._repr_html_() == f"<h4>One &lt;i&gt;</h4><p>{shown.format(0)} {shown.format(1)}</p>"
    assert found.summary == found.text and len(repr(Extractor("lead").extract("One. Two."))) < 60
    assert json.loads(json.dumps(found.to_dict())) == {
        "summary": found.text,
        "language": "en",
        "sentences": [
            {"text": f"Sentence {n} has <b>tags</b> & more.", "position": n, "section": "One <i>", "score": -n}
            for n in (0, 1)
        ],
    }


def test_sentences_that_stand_apart_are_told_from_those_that_follow_each_other():
    sentences = [
        Extract(text, place, section, 0.0)
        for text, place, section in (
            ("A.", 0, ""),
            ("B.", 1, ""),
            ("C.", 5, ""),
            ("D.", 6, "Results"),
            ("E.", 9, "Results"),
        )
    ]
    found = Extraction(sentences, outline(""), np.zeros(10))
    assert list(found.by_section()) == [("", "A. B. [...] C."), ("Results", "D. [...] E.")]


def test_an_extract_of_a_dialogue_says_who_said_what():
    text = """Ann: We start with the plan of the new bee house today. It will have room for forty bees of all kinds.
Bob: Okay.
Ann: Its roof will be made of wood from the old garden.
Bob: The bee house costs too much for this year, I think.
Ann: Okay. Then we build it in the next year, or the one after."""
    found = Extractor("lead").extract(text)
    first, second, roof, cost, end = (sentence.text for sentence in found.sentences)
    assert found.text == f"Ann: {first} {second} {roof} Bob: {cost} Ann: {end}"
    assert list(found.by_section()) == [("", f"Ann: {first} {second} [...] {roof} Bob: {cost} [...] Ann: {end}")]
    assert [each["speaker"] for each in found.to_dict()["sentences"]] == ["Ann", "Ann", "Ann", "Bob", "Ann"]
    # The name is one of the words.
    assert len(Extractor("lead").extract(text, words=12).sentences) == 1
    assert len(Extractor("lead").extract(text, words=22).sentences) == 1
    assert len(Extractor("lead").extract(text, words=23).sentences) == 2


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "paper.txt"
    path.write_text(PAPER)
    assert (
        Extractor().extract_file(str(path), sentences=2).to_dict() == Extractor().extract(PAPER, sentences=2).to_dict()
    )
    page = tmp_path / "page.html"
    page.write_text("<h1>Bees</h1><p>Bees fly fast.</p><h1>Wasps</h1><p>Wasps sting us.</p>")
    assert Extractor().extract_file(page).outline.headings == ("Bees", "Wasps")


def test_marks_of_citations_are_left_out_and_one_sentence_is_its_own_summary():
    assert Extractor().extract("Only one.", words=1).text == "Only one."
    listed = "Title\n\n• Bees fly very fast.↩\n\no They sting us."
    assert Extractor().extract(listed).text == "Bees fly very fast. They sting us."
    assert Extractor().extract("Bees fly very fast <cit> , and they sting <cit>.").text == (
        "Bees fly very fast , and they sting."
    )


def test_a_trained_extractor_brings_its_own_rules(monkeypatch, tmp_path):
    class OfTen(LearnedRanker):
        def __init__(self):
            self.model = SavedExtractor(None, None, None, 64, extract_words=10, redundancy="mmr", mmr_weight=0.4)
            self.precision = None

    monkeypatch.setattr(LearnedRanker, "from_pretrained", lambda path, device, precision: OfTen())
    extractor = Extractor(tmp_path)
    assert extractor.rules() == SelectionRules(Budget(words=10), "mmr", 0.4)
    assert extractor.rules(sentences=2, redundancy="none") == SelectionRules(Budget(sentences=2), "none", 0.4)
    assert Extractor().rules() == SelectionRules(Budget(words=220), "none", 0.7)
    assert Extractor("lead").rules() == SelectionRules(Budget(words=220), stops=True)

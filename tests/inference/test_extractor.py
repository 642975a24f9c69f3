"""Extraction in a few lines of Python."""

import json

import numpy as np
import pytest
from tables import for_each

from pyramidions import Extraction, Extractor
from pyramidions.base.errors import UserError
from pyramidions.extract import Budget, SelectionRules, TfIdf
from pyramidions.extract.extraction import Extract
from pyramidions.inference import LearnedRanker, SavedExtractor
from pyramidions.text.outline import outline

NAMES_OF_METHODS = "hiporank, lead, textrank, oracle, biomedical, meetings"

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


def test_what_has_nothing_to_do_with_the_rest_ranks_last():
    assert np.argmin(Extractor("textrank").extract(PAPER).scores) == 3


def test_220_words_are_the_default_and_a_budget_replaces_them():
    long = " ".join(f"Sentence number {n} has six words." for n in range(100))
    assert len(Extractor().extract(long).text.split()) == 216
    assert len(Extractor().extract(long, words=13).sentences) == 2
    assert len(Extractor().extract(long, sentences=50).sentences) == 50


def test_the_oracle_chooses_by_the_reference():
    found = Extractor("oracle").extract(PAPER, reference="It was rainy.")
    assert [sentence.position for sentence in found.sentences] == [3]


def test_vectors_decide_what_is_similar():
    one_way = Extractor("hiporank", vectors=lambda sentences: np.eye(len(sentences))).extract(PAPER, sentences=1)
    assert one_way.scores.std() < Extractor("hiporank").extract(PAPER).scores.std()


def test_words_that_a_corpus_lacks_do_not_count():
    vectors = TfIdf(["Pooling.", "Rainy May."])
    assert vectors(["Pooling in May", "vectors"]).toarray().tolist() == [
        pytest.approx([0.70710678, 0.70710678, 0.0]),
        [0.0, 0.0, 0.0],
    ]


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
    with pytest.raises(UserError, match=r"`text` must be a text, but .*paper.txt names a file: use"):
        Extractor().extract(str(path))
    with pytest.raises(UserError, match="No such file"):
        Extractor().extract_file(tmp_path / "none.txt")
    with pytest.raises(UserError, match="`path` must hold one document, but .* holds one a line"):
        Extractor().extract_file(tmp_path / "papers.jsonl")


def test_marks_of_citations_are_left_out():
    listed = "Title\n\n• Bees fly very fast.↩\n\no They sting us."
    assert Extractor().extract(listed).text == "Bees fly very fast. They sting us."
    assert Extractor().extract("Bees fly very fast <cit> , and they sting <cit>.").text == (
        "Bees fly very fast , and they sting."
    )


def test_a_document_with_one_sentence_is_its_own_summary():
    assert Extractor().extract("Only one.", words=1).text == "Only one."


@for_each(
    ("make", "message"),
    [
        (
            lambda: Extractor("hipo"),
            f"`method` must be one of {NAMES_OF_METHODS}, or a trained extractor, but is 'hipo'.",
        ),
        (lambda: Extractor("hiporank", {"nu": 1}), "no option 'nu'; it knows mu, lambda_1, lambda_2, alpha."),
        (lambda: Extractor("hiporank", {"mu": "1"}), "`mu` must be a number, but is '1'."),
        (lambda: Extractor("textrank", {"damping": 2.0}), "`damping` must be at least 0 and below 1, but is 2.0."),
        (lambda: Extractor("oracle", {"mu": 1}), "The method 'oracle' has no options, but was given 'mu'."),
        (lambda: Extractor("lead", vectors=TfIdf()), "'lead' compares no sentences: vectors have no effect."),
        (lambda: Extractor("lead", device="cpu"), "`device` is for trained extractors, but the method is 'lead'."),
        (lambda: TfIdf(["1 2", "-"]), "The corpus of document frequencies must hold a word of two letters."),
        (lambda: Extractor().extract("x", words=0), "`words` must be at least 1, but is 0."),
        (lambda: Extractor().extract("x", sentences=-1), "`sentences` must be at least 1, but is -1."),
        (lambda: Extractor().extract("x", redundancy="x"), "`redundancy` must be one of none, trigrams, mmr"),
        (lambda: Extractor().extract(["x"]), "`text` must be a text, but is a list."),
        (lambda: Extractor().extract(" \n"), "A document must hold text, but holds none."),
        (lambda: Extractor().extract("# One\n# Two"), "A document must hold a sentence, but holds headings only."),
        (lambda: Extractor("oracle").extract("x"), "'oracle' needs a `reference`"),
    ],
)
def test_what_breaks_a_rule_is_refused_in_one_sentence(make, message):
    with pytest.raises(UserError, match=message):
        make()


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


@for_each(
    ("language", "text", "first"),
    [
        (
            "de",
            "Das war am 3. Oktober bzw. Tage später bekannt. Alle wussten es.",
            "Das war am 3. Oktober bzw. Tage später bekannt.",
        ),
        ("es", "El Sr. García vive en la Avda. de América. Está lejos.", "El Sr. García vive en la Avda. de América."),
        (
            "fi",
            "Hän syntyi 3. lokakuuta 1990 pienessä kylässä. Kylä on kaunis.",
            "Hän syntyi 3. lokakuuta 1990 pienessä kylässä.",
        ),
        ("hi", "यह एक छोटा वाक्य है। यह दूसरा छोटा वाक्य है।", "यह एक छोटा वाक्य है।"),
        ("ar", "هذه جملة قصيرة أولى. هذه جملة قصيرة ثانية.", "هذه جملة قصيرة أولى."),
        ("zh", "蜂飞得很快很高。它们住在罗马城里。", "蜂飞得很快很高。"),
        ("ja", "蜂はとても速く飛ぶ。彼らはローマに住む。", "蜂はとても速く飛ぶ。"),
    ],
)
def test_the_rules_of_a_language_end_sentences(language: str, text: str, first: str) -> None:
    assert Extractor("lead", language=language).extract(text, sentences=1).text == first


def test_the_turns_of_a_dialogue_are_split_by_the_rules_of_its_language() -> None:
    meeting = "Ann: Wir sehen uns am 3. Oktober in Rom wieder.\nBob: Das ist sehr schön für alle.\n" * 2
    found = Extractor("lead", language="de").extract(meeting, sentences=1)
    assert found.text == "Ann: Wir sehen uns am 3. Oktober in Rom wieder."


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UserError, match="^`language` must be one of af, .*, but is 'xx'"):
        Extractor(language="xx")

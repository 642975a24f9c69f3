"""`auto` takes the method that suits a document."""

import json
import lzma
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from pyramidions import Extractor
from pyramidions.base.errors import UserError
from pyramidions.extract import TfIdf
from pyramidions.extract.suited import suited
from pyramidions.inference import extractor
from pyramidions.inference.compression import compress
from pyramidions.inference.extractor import document_outline

DIALOGUE = "\n".join(
    f"{name}: I think that remote control number {number} should be yellow and cheap to make."
    for number, name in enumerate(["Anna", "Ben"] * 4)
)
NEWS = "The court found no reason to continue the case. The lawyer asked for more time on Monday. It was refused."
SHORT = "The model was trained for days. The method achieves higher accuracy than previous work on data sets."
GERMAN = "Das Gericht sah keinen Grund, das Verfahren fortzusetzen. Der Anwalt bat am Montag um mehr Zeit."


def papers(number: int) -> list[str]:
    with lzma.open(Path(__file__).parents[2] / "data/sample/test.jsonl.xz", "rt") as file:
        return [json.loads(line)["article"] for line in islice(file, number)]


@pytest.mark.parametrize(
    ("text", "method"), [(DIALOGUE, "meetings"), (NEWS, "hiporank"), (GERMAN, "hiporank"), (SHORT, "hiporank")]
)
def test_dialogues_are_for_meetings_and_other_texts_for_hiporank(text: str, method: str) -> None:
    assert suited(document_outline(text)) == method
    assert Extractor("auto").extract(text).to_dict() == Extractor(method).extract(text, words=220).to_dict()


def test_a_text_for_hiporank_waits_for_no_stemmer() -> None:
    program = f"from pyramidions import Extractor; Extractor().extract({NEWS!r}); import sys; print(list(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'pyramidions.extract.suited'" in done.stdout and "'nltk'" not in done.stdout


def test_biomedical_papers_are_for_biomedical() -> None:
    documents = papers(10)
    assert [suited(document_outline(each)) for each in documents] == ["biomedical"] * 10
    found, asked = (Extractor(method).extract(documents[0], words=100) for method in ("auto", "biomedical"))
    assert np.array_equal(found.scores, asked.scores) and found.text == asked.text
    auto = Extractor("auto")
    assert auto.covered(auto.extract(documents[0], words=100)) == Extractor("biomedical").covered(asked)


PLAIN, CITING, SHOWING, TELLING = "", " as in Smith et al. (2003)", " in Table 3", " and so we propose a parser"
NUMBERED = " as they did [3, 4]"


@pytest.mark.parametrize(
    ("sections", "sentences", "method"),
    [
        (["1 Introduction", "2 Methods", "3 Results", "4 Conclusions"], [PLAIN] * 20, "biomedical"),
        (["Introduction", "Results"], [PLAIN] * 20, "hiporank"),
        (["Introduction", "Results"], [PLAIN] * 16 + [CITING] * 4, "biomedical"),
        (["3.1 Materials and Methods", "3.2 Experimental results"], [NUMBERED] * 20, "biomedical"),
        (
            ["Introduction", "Methodist church", "Resulting war", "Why the method of bees is no method"],
            [PLAIN] * 20,
            "hiporank",
        ),
        (["Related Work", "Previous Work", "Results"], [PLAIN] * 16 + [CITING] * 1, "hiporank"),
        ([], [CITING] * 10 + [SHOWING] * 10, "biomedical"),
        ([], [SHOWING] * 10 + [TELLING] * 10, "biomedical"),
        # manuals, laws and encyclopedias
        ([], [SHOWING] * 20, "hiporank"),
        (["Abstract", "Motivation", "References"], [CITING] * 20, "hiporank"),
        # too few to tell, and just enough
        ([], [CITING] * 7 + [TELLING] * 7, "hiporank"),
        ([], [CITING] * 8 + [TELLING] * 7, "biomedical"),
    ],
)
def test_papers_of_any_field_are_for_biomedical(sections: list[str], sentences: list[str], method: str) -> None:
    text = [f"The reader of page {number} met the word again{end}." for number, end in enumerate(sentences)]
    outline = document_outline("\n\n".join([*(f"## {title}\n\n{text[0]}" for title in sections), " ".join(text)]))
    assert suited(outline) == method


def test_a_paper_in_another_language_is_for_hiporank() -> None:
    text = "Das Verfahren war hier besser als alle anderen (Smith et al., 2003), wie Tab. 3 zeigt. " * 20
    outline = document_outline(f"## Introduction\n\n{text}\n\n## Results\n\n{text}\n\n## Discussion\n\n{text}")
    assert (outline.language, suited(outline)) == ("de", "hiporank")
    assert suited(replace(outline, language="en")) == "biomedical"


def test_a_query_is_read_where_the_method_that_suits_a_document_reads_queries() -> None:
    asked = {"query": "Why is it yellow?", "words": 40}
    assert Extractor("auto").extract(DIALOGUE, **asked).text == Extractor("meetings").extract(DIALOGUE, **asked).text
    with pytest.raises(UserError, match="for models of concepts, such as 'meetings', but the method is 'hiporank'"):
        Extractor("auto").extract(NEWS, **asked)


def test_a_query_that_no_method_reads_is_refused_where_a_document_is_shortened_too() -> None:
    with pytest.raises(UserError, match="for models of concepts, such as 'meetings', but the method is 'hiporank'"):
        compress(NEWS, Extractor("auto"), 9, query="Why?")


def test_a_document_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    monkeypatch.setattr(extractor, "suited", lambda outline: judged.append(outline.texts[0]) or "hiporank")
    auto = Extractor("auto")
    for text in (NEWS, DIALOGUE):
        found = auto.extract(text)
        assert auto.covered(found) is None and auto.suited(found.outline).method == "hiporank"
    assert len(judged) == 2


def test_vectors_are_for_hiporank() -> None:
    assert Extractor("auto", vectors=TfIdf([NEWS])).method == "hiporank"
    with pytest.raises(UserError, match="'auto' has no options"):
        Extractor("auto", options={"mu": 0.5})

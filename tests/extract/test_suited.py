"""`auto` takes the method that suits a document."""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyramidions import Extractor
from pyramidions.base.errors import UserError
from pyramidions.extract import TfIdf
from pyramidions.extract.methods import suited
from pyramidions.inference import extractor
from pyramidions.inference.compression import compress
from pyramidions.inference.extractor import document_outline
from pyramidions.text.outline import Outline

DIALOGUE = "\n".join(
    f"{name}: I think that remote control number {number} should be yellow and cheap to make."
    for number, name in enumerate(["Anna", "Ben"] * 4)
)
NEWS = "The court found no reason to continue the case. The lawyer asked for more time on Monday. It was refused."


def paper() -> str:
    with lzma.open(Path(__file__).parents[2] / "data/sample/test.jsonl.xz", "rt") as file:
        return str(json.loads(next(file))["article"])


def of(count: int, language: str = "en") -> Outline:
    return replace(
        document_outline(" ".join(f"The bees of hive {number} fly." for number in range(count))), language=language
    )


def test_dialogues_are_for_meetings_and_short_texts_for_hiporank() -> None:
    for text, method in [(DIALOGUE, "meetings"), (NEWS, "hiporank")]:
        assert suited(document_outline(text)) == method
        assert Extractor("auto").extract(text).to_dict() == Extractor(method).extract(text, words=220).to_dict()


def test_english_documents_are_for_biomedical_unless_they_are_short_or_very_long() -> None:
    counts = [14, 15, 10_000, 10_001]
    assert [suited(of(count)) for count in counts] == ["hiporank", "biomedical", "biomedical", "hiporank"]
    assert suited(of(15, "de")) == "hiporank"


def test_auto_extracts_as_the_method_that_suits_a_document() -> None:
    text = paper()
    found, asked = (Extractor(method).extract(text, words=100) for method in ("auto", "biomedical"))
    assert np.array_equal(found.scores, asked.scores) and found.text == asked.text
    auto = Extractor("auto")
    assert auto.covered(auto.extract(text, words=100)) == Extractor("biomedical").covered(asked)


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

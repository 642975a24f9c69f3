"""Several documents as one text."""

import pytest

from pyramidions import Extractor, UserError, as_one
from pyramidions.text.several_documents import documents_of


def test_each_document_is_a_section_below_its_name_and_its_headings_a_level_lower() -> None:
    text = as_one({"a \n b": "# Bees\n\nBees fly.", "c": "Cats sleep."})
    extraction = Extractor("lead").extract(text, sentences=2)
    assert [each.text for each in extraction.sentences] == ["Bees fly.", "Cats sleep."]
    assert [each.section for each in extraction.sentences] == ["a b", "c"]
    assert [document.strip() for document in documents_of(text)] == ["Bees\n\nBees fly.", "Cats sleep."]


def test_blank_documents_and_none_are_refused() -> None:
    with pytest.raises(UserError, match="^`documents` must hold a document, but is empty\\.$"):
        as_one({})
    with pytest.raises(UserError, match="^`documents` must hold texts, but '' holds none\\.$"):
        as_one({"a": "Bees fly.", "": " "})
    with pytest.raises(UserError, match="^`documents` must have names, but one is ' '\\.$"):
        as_one({" ": "Bees fly."})
    with pytest.raises(UserError, match="must be a text, but is 5"):
        as_one({"a": 5})  # type: ignore[dict-item]

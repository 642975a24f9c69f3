"""The table of section types."""

import json
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.section_types import SectionTypes, section_types
from pyramidions.text.outline import outline

TABLE = {"types": {"a": ["One"], "b": ["one two", "three"]}, "train": ["a", "b"], "write": ["b"]}


@for_each(
    ("heading", "kind"),
    [
        ("1. Introduction", "introduction"),
        ("BACKGROUND", "introduction"),
        ("II Related work and background", "literature"),
        ("Materials and methods", "methods"),
        ("Experimental setup", "methods"),
        ("Experimental results", "results"),
        ("Results and discussion", "results"),
        ("Discussion of the results", "conclusion"),
        ("Concluding remarks", "conclusion"),
        ("Methodical", None),
        ("Acknowledgements", None),
        ("", None),
    ],
)
def test_the_first_keyword_of_a_heading_decides_and_of_several_there_the_longest(heading: str, kind: str) -> None:
    assert section_types().of(heading) == kind


@for_each(
    ("heading", "kind"),
    [
        # Biomedical papers.
        ("Statistical analysis", "methods"),
        ("Statistical Analyses", "methods"),
        ("2.5. Data analysis", "methods"),
        ("Patients and methods", "methods"),
        ("Study population", "methods"),
        ("Literature search and selection criteria", "methods"),
        ("Background and objectives", "introduction"),
        ("Case presentation", "results"),
        ("Strengths and limitations", "conclusion"),
        ("Competing interests", None),
        ("In any case", None),
        # arXiv.
        ("Case study", "results"),
        ("Summary of methods", "methods"),
        ("Summary of the results", "results"),
        ("Summary and outlook", "conclusion"),
        ("Experimental methods", "methods"),
        ("Observations and data reduction", "methods"),
        ("Evaluation metrics", "methods"),
        ("The objective function", "methods"),
        ("Error analysis", "results"),
        ("Numerical simulations", "results"),
        ("Ablation study", "results"),
        ("Conclusions and future directions", "conclusion"),
        ("Data availability", None),
    ],
)
def test_common_headings_have_the_type_that_a_reader_gives_them(heading: str, kind: str | None) -> None:
    assert section_types().of(heading) == kind


def test_types_for_training_and_for_writing_are_those_of_the_authors() -> None:
    found = section_types()
    assert found.train == ("introduction", "literature", "methods", "results", "conclusion")
    assert found.write == ("introduction", "methods", "results", "conclusion")


def test_a_file_replaces_the_table(tmp_path: Path) -> None:
    path = tmp_path / "types.json"
    path.write_text(json.dumps(TABLE))
    found = section_types(path)
    assert [found.of(heading) for heading in ("ONE", "one two", "Three", "Methods")] == ["a", "b", "b", None]
    # As some editors write it: a letter and its accent.
    path.write_text(json.dumps({**TABLE, "types": {"a": ["Me\u0301thodes"], "b": ["x"]}}))
    assert section_types(path).of("Méthodes") == "a"
    path.write_text(json.dumps(TABLE))
    assert SectionTypes(**found._asdict()).as_json() == {**TABLE, "types": {"a": ["one"], "b": ["one two", "three"]}}


def test_sections_without_text_or_of_other_types_are_left_out() -> None:
    found = outline("# Introduction\n\n# Methods\n\nWe did it. It was good.\n\n# Thanks\n\nThank you.")
    types = section_types()
    assert [(each.heading, each.kind, each.text) for each in types.sections(found, types.write)] == [
        ("Methods", "methods", "We did it. It was good.")
    ]


@for_each(
    ("table", "sentence"),
    [
        ("[]", 'must be a JSON object of "types"'),
        ("{", 'must be a JSON object of "types"'),
        (TABLE | {"more": 1}, 'must be a JSON object of "types"'),
        (TABLE | {"types": {"a": "x"}}, "the section type 'a' must have a list of keywords"),
        (TABLE | {"types": {"a": []}}, "the section type 'a' must have a list of keywords"),
        (TABLE | {"types": {"a": ["1."]}}, "a keyword must hold a word, but '1.' of 'a' holds none"),
        (TABLE | {"types": {"a": ["x"], "b": ["X"]}}, "a keyword must have one type, but 'X' has 'a' and 'b'"),
        (TABLE | {"write": []}, "'write' must be a list of section types"),
        (TABLE | {"train": ["c"]}, "'train' must name types of the table, but 'c' is none"),
    ],
)
def test_an_invalid_table_is_one_sentence(table: object, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "types.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table))
    with pytest.raises(UserError) as error:
        section_types(path)
    assert str(error.value).startswith(str(path)) and sentence in str(error.value)


def test_a_missing_table_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.json cannot be read: No such file or directory\."):
        section_types(tmp_path / "none.json")

"""The table of section types."""

import json
from pathlib import Path

import pytest

from pyramidions.data.section_types import SectionTypes, section_types
from pyramidions.text.outline import outline

TABLE = {"types": {"a": ["One"], "b": ["one two", "three"]}, "train": ["a", "b"], "write": ["b"]}


@pytest.mark.parametrize(
    ("kind", "headings"),
    [
        ("introduction", ["1. Introduction", "BACKGROUND", "Background and objectives"]),
        ("literature", ["II Related work and background"]),
        (
            "methods",
            ["Materials and methods", "Experimental setup", "2.5. Data analysis", "Statistical Analyses"]
            + ["Patients and methods", "Study population", "Literature search and selection criteria"]
            + ["Summary of methods", "Experimental methods", "Observations and data reduction"]
            + ["Evaluation metrics", "The objective function"],
        ),
        (
            "results",
            ["Experimental results", "Results and discussion", "Case presentation", "Case study", "Error analysis"]
            + ["Summary of the results", "Numerical simulations", "Ablation study"],
        ),
        (
            "conclusion",
            ["Discussion of the results", "Concluding remarks", "Strengths and limitations", "Summary and outlook"]
            + ["Conclusions and future directions"],
        ),
        (None, ["Methodical", "Acknowledgements", "", "Competing interests", "In any case", "Data availability"]),
    ],
)
def test_the_first_keyword_of_a_heading_decides_and_of_several_there_the_longest(
    kind: str | None, headings: list[str]
) -> None:
    assert {heading: section_types().of(heading) for heading in headings} == dict.fromkeys(headings, kind)


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

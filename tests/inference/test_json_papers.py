"""Papers of S2ORC are read by sections, without numbers of citations."""

import json
from pathlib import Path
from typing import Any

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.papers import open_papers
from pyramidions.documents.paper_json import read_json_paper
from pyramidions.documents.paper_xml import without_numbers
from pyramidions.documents.source import list_files

BODY: list[Any] = [
    {"text": "Bees  fly.", "section": "", "cite_spans": []},
    {"text": "They are many [1], as Bee (1999) said.", "section": "Methods", "sec_num": "2", "cite_spans": []},
    {"text": "We count them.", "section": "Methods", "sec_num": "2"},
    {"text": "Of wood.", "section": "Rulers", "sec_num": "2.1"},
    {"text": "", "section": "Empty"},
    {"no": "text"},
]
BODY[1]["cite_spans"] = [
    {"start": 14, "end": 17, "text": "[1]"},
    {"start": 22, "end": 32},
    {"start": "a", "end": 99},
    7,
]
READ = [
    (0, "Bees fly."),
    (2, "Methods"),
    (0, "They are many, as Bee (1999) said."),
    (0, "We count them."),
    (3, "Rulers"),
    (0, "Of wood."),
    (2, "Empty"),
]


@for_each(
    "paper",
    [
        {"title": "On bees", "abstract": "We count.", "pdf_parse": {"body_text": BODY}},
        {"title": "On bees", "pdf_parse": {"abstract": [{"text": "We"}, {"text": "count."}], "body_text": BODY}},
        {"metadata": {"title": "On bees"}, "abstract": [{"text": "We count."}], "body_text": BODY},
        {"title": "On bees", "abstract": "We count.", "pdf_parse": None, "latex_parse": {"body_text": BODY}},
    ],
)
def test_papers_of_each_form_are_read(paper: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"paper_id": "a", **paper}))
    found = read_json_paper(tmp_path / "a.json")
    assert (found.title, found.abstract) == ("On bees", "We count.")
    assert found.body == READ


@for_each(
    ("places", "read"),
    [
        ([(4, 7), (9, 12)], "Bees fly (2001)."),
        ([], "Bees [1], [2] fly (2001)."),
        ([(17, 23)], "Bees [1], [2] fly (2001)."),  # a year
        ([(4, 7), (5, 99), (9, 12), (-3, 2)], "Bees fly (2001)."),
    ],
)
def test_only_numbers_in_the_text_are_left_out(places: list[tuple[int, int]], read: str) -> None:
    assert without_numbers("Bees [1], [2] fly (2001).", [(a + 1, b + 1) for a, b in places]) == read


@for_each(
    ("content", "sentence"),
    [
        ("{", "must hold JSON, but "),
        ("[]", "must be a paper of S2ORC, with `body_text`, but is not."),
        ('{"body_text": [{"section": "a"}]}', "must be a paper of S2ORC, with `body_text`, but is not."),
    ],
)
def test_what_is_no_paper_is_refused(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError) as error:
        read_json_paper(tmp_path / "a.json")
    assert str(error.value).startswith(f"{tmp_path / 'a.json'} {sentence}")


def test_other_files_in_json_are_passed_over_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"text": "no paper"}')
    (tmp_path / "paper.json").write_text(json.dumps({"paper_id": "a", "abstract": "We count.", "body_text": BODY}))
    assert list_files([tmp_path]).paths == [tmp_path / "paper.json"]
    (record,) = (found for split in ("train", "valid", "test") for found in open_papers(tmp_path, split).read())
    assert (record.value["id"], record.value["abstract"]) == ("paper", "We count.")

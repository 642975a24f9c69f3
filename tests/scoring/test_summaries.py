from pathlib import Path

import pytest

from pyramidions.data.folder import Reference
from pyramidions.errors import UserError
from pyramidions.files import lines
from pyramidions.scoring.summaries import read_references, read_summaries

REFERENCES = [Reference("a", "one"), Reference("b", "two")]


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_one_summary_a_line(tmp_path):
    assert read_summaries(write(tmp_path / "x.txt", "first\n\n"), REFERENCES) == ["first", ""]


def test_only_a_line_feed_ends_a_line(tmp_path):
    assert read_summaries(write(tmp_path / "x.txt", "a\x0bb\u2028c\nd"), REFERENCES) == ["a\x0bb\u2028c", "d"]


def test_output_of_fairseq_is_known_by_itself(tmp_path):
    assert read_summaries(write(tmp_path / "x", "D-1\t-1\tb\nD-0\t-1\ta\n"), REFERENCES) == ["a", "b"]


def test_json_lines_are_ordered_by_id(tmp_path):
    lines = '{"id": "b", "summary": "B"}\n{"id": "a", "summary": "A"}\n'
    assert read_summaries(write(tmp_path / "x.jsonl", lines), REFERENCES) == ["A", "B"]


def test_ids_give_way_to_positions_only_where_the_references_have_none(tmp_path):
    references = read_references(write(tmp_path / "r.txt", "one\ntwo\n"))
    summaries = write(tmp_path / "x.jsonl", '{"id": "b", "summary": "B"}\n{"id": "a", "summary": "A"}\n')
    assert read_summaries(summaries, references) == ["B", "A"]
    by_position = write(tmp_path / "y.jsonl", '{"id": 1, "summary": "B"}\n{"id": 0, "summary": "A"}\n')
    assert read_summaries(by_position, references) == ["A", "B"]
    with pytest.raises(UserError, match=r"x\.jsonl has 2 summaries, but needs one for each of 1 reference\."):
        read_summaries(summaries, references[:1])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "x.txt",
            "a.txt:\none\n\nb.txt:\ntwo\n\n",
            r"x\.txt must hold one summary a line, but holds names, too: write",
        ),
        ("x.txt", "one\n", r"x\.txt has 1 summary, but needs one for each of 2 references\."),
        ("x.txt", b"one\ncaf\xe9\n", r"x\.txt, line 2: must be UTF-8, but byte 4 is 0xe9\."),
        ("x.jsonl", '{"id": "a", "summary": "A"}\n', r"x\.jsonl: lacks 1 of 2 documents \('b' first\)\."),
        ("x.jsonl", '{"id": "c", "summary": "A"}\n', r"x\.jsonl: has document 'c', which no reference has\."),
        ("x.jsonl", '{"id": "a", "summary": "A"}\n' * 2, r"x\.jsonl: document 'a' comes twice\."),
    ],
)
def test_a_mismatch_is_one_sentence(tmp_path, name, text, message):
    with pytest.raises(UserError, match=message):
        read_summaries(write(tmp_path / name, text), REFERENCES)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"The file .*x\.txt does not exist\."):
        read_summaries(tmp_path / "x.txt", REFERENCES)


def test_a_folder_is_no_file_of_summaries(tmp_path):
    with pytest.raises(UserError, match=r"must be a file, but is a folder\.$"):
        read_summaries(tmp_path, REFERENCES)


def test_references_come_as_json_lines_or_text(tmp_path):
    assert read_references(write(tmp_path / "r.jsonl", '{"id": "a", "summary": "one"}\n')) == REFERENCES[:1]
    assert read_references(write(tmp_path / "r.txt", "one\ntwo\n")) == [Reference("0", "one"), Reference("1", "two")]


def test_a_device_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(lines, "STREAM_LIMIT", 1)
    with pytest.raises(UserError, match="/dev/zero must hold at most 1 MiB, but holds more."):
        read_summaries(Path("/dev/zero"), REFERENCES)

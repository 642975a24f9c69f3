from pathlib import Path

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.files import lines as indexed_lines
from pyramidions.scoring.summaries import ReferenceFile, read_documents, read_summaries

TWO = '{"id": "a", "summary": "one"}\n{"id": "b", "summary": "two"}\n'


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def references(tmp_path):
    return ReferenceFile(write(tmp_path / "references.jsonl", TWO))


def test_what_prepare_reads_holds_references(tmp_path):
    lines = '{"id": "a", "article": "x", "abstract": "one"}\n{"id": "b", "summary": "two", "abstract": "x"}\n'
    assert list(ReferenceFile(write(tmp_path / "papers.jsonl", lines))) == [("one",), ("two",)]


def test_a_list_is_several_summaries_or_one_abstract(tmp_path):
    lines = '{"id": "a", "summary": ["one", "two"]}\n{"id": "b", "abstract": ["one.", "<S> two. </S>"]}\n'
    assert list(ReferenceFile(write(tmp_path / "r.jsonl", lines))) == [("one", "two"), ("one.\ntwo.",)]
    with pytest.raises(UserError, match="the summary a text or a list of texts"):
        ReferenceFile(write(tmp_path / "s.jsonl", '{"id": "a", "abstract": ["one", 2]}\n'))
    with pytest.raises(UserError, match="the summary a text or a list of texts"):
        ReferenceFile(write(tmp_path / "e.jsonl", '{"id": "a", "abstract": []}\n'))


def test_a_byte_order_mark_is_passed_over_and_what_is_no_json_is_said(tmp_path):
    assert ReferenceFile(write(tmp_path / "r.jsonl", "\ufeff" + TWO)).ids == ["a", "b"]
    with pytest.raises(UserError, match=r"line 1: each line must be .*, but it holds NaN"):
        ReferenceFile(write(tmp_path / "n.jsonl", '{"id": "a", "summary": "x", "score": NaN}\n'))


def test_json_is_no_text(tmp_path, references):
    path = write(tmp_path / "r.txt", "\ufeff" + TWO)
    for read in (ReferenceFile, lambda path: read_summaries(path, references)):
        with pytest.raises(UserError, match=r"r\.txt must hold a text in each line, but holds JSON: name it r\.jsonl"):
            read(path)
    assert list(ReferenceFile(write(tmp_path / "s.txt", "{a} is a set\n"))) == [("{a} is a set",)]


def test_one_summary_a_line(tmp_path, references):
    assert list(read_summaries(write(tmp_path / "x.txt", "first\n\n"), references)) == ["first", ""]


def test_only_a_line_feed_ends_a_line(tmp_path, references):
    assert list(read_summaries(write(tmp_path / "x.txt", "a\x0bb\u2028c\nd"), references)) == ["a\x0bb\u2028c", "d"]


def test_output_of_fairseq_is_known_by_itself(tmp_path, references):
    assert list(read_summaries(write(tmp_path / "x", "D-1\t-1\tb\nD-0\t-1\ta\n"), references)) == ["a", "b"]


def test_json_lines_are_ordered_by_id(tmp_path, references):
    lines = '{"id": "b", "summary": "B"}\n{"id": "a", "summary": "A"}\n'
    assert list(read_summaries(write(tmp_path / "x.jsonl", lines), references)) == ["A", "B"]


def test_a_list_in_json_holds_the_same_records(tmp_path, references):
    listed = '[\n{"id": "b", "summary": "B\u2028"},\n{"id": "a", "summary": "A"}\n]\n'
    assert list(read_summaries(write(tmp_path / "x.json", listed), references)) == ["A", "B\u2028"]
    assert list(ReferenceFile(write(tmp_path / "r.JSON", listed.replace(",", ",\n")))) == [("B\u2028",), ("A",)]


def test_ids_give_way_to_positions_only_where_the_references_have_none(tmp_path):
    references = ReferenceFile(write(tmp_path / "r.txt", "one\ntwo\n"))
    summaries = write(tmp_path / "x.jsonl", '{"id": "b", "summary": "B"}\n{"id": "a", "summary": "A"}\n')
    assert list(read_summaries(summaries, references)) == ["B", "A"]
    by_position = write(tmp_path / "y.jsonl", '{"id": 1, "summary": "B"}\n{"id": 0, "summary": "A"}\n')
    assert list(read_summaries(by_position, references)) == ["A", "B"]
    one = ReferenceFile(write(tmp_path / "one.txt", "one\n"))
    with pytest.raises(UserError, match=r"x\.jsonl has 2 summaries, but needs one for each of 1 reference\."):
        read_summaries(summaries, one)


@for_each(
    ("name", "text", "message"),
    [
        (
            "x.txt",
            "a.txt:\none\n\nb.txt:\ntwo\n\n",
            r"x\.txt must hold one summary a line, but holds names, too: write",
        ),
        ("x.txt", "one\n", r"x\.txt has 1 summary, but needs one for each of 2 references\."),
        ("x.txt", b"one\ncaf\xe9\n", r"x\.txt, line 2: must be UTF-8, but byte 4 is 0xe9 \(if it is WINDOWS-1252, "),
        ("x.jsonl", '{"id": "a", "summary": "A"}\n', r"x\.jsonl: lacks 1 of 2 documents \('b' first\)\."),
        ("x.jsonl", '{"id": "c", "summary": "A"}\n', r"x\.jsonl: has document 'c', which no reference has\."),
        ("x.jsonl", '{"id": "a", "summary": "A"}\n' * 2, r"x\.jsonl: document 'a' comes twice\."),
        ("x.jsonl", '{"id": "a", "summary": ["A"]}\n', r'x\.jsonl, line 1: each line must be {"id": \.\.\., "summary"'),
        ("x.json", '[{"id": "a",\n"summary": ["A"]}]', r'x\.json, item 1: each item must be {"id": \.\.\., "summary"'),
        ("x.json", '{"id": "a", "summary": "A"}', r"x\.json must be a list in JSON, but it is none\."),
        ("x.json", '{"id": "a"}\n{"id": "b"}', r"x\.json must be a list in JSON, but it is not JSON \(Extra data"),
        ("x.json", b'["caf\xe9"]', r"x\.json must be a list in JSON, but it is not UTF-8 \(byte 6\)\."),
    ],
)
def test_a_mismatch_is_one_sentence(tmp_path, references, name, text, message):
    with pytest.raises(UserError, match=message):
        read_summaries(write(tmp_path / name, text), references)


def test_two_references_of_one_id_do_not_share_a_summary(tmp_path):
    twice = ReferenceFile(write(tmp_path / "r.jsonl", '{"id": "a", "summary": "x"}\n' * 2))
    with pytest.raises(UserError, match="Each reference must have an id of its own, but 'a' comes twice."):
        read_summaries(write(tmp_path / "x.jsonl", '{"id": "a", "summary": "x"}\n'), twice)
    # In a text file the order decides.
    assert list(read_summaries(write(tmp_path / "x.txt", "x\ny"), twice)) == ["x", "y"]


def test_a_missing_file_is_named(tmp_path, references):
    with pytest.raises(UserError, match=r"The file .*x\.txt does not exist\."):
        read_summaries(tmp_path / "x.txt", references)


def test_a_folder_is_no_file_of_summaries(tmp_path, references):
    with pytest.raises(UserError, match=r"must be a file, but is a folder\.$"):
        read_summaries(tmp_path, references)


def test_references_come_as_json_lines_or_text(tmp_path):
    found = ReferenceFile(write(tmp_path / "r.jsonl", '{"id": "a", "summary": "one"}\n{"id": 7, "summary": "two"}\n'))
    assert (found.ids, list(found)) == (["a", "7"], [("one",), ("two",)])
    found = ReferenceFile(write(tmp_path / "r.txt", "one\ntwo\n"))
    assert (found.ids, list(found)) == (["0", "1"], [("one",), ("two",)])


def test_a_document_may_have_several_references(tmp_path):
    found = ReferenceFile(write(tmp_path / "r.jsonl", '{"id": "a", "summary": ["one", "uno"]}\n'))
    assert found[0] == ("one", "uno")
    some_blank = '{"id": "a", "summary": ["", "uno", " "]}\n{"id": 1, "summary": ["", ""]}\n'
    blank = ReferenceFile(write(tmp_path / "b.jsonl", some_blank))
    assert list(blank) == [("uno",), ("",)]


@for_each("line", ["x", "[]", '{"id": "a"}', '{"id": "a", "summary": 3}', '{"id": "a", "summary": []}'])
def test_a_bad_reference_is_named_by_its_line(tmp_path, line):
    with pytest.raises(
        UserError,
        match=r"line 2: each line must be .*}, the summary a text or a list of texts",
    ):
        ReferenceFile(write(tmp_path / "r.jsonl", '{"id": "a", "summary": "x"}\n' + line + "\n"))


def test_documents_come_like_references(tmp_path, references):
    lines = '{"id": "b", "article": "B"}\n{"id": "a", "article": "A"}\n'
    assert list(read_documents(write(tmp_path / "d.jsonl", lines), references)) == ["A", "B"]
    assert list(read_documents(write(tmp_path / "d.txt", "A\nB"), references)) == ["A", "B"]
    of_sentences = '{"id": "b", "article": ["B", "b"]}\n{"id": "a", "article": "A"}\n'
    assert list(read_documents(write(tmp_path / "s.jsonl", of_sentences), references)) == ["A", "B\nb"]
    with pytest.raises(UserError, match=r"e\.txt has 1 document, but needs one for each of 2 references\."):
        read_documents(write(tmp_path / "e.txt", "A"), references)
    without_ids = ReferenceFile(write(tmp_path / "r.txt", "A\nB"))
    with pytest.raises(UserError, match=r"f\.jsonl has 1 document, but needs one for each of 2 references\."):
        read_documents(write(tmp_path / "f.jsonl", '{"id": "x", "article": "A"}\n'), without_ids)


def test_a_device_without_end_is_refused(monkeypatch, references):
    monkeypatch.setattr(indexed_lines, "STREAM_LIMIT", 1)
    with pytest.raises(UserError, match="/dev/zero must hold at most 1 MiB, but holds more."):
        read_summaries(Path("/dev/zero"), references)

"""Files of references, summaries and documents, and the output of fairseq-generate."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pyramidions.scoring.summaries import References, generated_summaries, read_documents, read_summaries

TWO = '{"id": "a", "summary": "one"}\n{"id": "b", "summary": "two"}\n'


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def references(tmp_path: Path) -> References:
    return References.read(write(tmp_path / "references.jsonl", TWO))


@pytest.mark.parametrize(
    ("name", "text", "ids", "found"),
    [
        ("r.jsonl", "\ufeff" + TWO.replace('"b"', "7"), ["a", "7"], [("one",), ("two",)]),
        ("r.txt", "one\ntwo\n", ["0", "1"], [("one",), ("two",)]),
        ("r.txt", "{a} is a set\n", ["0"], [("{a} is a set",)]),
        ("r.JSON", f"[{TWO.strip().replace('}', '},', 1)}]", ["a", "b"], [("one",), ("two",)]),
        # What prepare reads.
        ("r.jsonl", '{"id": "a", "article": "x", "abstract": "one"}', ["a"], [("one",)]),
        ("r.jsonl", '{"id": "a", "summary": "two", "abstract": "x"}', ["a"], [("two",)]),
        # A list is several summaries, or one abstract.
        ("r.jsonl", '{"id": "a", "summary": ["one", "", "uno", " "]}', ["a"], [("one", "uno")]),
        ("r.jsonl", '{"id": "a", "summary": ["", ""]}', ["a"], [("",)]),
        ("r.jsonl", '{"id": "a", "abstract": ["one.", "<S> two. </S>"]}', ["a"], [("one.\ntwo.",)]),
    ],
)
def test_references_come_as_json_or_text(
    name: str, text: str, ids: list[str], found: list[tuple[str, ...]], tmp_path: Path
) -> None:
    read = References.read(write(tmp_path / name, text))
    assert (read.ids, read.texts) == (ids, found)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("x.txt", "first\n\n", ["first", ""]),
        # Only a line feed ends a line.
        ("x.txt", "a\x0bb\u2028c\nd", ["a\x0bb\u2028c", "d"]),
        # Output of fairseq is known by itself, and other text is none.
        ("x", "D-day was in 1944\nS-0\tsource\n", ["D-day was in 1944", "S-0\tsource"]),
        ("x", "D-1\t-1\tb\nD-0\t-1\ta\n", ["a", "b"]),
        ("x.jsonl", '{"id": "b", "summary": "B"}\n{"id": "a", "summary": "A"}\n', ["A", "B"]),
        ("x.json", '[\n{"id": "b", "summary": "B\u2028"},\n{"id": "a", "summary": "A"}\n]\n', ["A", "B\u2028"]),
    ],
)
def test_summaries_come_in_the_order_of_the_references(
    name: str, text: str, found: list[str], tmp_path: Path, references: References
) -> None:
    assert list(read_summaries(write(tmp_path / name, text), references)) == found


def test_ids_give_way_to_positions_only_where_the_references_have_none(tmp_path: Path) -> None:
    references = References.read(write(tmp_path / "r.txt", "one\ntwo\n"))
    summaries = write(tmp_path / "x.jsonl", '{"id": "b", "summary": "B"}\n{"id": "a", "summary": "A"}\n')
    assert list(read_summaries(summaries, references)) == ["B", "A"]
    by_position = write(tmp_path / "y.jsonl", '{"id": 1, "summary": "B"}\n{"id": 0, "summary": "A"}\n')
    assert list(read_summaries(by_position, references)) == ["A", "B"]
    with refused("2 summaries"):
        read_summaries(summaries, References.read(write(tmp_path / "one.txt", "one\n")))


def test_two_references_of_one_id_do_not_share_a_summary(tmp_path: Path) -> None:
    twice = References.read(write(tmp_path / "r.jsonl", '{"id": "a", "summary": "x"}\n' * 2))
    with refused("'a' comes twice"):
        read_summaries(write(tmp_path / "x.jsonl", '{"id": "a", "summary": "x"}\n'), twice)
    # In a text file the order decides.
    assert list(read_summaries(write(tmp_path / "x.txt", "x\ny"), twice)) == ["x", "y"]


def test_documents_come_like_references(tmp_path: Path, references: References) -> None:
    lines = '{"id": "b", "article": ["B", "b"]}\n{"id": "a", "article": "A"}\n'
    assert list(read_documents(write(tmp_path / "d.jsonl", lines), references)) == ["A", "B\nb"]
    assert list(read_documents(write(tmp_path / "d.txt", "A\nB"), references)) == ["A", "B"]


# ------------------------------------------------------------ the output of fairseq-generate


def block(index: int, *texts: str) -> list[str]:
    lines = [f"S-{index}\tsource"]
    for rank, text in enumerate(texts):
        lines += [f"H-{index}\t-{rank}.5\t▁h", f"D-{index}\t-{rank}.5\t{text}", f"P-{index}\t-0.1 -0.2"]
    return lines


UNENDED = ["S-0\tsource", "T-0\ttarget", "H-0\t-1.0\t▁cut", "D-0\t-1.0\tcu"]
PIECES = "-1.0\t▁the ▁f ox . <n> ▁it ▁jumps"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["INFO | loading", *block(2, "two"), *block(0, "", "other"), *block(1, "a\tb"), "x"], ["", "a\tb", "two"]),
        ([f"H-0\t{PIECES}", f"D-0\t{PIECES}"], ["the fox. it jumps"]),
        (["H-0\t-1.0\ttext"], ["text"]),
        ([*UNENDED, "Generate test with beam=4: ROUGE"], ["cu"]),
    ],
)
def test_the_best_hypotheses_are_taken_in_the_documents_order(lines: list[str], found: list[str]) -> None:
    assert generated_summaries(lines, len(found)) == found


@given(st.lists(st.text(st.characters(exclude_characters="\r\n▁"), max_size=20), min_size=1, max_size=8), st.randoms())
def test_any_order_of_batches_gives_the_documents_order(texts: list[str], shuffle: random.Random) -> None:
    indices = list(range(len(texts)))
    shuffle.shuffle(indices)
    lines = [line for index in indices for line in block(index, texts[index], "worse")]
    assert generated_summaries(lines, len(texts)) == texts

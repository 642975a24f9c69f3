"""Files, folders and records give documents, or a sentence that names what is wrong."""

import faulthandler
import gzip
import io
import json
import lzma
import os
import random
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents import docx, pdf, read_documents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused

from pyramidions import Extractor, as_one
from pyramidions.base.errors import UserError
from pyramidions.data.readers import Corpus, known_fields
from pyramidions.documents import file_formats, records, source
from pyramidions.documents.file_formats import text_lines
from pyramidions.documents.records import open_records
from pyramidions.documents.source import ENDINGS, LIMITS, Fields, InputText, list_files, list_inputs
from pyramidions.text.outline import outline
from pyramidions.text.several_documents import documents_of

KEPT = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
PACK: dict[str, Callable[[bytes], bytes]] = {".jsonl": bytes, ".jsonl.gz": gzip.compress, ".jsonl.xz": lzma.compress}
RELEASE = {
    "article_id": "x",
    "article_text": ["flat text ."],
    "abstract_text": ["<S> a summary . </S>"],
    "section_names": ["Abstract", "Introduction", "", "Results"],
    "sections": [["a summary ."], ["one .", "two ."], ["three ."], ["four .", " "]],
}


def read(path: Path, content: bytes) -> list[InputText | UserError]:
    path.write_bytes(content)
    found: list[InputText | UserError] = []
    for document in read_documents(path, "text", refuse=found.append):
        found.append(document)
    return found


def sentence(path: Path, content: bytes) -> str:
    """Return the one sentence that a file is refused with."""
    (found,) = read(path, content)
    assert isinstance(found, UserError)
    return str(found)


def lines_of(folder: Path, *values: dict[str, Any]) -> Path:
    (path := folder / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in values))
    return path


@pytest.mark.parametrize("content", [b"", b" \n\t\x00\xef\xbb\xbf", b"\xff\xfe", b"%PDF-1.7", b"<", b"{}", b"[[[["])
def test_odd_files_give_a_document_or_a_sentence_with_their_name(content: bytes, tmp_path: Path) -> None:
    for ending in ENDINGS:
        path = tmp_path / f"odd{ending}"
        for each in read(path, content):
            assert str(path) in (each.origin.name if isinstance(each, InputText) else str(each))


@KEPT
@given(content=st.binary(max_size=200), ending=st.sampled_from(ENDINGS))
def test_any_bytes_give_documents_or_sentences(content: bytes, ending: str, tmp_path: Path) -> None:
    found = read(tmp_path / f"any{ending}", content)
    assert all(isinstance(each, UserError) or each.text for each in found)


@settings(KEPT, max_examples=25)
@given(place=st.integers(0, 900), junk=st.binary(min_size=1, max_size=9), cut=st.booleans())
def test_a_damaged_pdf_gives_a_document_or_a_sentence(place: int, junk: bytes, cut: bool, tmp_path: Path) -> None:
    whole = pdf("One two three.", "Four.")
    damaged = whole[:place] + (b"" if cut else junk + whole[place + len(junk) :])
    for each in read(tmp_path / "damaged.pdf", damaged):
        assert "damaged.pdf" in str(each) if isinstance(each, UserError) else each.text


TOO_MUCH = (
    "{} must take at most [0-9]+ s of processor time and [0-9,]+ MiB of memory to read, for its size, but takes more."
)


def test_a_file_that_is_too_large_or_takes_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "large.txt", tmp_path / "large.pdf"):
        monkeypatch.setitem(LIMITS, path.suffix, 1)
        assert sentence(path, b"x" * 2_500_000) == f"{path} must hold at most 1 MiB, but holds 2.4."
    monkeypatch.setattr(file_formats, "SECONDS", 1)
    path = tmp_path / "a.md"
    assert re.fullmatch(TOO_MUCH.format(path), sentence(path, b"![" * 500_000))


def test_a_file_that_takes_too_much_memory_to_read_is_refused(tmp_path: Path) -> None:
    # The main part of the .docx is not called document.xml.
    file, path = io.BytesIO(), tmp_path / "a.docx"
    whole = docx(body="<w:p/>" * 1_000_000)
    with zipfile.ZipFile(io.BytesIO(whole)) as parts, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as renamed:
        for name in parts.namelist():
            renamed.writestr(*(part.replace("document.xml", "a.png") for part in (name, parts.read(name).decode())))
    path.write_bytes(file.getvalue())
    # A new process has no freed memory to use first.
    code = (
        "import sys; from pathlib import Path; from pyramidions.documents import file_formats; "
        "from documents import read_documents; file_formats.MEMORY = 1; "
        "print(*read_documents(Path(sys.argv[1]), 'text', refuse=print), sep='')"
    )
    places = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.fullmatch(TOO_MUCH.format(path), done.stdout.strip())


def test_a_reader_that_crashes_is_not_told_as_one_that_takes_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: Path) -> None:
        faulthandler.disable()
        signal.raise_signal(signal.SIGSEGV)

    monkeypatch.setitem(file_formats._BY_ENDING, ".md", file_formats._BY_ENDING[".md"]._replace(read=crash))
    assert sentence(tmp_path / "a.md", b"A word.").endswith(
        "a.md cannot be read. The process at work was ended by SIGSEGV."
    )


def test_of_a_jsonl_file_single_lines_are_limited_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    good, huge = (json.dumps({"text": "x" * size}).encode() for size in (500_000, 3_000_000))
    found = read(tmp_path / "a.jsonl", b"\n".join([good, huge, good, good, huge]))
    assert [str(each) if isinstance(each, UserError) else each.origin.name for each in found] == [
        f"{tmp_path}/a.jsonl:1",
        f"{tmp_path}/a.jsonl:2 must hold at most 1 MiB, but holds more.",
        f"{tmp_path}/a.jsonl:3",
        f"{tmp_path}/a.jsonl:4",
        f"{tmp_path}/a.jsonl:5 must hold at most 1 MiB, but holds more.",
    ]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.timeout(10)
def test_blank_lines_are_passed_over_and_counted(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    line = b'{"article": "A word.", "abstract": "A word."}\n'
    path.write_bytes(PACK[ending](b" \n\r\n" * 50_000 + line + b"\n" * 100_000 + b"\t" + line + b"\n" * 100_000))
    inputs = list(list_inputs([path], Fields()))
    assert [(each.number, each.line and each.line.number) for each in inputs] == [(1, 100_001), (2, 200_002)]
    assert [record.number for record in open_records(str(path), "train").read()] == [100_001, 200_002]
    for content in (b"", b" \n\t\n" * 1000):
        assert sentence(path, PACK[ending](content)) == f"{path} holds no line but blank ones."


@pytest.mark.parametrize("ending", [".jsonl.gz", ".jsonl.xz"])
def test_packed_lines_are_documents_and_damage_is_told_with_the_lines_before(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"papers{ending}"
    found = read(path, PACK[ending](b'{"text": "One."}\n{"text": "Two."}\n'))
    assert [document.text for document in found] == ["One.", "Two."]
    assert sum(document.size for document in found) == path.stat().st_size
    packed = PACK[ending](b"".join(b'{"text": "%d."}\n' % random.Random(n).getrandbits(900) for n in range(2000)))
    *found, refused = read(path, packed[: len(packed) // 2])
    assert f"{path} is damaged after line {len(found)} (" in str(refused) and found


def test_standard_input_is_limited_as_text_is_and_has_no_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("--query-field"):
        next(read_documents(source.STANDARD_INPUT, query="q"))
    monkeypatch.setitem(LIMITS, ".txt", 1)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * 2**20)))
    assert [len(each.text) for each in read_documents(source.STANDARD_INPUT)] == [2**20]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * (2**20 + 1))))
    with refused("Standard input"):
        list(read_documents(source.STANDARD_INPUT))


def test_only_a_line_feed_ends_a_line_of_json_and_surrogates_are_replaced(tmp_path: Path) -> None:
    found = read(tmp_path / "a.jsonl", '\ufeff{"text": "a\u2028b"}\r\n\n{"text": "\\ud800c"}'.encode())
    assert [(each.origin.name[-1], each.text) for each in found] == [("1", "a\u2028b"), ("3", "\ud800c")]
    assert sum(each.size for each in found) == (tmp_path / "a.jsonl").stat().st_size
    path = lines_of(tmp_path, {"text": "Bees fly.", "q": "why \ud800?", "r": "\udc00"})
    (document,) = read_documents(path, query="q", reference="r")
    assert (document.query, document.reference) == ("why ??", "?")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_plain_text_in_utf_16_with_its_mark_is_read(tmp_path: Path, encoding: str) -> None:
    content = "\ufeffEin Café.\n\nUnd 𝄞.\n".encode(encoding)
    assert [each.text for each in read(tmp_path / "a.txt", content)] == ["Ein Café.\n\nUnd 𝄞.\n"]
    assert list(text_lines(io.BytesIO(content), "a.txt")) == ["Ein Café.", "", "Und 𝄞."]


def test_what_is_no_regular_file_is_refused_without_being_opened_and_any_name_is_told(tmp_path: Path) -> None:
    (found,) = read(tmp_path / b"caf\xe9.txt".decode("utf-8", "surrogateescape"), b"A word.")
    assert isinstance(found, InputText) and found.origin.name.encode().endswith("caf\ufffd.txt".encode())
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    for name, kind in (("pipe", "a pipe"), ("zero", "a device"), ("loop", "Too many levels of symbolic links")):
        with refused(kind):
            list(read_documents(tmp_path / f"{name}.txt", "text"))


def test_ids_are_those_that_prepare_gives_or_in_a_named_field(tmp_path: Path) -> None:
    ids = [
        {"id": "plain", "article_id": "no", "key": 7},
        {"id": "no", "article_id": "release", "article_text": "x"},
        {"article_id": "no"},
        {"id": "both", "article_id": "no", "article_text": "x", "article": "x"},
        {"id": None},
    ]
    path = lines_of(tmp_path, *({"text": "A word.", "abstract": "x", **record} for record in ids))
    prepared = [document.id for document in Corpus(str(path), fields=known_fields("text", None, None))]
    assert prepared == ["plain", "release", "3", "both", "5"]
    found = read_documents(path, "text")
    assert [document.origin.id or str(document.origin.position) for document in found] == prepared
    lacking: list[UserError] = []
    assert [each.origin.id for each in read_documents(path, "text", lacking.append, id="key")] == ["7"]
    assert len(lacking) == 4
    # A number that is none is named in both.
    assert "NaN" in sentence(path, b'{"article": "A word.", "abstract": "x", "score": NaN}\n')
    with refused("NaN"):
        list(Corpus(str(path)))


def test_the_text_of_a_record_is_in_the_first_field_that_is_known(tmp_path: Path) -> None:
    path = lines_of(
        tmp_path,
        {"article": "Second.", "text": "First."},
        {"article_text": ["no"], "article": "Second."},
        {"article_text": ["<S> One. </S>", "Two."], "title": "no"},
    )
    assert [found.text for found in read_documents(path)] == ["First.", "Second.", "One.\nTwo."]
    refused: list[UserError] = []
    assert [found.text for found in read_documents(path, "text", refuse=refused.append)] == ["First."]
    assert len(refused) == 2


def test_a_record_of_the_release_has_its_sections(tmp_path: Path) -> None:
    path = lines_of(tmp_path, RELEASE)
    (found,) = read_documents(path, "article_text", sections=True, reference="abstract_text")
    assert found.text == "Introduction\none .\ntwo .\n\nthree .\n\nResults\nfour ."
    assert outline(found.text).sections == [["one .", "two .", "three ."], ["four ."]]
    assert found.reference == "a summary ."
    (document,) = Corpus(str(path), sections=True)
    assert (document.source, document.target) == (found.text, "a summary .")
    assert [flat.source for flat in Corpus(str(path))] == ["flat text ."]
    # A sentence is no heading, whatever it begins with.
    path = lines_of(tmp_path, RELEASE | {"sections": [[], ["# one ."], ["METHODS"], ["1 two"]]})
    (document,) = Corpus(str(path), sections=True)
    headed = outline(document.source)
    assert headed.headings == ("Introduction", "Results")
    assert [unit.text for unit in headed.sentences] == ["# one .", "METHODS", "1 two"]
    # The field of a summary is read although there are sections.
    path = lines_of(tmp_path, RELEASE | {"summary": "s", "abstract": "a"})
    for field in ("abstract", "summary"):
        assert [each.text for each in read_documents(path, field, sections=True, reference="summary")] == [field[0]]


def test_sections_that_do_not_fit_are_refused_and_without_text_the_field_is_read(tmp_path: Path) -> None:
    wrong = ({"section_names": ["A"]}, {"sections": [["a"], "b", [], []]}, {"section_names": ["A", None, "B", "C"]})
    for change in wrong:
        path = lines_of(tmp_path, RELEASE | change)
        with refused("`section_names`"):
            list(Corpus(str(path), sections=True))
        with refused("`section_names`"):
            list(read_documents(path, "article_text", sections=True))
        assert len(list(Corpus(str(path)))) == 1
    blank = [["", " "], [], [], []]
    cases = (None, None), (3, None), ([], []), (blank, ["A"] * 4)
    changes = [{"article_id": str(at), "sections": a, "section_names": b} for at, (a, b) in enumerate(cases)]
    path = lines_of(tmp_path, *(RELEASE | change for change in changes))
    assert [document.source for document in Corpus(str(path), sections=True)] == ["flat text ."] * len(cases)


def test_folders_stand_for_the_files_inside_and_the_others_are_told(tmp_path: Path) -> None:
    (tmp_path / "inner.txt").mkdir()
    for name in ("b.txt", "a.MD", "inner.txt/c.html", "picture.png"):
        (tmp_path / name).touch()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "up.txt").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe.txt")
    # Hidden files and folders inside a folder are passed over.
    (tmp_path / ".git").mkdir()
    for name in (".b.txt", ".c", ".git/d.txt"):
        (tmp_path / name).touch()
    paths, skipped = list_files([tmp_path, tmp_path / "b.txt", tmp_path / "none", tmp_path / ".b.txt"])
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        *("a.MD", "b.txt", "inner.txt/c.html", "b.txt", "none", ".b.txt")
    ]
    assert [path.name for path in skipped] == ["loop.txt", "picture.png", "pipe.txt", "up.txt"]
    assert list_files([]) == ([source.STANDARD_INPUT], [])
    (tmp_path / ".git" / "e.txt").touch()
    assert [path.name for path in list_files([tmp_path / ".git"]).paths] == ["d.txt", "e.txt"]


def test_of_several_documents_each_is_a_section_below_its_name_and_its_headings_a_level_lower() -> None:
    text = as_one({"a \n b": "# Bees\n\nBees fly.", "c": "Cats sleep."})
    extraction = Extractor("lead").extract(text, sentences=2)
    assert [each.text for each in extraction.sentences] == ["Bees fly.", "Cats sleep."]
    assert [each.section for each in extraction.sentences] == ["a b", "c"]
    assert [document.strip() for document in documents_of(text)] == ["Bees\n\nBees fly.", "Cats sleep."]

"""Files of all kinds give documents, or a sentence that names what is wrong."""

import faulthandler
import gzip
import io
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from documents import PAGE, docx, pdf, pdf_lines, read_documents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.readers import Corpus, known_fields
from pyramidions.documents import file_formats, records, source
from pyramidions.documents.file_formats import file_text, text_lines
from pyramidions.documents.markdown_page import markdown_pages
from pyramidions.documents.page_text import page_text
from pyramidions.documents.records import open_records
from pyramidions.documents.source import ENDINGS, LIMITS, Fields, InputText, list_files, list_inputs
from pyramidions.files.bounded import at_most

KEPT = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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


@pytest.mark.parametrize("ending", ENDINGS)
@for_each("content", [b"", b" \n\t\x00\xef\xbb\xbf", b"\xff\xfe", b"%PDF-1.7", b"<", b"{}", b"[[[["])
def test_odd_files_give_a_document_or_a_sentence_with_their_name(ending: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"odd{ending}"
    for each in read(path, content):
        assert str(path) in (each.origin.name if isinstance(each, InputText) else str(each))


@KEPT
@given(content=st.binary(max_size=200), ending=st.sampled_from(ENDINGS))
def test_any_bytes_give_documents_or_sentences(content: bytes, ending: str, tmp_path: Path) -> None:
    found = read(tmp_path / f"any{ending}", content)
    assert all(isinstance(each, UserError) or each.text for each in found)


@KEPT
@given(place=st.integers(0, 900), junk=st.binary(min_size=1, max_size=9), cut=st.booleans())
def test_a_damaged_pdf_gives_a_document_or_a_sentence(place: int, junk: bytes, cut: bool, tmp_path: Path) -> None:
    whole = pdf("One two three.", "Four.")
    damaged = whole[:place] + (b"" if cut else junk + whole[place + len(junk) :])
    for each in read(tmp_path / "damaged.pdf", damaged):
        assert "damaged.pdf" in str(each) if isinstance(each, UserError) else each.text


def test_a_paper_in_json_is_refused_as_any_json_and_passed_over_in_a_folder(tmp_path: Path) -> None:
    path, paper = tmp_path / "paper.json", b'{"paper_id": "a", "body_text": [{"text": "Bees fly."}]}'
    assert sentence(path, paper) == f"{path} must end in {', '.join(ENDINGS)}."
    (tmp_path / "a.txt").write_text("Bees fly.")
    assert list_files([tmp_path]).skipped == [path]


def test_pages_of_a_pdf_are_read_in_order(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "a.pdf", pdf("One two three.", "Four."))
    assert isinstance(found, InputText) and found.text.split() == ["One", "two", "three.", "Four."]


@for_each(
    ("content", "expected"),
    [
        (pdf("A word.", encrypted=True), "is encrypted: save it without a password first."),
        (pdf("", "", picture=b"x" * 99), "holds no text, only pictures perhaps"),
        (pdf("A word.")[:300], "cannot be read as PDF"),
        (b"", "cannot be read as PDF"),
    ],
)
def test_a_pdf_without_readable_text_is_refused_in_one_sentence(content: bytes, expected: str, tmp_path: Path) -> None:
    assert re.search(f"a.pdf {expected}", sentence(tmp_path / "a.pdf", content))


TABLE = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
CHANGED = "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"


def test_the_text_of_a_docx_is_that_of_its_paragraphs_and_tables_in_order(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "a.docx", docx("One two.", "Three.", body=TABLE + CHANGED))
    assert isinstance(found, InputText) and found.text.split() == ["One", "two.", "Three.", "a", "cell", "new"]


@for_each(
    ("content", "expected"),
    [
        (docx("A word.")[:300], "cannot be read as .docx"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "cannot be read as .docx"),  # an old .doc, or one with a password
        (docx(body="<w:p>" * 5000 + "</w:p>" * 5000), "cannot be read as .docx"),
        (docx(), "holds no text."),
    ],
)
def test_a_docx_without_readable_text_is_refused_in_one_sentence(content: bytes, expected: str, tmp_path: Path) -> None:
    assert expected in sentence(tmp_path / "a.docx", content)


@for_each("ending", [".txt", ".md", ".html", ".pdf", ".docx"])
def test_a_file_beyond_its_limit_is_refused_by_name_limit_and_size(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, ending, 1)
    path = tmp_path / f"large{ending}"
    assert sentence(path, b"x" * 2_500_000) == f"{path} must hold at most 1 MiB, but holds 2.4."


def with_unusual_names(content: bytes) -> bytes:
    """Return a .docx whose main part is not called document.xml."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as renamed:
        for name in whole.namelist():
            renamed.writestr(*(part.replace("document.xml", "a.png") for part in (name, whole.read(name).decode())))
    return file.getvalue()


def sentence_in_a_new_process(path: Path, content: bytes) -> str:
    """Return the one sentence that a file is refused with by a process that has no freed memory to use first."""
    path.write_bytes(content)
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
    return done.stdout.strip()


HUGE = with_unusual_names(docx(body="<w:p/>" * 1_000_000))


@for_each(
    ("ending", "content", "bound"),
    [
        (".docx", HUGE, "MEMORY"),
        (".docx", HUGE, "SECONDS"),
        (".pdf", pdf(pdf_lines(*["A word."] * 60_000)), "MEMORY"),
        (".md", b"![" * 500_000, "SECONDS"),
    ],
)
def test_a_file_that_takes_too_much_to_read_is_refused_in_one_sentence(
    ending: str, content: bytes, bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{ending}"
    monkeypatch.setattr(file_formats, bound, 1)
    refuse = sentence_in_a_new_process if bound == "MEMORY" else sentence
    assert re.fullmatch(
        f"{path} must take at most [0-9]+ s of processor time and [0-9,]+ MiB of memory to read, for its size, but "
        "takes more.",
        refuse(path, content),
    )


def test_a_reader_that_crashes_is_not_told_as_one_that_takes_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: Path) -> None:
        faulthandler.disable()
        signal.raise_signal(signal.SIGSEGV)

    monkeypatch.setitem(file_formats._READERS, ".md", crash)
    path = tmp_path / "a.md"
    assert sentence(path, b"A word.") == f"{path} cannot be read. The process at work was ended by SIGSEGV."


def test_only_the_lines_of_a_jsonl_file_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    line = json.dumps({"text": "x" * 500_000}).encode() + b"\n"
    assert len(read(tmp_path / "a.jsonl", line * 5)) == 5
    assert (
        sentence(tmp_path / "a.jsonl", line[:-3] * 3)
        == f"{tmp_path}/a.jsonl:1 must hold at most 1 MiB, but holds more."
    )


def test_a_line_that_is_too_long_is_named_and_the_ones_after_it_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LINE_LIMIT", 1)
    good, huge = json.dumps({"text": "x"}).encode(), json.dumps({"text": "x" * 3_000_000}).encode()
    found = read(tmp_path / "a.jsonl", b"\n".join([good, huge, good, huge]))
    assert [str(each) if isinstance(each, UserError) else each.origin.name for each in found] == [
        f"{tmp_path}/a.jsonl:1",
        f"{tmp_path}/a.jsonl:2 must hold at most 1 MiB, but holds more.",
        f"{tmp_path}/a.jsonl:3",
        f"{tmp_path}/a.jsonl:4 must hold at most 1 MiB, but holds more.",
    ]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_blank_lines_are_passed_over_together_and_counted(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{ending}"
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    line = b'{"article": "A word.", "abstract": "A word."}\n'
    path.write_bytes(pack(b" \n\r\n" * 50_000 + line + b"\n" * 100_000 + b"\t" + line + b"\n" * 100_000))
    lines: list[str] = []

    def counted(read: Callable[[int], bytes], limit: int, name: str) -> bytes:
        lines.append(name)
        return at_most(read, limit, name)

    monkeypatch.setattr(records, "at_most", counted)
    inputs = list(list_inputs([path], Fields()))
    assert [(each.number, each.line and each.line.number) for each in inputs] == [(1, 100_001), (2, 200_002)]
    assert [record.number for record in open_records(str(path), "train").read()] == [100_001, 200_002]
    assert len(lines) < 10


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
@pytest.mark.parametrize("content", [b"", b"\n", b" \n\t\n" * 1000])
def test_a_file_of_blank_lines_only_is_told(ending: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    assert sentence(path, pack(content)) == f"{path} holds no line but blank ones."


@for_each("pattern", ["[\n", "![", "[a][", "[" * 10 + "\n\n", "[" * 99 + "]" * 99])
def test_brackets_that_nothing_closes_take_markdown_no_time(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, skip = [0], ParserInline.skipToken

    def counted(self: ParserInline, state: StateInline) -> None:
        steps[0] += 1
        skip(self, state)

    monkeypatch.setattr(ParserInline, "skipToken", counted)
    assert len("".join(markdown_pages(pattern * (9000 // len(pattern))))) > 5000
    assert steps[0] < 9000 * 12


def test_brackets_that_nothing_closes_are_text_beside_links_that_stay() -> None:
    text = "For x in [0, 1) " * 30 + "see [the page](https://a.b), `a` and \\[no link](c)."
    assert (
        page_text("".join(markdown_pages(text))).split()
        == ("For x in [0, 1) " * 30 + "see the page, a and [no link](c).").split()
    )


def test_rules_far_from_the_front_of_markdown_enclose_no_front_matter() -> None:
    paragraphs = [f"Bee {number} flies. " * 20 for number in range(400)]
    found = page_text("".join(markdown_pages("---\ntitle: no\n---\n\n" + "\n\n---\n\n".join(paragraphs))))
    assert "title" not in found and found.split() == " ".join(paragraphs).split()


def test_surrogates_in_queries_and_references_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Bees fly.", "q": "why \\ud800?", "r": "\\udc00"}\n')
    (found,) = read_documents(tmp_path / "a.jsonl", query="q", reference="r")
    assert (found.query, found.reference) == ("why ??", "?")


def test_standard_input_has_no_query_field() -> None:
    with pytest.raises(UserError, match="^Standard input has no fields: --query-field is for .jsonl files.$"):
        next(read_documents(source.STANDARD_INPUT, query="q"))


def test_standard_input_is_limited_as_text_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, ".txt", 1)
    for size in (2**20, 2**20 + 1):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * size)))
        if size == 2**20:
            assert [len(each.text) for each in read_documents(source.STANDARD_INPUT)] == [size]
        else:
            with pytest.raises(UserError, match="Standard input must hold at most 1 MiB, but holds more."):
                list(read_documents(source.STANDARD_INPUT))


def test_only_a_line_feed_ends_a_line_of_json(tmp_path: Path) -> None:
    found = read(tmp_path / "a.jsonl", '\ufeff{"text": "a\u2028b"}\r\n\n{"text": "\\ud800c"}'.encode())
    assert [(each.origin.name[-1], each.text) for each in found] == [("1", "a\u2028b"), ("3", "\ud800c")]
    assert sum(each.size for each in found) == (tmp_path / "a.jsonl").stat().st_size


@for_each(
    ("page", "words"),
    [
        (PAGE, "One two three."),
        ("<p>a<br>b</div>c<svg/>d", "a b c d"),
        ("<div><nav>menu<p>more</div>text", "text"),  # an end closes what was left open inside
        ("<head><title>No</title><body>text", "text"),  # the end of a head may be left out
        ("1 < 2 &amp; 3 > 2", "1 < 2 & 3 > 2"),
        ("<![if IE]>a<![endif]--><![what[b]]>c<!-- no -->", "ac"),
        ("<script>if (a < b) {</script>text<style>", "text"),
        ("<", "<"),
        ("<b>B<gene>RCA</gene>1</b> <cit> <gene>p53</gene>, <time>now</time>.", "BRCA1 p53, now."),
        ("<b>S</b>ummary of H<sub>2</sub>O<td>a<td>b", "Summary of H2O a b"),
    ],
)
def test_the_text_of_a_page_is_what_is_seen(page: str, words: str) -> None:
    assert page_text(page).split() == words.split()


@for_each(
    ("page", "words"),
    [
        ("<a " * 100_000, 0),
        ("<!--" * 200_000, 0),
        ("<p " + "a=b " * 500_000 + ">x", 1),
        ("<p " + " ".join(f"a{n}=b" for n in range(100_000)) + ">x", 1),
        ("</" * 300_000, 0),
        ("<![CDATA[" * 100_000, 0),
        ("<script>" + "</" * 300_000, 0),
        ('<a b="' * 100_000, 0),
        ("<i>" * 1000 + "</b>" * 100_000 + "x", 1),
        ("<p>x</div>" * 50_000, 50_000),
    ],
)
def test_a_page_made_to_take_long_does_not(page: str, words: int) -> None:
    started = time.monotonic()
    assert len(page_text(page).split()) == words
    # The standard library's parser took minutes for most of these.
    assert time.monotonic() - started < 10


@for_each(
    ("content", "text"),
    [
        ("<meta charset=iso-8859-1><p>Ça “va”".encode("cp1252"), "Ça “va”"),
        (
            '<meta http-equiv="Content-Type" content="text/html; charset=EUC-JP"><p>蜂は飛ぶ'.encode("euc_jp"),
            "蜂は飛ぶ",
        ),
        # What is UTF-8 is no other encoding.
        ("<meta charset='iso-8859-1'><p>蜂".encode(), "蜂"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_names(content: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(content)
    assert file_text(tmp_path / "a.html").strip() == text


@for_each("charset", ["nonsense", "hex", "undefined", "idna", ""])
def test_a_page_in_no_known_encoding_is_refused(charset: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(f"<meta charset='{charset}'><p>".encode() + b"\xe7a va")
    with pytest.raises(UserError, match=r"a\.html: must be UTF-8, but byte \d+ is 0xe7 \(if it is WINDOWS-1252"):
        file_text(tmp_path / "a.html")


def test_a_file_whose_name_says_another_format_is_refused(tmp_path: Path) -> None:
    for content, said in (
        (pdf("One."), "a PDF file: give it a name that ends in .pdf"),
        (docx(""), "no text but an archive"),
    ):
        for ending in ("txt", "md"):
            (tmp_path / f"a.{ending}").write_bytes(content)
            with pytest.raises(UserError, match=f"a.{ending} is {said}.$"):
                print([document.text for document in read_documents(tmp_path / f"a.{ending}")])


def test_subtitles_are_read_as_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.vtt").write_text(
        "WEBVTT - a talk\n\nNOTE of nobody\n\nSTYLE\n::cue {}\n\n"
        "1\n00:01.000 --> 00:02.500 align:start\n<v.loud Ann Lee>We "
        "<i>saw</i>\ntwo bees.</v>\n\n01:00:02.500 --> 01:00:04.000\n<v Bob>Where\n"
    )
    assert file_text(tmp_path / "a.vtt") == "Ann Lee: We saw two bees.\nBob: Where"
    (tmp_path / "a.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}It is\n\n2\n00:00:02,000 --> 00:00:03,000\n12 o'clock.\n\n"
        "3\n00:00:03,000 --> 00:00:04,000\n[music]\n\n4\n00:00:04,000 --> 00:00:05,000\n♪ (a song) ♪\n"
        "♪ La la. ♪\n[Ann] Yes.\n"
    )
    assert file_text(tmp_path / "a.srt") == "It is\n12 o'clock.\n[Ann] Yes."


def test_rolling_captions_are_read_once(tmp_path: Path) -> None:
    times = "00:00:01.000 --> 00:00:02.000\n"
    (tmp_path / "a.vtt").write_text(
        f"WEBVTT\n\n{times}one two\n\n{times}one two\nthree four\n\n{times}three four\n\n{times}five\n"
    )
    assert file_text(tmp_path / "a.vtt") == "one two\nthree four\nfive"
    # Two people may say the same.
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n{times}No.\n\n{times}No.\n")
    assert file_text(tmp_path / "a.vtt") == "No.\nNo."
    three = "".join(f"{times}{lines}\n\n" for lines in ("a\nb\nc", "b\nc\nd", "c\nd\ne"))
    (tmp_path / "a.vtt").write_text(
        f"WEBVTT\n\n{three}{times}<v Ann>Yes.</v><v Bob>Yes.\n\n{times}<v Ann>Ants &amp; bees\n"
    )
    assert file_text(tmp_path / "a.vtt") == "a b c\nd\ne\nAnn: Yes. Bob: Yes.\nAnn: Ants & bees"
    # Cues need no empty line between them.
    (tmp_path / "a.srt").write_text(f"1\n{times}One.\n2\n{times}Two.\n")
    assert file_text(tmp_path / "a.srt") == "One.\nTwo."


@for_each("encoding", ["utf-16-le", "utf-16-be"])
def test_plain_text_in_utf_16_with_its_mark_is_read(tmp_path: Path, encoding: str) -> None:
    content = "\ufeffEin Café.\n\nUnd 𝄞.\n".encode(encoding)
    (document,) = read(tmp_path / "a.txt", content)
    assert isinstance(document, InputText) and document.text == "Ein Café.\n\nUnd 𝄞.\n"
    assert list(text_lines(io.BytesIO(content), "a.txt")) == ["Ein Café.", "", "Und 𝄞."]
    assert sentence(tmp_path / "a.txt", content[:-1]).startswith(
        f"{tmp_path / 'a.txt'} begins with the byte-order mark of UTF-16, but "
    )


def test_a_page_that_nests_too_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    expected = f"{path} must have at most 2,000 elements inside one another, but has more."
    assert sentence(path, b"<i>" * 100_000) == expected
    assert page_text("<i>" * 1990 + "x").strip() == "x"


def test_what_is_no_regular_file_is_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    for name, kind in (("pipe.txt", "a pipe"), ("zero.txt", "a device")):
        with pytest.raises(UserError, match=f"{name} must be a regular file, but is {kind}."):
            list(read_documents(tmp_path / name, "text"))
    with pytest.raises(UserError, match="loop.txt: Too many levels of symbolic links."):
        list(read_documents(tmp_path / "loop.txt", "text"))


@pytest.mark.parametrize(
    ("id_field", "ids"),
    [(None, ["a", "7", "b", None, None]), ("key", ["k"])],
)
def test_the_id_of_a_record_is_kept(id_field: str | None, ids: list[str | None], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records = [
        {"id": "a", "key": "k"},
        {"id": 7},
        {"article_id": "b", "id": "x", "article_text": []},
        {"article_id": "c"},
        {"id": None},
    ]
    kept = [{"text": "A word.", **record} for record in records]
    path.write_text("".join(json.dumps(record) + "\n" for record in kept))
    refused: list[str] = []
    found = list(read_documents(path, "text", lambda error: refused.append(str(error)), id=id_field))
    assert [document.origin.id for document in found] == [each for each in ids if each is not None or id_field is None]
    fields = [", ".join(map(repr, record)) for record in kept]
    assert refused == [
        f"{path}:{number}: lacks the field 'key'; its fields are {fields[number - 1]}; --id-field names another."
        for number in ([] if id_field is None else [2, 3, 4, 5])
    ]


def test_the_text_of_a_record_is_in_the_first_field_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records = [
        {"article": "Second.", "text": "First."},
        {"article_text": ["no"], "article": "Second."},
        {"article_text": ["<S> One. </S>", "Two."], "title": "no"},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert [found.text for found in read_documents(path)] == ["First.", "Second.", "One.\nTwo."]
    refused: list[UserError] = []
    assert [found.text for found in read_documents(path, "text", refuse=refused.append)] == ["First."]
    assert len(refused) == 2


def test_a_number_that_is_none_is_named_in_summarize_as_in_prepare(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    content = b'{"article": "A word.", "abstract": "x", "score": NaN}\n'
    reason = "must be a JSON object with numbers that fit, but it holds NaN, and numbers must be finite."
    assert sentence(path, content) == f"{path}:1: {reason}"
    with pytest.raises(UserError, match=re.escape(f"{path}, line 1: {reason}")):
        list(Corpus(str(path)))


def test_ids_are_those_that_prepare_gives(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ids = [
        {"id": "plain", "article_id": "no"},
        {"id": "no", "article_id": "release", "article_text": "x"},
        {"article_id": "no"},
        {"id": "both", "article_id": "no", "article_text": "x", "article": "x"},
    ]
    path.write_text("".join(json.dumps({"text": "A word.", "abstract": "x", **record}) + "\n" for record in ids))
    prepared = [document.id for document in Corpus(str(path), fields=known_fields("text", None, None))]
    assert prepared == ["plain", "release", "3", "both"]
    found = read_documents(path, "text")
    assert [document.origin.id or str(document.origin.position) for document in found] == prepared


def elements(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(inside).map("".join)
    return st.tuples(st.sampled_from(["nav", "div"]), parts).map(lambda of: f"<{of[0]}>{of[1]}</{of[0]}>")


# Of tags that cross, and of a paragraph in a paragraph, each parser makes another tree.
LEAVES = ["<b>x</b>", "<br>", "<svg/>", "x", " ", "&lt;", "<p>x</p>", "<p></p>", "<p><b>x</b> x</p>"]


@KEPT
@given(st.lists(st.recursive(st.sampled_from(LEAVES), elements)))
def test_the_text_of_a_page_is_that_of_its_tree(parts: list[str]) -> None:
    soup = BeautifulSoup("".join(parts), "html.parser")
    for element in soup(["nav", "svg"]):
        element.decompose()
    # Which tags end a word, a tree does not tell.
    assert "".join(page_text("".join(parts)).split()) == "".join(soup.get_text().split())


def test_folders_stand_for_the_files_inside_and_the_others_are_told(tmp_path: Path) -> None:
    (tmp_path / "inner.txt").mkdir()
    for name in ("b.txt", "a.MD", "inner.txt/c.html", "picture.png"):
        (tmp_path / name).touch()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "up.txt").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe.txt")
    paths, skipped = list_files([tmp_path, tmp_path / "b.txt", tmp_path / "none"])
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        "a.MD",
        "b.txt",
        "inner.txt/c.html",
        "b.txt",
        "none",
    ]
    assert [path.name for path in skipped] == ["loop.txt", "picture.png", "pipe.txt", "up.txt"]
    assert list_files([]) == ([source.STANDARD_INPUT], [])


def test_hidden_files_and_folders_inside_a_folder_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".given"
    (folder / ".git").mkdir(parents=True)
    for name in ("a.txt", ".b.txt", ".c", ".git/d.txt"):
        (folder / name).touch()
    assert list_files([folder]) == ([folder / "a.txt"], [])
    assert list_files([folder / ".b.txt"]) == ([folder / ".b.txt"], [])


def test_a_path_that_is_not_utf_8_is_named_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    (found,) = read(path, b"A word.")
    assert isinstance(found, InputText) and found.origin.name.encode().endswith("caf\ufffd.txt".encode())

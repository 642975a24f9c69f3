"""Headings of pages, .docx files and records are known without being looked for in their text."""

import gzip
import json
import lzma
import random
from pathlib import Path

import pytest
from documents import docx, read_documents
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.readers import Corpus
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.page_text import page_text
from pyramidions.text.headings import HeadedText
from pyramidions.text.outline import outline

RELEASE = {
    "article_id": "x",
    "article_text": ["flat text ."],
    "abstract_text": ["<S> a summary . </S>"],
    "section_names": ["Abstract", "Introduction", "", "Results"],
    "sections": [["a summary ."], ["one .", "two ."], ["three ."], ["four .", " "]],
}


def headed(html: str) -> list[str]:
    return [line.strip() for line in page_text(html).as_markdown.splitlines() if line.strip()]


@for_each(
    ("html", "lines"),
    [
        ("<h1>Title</h1><p>One\ntwo.<p>Three.", ["# Title", "One two.", "Three."]),
        ("<h2 id=a>A <b>b</b><br>c</h2>text<h6>d</h6>", ["## A b c", "text", "###### d"]),
        ("<nav><h2>Menu</h2><p>item</nav>text", ["text"]),
        ("<table><tr><td>a<td>b<tr><td>c</td></table>d", ["a b", "c", "d"]),
        ("<pre>a\nb</pre>c<br>d", ["a", "b", "c", "d"]),
        ("<p>H<sub>2</sub>O <h3>e</h3><div>f<div>g", ["H2O", "### e", "f", "g"]),
    ],
)
def test_headings_and_blocks_of_a_page_are_lines(html: str, lines: list[str]) -> None:
    # The spaces between words vary.
    assert [" ".join(line.split()) for line in headed(html)] == lines


def test_the_outline_of_a_page_has_its_sections() -> None:
    page = (
        "<h1>A paper</h1><h2>Methods</h2><p>We measured\nit. It was long.</p><p>Why<h2>Results</h2><ul><li>One.<li>Two."
    )
    found = outline(page_text(page))
    assert found.headings == ("", "Methods", "Results")
    assert found.sections == [[], ["We measured it.", "It was long.", "Why"], ["One.", "Two."]]


def test_a_line_break_and_unknown_tags_end_no_sentence() -> None:
    page = "<p>We found<br>that <gene>BRCA1</gene> is\nhigh <cit> .<br><br>So it is.</p>"
    assert outline(page_text(page)).sections == [["We found that BRCA1 is high .", "So it is."]]


def test_marks_in_the_text_of_a_page_make_no_heading() -> None:
    page = "<h1>A</h1><p># one</p><h2>B</h2><p>two<br>===</p><h2>C</h2><p>```</p><p>three."
    found = outline(page_text(page))
    assert [unit.text for unit in found.units if unit.is_heading] == ["A", "B", "C"]
    assert [unit.text for unit in found.sentences] == ["# one", "two ===", "```", "three."]


HEADED_DOCX = (
    '<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>On length</w:t></w:r></w:p>'
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Methods</w:t></w:r></w:p>'
    '<w:p><w:r><w:t>We measured. </w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Rulers</w:t></w:r></w:p>'
    "<w:p><w:r><w:t>All of wood.</w:t></w:r></w:p>"
)


def test_the_headings_of_a_docx_file_are_known(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(docx("Before.", body=HEADED_DOCX))
    text = file_text(path)
    assert isinstance(text, HeadedText)
    lines = [line.strip() for line in text.as_markdown.splitlines() if line.strip()]
    assert lines == ["Before.", "# On length", "# Methods", "We measured.", "## Rulers", "All of wood."]
    assert text.split() == "Before. On length Methods We measured. Rulers All of wood.".split()


def test_plain_text_is_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# A\n\n<h1>b</h1>\n")
    assert file_text(tmp_path / "a.txt") == "# A\n\n<h1>b</h1>\n"


MARKDOWN = """---
title: A paper
tags: [x]
---

# A **paper** on [dogs](https://example.org "d")

![A picture](dog.png)
Dogs *bark* at `night`[^why]
and by **day**, [as cats][1] do.

| Dog | Barks |
|-----|-------|
| Rex | 3     |

Second
------

```python
bark()
```

    bark(2)

- One dog barks.
- Two dogs <b>bark</b>. <!-- no -->

> Why do they?

[1]: https://example.org
[^why]: Nobody knows.
    It is a riddle.
"""


def test_long_markdown_is_read_in_pieces_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN * 5)
    whole = file_text(tmp_path / "a.md")
    monkeypatch.setattr("pyramidions.documents.markdown_page._PIECE", 40)
    assert file_text(tmp_path / "a.md").split() == whole.split()


def test_only_the_prose_of_markdown_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(MARKDOWN)
    found = outline(file_text(path))
    units = ["A paper on dogs", "Dogs bark at night and by day, as cats do.", "Second"]
    units += ["One dog barks.", "Two dogs bark.", "Why do they?"]
    assert [unit.text for unit in found.units] == units
    assert [unit.text for unit in found.units if unit.is_heading] == [units[0], units[2]]


@for_each(
    ("text", "expected"),
    [
        ("---\nNo front matter", "No front matter"),
        ("A footnote[^1] without text.", "A footnote[^1] without text."),
        ("\0", ""),
        ("> " * 90 + "deep", "deep"),
        ("<h1>b</h1>\n\n1 < 2 & 3", "b 1 < 2 & 3"),
    ],
)
def test_odd_markdown_loses_no_prose(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(text)
    assert " ".join(file_text(path).split()) == expected


@for_each(
    ("html", "lines"),
    [
        ("a<table><tr><th>b<tr><td>c</table>d", ["a", "d"]),
        ("<table><tr><td>a<table><tr><th>b<tr><td>c</table>d</table>e", ["a", "d", "e"]),
        ("<table><thead><tr><td>a</table><th>b", ["a", "b"]),
        ("a<pre><code>b\nc</code></pre>d <code>e</code> f", ["a", "d e f"]),
        ("a<figure><img alt=x><figcaption>b</figcaption></figure>c", ["a", "c"]),
        ("a<table><tr><th>b", ["a"]),
    ],
)
def test_tables_with_headers_listings_and_figures_hold_no_sentences(html: str, lines: list[str]) -> None:
    assert [" ".join(line.split()) for line in headed(html)] == lines
    assert page_text(html).split() == " ".join(lines).split()


def test_a_record_of_the_release_has_its_sections(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(RELEASE))
    (found,) = read_documents(path, "article_text", sections=True, reference="abstract_text")
    assert found.text == "Introduction\none .\ntwo .\n\nthree .\n\nResults\nfour ."
    assert outline(found.text).sections == [["one .", "two .", "three ."], ["four ."]]
    assert found.reference == "a summary ."
    (document,) = Corpus(str(path), sections=True)
    assert (document.source, document.target) == (found.text, "a summary .")
    (flat,) = Corpus(str(path))
    assert flat.source == "flat text ."


def test_a_sentence_of_a_section_is_no_heading_whatever_it_begins_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(RELEASE | {"sections": [[], ["# one ."], ["METHODS"], ["1 two"]]}))
    (document,) = Corpus(str(path), sections=True)
    found = outline(document.source)
    assert found.headings == ("Introduction", "Results")
    assert [unit.text for unit in found.sentences] == ["# one .", "METHODS", "1 two"]


def test_the_field_of_a_summary_is_read_although_there_are_sections(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(RELEASE | {"summary": "s", "abstract": "a"}))
    for field in ("abstract", "summary"):
        (found,) = read_documents(path, field, sections=True, reference="summary")
        assert found.text == field[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"section_names": ["A"]},
            ": `sections` and `section_names` must have as many entries as each other, but have",
        ),
        (
            {"sections": [["a"], "b", [], []]},
            ": `sections` must hold lists of texts, and `section_names` must hold texts",
        ),
        ({"section_names": ["A", None, "B", "C"]}, ": `sections` must hold lists of texts, and `section_names` must"),
    ],
)
def test_sections_that_do_not_fit_are_refused(change: dict[str, object], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(RELEASE | change))
    with pytest.raises(UserError, match=sentence):
        list(Corpus(str(path), sections=True))
    with pytest.raises(UserError, match=sentence):
        list(read_documents(path, "article_text", sections=True))
    assert len(list(Corpus(str(path)))) == 1


@for_each("sections", [None, 3, [], [["", " "], [], [], []]])
def test_a_record_without_text_in_sections_has_that_of_its_field(sections: object, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps(
            RELEASE
            | {
                "sections": sections,
                "section_names": ["A"] * len(sections or []) if isinstance(sections, list) else None,
            }
        )
    )
    (document,) = Corpus(str(path), sections=True)
    assert document.source == "flat text ."


def test_a_reference_that_is_missing_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}')
    with pytest.raises(UserError, match="lacks the field 's'; its fields are 'text'; --reference-field names another"):
        list(read_documents(path, "text", reference="s"))


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_packed_lines_are_documents(tmp_path: Path, ending: str, pack) -> None:
    path = tmp_path / f"papers.jsonl.{ending}"
    path.write_bytes(pack(b'{"text": "One."}\n{"text": "Two."}\n'))
    found = list(read_documents(path, "text"))
    assert [document.text for document in found] == ["One.", "Two."]
    assert sum(document.size for document in found) == path.stat().st_size


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_a_damaged_packed_file_is_reported_with_the_lines_before(tmp_path: Path, ending: str, pack) -> None:
    path = tmp_path / f"papers.jsonl.{ending}"
    packed = pack(b"".join(b'{"text": "%d."}\n' % random.Random(n).getrandbits(900) for n in range(2000)))
    path.write_bytes(packed[: len(packed) // 2])
    refused: list[UserError] = []
    found = list(read_documents(path, "text", refuse=refused.append))
    assert len(refused) == 1
    assert f"{path} is damaged after line {len(found)} (" in str(refused[0])


@for_each(
    ("html", "text"),
    [
        ("<header><h1>Site</h1></header><p>Bees fly.</p>", "Bees fly."),
        ("<main><header><p>By us.</p></header><p>Bees fly.</p></main>", "By us. Bees fly."),
        ("<aside>Buy honey.</aside><p>Bees fly.</p><footer>By us.</footer>", "Bees fly."),
        ('<div class="sphinxsidebar big">Next topic</div><p>Bees fly.</p>', "Bees fly."),
        ("<p hidden>Never.</p><p style='display: none'>No.</p><b aria-hidden=true>x</b><p>Bees fly.</p>", "Bees fly."),
        ("<p style='backface-visibility:hidden' id=cookies>Bees fly.</p>", "Bees fly."),
        ("<button>Go</button><select><option>One</option></select><p>Bees fly.</p>", "Bees fly."),
        ("<div class=toctree-wrapper><ul><li><a>Next</a></li></ul></div><p>Bees fly.</p>", "Bees fly."),
        ("<div class=toctree-wrapper><section><p>Bees fly.</p></section></div>", "Bees fly."),
        ('<div id="cookie-banner"><p>We use cookies.</p></div><p>Bees fly.</p>', "Bees fly."),
        ('<div role="navigation">Next topic</div><p>Bees fly.</p>', "Bees fly."),
        ('<body class="nav"><section id="changelog">Bees fly.</section>', "Bees fly."),
        ('<h1>Bees<a class="headerlink" href="#b">#</a></h1><p>Bees fly.</p>', "Bees Bees fly."),
        ('<h1>Bees<a href="#b">¶</a></h1><p>Bees fly.</p>', "Bees Bees fly."),
        ('<div class="highlight"><pre><span>fly()</span> <span># now</span></pre></div><p>Bees fly.</p>', "Bees fly."),
        ('<pre class="programlisting">fly() # now</pre><p>Bees fly.</p>', "Bees fly."),
        ("<pre><span>Bees</span> fly.</pre>", "Bees fly."),
        ('<div role="dialog">Enter terms.</div><dialog>Enter terms.</dialog><p>Bees fly.</p>', "Bees fly."),
        ('<div class="api_metadata">Added in: v0.1.7</div><p>Bees fly.</p>', "Bees fly."),
        ('<p><a href="b">Download the ebook</a></p><p>Bees fly.</p>', "Bees fly."),
        ('<ul><li><a href="b">Bees</a> fly fast</li><li><a href="w">Wasps</a></li></ul>', "Bees fly fast"),
        ('<p><a href="b">Bees fly.</a></p>', "Bees fly."),
        (
            '<table><tr><td><a href="b">Next</a><table><tr><th>a</th></tr></table>Bees fly.</td></tr></table>',
            "Bees fly.",
        ),
    ],
)
def test_what_stands_around_the_text_is_left_out(html: str, text: str) -> None:
    assert " ".join(page_text(html).split()) == text

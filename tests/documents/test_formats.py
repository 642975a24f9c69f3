"""What a reader finds in a file of each format: headings, paragraphs, and nothing that is not text."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from documents import (
    BOOK,
    NAMES,
    PACKAGE,
    PLAIN,
    SLIDES,
    docx,
    epub,
    pdf,
    presentation,
    sample,
    shape,
    shown,
    slide,
    written,
    zipped,
)

from pyramidions.base.errors import UserError
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.markdown_page import markdown_pages
from pyramidions.documents.page_text import page_text
from pyramidions.documents.paper_xml import read_paper
from pyramidions.documents.subtitles import subtitle_lines
from pyramidions.text.outline import outline

HEADED_DOCX = (
    '<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>On length</w:t></w:r></w:p>'
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Methods</w:t></w:r></w:p>'
    '<w:p><w:r><w:t>We measured. </w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Rulers</w:t></w:r></w:p>'
    "<w:p><w:ins><w:r><w:t>All of wood.</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>A cell.</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
)
#: The contents that EPUB 2 names.
GUIDED = PACKAGE.replace("</package>", '<guide><reference type="toc" href="text/a.xhtml#top"/></guide></package>')
#: A book in which the first page is short, and the same whose first page is that of the imprint.
LONG = BOOK | {"OEBPS/text/b c.xhtml": f"<html><!--{'-' * 999}--><body><p>I stuffed a shirt.</p></body></html>"}
GUIDED_IMPRINT = LONG | {"OEBPS/book.opf": GUIDED.replace('type="toc"', 'type="copyright-page"')}
NAMED_IMPRINT = LONG | {"OEBPS/book.opf": PACKAGE.replace('"a"', '"colophon"')}
TYPED_IMPRINT = LONG | {
    "OEBPS/text/a.xhtml": '<html><body><section epub:type="imprint"><p>By us.</p></section></body></html>'
}
TITLE_PAGE = LONG | {"OEBPS/book.opf": PACKAGE.replace('"a"', '"title_page"')}
SAID_IMPRINTS = [
    LONG | {"OEBPS/text/a.xhtml": f"<html><body><h1>A</h1><p>{text}</p></body></html>"}
    for text in (
        "First published in 1999. All rights reserved.", "Copyright © A. Bee 1999. ISBN 3 14 15",
        "Erstausgabe 1999 im Verlag Imme. Alle Rechte vorbehalten.", "© Dupont. Tous droits réservés.",
        "May you do good with this book of the public domain. It was typeset by Bees.",
    )
]  # fmt: skip
# A foreword and a story that name a print, and six stories that tell of theirs.
PROSE = (
    "The letter was printed in Leipzig and is in the public domain.",
    f"Bees fly. {'They sleep in winter. ' * 40}Copyright © 1999 by A. Bee. First published in Hives.",
)
STUFFED = ("I stuffed. " * 500).strip()
SPINE = "".join(f'<itemref idref="{each}"/>' for each in "abcdef")
ITEMS = "".join(f'<item id="{each}" href="{each}" media-type="text/html"/>' for each in "abcdef")
STORIES = {f"OEBPS/{each}": "<p>Bees fly. First published in Hives. © A. Bee" for each in "abcdef"} | {
    "OEBPS/book.opf": f"<package><manifest>{ITEMS}</manifest><spine>{SPINE}</spine></package>"
}
ENCRYPTED = '<encryption><EncryptedData><CipherReference URI="OEBPS/text/a.xhtml"/></EncryptedData></encryption>'


def epub_in(encoding: str) -> bytes:
    page = f'<?xml version="1.0" encoding="{encoding}"?><html><p>Straße.</p></html>'
    return epub(**{"OEBPS/text/a.xhtml": page.encode(encoding)})


def damaged(book: bytes) -> bytes:
    """Return a book with one byte of a page flipped."""
    at = book.index(b"OEBPS/text/a.xhtml") + len("OEBPS/text/a.xhtml") + 4
    return book[:at] + bytes([book[at] ^ 255]) + book[at + 1 :]


STRICT = SLIDES["ppt/presentation.xml"].replace(
    "http://schemas.openxmlformats.org/officeDocument/2006", "http://purl.oclc.org/ooxml/officeDocument"
)
SLIDES_READ = (
    "# Bees that fly | We counted. | All. | # Methods | A box. | Nobody was stung. | # Slide 4 | They were many | "
    "They were fast"
)
CAPTIONED = "<p:pic/>" + shape("{}").replace("<p:txBody>", '<p:nvSpPr><p:cNvSpPr txBox="1"/></p:nvSpPr><p:txBody>')
TIMES = "00:00:01.000 --> 00:00:02.000\n"
ROLLING = "".join(f"{TIMES}{lines}\n\n" for lines in ("a\nb\nc", "b\nc\nd", "c\nd\ne"))
READ = [
    ("a.txt", "# A\n\n<h1>b</h1>\n", "# A | <h1>b</h1>"),
    ("a.md", sample("paper.md"), "# A paper on dogs | Dogs bark at night and by day, as cats do. | ## Second | "
     "One dog barks. | Two dogs bark. | Why do they?"),
    ("a.md", "---\nNo front matter", "No front matter"),
    ("a.md", "A footnote[^1] without text.", "A footnote[^1] without text."),
    ("a.md", "> " * 90 + "deep", "deep"),
    ("a.md", "<h1>b</h1>\n\n1 < 2 & 3", "# b | 1 < 2 & 3"),
    ("a.docx", docx("Before.", body=HEADED_DOCX),
     "Before. | # On length | # Methods | We measured. | ## Rulers | All of wood. | A cell."),
    ("a.nxml", sample("jats.nxml"),
     "# On Apis | ## Abstract | We count bees. There are ten. | ## Introduction | Bees fly. | ## Méthods | They were "
     "counted twice, as Bee et al. (1999) did (see Figure 1); CO2 fell. Thus | holds. | ### Rulers | of wood | "
     "of steel"),
    ("a.xml", sample("tei.xml"), "# On bees | ## Abstract | We count. | ## Methods | They fly. | ### Rulers | "
     "Of wood only. | Without a heading."),
    ("a.tex", b"A caf\xe9.", "A café."),
    # The contents are left out, and a font may be encrypted.
    ("a.epub", epub(**{"META-INF/encryption.xml": ENCRYPTED.replace("text/a.xhtml", "font.otf")}),
     "# Loomings | Call me Ishmael. | ## The Carpet-Bag | I stuffed a shirt."),
    ("a.epub", epub(**{"OEBPS/book.opf": GUIDED}), "## The Carpet-Bag | I stuffed a shirt."),
    *(("a.epub", zipped(book), "I stuffed a shirt.") for book in
      (GUIDED_IMPRINT, NAMED_IMPRINT, TYPED_IMPRINT, TITLE_PAGE, *SAID_IMPRINTS)),
    ("a.epub", zipped(LONG), "# Loomings | Call me Ishmael. | I stuffed a shirt."),
    *(("a.epub", zipped(LONG | {"OEBPS/text/a.xhtml": f"<p>{text}", "OEBPS/text/b c.xhtml": f"<p>{STUFFED}"}),
       f"{text} | {STUFFED}") for text in PROSE),
    ("a.epub", epub(**STORIES), " | ".join(["Bees fly. First published in Hives. © A. Bee"] * 6)),
    # An imprint of that share is the book.
    ("a.epub", epub(**{"OEBPS/book.opf": NAMED_IMPRINT["OEBPS/book.opf"]}),
     "# Loomings | Call me Ishmael. | ## The Carpet-Bag | I stuffed a shirt."),
    ("a.epub", epub_in("utf-16"), "Straße. | ## The Carpet-Bag | I stuffed a shirt."),
    ("a.PPTX", presentation(), SLIDES_READ),
    ("a.pptx", presentation(**{"ppt/presentation.xml": STRICT}), SLIDES_READ),
    # A line within a paragraph begins anew, or goes on.
    ("a.pptx", presentation(**{"ppt/slides/slide1.xml": slide(shape("A subtitle of|bees|Ann Bee|• first|2. second"))}),
     "# Bees that fly | We counted. | All. | # Slide 2 | A subtitle of bees | Ann Bee | • first | 2. second | "
     "Nobody was stung. | # Slide 4 | They were many | They were fast"),
    # A text box behind a picture is its caption, unless it holds a sentence.
    ("a.pptx", presentation(**{"ppt/slides/slide1.xml": slide(shape("They fly."), CAPTIONED.format("A bee"),
     shape("A label"), shape("Its name", "pic"), CAPTIONED.format("It flies."))}),
     "# Bees that fly | We counted. | All. | # Slide 2 | They fly. | A label | It flies. | Nobody was stung. | "
     "# Slide 4 | They were many | They were fast"),
    ("a.pptx", presentation(**{"ppt/slides/slide4.xml": slide(shape(
        "Wir haben die|Verwaltung besucht.\nThey raised|20 bees in|London.\nDie Rolle der|Stadt in der|Schweiz"
        "\nA title||Ann"
     ))}),
     f"{SLIDES_READ.partition('They')[0]}Wir haben die Verwaltung besucht. | They raised 20 bees in London. | "
     "Die Rolle der Stadt in der Schweiz | A title | Ann"),
    ("a.html", "<meta charset=iso-8859-1><p>Ça “va”".encode("cp1252"), "Ça “va”"),
    ("a.html", '<meta http-equiv="Content-Type" content="text/html; charset=EUC-JP"><p>蜂は飛ぶ'.encode("euc_jp"),
     "蜂は飛ぶ"),
    # The base of a reading.
    ("a.html", "<p><ruby>蜂<rp>(<rt>はち<rp>)</ruby>は<ruby><rb>冬</rb><rtc><rt>ふゆ</rt></rtc></ruby>に", "蜂は冬に"),
    ("a.tex", r"\ruby[g]{蜂}{はち}は\furigana{飛}{と}ぶ", "蜂は飛ぶ"),
    ("a.xml", PLAIN.format("<ruby><rb>蜂</rb><rt>はち</rt></ruby>は飛ぶ"), "蜂は飛ぶ"),
    # What is UTF-8 is no other encoding.
    ("a.html", "<meta charset='iso-8859-1'><p>蜂", "蜂"),
    ("a.vtt", "WEBVTT - a talk\n\nNOTE of nobody\n\nSTYLE\n::cue {}\n\n1\n00:01.000 --> 00:02.500 align:start\n"
     "<v.loud Ann Lee>We <i>saw</i>\ntwo bees.</v>\n\n01:00:02.500 --> 01:00:04.000\n<v Bob>Where\n",
     "Ann Lee: We saw two bees. | Bob: Where"),
    ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}It is\n\n2\n00:00:02,000 --> 00:00:03,000\n12 o'clock.\n\n"
     "3\n00:00:03,000 --> 00:00:04,000\n[music]\n\n4\n00:00:04,000 --> 00:00:05,000\n♪ (a song) ♪\n"
     "♪ La la. ♪\n[Ann] Yes.\n", "It is | 12 o'clock. | [Ann] Yes."),
    # Rolling captions are read once, and two people may say the same.
    ("a.vtt", f"WEBVTT\n\n{TIMES}one two\n\n{TIMES}one two\nthree four\n\n{TIMES}three four\n\n{TIMES}five\n",
     "one two | three four | five"),
    ("a.vtt", f"WEBVTT\n\n{TIMES}No.\n\n{TIMES}No.\n", "No. | No."),
    ("a.vtt", f"WEBVTT\n\n{ROLLING}{TIMES}<v Ann>Yes.</v><v Bob>Yes.\n\n{TIMES}<v Ann>Ants &amp; bees\n",
     "a b c | d | e | Ann: Yes. | Bob: Yes. | Ann: Ants & bees"),
    # The cues of one speaker in a row are one turn, with those that name nobody.
    ("a.vtt", f"{TIMES}Hello\n\n{TIMES}<v Ann>I saw\n\n{TIMES}<v Ann>it. We\n\n{TIMES}go.\n\n{TIMES}<v Bob>Yes.\n",
     "Hello | Ann: I saw it. We go. | Bob: Yes."),
    ("a.srt", f"1\n{TIMES}One.\n2\n{TIMES}Two.\n", "One. | Two."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "lines"), READ, ids=[f"{name} {lines[:24]}" for name, _, lines in READ])
def test_the_text_of_a_file_is_read_with_its_headings(
    name: str, content: str | bytes, lines: str, tmp_path: Path
) -> None:
    assert shown(file_text(written(tmp_path / name, content))) == lines


# A sentence that a line end breaks between Chinese characters, in each format.
BROKEN = "蜜蜂在冬天睡觉，\n它们在\n春天"
IN_CHINESE = {
    "a.txt": BROKEN,
    "a.md": BROKEN.replace("\n", "  \n"),
    "a.html": f"<p>{BROKEN.replace('在', '<b>在</b>')}",
    "b.html": f"<p>{BROKEN}".replace("\n", "<br>"),
    "a.docx": docx(body=f"<w:p><w:r><w:t>{BROKEN}</w:t></w:r></w:p>".replace("\n", "</w:t><w:br/><w:t>")),
    "a.pptx": presentation(**{"ppt/slides/slide2.xml": slide(shape(BROKEN.replace("\n", "|")))}),
    "a.epub": epub(**{"OEBPS/text/a.xhtml": f"<html><body><p>{BROKEN}</p></body></html>"}),
    "a.xml": PLAIN.format(BROKEN),
    "a.tex": BROKEN,
    "a.srt": f"1\n{TIMES}{BROKEN}\n",
    "a.vtt": "\n\n".join(f"{TIMES}<v 王>{line}" for line in BROKEN.split("\n")),
}


@pytest.mark.parametrize("name", IN_CHINESE)
def test_no_space_stands_where_a_line_ends_between_chinese_characters(name: str, tmp_path: Path) -> None:
    text = file_text(written(tmp_path / name, IN_CHINESE[name]))
    assert "蜜蜂在冬天睡觉，它们在春天" in "\n".join(outline(text, language="zh").texts)


def test_cues_of_many_lines_are_compared_in_linear_time() -> None:
    cue = [TIMES.strip(), *["a"] * 50_000]
    begun = time.process_time()
    (line, _) = subtitle_lines([*cue, "b", "", *cue])
    # All of the lines compared would take half a minute.
    assert line.endswith("a b") and time.process_time() - begun < 5


BOMB = '<!DOCTYPE article [<!ENTITY a "bees"><!ENTITY b "&a;&a;">]>' + PLAIN.format("&b;")
OUTSIDE = '<!DOCTYPE article [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + PLAIN.format("&a;")
HOSTILE = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
MACROS = [f"m{chr(97 + number)}" for number in range(15)]
#: The first of which is as long as 4^14 of the last.
GROWING = "".join(rf"\newcommand{{\{a}}}{{\{b} \{b} \{b} \{b}}}" for a, b in pairwise(MACROS))
REFUSED = [
    ("a.pdf", pdf("A word.", encrypted=True), "is encrypted: save it without a password first."),
    ("a.pdf", pdf("", "", picture=b"x" * 99), "holds no text, only pictures perhaps"),
    ("a.docx", docx(body="<w:p>" * 5000 + "</w:p>" * 5000), "/word/document.xml must be XML, but is not ("),
    ("a.xml", BOMB, "must declare no entities, which may be of any size."),
    ("a.xml", OUTSIDE, "must declare no entities"),
    ("a.xml", "<a>" * 300 + "</a>" * 300, "must be XML, but is not ("),
    ("a.xml", f"<all>{PLAIN}{PLAIN}</all>", "must hold one paper, but holds 2."),
    ("a.pptx", presentation(**{"ppt/presentation.xml": f"<p:presentation {NAMES}/>"}), "must hold slides"),
    ("a.pptx", presentation(**{"ppt/slides/slide1.xml": None}), "cannot be read as .pptx ("),
    ("a.pptx", presentation(**{"ppt/slides/slide1.xml": " " * 2**25}), "must unpack to at most 17 MiB"),
    ("a.pptx", presentation(**{"ppt/slides/slide1.xml": HOSTILE}), "/ppt/slides/slide1.xml must declare no entities"),
    ("a.epub", epub(**{"META-INF/container.xml": None}), "cannot be read as .epub ("),
    ("a.epub", damaged(epub()), "cannot be read as .epub ("),
    ("a.epub", epub(**{"META-INF/encryption.xml": ENCRYPTED}), "must not be encrypted, but its page OEBPS/text/a"),
    ("a.epub", epub(**{"OEBPS/book.opf": "<package/>"}), "must hold pages, but holds none."),
    *(
        (name, content, "holds no running text, only tables, captions, code or pictures perhaps.")
        for name, content in (
            ("a.tex", r"\begin{tabular}{c}A\end{tabular}\captionof{figure}{Bees.}"),
            ("a.html", "<p> "),
            ("a.xml", PLAIN.format(" ")),
            ("a.md", "\n"),
            ("a.epub", epub(**dict.fromkeys(["OEBPS/text/a.xhtml", "OEBPS/text/b c.xhtml"], "<p/>"))),
        )
    ),
    ("a.tex", bytes(range(256)), "must hold LaTeX, but holds bytes of no text."),
    ("a.tex", rf"{GROWING}\begin{{document}}\ma\end{{document}}", "must use its own macros at most 100,000 times."),
    ("a.txt", pdf("One."), "is a PDF file: give it a name that ends in .pdf."),
    ("a.txt", "<!DOCTYPE html>\n<p>One.", "is a web page: save it as a file that ends in .html."),
    ("a.md", docx(""), "is no text but an archive."),
    ("a.html", "<i>" * 100_000, "must have at most 2,000 elements inside one another, but has more."),
    ("a.html", b"<meta charset='nonsense'><p>\xe7a va", "must be UTF-8, but byte 29 is 0xe7 (if it is WINDOWS-1252"),
    # What Python calls an encoding, but is none of a text.
    ("a.html", b"<meta charset='hex'><p>\xe7a va", "must be UTF-8"),
    ("a.html", b"<meta charset=''><p>\xe7a va", "must be UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "said"), REFUSED, ids=[f"{name} {said[:40]}" for name, _, said in REFUSED])
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(
    name: str, content: str | bytes, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(UserError) as refused:
        file_text(path)
    sentence = str(refused.value)
    assert sentence.startswith((f"{path} {said}", f"{path}: {said}", f"{path}{said}")) and "\n" not in sentence


def test_superscripts_end_with_their_block_and_those_that_are_links_name_notes(tmp_path: Path) -> None:
    assert shown(page_text("<p>Bees<sup>1 <h2>Methods</h2><p>10<sup>6 </sup>cells.<h2>Results</h2>")) == (
        "Bees | ## Methods | 10^6 cells. | ## Results"
    )
    inner = file_text(written(tmp_path / "a.xml", PLAIN.format("10<sup>6<p>inner</p>y</sup> x")))
    assert " ".join(inner.split()) == "10^6 inner y x"
    notes = '<p>In 1998<sup><a href="#1">3</a></sup>, 1999<a href="#2"><sup>4</sup></a>: '
    found = page_text(f'{notes}<a href="/">10<sup>6</sup></a> bees</p>')
    assert "^3" not in found and "^4" not in found and "10^6 bees" in found


def test_tags_of_site_generators_and_citations_of_pandoc_are_no_text() -> None:
    text = """::: {.note}
Bees fly [@doe99, pp. 1-3; @roe]. {% alert %} See [a page]({% page "a b" %}) {{< icon >}} of [@ann](c) {{ site.url }}.
:::

`{% if %}` and $x^{{2}}$ stay [-@doe99].
"""
    said = "Bees fly. See a page of @ann . | {% if %} and x^2 stay."
    assert shown(page_text("".join(markdown_pages(text)))) == said


@pytest.mark.timeout(20)
def test_hostile_and_long_markdown_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pattern in ("[\n", "![", "[a][", "[" * 10 + "\n\n", "[" * 99 + "]" * 99, "\\\\("):
        assert len("".join(markdown_pages(pattern * (9000 // len(pattern))))) > 5000, pattern
    # Brackets that nothing closes are text beside links that stay.
    text = "For x in [0, 1) " * 30 + "see [the page](https://a.b), `a` and \\[no link](c)."
    found = page_text("".join(markdown_pages(text))).split()
    assert found == ("For x in [0, 1) " * 30 + "see the page, a and [no link](c).").split()
    # Rules far from the front enclose no front matter.
    paragraphs = [f"Bee {number} flies. " * 20 for number in range(200)]
    page = page_text("".join(markdown_pages("---\ntitle: no\n---\n\n" + "\n\n---\n\n".join(paragraphs))))
    assert "title" not in page and page.split() == " ".join(paragraphs).split()
    # It is read in pieces, without a trace.
    whole = file_text(written(tmp_path / "a.md", sample("paper.md") * 5))
    monkeypatch.setattr("pyramidions.documents.markdown_page._PIECE", 40)
    assert file_text(tmp_path / "a.md").split() == whole.split()


CITE = '<xref ref-type="bibr">{}</xref>'
ONE, TWO, YEAR = map(CITE.format, ("1", "2", "2010"))
CITED = {
    f"Bees fly [{ONE}], [{TWO}].": "Bees fly.",
    f"Bees fly [{ONE}]–[{TWO}].": "Bees fly.",
    f"Bees fly [{ONE} and {TWO}].": "Bees fly.",
    f"Bees fly {ONE},{TWO} far.": "Bees fly far.",
    f"Bees fly (Smith, {YEAR}).": "Bees fly (Smith, 2010).",
    f"Smith ({YEAR}) said (see {ONE}).": "Smith (2010) said (see).",
    'Bees<xref ref-type="fn">1</xref> fly<break/>far.': "Bees fly far.",
    "At 10<sup>−6</sup> m<sup>2</sup>.": "At 10^-6 m2.",
    f"{ONE} and " * 2000: "and",
}


def test_numbers_of_citations_go_with_what_surrounds_them(tmp_path: Path) -> None:
    text = file_text(written(tmp_path / "a.xml", PLAIN.format("</p><p>".join(CITED))))
    assert shown(text) == " | ".join(CITED.values())


@pytest.mark.parametrize(
    ("abstracts", "read"),
    [(["graphical", None], "1"), (["normal"], "0"), (["teaser", "section"], "1"), (["graphical"], "")],
)
def test_the_abstract_of_the_paper_is_read(abstracts: list[str | None], read: str, tmp_path: Path) -> None:
    kinds = ["" if kind is None else f' abstract-type="{kind}"' for kind in abstracts]
    found = "".join(f"<abstract{kind}><p>{number}</p></abstract>" for number, kind in enumerate(kinds))
    content = f"<article><front><article-meta>{found}</article-meta></front></article>"
    assert read_paper(written(tmp_path / "a.xml", content)).abstract == read

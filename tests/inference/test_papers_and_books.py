"""Papers in JATS and TEI, and books in EPUB, are read with their headings and without what is not their text."""

import io
import re
import zipfile
from pathlib import Path

import pytest
from documents import docx, pdf
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.paper_xml import read_paper
from pyramidions.documents.source import list_files
from pyramidions.text.headings import HeadedText
from pyramidions.text.outline import outline

JATS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS 1.1//EN" "JATS-archivearticle1.dtd">
<article xmlns:mml="http://www.w3.org/1998/Math/MathML">
<front><article-meta><title-group>
<article-title>On <italic>Apis</italic><fn><p>A note.</p></fn></article-title></title-group>
<abstract abstract-type="graphical"><p>A picture.</p></abstract>
<abstract><title>Abstract</title><sec><title>Aim</title><p>We count&nbsp;bees.</p></sec><sec><title>Result</title>
<p>There are ten.</p></sec></abstract></article-meta></front>
<body><p>Bees fly<sup><xref ref-type="bibr">1</xref>,<xref ref-type="bibr">2</xref></sup>.</p>
<sec><label>1</label><title>Méthods</title>
<p>They were counted [<xref ref-type="bibr">3</xref>&#8211;<xref ref-type="bibr">5</xref>] twice, as
<xref ref-type="bibr">Bee et al. (1999)</xref> did (see <xref ref-type="fig">Figure 1</xref>); CO<sub>2</sub> fell
<xref ref-type="bibr">[6]</xref>, <xref ref-type="bibr">[7]</xref>.
Thus <disp-formula>x = 1</disp-formula>holds.<!-- no -->
<fig><label>Figure 1</label><caption><p>A bee.</p></caption></fig></p>
<sec><title>Rulers</title><list><list-item><p>of wood</p></list-item><list-item><p>of steel</p></list-item></list>
<table-wrap><table><tr><td>9</td></tr></table></table-wrap></sec></sec></body>
<back><ref-list><title>References</title><ref>Bee 1999</ref></ref-list></back></article>"""

TEI = """<TEI xmlns="http://www.tei-c.org/ns/1.0">
<teiHeader><fileDesc><titleStmt><title level="a">On bees</title></titleStmt></fileDesc>
<profileDesc><abstract><div><p>We count.</p></div></abstract></profileDesc></teiHeader>
<text><body><div><head n="1">Methods</head><p>They fly <ref type="bibr">[1, 2]</ref>.</p></div>
<div><head n="1.1">Rulers</head><p>Of wood <formula>y</formula><note place="foot">No.</note>only.</p></div>
<div><p>Without a heading.</p></div><figure><head>Figure 1</head><figDesc>A bee.</figDesc></figure></body>
<back><div><head>Thanks</head></div></back></text></TEI>"""


def lines_of(path: Path) -> list[str]:
    text = file_text(path)
    assert isinstance(text, HeadedText)
    return [line for line in text.as_markdown.splitlines() if line]


def test_a_paper_in_jats_is_its_title_its_abstract_and_its_sections(tmp_path: Path) -> None:
    path = tmp_path / "a.nxml"
    path.write_bytes(JATS.encode("latin-1"))
    assert lines_of(path) == [
        *("# On Apis", "## Abstract", "We count bees. There are ten.", "## Introduction", "Bees fly.", "## Méthods"),
        "They were counted twice, as Bee et al. (1999) did (see Figure 1); CO2 fell. Thus holds.",
        *("### Rulers", "of wood", "of steel"),
    ]
    paper = read_paper(path)
    assert (paper.title, paper.abstract) == ("On Apis", "We count bees. There are ten.")
    assert paper.body[1] == (2, "Méthods")


PLAIN = "<article><body><p>{}</p></body></article>"
CITE = '<xref ref-type="bibr">{}</xref>'
ONE, TWO, YEAR = map(CITE.format, ("1", "2", "2010"))


@for_each(
    ("written", "read"),
    [
        (f"Bees fly [{ONE}], [{TWO}].", "Bees fly."),
        (f"Bees fly [{ONE}]–[{TWO}].", "Bees fly."),
        (f"Bees fly [{ONE} and {TWO}].", "Bees fly."),
        (f"Bees fly {ONE},{TWO} far.", "Bees fly far."),
        (f"Bees fly (Smith, {YEAR}).", "Bees fly (Smith, 2010)."),
        (f"Smith ({YEAR}) said (see {ONE}).", "Smith (2010) said (see)."),
        ('Bees<xref ref-type="fn">1</xref> fly<break/>far.', "Bees fly far."),
        ("At 10<sup>−6</sup> m<sup>2</sup>.", "At 10^-6 m2."),
        (f"{ONE} and " * 2000, "and"),
    ],
)
def test_numbers_of_citations_go_with_what_surrounds_them(written: str, read: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(PLAIN.format(written))
    assert file_text(path).strip() == read


@for_each(
    ("abstracts", "read"),
    [
        (["graphical", None], "1"),
        (["normal"], "0"),
        (["teaser", "section"], "1"),
        (["graphical"], ""),
    ],
)
def test_the_abstract_of_the_paper_is_read(abstracts: list[str | None], read: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    kinds = ["" if kind is None else f' abstract-type="{kind}"' for kind in abstracts]
    found = "".join(f"<abstract{kind}><p>{number}</p></abstract>" for number, kind in enumerate(kinds))
    path.write_text(f"<article><front><article-meta>{found}</article-meta></front></article>")
    assert read_paper(path).abstract == read


def test_files_in_xml_that_are_no_papers_are_passed_over_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pom.xml").write_text("<project/>")
    (tmp_path / "paper.xml").write_text(PLAIN.format("Bees fly."))
    found = list_files([tmp_path])
    assert (found.paths, found.skipped) == ([tmp_path / "paper.xml"], [tmp_path / "pom.xml"])


def test_sections_that_grobid_numbers_have_the_levels_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(TEI)
    sections = ["## Methods", "They fly.", "### Rulers", "Of wood only.", "Without a heading."]
    assert lines_of(path) == ["# On bees", "## Abstract", "We count.", *sections]


BOMB = '<!DOCTYPE article [<!ENTITY a "bees"><!ENTITY b "&a;&a;">]>' + PLAIN.format("&b;")
OUTSIDE = '<!DOCTYPE article [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + PLAIN.format("&a;")


@for_each(
    ("content", "sentence"),
    [
        (BOMB, "must declare no entities, which may be of any size."),
        (OUTSIDE, "must declare no entities, which may be of any size."),
        ("<article><body>", "must be XML, but is not ("),
        ("", "must be XML, but is not ("),
        ("<a>" * 300 + "</a>" * 300, "must be XML, but is not ("),
        ("<project/>", "must be a paper in JATS or TEI, but its root is <project>."),
        (f"<all>{PLAIN}{PLAIN}</all>", "must hold one paper, but holds 2."),
    ],
)
def test_what_is_no_paper_is_refused_in_one_sentence(content: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(content)
    with pytest.raises(UserError) as refused:
        file_text(path)
    assert str(refused.value).startswith(f"{path} {sentence}") and "\n" not in str(refused.value)


PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="b" href="text/b%20c.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>
<item id="toc" href="toc.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="cover" href="cover.jpg" media-type="image/jpeg"/></manifest>
<spine><itemref idref="toc"/><itemref idref="cover"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""
CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
PAGES = {
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/toc.xhtml": "<html><body><h1>Contents</h1></body></html>",
    "OEBPS/text/a.xhtml": "<html><body><h1>Loomings</h1><p>Call me Ishmael.</p></body></html>",
    "OEBPS/text/b c.xhtml": "<html><body><h2>The Carpet-Bag</h2><p>I stuffed a shirt.</p></body></html>",
}
ENCRYPTED = '<encryption><EncryptedData><CipherReference URI="OEBPS/text/a.xhtml"/></EncryptedData></encryption>'


def epub(**changes: str | None) -> bytes:
    """Return a book with other or further files, and without those that are None."""
    return zipped({**PAGES, **changes})


def zipped(files: dict[str, str | None]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in files.items():
            if page is not None:
                archive.writestr(name, page)
    return content.getvalue()


NAMES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)


def shape(text: str, kind: str = "") -> str:
    """Return a shape of a slide; a line of the text is a paragraph, and "|" breaks a line."""
    lines = [line.replace("|", "</a:t></a:r><a:br/><a:r><a:t>") for line in text.splitlines()]
    paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    return f"<p:sp>{place}<p:txBody>{paragraphs}</p:txBody></p:sp>"


def slide(*shapes: str, root: str = "sld", about: str = "") -> str:
    return f"<p:{root} {NAMES} {about}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:{root}>"


def relations(**targets: str) -> str:
    """Return what a file refers to; the kind of each target stands before its id."""
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    found = (
        f'<Relationship Id="{name.partition("_")[2]}" Type="{kinds}/{name.partition("_")[0]}" Target="{target}"/>'
        for name, target in targets.items()
    )
    return f"<Relationships>{''.join(found)}</Relationships>"


SLIDES = {
    "ppt/presentation.xml": f'<p:presentation {NAMES}><p:sldIdLst><p:sldId id="9" r:id="b"/><p:sldId r:id="a"/>'
    '<p:sldId r:id="c"/><p:sldId r:id="d"/><p:sldId r:id="b"/></p:sldIdLst></p:presentation>',
    "ppt/_rels/presentation.xml.rels": relations(
        slide_a="slides/slide1.xml",
        slide_b="/ppt/slides/slide2.xml",
        slide_c="slides/slide3.xml",
        slide_d="slides/slide4.xml",
    ),
    "ppt/slides/slide1.xml": slide(shape("A box."), shape("Methods", "title"), shape("7", "sldNum")),
    "ppt/slides/_rels/slide1.xml.rels": relations(notesSlide_n="../notesSlides/notesSlide1.xml"),
    "ppt/notesSlides/notesSlide1.xml": slide(shape("2026", "dt"), shape("Nobody was stung.", "body"), root="notes"),
    "ppt/slides/slide2.xml": slide(
        shape("Bees|that fly", "ctrTitle"),
        f"<p:grpSp>{shape('We counted.')}</p:grpSp>",
        f"<m:Choice xmlns:m='m'>{shape('All.')}</m:Choice><m:Fallback xmlns:m='m'>{shape('All.')}</m:Fallback>",
        "<p:graphicFrame><a:tbl><a:p><a:r><a:t>a cell</a:t></a:r></a:p></a:tbl></p:graphicFrame>",
    ),
    "ppt/slides/slide3.xml": slide(shape("Hidden", "title"), about='show="0"'),
    "ppt/slides/slide4.xml": slide(shape("They were many\nThey were fast")),
}


def presentation(**changes: str | None) -> bytes:
    """Return a presentation with other or further files, and without those that are None."""
    return zipped({**SLIDES, **changes})


def test_a_presentation_is_its_slides_in_their_order_with_titles_and_notes(tmp_path: Path) -> None:
    path = tmp_path / "a.PPTX"
    path.write_bytes(presentation())
    found = [line.strip() for line in lines_of(path) if line.strip()]
    assert found == [
        *("# Bees that fly", "We counted.", "All.", "# Methods", "A box.", "Nobody was stung."),
        *("# Slide 4", "They were many", "They were fast"),
    ]
    units = [unit.text for unit in outline(file_text(path)).units]
    assert units[-3:] == ["Slide 4", "They were many", "They were fast"]


def test_a_presentation_may_be_in_the_strict_form_of_its_format(tmp_path: Path) -> None:
    path = tmp_path / "a.pptx"
    strict = SLIDES["ppt/presentation.xml"].replace(
        "http://schemas.openxmlformats.org/officeDocument/2006", "http://purl.oclc.org/ooxml/officeDocument"
    )
    path.write_bytes(presentation(**{"ppt/presentation.xml": strict}))
    assert "We counted." in file_text(path)


@for_each(
    ("content", "sentence"),
    [
        (b"\xd0\xcf\x11\xe0 encrypted", "cannot be read as .pptx (File is not a zip file)."),
        (presentation(**{"ppt/presentation.xml": f"<p:presentation {NAMES}/>"}), "must hold slides, but holds none."),
        (presentation(**{"ppt/slides/slide1.xml": None}), "cannot be read as .pptx ("),
        (
            presentation(**{"ppt/slides/slide1.xml": " " * 2**25}),
            "must unpack to at most 17 MiB, for its size, but has",
        ),
        (
            presentation(**{"ppt/slides/slide1.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}),
            "/ppt/slides/slide1.xml must declare no entities",
        ),
    ],
)
def test_what_is_no_readable_presentation_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pptx"
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        file_text(path)
    assert str(refused.value).startswith((f"{path} {sentence}", f"{path}{sentence}"))


def test_a_book_is_its_pages_in_the_order_of_its_spine_without_contents(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    path.write_bytes(epub(**{"META-INF/encryption.xml": ENCRYPTED.replace("text/a.xhtml", "font.otf")}))
    found = [line.strip() for line in lines_of(path) if line.strip()]
    assert found == ["# Loomings", "Call me Ishmael.", "## The Carpet-Bag", "I stuffed a shirt."]


@for_each("encoding", ["utf-16", "iso-8859-1"])
def test_a_page_may_have_another_encoding(encoding: str, tmp_path: Path) -> None:
    path, content = tmp_path / "a.epub", io.BytesIO(epub(**{"OEBPS/text/a.xhtml": None}))
    page = f'<?xml version="1.0" encoding="{encoding}"?><html><p>Straße.</p></html>'
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("OEBPS/text/a.xhtml", page.encode(encoding))
    path.write_bytes(content.getvalue())
    assert file_text(path).split()[0] == "Straße."


def test_the_contents_that_epub_2_names_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    guide = '<guide><reference type="toc" href="text/a.xhtml#top"/></guide></package>'
    path.write_bytes(epub(**{"OEBPS/book.opf": PACKAGE.replace("</package>", guide)}))
    assert [line.strip() for line in lines_of(path) if line.strip()] == ["## The Carpet-Bag", "I stuffed a shirt."]


def damaged(book: bytes) -> bytes:
    """Return a book with one byte of a page flipped."""
    at = book.index(b"OEBPS/text/a.xhtml") + len("OEBPS/text/a.xhtml") + 4
    return book[:at] + bytes([book[at] ^ 255]) + book[at + 1 :]


@for_each(
    ("content", "sentence"),
    [
        (b"PK no book", "cannot be read as .epub ("),
        (epub(**{"META-INF/container.xml": None}), "cannot be read as .epub ("),
        (epub(**{"OEBPS/text/a.xhtml": None}), "cannot be read as .epub ("),
        (damaged(epub()), "cannot be read as .epub ("),
        (epub(**{"META-INF/encryption.xml": ENCRYPTED}), "must not be encrypted, but its page OEBPS/text/a.xhtml is."),
        (epub(**{"OEBPS/book.opf": "<package/>"}), "must hold pages, but holds none."),
        (epub(**{"OEBPS/text/a.xhtml": " " * 2**25}), "must unpack to at most 17 MiB, for its size, but has 32."),
    ],
)
def test_what_is_no_readable_book_is_refused_in_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        file_text(path)
    assert str(refused.value).startswith(f"{path} {sentence}") and "\n" not in str(refused.value)


# The same from every format.
READ = "10^6 and 5×10^-8 of H2O on 3 m2"
HTML = "10<sup>6</sup> and 5×10<sup>-8</sup> of H<sub>2</sub>O on 3 m<sup>2</sup>"
OF_TEI = re.sub("<(/?)sup>", lambda tag: "</hi>" if tag[1] else '<hi rend="superscript">', HTML)
PLAIN_TEI = "<TEI><text><body><p>{}</p></body></text></TEI>"
RUNS = [("10", "superscript", "6"), (" and 5×10", "superscript", "-8"), (" of H", "subscript", "2")]
RUNS += [("O on 3 m", "superscript", "2")]
WORD = "".join(
    f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'
    f'<w:r><w:rPr><w:vertAlign w:val="{place}"/></w:rPr><w:t>{other}</w:t></w:r>'
    for text, place, other in RUNS
)
SHARES = {"superscript": 30000, "subscript": -25000}
POINTS = "".join(
    f"<a:r><a:t>{text}</a:t></a:r>" + f'<a:r><a:rPr baseline="{SHARES[place]}"/><a:t>{other}</a:t></a:r>'
    for text, place, other in RUNS
)
POINT = slide(shape("X")).replace("<a:r><a:t>X</a:t></a:r>", POINTS)
# 5 points up, in smaller type.
UP, DOWN = ") Tj /F1 7 Tf 5 Ts (", ") Tj /F1 12 Tf 0 Ts ("
TYPE = f"The hive has 10{UP}6{DOWN} and 5x10{UP}-8{DOWN} of H2O on 3 m{UP}2{DOWN} in all."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", f"<p>{HTML}</p>".encode()),
        ("a.md", HTML.encode()),
        ("a.xml", PLAIN.format(HTML).encode()),
        ("b.xml", PLAIN_TEI.format(OF_TEI).encode()),
        ("a.docx", docx(body=f"<w:p>{WORD}</w:p>")),
        ("a.pptx", presentation(**{"ppt/slides/slide1.xml": POINT})),
        ("a.epub", epub(**{"OEBPS/text/a.xhtml": f"<html><body><p>{HTML}</p></body></html>"})),
        ("a.pdf", pdf(TYPE)),
    ],
)
def test_the_power_of_a_number_is_told_from_its_digits(name: str, content: bytes, tmp_path: Path) -> None:
    (path := tmp_path / name).write_bytes(content)
    assert READ in " ".join(file_text(path).split()).replace("5x10", "5×10")


MATHS = {
    "<msup><mn>10</mn><mrow><mo>-</mo><mn>8</mn></mrow></msup>": "10^-8",
    "<msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup>": "x^(n+1)",
    "<mfrac><mn>1</mn><mn>2</mn></mfrac>": "1/2",
    "<mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>": "2 1/2",
    "<mfrac><msup><mi>x</mi><mn>2</mn></msup><mn>2</mn></mfrac>": "(x^2)/2",
    "<msqrt><mn>16</mn></msqrt>": "√16",
    "<mroot><mn>8</mn><mn>3</mn></mroot>": "8^(1/3)",
    "<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>": "x1^2",
    "<msup></msup>": "",
}


@pytest.mark.parametrize(("written", "read"), MATHS.items())
@pytest.mark.parametrize(("name", "page"), [("a.html", "<p>{}</p>"), ("a.xml", PLAIN)])
def test_formulas_of_mathml_keep_their_numbers_apart(
    name: str, page: str, written: str, read: str, tmp_path: Path
) -> None:
    (path := tmp_path / name).write_text(page.format(f"It is <math>{written}</math>."), encoding="utf-8")
    assert file_text(path).strip() == f"It is {read}."


def test_an_open_superscript_ends_with_its_block(tmp_path: Path) -> None:
    (path := tmp_path / "a.html").write_text("<p>Bees<sup>1 <h2>Methods</h2><p>10<sup>6 </sup>cells.<h2>Results</h2>")
    assert [line.split() for line in lines_of(path) if line.strip()] == [
        ["Bees1"],
        ["##", "Methods"],
        ["10^6", "cells."],
        ["##", "Results"],
    ]
    (path := tmp_path / "a.xml").write_text(PLAIN.format("10<sup>6<p>inner</p>y</sup> x"))
    assert " ".join(file_text(path).split()) == "106 inner y x"


def test_a_raised_number_that_is_a_link_names_a_note(tmp_path: Path) -> None:
    notes = '<p>In 1998<sup><a href="#1">3</a></sup>, 1999<a href="#2"><sup>4</sup></a>: '
    (path := tmp_path / "a.html").write_text(f'{notes}<a href="/">10<sup>6</sup></a> bees</p>')
    assert "^3" not in file_text(path) and "^4" not in file_text(path) and "10^6 bees" in file_text(path)

"""Documents of the kinds that people have."""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.documents.source import Fields, InputText, read_files
from pyramidions.text.headings import HeadedText

PAGE = "<html><head><title>No</title><style>b{}</style></head><body><nav>menu</nav><p>One <b>two</b></p><p>three.</p>"


def pdf(*pages: str, picture: bytes = b"", encrypted: bool = False) -> bytes:
    """Return a file with a line of text and a picture a page; a page is empty where the text is.

    Fonts are F1; F2, which is bold; F3, of which nothing says which letters it draws; F4, of fixed width, which
    draws @ for a letter beyond U+FFFF; and F5, of TeX, whose ligatures ^ (ff) and _ (ffi) have the names of macOS.
    """
    letter = b"1 begincodespacerange<00><FF>endcodespacerange 3 beginbfchar<40><D835DC65><5E><21B5><5F><0000>endbfchar"
    kids = " ".join(f"{10 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids.encode(), len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray"
        b"/Length %d>>stream\n%s\nendstream" % (len(picture), picture),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Unknown/FirstChar 0/LastChar 127/Widths[%s]"
        b"/FontDescriptor<</Type/FontDescriptor/FontName/Unknown/Flags 4>>>>" % (b"500 " * 128),
        b"<</Type/Font/Subtype/Type1/BaseFont/Courier/ToUnicode 8 0 R>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(letter), letter),
        b"<</Type/Font/Subtype/Type1/BaseFont/ABCDEF+CMR10/ToUnicode 8 0 R/FirstChar 0/LastChar 127/Widths[%s]>>"
        % (b"500 " * 128),
    ]
    for text in pages:
        stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET /P Do".encode() if text else b"/P Do"
        contents = len(objects) + 2
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents %d 0 R" % contents
            + b"/Resources<</Font<</F1 3 0 R/F2 5 0 R/F3 6 0 R/F4 7 0 R/F5 9 0 R>>/XObject<</P 4 0 R>>>>>>",
            b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        ]
    trailer = b"/Root 1 0 R"
    if encrypted:
        # With a password that is not the empty one.
        keys = b"/O<%s>/U<%s>" % (b"31" * 32, b"32" * 32)
        objects.append(b"<</Filter/Standard/V 1/R 2/P -4%s>>" % keys)
        trailer += b"/Encrypt %d 0 R/ID[<00><00>]" % len(objects)
    body, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(body) + b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d%s>>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        table,
        len(objects) + 1,
        trailer,
        len(body),
    )


def pdf_lines(*lines: str) -> str:
    """Return several lines as the text of one page of `pdf`."""
    return ") Tj 0 -14 Td (".join(lines)


def docx(*paragraphs: str, body: str = "", styles: str = "") -> bytes:
    """Return a file with paragraphs of text, then any other XML, and with styles."""
    package, kinds = (f"http://schemas.openxmlformats.org/{place}/2006" for place in ("package", "officeDocument"))
    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    names = f'{word} xmlns:m="{kinds}/math" xmlns:c="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs) + body

    def relation(kind: str, target: str) -> str:
        refers = f'<Relationship Id="r1" Type="{kinds}/relationships/{kind}" Target="{target}"/>'
        return f'<Relationships xmlns="{package}/relationships">{refers}</Relationships>'

    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": relation("officeDocument", "word/document.xml"),
        "word/document.xml": f"<w:document {names}><w:body>{body}</w:body></w:document>",
    }
    if styles:
        parts["word/_rels/document.xml.rels"] = relation("styles", "styles.xml")
        parts["word/styles.xml"] = f"<w:styles {word}>{styles}</w:styles>"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


def zipped(files: Mapping[str, str | bytes | None]) -> bytes:
    """Return an archive of files, without those that are None."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, page in files.items():
            if page is not None:
                archive.writestr(name, page)
    return content.getvalue()


PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="b" href="text/b%20c.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>
<item id="toc" href="toc.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="cover" href="cover.jpg" media-type="image/jpeg"/></manifest>
<spine><itemref idref="toc"/><itemref idref="cover"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""
BOOK = {
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/toc.xhtml": "<html><body><h1>Contents</h1></body></html>",
    "OEBPS/text/a.xhtml": "<html><body><h1>Loomings</h1><p>Call me Ishmael.</p></body></html>",
    "OEBPS/text/b c.xhtml": "<html><body><h2>The Carpet-Bag</h2><p>I stuffed a shirt.</p></body></html>",
}


def epub(**changes: str | bytes | None) -> bytes:
    """Return a book with other or further files, and without those that are None."""
    return zipped({**BOOK, **changes})


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


def relations(kind: str, **targets: str) -> str:
    """Return what a file refers to, by ids."""
    kind = f"http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}"
    found = (f'<Relationship Id="{name}" Type="{kind}" Target="{target}"/>' for name, target in targets.items())
    return f"<Relationships>{''.join(found)}</Relationships>"


SLIDES = {
    "ppt/presentation.xml": f'<p:presentation {NAMES}><p:sldIdLst><p:sldId id="9" r:id="b"/><p:sldId r:id="a"/>'
    '<p:sldId r:id="c"/><p:sldId r:id="d"/><p:sldId r:id="b"/></p:sldIdLst></p:presentation>',
    "ppt/_rels/presentation.xml.rels": relations(
        "slide", a="slides/slide1.xml", b="/ppt/slides/slide2.xml", c="slides/slide3.xml", d="slides/slide4.xml"
    ),
    "ppt/slides/slide1.xml": slide(shape("A box."), shape("Methods", "title"), shape("7", "sldNum")),
    "ppt/slides/_rels/slide1.xml.rels": relations("notesSlide", n="../notesSlides/notesSlide1.xml"),
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


#: A paper in JATS with one paragraph.
PLAIN = "<article><body><p>{}</p></body></article>"


def shown(text: str) -> str:
    """Return the lines of a text, headings marked as in Markdown, with bars between."""
    marked = text.as_markdown if isinstance(text, HeadedText) else text
    return " | ".join(" ".join(line.split()) for line in marked.splitlines() if line.strip())


def sample(name: str) -> bytes:
    """Return a file of tests/documents/samples."""
    return (Path(__file__).parent / "documents" / "samples" / name).read_bytes()


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_documents(
    path: Path, text: str | None = None, refuse: Callable[[UserError], object] | None = None, **fields: Any
) -> Iterator[InputText]:
    """Yield the documents of a file; where nobody is told of errors, they are raised."""

    def stop(error: UserError) -> None:
        raise error

    return read_files([path], Fields(text, **fields), refuse or stop)

"""Documents of the kinds that people have."""

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.documents.source import Fields, InputText, read_files
from pyramidions.text.headings import HeadedText

PAGE = "<html><head><title>No</title><style>b{}</style></head><body><nav>menu</nav><p>One <b>two</b></p><p>three.</p>"


def pdf(*pages: str, picture: bytes = b"", encrypted: bool = False) -> bytes:
    """Return a file with a line of text and a picture a page; a page is empty where the text is.

    Fonts are F1; F2, which is bold; F3, of which nothing says which letters it draws; and F4, of fixed width.
    """
    kids = " ".join(f"{8 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids.encode(), len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray"
        b"/Length %d>>stream\n%s\nendstream" % (len(picture), picture),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Unknown/FirstChar 0/LastChar 127/Widths[%s]"
        b"/FontDescriptor<</Type/FontDescriptor/FontName/Unknown/Flags 4>>>>" % (b"500 " * 128),
        b"<</Type/Font/Subtype/Type1/BaseFont/Courier>>",
    ]
    for text in pages:
        stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET /P Do".encode() if text else b"/P Do"
        contents = len(objects) + 2
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents %d 0 R" % contents
            + b"/Resources<</Font<</F1 3 0 R/F2 5 0 R/F3 6 0 R/F4 7 0 R>>/XObject<</P 4 0 R>>>>>>",
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

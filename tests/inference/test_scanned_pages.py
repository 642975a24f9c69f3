"""Pages of PDF files that are pictures are left out, and a sentence names them."""

from pathlib import Path

import pypdfium2
import pytest
from documents import pdf
from tables import for_each

from pyramidions import Extractor, UserError
from pyramidions.documents.pdf import _is_picture, pdf_text
from pyramidions.documents.pdf_page import PdfLine


def add_picture(page: pypdfium2.PdfPage, bottom: float, height: float) -> None:
    """Add a picture as wide as a page of 100 points."""
    strip = pypdfium2.PdfImage.new(page.pdf)
    strip.set_bitmap(pypdfium2.PdfBitmap.new_native(10, 10, 1))
    strip.set_matrix(pypdfium2.PdfMatrix(100, 0, 0, height, 0, bottom))
    page.insert_obj(strip)
    page.gen_content()


def written(folder: Path, *texts: str) -> Path:
    """Write a file of pages; one without a text is a picture."""
    whole = pypdfium2.PdfDocument.new()
    for text in texts:
        if text:
            whole.import_pages(pypdfium2.PdfDocument(pdf(text)))
        else:
            add_picture(whole.new_page(100, 100), 0, 100)
    whole.save(path := folder / "scan.pdf")
    return path


@for_each(
    ("texts", "told"),
    [
        (("One two three.", ""), "page 2 is a picture, and `ocrmypdf --force-ocr --pages 2 IN OUT`"),
        (
            ("", "", "One two three.", "", "Four five six.", "", ""),
            "pages 1-2,4,6-7 are pictures, and `ocrmypdf --force-ocr --pages 1-2,4,6-7 IN OUT`",
        ),
    ],
)
def test_scanned_pages_are_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: tuple[str, ...], told: str
) -> None:
    path = written(tmp_path, *texts)
    assert Extractor("lead").extract_file(path).text == " ".join(filter(None, texts))
    said = f"{path} was read without its scanned pages: {told} makes text of them.\n"
    assert said in capsys.readouterr().err


def test_a_file_of_scanned_pages_alone_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "", "", "")
    with pytest.raises(UserError) as caught:
        Extractor("lead").extract_file(path)
    told = "pages 1-3 are pictures, and `ocrmypdf --force-ocr --pages 1-3 IN OUT` makes text of them."
    assert str(caught.value) == f"{path} holds no text: {told}"


def test_a_scan_with_a_stamp_is_a_picture_but_one_with_a_text_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "")
    monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page: [PdfLine("Exhibit 12")])
    with pytest.raises(UserError, match="page 1 is a picture"):
        pdf_text(path)
    # A title in the middle of a slide is text; so are three lines at its edge.
    for lines in ([PdfLine("Bees fly.", y=50)], [PdfLine(f"Bees fly {number}.") for number in range(3)]):
        monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page, lines=lines: lines)
        assert "Bees fly" in pdf_text(path)


def test_a_page_in_strips_is_a_scan() -> None:
    page = pypdfium2.PdfDocument.new().new_page(100, 100)
    for number in range(6):
        assert not _is_picture(page)
        add_picture(page, 10 * number, 9)
    assert _is_picture(page)

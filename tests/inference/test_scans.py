"""Pages of PDF files that are pictures are read by optical character recognition."""

import importlib.util
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pypdfium2
import pytest
from documents import pdf, read_documents
from PIL import Image, ImageDraw, ImageFont
from tables import for_each

from pyramidions import Extractor, UserError
from pyramidions.documents import scans
from pyramidions.documents.pdf import _is_picture, pdf_text
from pyramidions.documents.pdf_page import PdfLine
from pyramidions.documents.scans import MOST, PicturesError, recognised

LINES = ("We counted the bees", "in the old town of", "Rome each day.", "None was lost.")
COLUMNS = tuple(
    tuple(f"{text} {number}." for number in range(10)) for text in ("Bees flew fast", "Ants slept here long")
)


def picture(title: str, *columns: tuple[str, ...], turned: int = 0) -> bytes:
    """Return a page of a title and columns, as a scanner makes it, turned by some degrees."""
    page = Image.new("L", (900, 700), 255)
    draw = ImageDraw.Draw(page)
    draw.text((60, 40), title, 0, ImageFont.load_default(44))
    for number, lines in enumerate(columns):
        for line, text in enumerate(lines):
            # The page is not quite straight.
            draw.text((60 + 440 * number, 130 + 50 * line + 3 * number), text, 0, ImageFont.load_default(26))
    page.rotate(turned, expand=True).save(file := io.BytesIO(), "PDF", resolution=100)
    return file.getvalue()


def joined(*files: bytes) -> bytes:
    whole = pypdfium2.PdfDocument.new()
    for each in files:
        whole.import_pages(pypdfium2.PdfDocument(each))
    whole.save(file := io.BytesIO())
    return file.getvalue()


def written(folder: Path, content: bytes) -> Path:
    (path := folder / "scan.pdf").write_bytes(content)
    return path


def test_a_scan_has_headings_and_sentences_as_other_files_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Extractor("lead").extract_file(written(tmp_path, picture("Bees of Rome", LINES)), sentences=2)
    assert found.outline.headings == ("Bees of Rome",)
    assert found.text == "We counted the bees in the old town of Rome each day. None was lost."
    said = "1 scanned page was read by optical character recognition, which makes mistakes.\n"
    assert capsys.readouterr().err.endswith(said)


def test_pictures_are_read_at_their_places_column_by_column(tmp_path: Path) -> None:
    whole = joined(pdf("One two three."), picture("", *COLUMNS), picture(""), pdf("Four five six.", ""))
    (read,) = read_documents(written(tmp_path, whole))
    expected = ["One two three.", *COLUMNS[0], *COLUMNS[1], "Four five six."]
    assert "".join(read.text.split()) == "".join("".join(expected).split())


@for_each("degrees", [90, 180, 270])
def test_pages_that_lie_on_a_side_are_turned(tmp_path: Path, degrees: int) -> None:
    found = Extractor("lead").extract_file(written(tmp_path, picture("Bees of Rome", LINES, turned=degrees)))
    assert found.outline.headings == ("Bees of Rome",)
    assert found.text == "We counted the bees in the old town of Rome each day. None was lost."


@for_each("what", ["uncertain", "no letters"])
def test_pages_that_are_not_recognised_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    text, score = ("ou eht fo", 0.6) if what == "uncertain" else ("   . 00 0   .", 0.95)
    boxes = np.array([[[10, 10], [90, 10], [90, 20], [10, 20]]])
    seen = SimpleNamespace(txts=(text,), scores=(score,), boxes=boxes)
    monkeypatch.setattr("rapidocr.RapidOCR", lambda params: lambda image: seen)
    path = written(tmp_path, joined(pdf("One two three."), picture("Bees of Rome", LINES)))
    assert Extractor("lead").extract_file(path).text == "One two three."
    said = f"{path}: 1 scanned page was left out: no Latin, Chinese or Japanese was recognised.\n"
    assert capsys.readouterr().err.endswith(said)
    with pytest.raises(UserError, match="holds no text, and its pictures hold none that is recognised"):
        Extractor("lead").extract_file(written(tmp_path, picture("Bees of Rome", LINES)))


def test_a_scan_with_a_stamp_is_a_picture_but_one_with_a_text_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, picture("Bees of Rome", LINES))
    monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page: [PdfLine("Exhibit 12")])
    with pytest.raises(PicturesError) as caught:
        pdf_text(path)
    assert caught.value.alone and caught.value.numbers == [0]
    # A title in the middle of a slide is text; so are three lines at its edge.
    for lines in ([PdfLine("Bees fly.", y=200)], [PdfLine(f"Bees fly {number}.") for number in range(3)]):
        monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page, lines=lines: lines)
        assert "Bees fly" in pdf_text(path)


def test_a_damaged_page_is_left_out_and_what_breaks_on_all_pages_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = np.array([[[10, 10], [90, 10], [90, 20], [10, 20]]])
    results: list[Any] = []

    def read(image: object) -> Any:
        found = results.pop(0)
        if found is None:
            raise RuntimeError
        return found

    monkeypatch.setattr("rapidocr.RapidOCR", lambda params: read)
    scan = picture("Bees of Rome", LINES)
    path = written(tmp_path, joined(pdf("One two three."), scan, scan))
    results[:] = [None, SimpleNamespace(txts=("Bees fly fast.",), scores=(0.99,), boxes=boxes)]
    assert Extractor("lead").extract_file(path).text == "One two three. Bees fly fast."
    assert "1 scanned page was left out: no Latin" in capsys.readouterr().err
    results[:] = [None, None]
    assert Extractor("lead").extract_file(path).text == "One two three."
    told = f"2 scanned pages were left out. The scanned pages of {path} cannot be read (RuntimeError)."
    assert told in capsys.readouterr().err


def test_a_table_of_numbers_is_read() -> None:
    assert scans._is_read(["12.5 3.75 1,418"] * 20 + ["Total"], [0.99] * 21)


def test_lines_that_run_down_are_read_from_the_right() -> None:
    def column(x: float) -> list[list[float]]:
        return [[x, 10], [x + 10, 10], [x + 10, 90], [x, 90]]

    def reader(page: np.ndarray) -> SimpleNamespace:
        texts = ("二行", "一行") if page.shape == (100, 60) else ("x", "x")
        return SimpleNamespace(txts=texts, scores=(0.99 if texts[0] != "x" else 0.1,) * 2, boxes=boxes)

    boxes = np.array([column(20), column(40)])
    runs = scans._upright(reader, np.zeros((100, 60)), 1.0)
    assert runs is not None
    assert [run.text for row in scans._rows(runs) for run in row] == ["一行", "二行"]


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(scans, "find_spec", lambda name: None if name == "rapidocr" else find(name))


@pytest.mark.usefixtures("without_library")
def test_without_the_library_a_sentence_says_what_brings_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hint = "has scanned pages, and optical character recognition (OCR) is not installed: `pip install "
    with pytest.raises(UserError) as caught:
        Extractor("lead").extract_file(written(tmp_path, picture("Bees of Rome", LINES)))
    assert str(caught.value).startswith(f"{tmp_path}/scan.pdf {hint}")
    path = written(tmp_path, joined(pdf("One two three."), picture("Bees of Rome", LINES)))
    assert Extractor("lead").extract_file(path).text == "One two three."
    assert capsys.readouterr().err.startswith(f"{path}: 1 scanned page was left out. {path} {hint}")


def test_too_many_scanned_pages_are_refused_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    said = "a.pdf must have at most 500 scanned pages, but has 501."
    with pytest.raises(UserError, match=f"^{said}$"):
        recognised(Path("a.pdf"), PicturesError(Path("a.pdf"), range(MOST + 1), alone=True))
    assert recognised(Path("a.pdf"), PicturesError(Path("a.pdf"), range(MOST + 1), alone=False)) == {}
    assert capsys.readouterr().err == f"a.pdf: 501 scanned pages were left out. {said}\n"


def test_pictures_without_text_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no text, and its pictures hold none that is recognised"):
        pdf_text(written(tmp_path, picture("")), {0: []})


def test_a_page_in_strips_is_a_scan() -> None:
    whole = pypdfium2.PdfDocument.new()
    page, bitmap = whole.new_page(100, 100), pypdfium2.PdfBitmap.new_native(10, 10, 1)
    for number in range(6):
        assert not _is_picture(page)
        strip = pypdfium2.PdfImage.new(whole)
        strip.set_bitmap(bitmap)
        strip.set_matrix(pypdfium2.PdfMatrix(100, 0, 0, 9, 0, 10 * number))
        page.insert_obj(strip)
        page.gen_content()
    assert _is_picture(page)

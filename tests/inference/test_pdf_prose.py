"""Words and sentences of a PDF file are whole, and what is no prose is left out."""

from pathlib import Path

import pytest
from documents import pdf, pdf_lines
from tables import for_each

from pyramidions.documents import pdf as reader
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.pdf_layout import laid_out
from pyramidions.documents.pdf_page import PdfLine
from pyramidions.documents.pdf_prose import joined_hyphens
from pyramidions.text.headings import HeadedText

BODY = "Genes are measured in all of the cells."


def joined(*texts: str) -> list[str]:
    return [line.text for page in joined_hyphens([[PdfLine(text, 10) for text in texts]]) for line in page]


def left(*given: tuple[str, float]) -> HeadedText:
    """Return the text of a page whose lines have a size; a gap stands above each."""
    page = [PdfLine(text, size, False, 700 - 12 * place, 0, 200) for place, (text, size) in enumerate(given)]
    return laid_out([page])


def drawn(folder: Path, text: str) -> str:
    (folder / "a.pdf").write_bytes(pdf(text))
    return file_text(folder / "a.pdf")


def test_ligatures_are_spelled_out_where_a_font_names_no_letters(tmp_path: Path) -> None:
    # The codes of TeX's older fonts, then of its newer ones.
    codes = r"o\013er de\014ne \015ow e\016cient ba\017e, o\033er de\034ne \035ow e\036cient ba\037e"
    assert (
        drawn(tmp_path, f") Tj /F3 12 Tf ({codes}")
        == "offer define flow efficient baffle, offer define flow efficient baffle"
    )


@for_each(
    ("lines", "expected"),
    [
        (["the sum of re-", "sults is"], ["the sum of results", "is"]),
        (["a result", "of re-", "sults and", "results"], ["a result", "of results", "and", "results"]),
        # Only the compound is known.
        (["is client-driven", "by client-", "driven work"], ["is client-driven", "by client-driven", "work"]),
        (["a non-", "Byzantine fault"], ["a non-Byzantine", "fault"]),
        (["a semi-", "group"], ["a semigroup"]),
        (["see https://a.", "org/b and"], ["see https://a.org/b", "and"]),
        (["see https://a.org/b-", "c"], ["see https://a.org/b-c"]),
        # It may end there.
        (["see https://a.org/", "Then go"], ["see https://a.org/", "Then go"]),
        (["the ranges 1-", "2 and"], ["the ranges 1-", "2 and"]),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_goes_unless_only_the_compound_is_known(
    lines: list[str], expected: list[str]
) -> None:
    assert joined(*lines) == expected


def test_a_word_goes_on_over_columns_and_pages() -> None:
    pages = joined_hyphens([[PdfLine("the mecha-", 10)], [PdfLine("nism works", 10)]])
    assert [[line.text for line in page] for page in pages] == [["the mechanism"], ["works"]]


@for_each(
    "text",
    [
        "= x + 2 (3)",
        "]",
        ")-1",
        "1 Introduction . . . . . . . 3",
    ],
)
def test_formulas_and_tables_of_contents_are_no_sentences(text: str) -> None:
    assert left((BODY, 10), (text, 10), ("They are small in many ways.", 10)) == f"{BODY}\nThey are small in many ways."


@for_each(
    "text",
    [
        "Figure 3: Genes and how they are found in cells",
        "Table 2. All that was measured in this work",
        "Keywords: genes, cells, measuring, and drugs",
        "Permission to make digital or hard copies of this work",
    ],
)
def test_captions_keywords_and_licences_are_no_sentences(text: str) -> None:
    assert text not in left((BODY, 10), (text, 9), ("They are small in many ways, as said.", 10))


def test_chinese_prose_ends_a_table_of_contents_and_no_line_that_ends_a_sentence_is_a_heading() -> None:
    lines = [
        ("目录", 20.0),
        ("第一章 蜜蜂", 16.0),
        ("蜜蜂在花园里飞得很快而且很远。", 10.0),
        ("它们在下雨的时候回家。", 12.0),
    ]
    found = left(*lines, *[("蜜蜂每天都在花园里采集很多花蜜。", 10.0)] * 3)
    assert "蜜蜂在花园里飞得很快而且很远。" in found and list(found.levels.values()) == []


def test_an_empty_line_behind_an_address_is_passed_over() -> None:
    assert joined("See https://a.b/", "\uf0b7", "Bees fly.")[-1] == "Bees fly."
    assert joined("See https://a.b/", "", "Bees fly.")[-1] == "Bees fly."


def test_a_note_at_the_foot_of_a_column_is_left_out_and_the_sentence_goes_on() -> None:
    first = [PdfLine("Genes of the cells are", 10, y=100), PdfLine("1 Or of viruses, as we know.", 8, y=80)]
    assert (
        laid_out([[*first, PdfLine("found in many ways.", 10, y=700)]]) == "Genes of the cells are\nfound in many ways."
    )


def test_letters_that_are_drawn_one_by_one_are_words_by_their_gaps(tmp_path: Path) -> None:
    assert drawn(tmp_path, "W) Tj 12 0 Td (e found) Tj 50 0 Td (it.") == "We found it."


def test_a_page_that_draws_rows_across_two_columns_is_read_by_column(tmp_path: Path) -> None:
    rows = (f"left words are here {n}) Tj 160 0 Td (right words are there {n}) Tj -160 -12 Td (" for n in range(12))
    words = drawn(tmp_path, "".join(rows)).split("\n")
    assert words == [
        *(f"left words are here {n}" for n in range(12)),
        *(f"right words are there {n}" for n in range(12)),
    ]


def test_a_text_from_right_to_left_is_read_by_pdftotext_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hebrew, whole = "\u05d1\u05e9\u05e0\u05ea", "\u05d1\u05e9\u05e0\u05ea 2023."
    monkeypatch.setattr(reader, "_pages", lambda *_: ([[PdfLine(hebrew)], [PdfLine("and")]], [], 0))
    monkeypatch.setattr(reader, "_by_poppler", lambda _: [[PdfLine(whole)]])
    name = tmp_path / "a.pdf"
    assert reader.pdf_text(name) == f"{whole}\nand"
    assert capfd.readouterr().err == f"{name} runs from right to left: pdftotext read it.\n"
    monkeypatch.setattr(reader, "_by_poppler", lambda _: [])
    assert reader.pdf_text(name) == f"{hebrew}\nand"
    assert "numbers and the order of its words may be lost" in capfd.readouterr().err


def test_a_garbled_text_is_told_in_one_sentence_and_read_by_pdftotext_where_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    garbled = pdf_lines(*["\\001\\002 \\003"] * 5, "word")
    monkeypatch.setattr(reader, "_by_poppler", lambda _: [[PdfLine("Two words.")]])
    assert drawn(tmp_path, garbled) == "Two words."
    name = tmp_path / "a.pdf"
    assert capfd.readouterr().err == f"{name} names too few of its letters: pdftotext read it.\n"
    monkeypatch.setattr(reader, "_by_poppler", lambda _: [])
    assert drawn(tmp_path, garbled) == "word"
    assert "so its text is garbled (" in capfd.readouterr().err

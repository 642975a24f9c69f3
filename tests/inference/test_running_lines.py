"""Headers, footers and page numbers are no part of a document's text."""

from pathlib import Path

from documents import pdf, pdf_lines
from tables import for_each

from pyramidions.documents.file_formats import file_text
from pyramidions.documents.pdf_layout import without_running_lines
from pyramidions.documents.pdf_page import PdfLine
from pyramidions.text.outline import outline


def left(*pages: list[str]) -> list[list[str]]:
    found = without_running_lines([[PdfLine(text) for text in page] for page in pages])
    return [[line.text for line in page] for page in found]


def test_a_sentence_goes_on_over_a_page_with_header_footer_and_number(tmp_path: Path) -> None:
    text = ["Networks of genes", "were measured. Cancer", "changes them,", "and drugs do."]
    pages = [
        pdf_lines("Smith et al.", "Gene co-expression", line, f"Page {number}", "Downloaded on May 3")
        for number, line in enumerate(text, 1)
    ]
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(*pages))
    assert [unit.text for unit in outline(file_text(path)).units] == [
        "Networks of genes were measured.",
        "Cancer changes them, and drugs do.",
    ]


def test_odd_and_even_pages_have_headers_of_their_own() -> None:
    pages = [
        [("Authors" if number % 2 else "Title") + f" {number}", f"text {chr(96 + number)}"] for number in range(1, 7)
    ]
    assert left(*pages) == [[f"text {chr(96 + number)}"] for number in range(1, 7)]


def test_each_chapter_of_a_long_document_has_a_header_of_its_own() -> None:
    pages = [[f"Chapter {chr(65 + number // 4)}", chr(97 + number)] for number in range(26)]
    # The last chapter has two pages only.
    assert left(*pages) == [[chr(97 + number)] for number in range(24)] + pages[24:]


def test_a_header_that_changes_from_page_to_page_goes_by_the_page_number_beside_it() -> None:
    pages = [[f"1.{number} Section {chr(96 + number)} {number + 10}", chr(96 + number)] for number in range(1, 5)]
    assert left(*pages) == [[chr(96 + number)] for number in range(1, 5)]
    assert left(*pages[:2]) == pages[:2]
    # Headings in larger type, beside numbers of their own.
    body = [PdfLine("text of the page", 10)]
    chapters = [[PdfLine(f"{number} Chapter {chr(96 + number)}", 16), *body] for number in range(1, 5)]
    assert without_running_lines([page + body for page in chapters]) != chapters
    assert [page[0].text for page in without_running_lines(chapters)] == [page[0].text for page in chapters]


@for_each(
    "numbers",
    [
        ["1", "2"],
        ["511", "512", "513"],
        ["- 9 -", "- 10 -"],
        ["Page 1 of 2", "Page 2 of 2"],
        ["1/3", "2/3", "3/3"],
        ["i", "ii", "iii", "iv"],
    ],
)
def test_page_numbers_go_from_either_end(numbers: list[str]) -> None:
    texts = [f"a text {chr(97 + index)}" for index in range(len(numbers))]
    expected = [[text] for text in texts]
    assert left(*([text, number] for text, number in zip(texts, numbers, strict=True))) == expected
    assert left(*([number, text] for text, number in zip(texts, numbers, strict=True))) == expected


@for_each(
    "pages",
    [
        [["A header", "one"], ["A header", "two"]],
        [["A header", "one"], ["A header", "two"], ["three"]],
        # Far apart.
        [["Results", "one"], *([chr(number)] for number in range(97, 105)), ["Results", "two"], ["Results", "three"]],
        # Numbers that do not count pages.
        [["one", "42"], ["two", "7"], ["three", "99"]],
        [["one", "1"]],
        [["i", "one"], ["two"]],
        # In the middle of pages.
        [["one", "again", "a"], ["two", "again", "b"], ["three", "again", "c"]],
        [[], ["one"], []],
        [["A word. " * 50]] * 3,
    ],
)
def test_what_does_not_run_through_the_pages_stays(pages: list[list[str]]) -> None:
    assert left(*pages) == pages


def test_a_title_stays_above_headers_of_the_same_words_in_smaller_type() -> None:
    pages = [[PdfLine("A paper", 24.0), PdfLine("a", 10.0)]]
    pages += [[PdfLine("A paper", 9.0), PdfLine(text, 10.0)] for text in "bcd"]
    assert without_running_lines(pages) == [pages[0], *(page[1:] for page in pages[1:])]


def test_pages_that_are_all_alike_lose_a_few_lines_at_most() -> None:
    pages = [[f"line {chr(97 + number)}" for number in range(20)]] * 3
    assert left(*pages) == [pages[0][4:-4]] * 3

"""Blocks and headings of a PDF file, by the size, the weight and the place of its type."""

from pathlib import Path

from documents import pdf
from tables import for_each

from pyramidions.documents.file_formats import file_text
from pyramidions.documents.pdf_layout import laid_out
from pyramidions.documents.pdf_page import PdfLine
from pyramidions.text.outline import outline

TITLE = "On genes) Tj /F1 10 Tf 0 -30 Td (A. Smith, B. Jones) Tj 0 -30 Td (Genes are many. They)"
TITLE += " Tj 0 -12 Td (are) Tj 0 -12 Td (very) Tj 0 -12 Td (long."


def lines(*given: tuple[str, float, bool], gap: float = 12.0) -> list[PdfLine]:
    return [PdfLine(text, size, bold, 700 - gap * number) for number, (text, size, bold) in enumerate(given)]


def test_the_title_and_the_authors_stand_apart_from_the_first_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(TITLE))
    units = ["On genes", "A. Smith, B. Jones", "Genes are many.", "They are very long."]
    text = file_text(tmp_path / "a.pdf")
    assert [line for line in text.split("\n\n") if line][:2] == units[:2]
    assert [unit.text for unit in outline(text).units][-2:] == units[-2:]


def test_larger_and_bold_type_makes_headings_by_size() -> None:
    page = lines(
        ("A paper about", 20, True),
        ("Genes", 20, True),
        ("1 Methods", 14, True),
        ("genes were measured", 10, False),
        ("twice.", 10, False),
        ("Why Bold", 10, True),
        ("Because they were.", 10, False),
        ("Note: small type is no heading", 8, True),
        ("And this ends.", 10, False),
    )
    assert laid_out([page]).as_markdown.split("\n\n") == [
        "# A paper about Genes",
        "## 1 Methods",
        "genes were measured\ntwice.",
        "### Why Bold",
        "Because they were.",
        "Note: small type is no heading",
        "And this ends.",
    ]


@for_each(
    "page",
    [
        # Words in other type.
        lines(("In all", 10, False), ("genes", 12, False), ("they are", 10, False)),
        lines(("The whole", 10, False), ("text is in one", 10, False), ("Type.", 10, False)),
        # Text of which neither type nor place is known.
        [PdfLine("One"), PdfLine("Two"), PdfLine("three")],
    ],
)
def test_a_sentence_is_not_cut(page: list[PdfLine]) -> None:
    assert laid_out([page]) == "\n".join(line.text for line in page)


def test_a_sentence_goes_on_over_pages_and_columns_and_ends_above_a_wide_gap() -> None:
    first = lines(("One two", 10, False), ("Three", 10, False), ("four", 10, False))
    # The second column begins at the top again.
    second = lines(("Five six", 10, False), ("Seven", 10, False))
    apart = [PdfLine("Eight nine", 10, False, 300.0), PdfLine("ten", 10, False, 250.0)]
    text = laid_out([[*first, *second], [*first, *apart]])
    assert text == "One two\nThree\nfour\nFive six\nSeven\nOne two\nThree\nfour\n\nEight nine\nten"


def test_a_heading_may_stand_in_the_first_line_of_its_text(tmp_path: Path) -> None:
    def drawn(*parts: str) -> str:
        (tmp_path / "a.pdf").write_bytes(pdf("".join(parts)))
        return file_text(tmp_path / "a.pdf")

    def in_type(font: str, text: str, size: int = 12) -> str:
        return f") Tj /{font} {size} Tf ({text}"

    middle = drawn("We have read ", in_type("F2", "1.2. Bees."), in_type("F1", " They fly."))
    assert middle == "We have read 1.2. Bees. They fly."
    text = drawn(in_type("F2", "1.2. Bees."), in_type("F1", " They fly and"), ") Tj 0 -14 Td (they sting.")
    assert text == "1.2. Bees\n\nThey fly and\nthey sting."
    # The heading is most of the line, in type of another size.
    text = drawn(
        in_type("F2", "1.2. Bees that fly.", 9), in_type("F1", " They"), ") Tj 0 -14 Td (Fly and sting all of us."
    )
    assert text == "1.2. Bees that fly\n\nThey\nFly and sting all of us."
    # A bold word in type of another size is none of the heading; one without a full stop is no heading.
    assert drawn(in_type("F2", "Bees. "), in_type("F2", "They ", 11), in_type("F1", "fly.")) == "Bees\n\nThey fly."
    assert drawn(in_type("F2", "Bees "), in_type("F1", "fly.")) == "Bees fly."
    assert drawn("Abstract We saw bees.") == "Abstract\n\nWe saw bees."
    assert drawn("Abstract art is seen.") == "Abstract art is seen."


def test_code_and_formulas_leave_a_heading_bold(tmp_path: Path) -> None:
    heading = ") Tj /F2 12 Tf (2.1 The class ) Tj /F4 12 Tf (bee"
    (tmp_path / "a.pdf").write_bytes(pdf(heading + ") Tj /F1 12 Tf 0 -14 Td (It is a class."))
    assert file_text(tmp_path / "a.pdf") == "2.1 The class bee\n\nIt is a class."


def test_a_formula_that_is_left_out_cuts_its_sentence() -> None:
    text, formula, rest = "The mean of all the bees is", "x = y + z", "where x is the mean of bees."
    page = [PdfLine(each, 10.0, False, 700.0 - 12 * place, 0, 200) for place, each in enumerate((text, formula, rest))]
    assert laid_out([page]) == f"{text}\n{rest}"
    page[1] = page[1]._replace(math=0.9)
    assert laid_out([page]) == laid_out([page[:2], page[2:]]) == f"{text}\n\n{rest}"
    assert laid_out([[page[0]._replace(text=f"{text}."), *page[1:]]]) == f"{text}.\n{rest}"


def test_nothing_is_laid_out_as_nothing() -> None:
    assert laid_out([]) == laid_out([[], []]) == ""

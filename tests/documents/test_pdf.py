"""Text of PDF files: whole words and sentences, headings by their type, and nothing that is no prose."""

from collections.abc import Iterable
from pathlib import Path

import pypdfium2
import pytest
from documents import pdf, pdf_lines
from refusals import refused

from pyramidions import Extractor
from pyramidions.documents import pdf as reader
from pyramidions.documents import pdf_page
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.pdf import odd_share, pdf_text
from pyramidions.documents.pdf_layout import laid_out, without_running_lines
from pyramidions.documents.pdf_page import Font, PdfLine, Run, page_lines
from pyramidions.documents.pdf_prose import joined_hyphens
from pyramidions.text.outline import outline

BODY = "Genes are measured in all of the cells."
END = "They are small in many ways, as said."


def drawn(folder: Path, *pages: str) -> str:
    (folder / "a.pdf").write_bytes(pdf(*pages))
    return file_text(folder / "a.pdf")


def in_type(font: str, text: str, size: int = 12) -> str:
    return f") Tj /{font} {size} Tf ({text}"


def lines(*given: tuple[str, float, bool], gap: float = 12.0) -> list[PdfLine]:
    return [PdfLine(text, size, bold, 700 - gap * number) for number, (text, size, bold) in enumerate(given)]


def plain(*texts: str) -> list[PdfLine]:
    return lines(*((text, 10, False) for text in texts))


def texts_of(pages: Iterable[list[PdfLine]]) -> list[list[str]]:
    return [[line.text for line in page] for page in pages]


def left(*pages: list[str]) -> list[list[str]]:
    """Return what is left of pages without their running lines."""
    return texts_of(without_running_lines([[PdfLine(text) for text in page] for page in pages]))


def letters(first: int, count: int) -> list[str]:
    return [chr(96 + number) for number in range(first, first + count)]


def test_pages_title_and_authors_stand_apart_and_in_order(tmp_path: Path) -> None:
    assert drawn(tmp_path, "One two three.", "Four.").split() == ["One", "two", "three.", "Four."]
    title = "On genes) Tj /F1 10 Tf 0 -30 Td (A. Smith, B. Jones) Tj 0 -30 Td (Genes are many. They)"
    text = drawn(tmp_path, title + " Tj 0 -12 Td (are) Tj 0 -12 Td (very) Tj 0 -12 Td (long.")
    assert [line for line in text.split("\n\n") if line][:2] == ["On genes", "A. Smith, B. Jones"]
    assert [unit.text for unit in outline(text).units][-2:] == ["Genes are many.", "They are very long."]


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


def test_a_sentence_goes_on_over_pages_and_columns_and_ends_above_a_wide_gap() -> None:
    for page in (
        # Words in other type.
        lines(("In all", 10, False), ("genes", 12, False), ("they are.", 10, False)),
        plain("The whole", "text is in one", "Type."),
        # Text of which neither type nor place is known.
        [PdfLine("One"), PdfLine("Two"), PdfLine("three")],
    ):
        assert laid_out([page]) == "\n".join(line.text for line in page)
    first = plain("One two", "Three", "four.")
    # The second column begins at the top again.
    second = plain("Five six", "Seven")
    apart = [PdfLine("Eight nine", 10, False, 300.0), PdfLine("ten.", 10, False, 250.0)]
    text = laid_out([[*first, *second], [*first, *apart]])
    assert text == "One two\nThree\nfour.\nFive six\nSeven\nOne two\nThree\nfour.\n\nEight nine\nten."
    assert laid_out([]) == laid_out([[], []]) == ""


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("We read " + in_type("F2", "1.2. Bees.") + in_type("F1", " They fly."), "We read 1.2. Bees. They fly."),
        (in_type("F2", "1.2. Bees.") + in_type("F1", " They fly and") + ") Tj 0 -14 Td (they sting.",
         "1.2. Bees\n\nThey fly and\nthey sting."),
        # The heading is most of the line, in type of another size.
        (in_type("F2", "1.2. Bees that fly.", 9) + in_type("F1", " They") + ") Tj 0 -14 Td (Fly and sting all of us.",
         "1.2. Bees that fly\n\nThey\nFly and sting all of us."),
        # A bold word in type of another size is none of the heading; one without a full stop is no heading.
        (in_type("F2", "Bees. ") + in_type("F2", "They ", 11) + in_type("F1", "fly."), "Bees\n\nThey fly."),
        (in_type("F2", "Bees ") + in_type("F1", "fly."), "Bees fly."),
        ("Abstract We saw bees.", "Abstract\n\nWe saw bees."),
        ("Abstract art is seen.", "Abstract art is seen."),
        # Code and formulas leave a heading bold.
        (in_type("F2", "2.1 The class ") + in_type("F4", "bee") + ") Tj /F1 12 Tf 0 -14 Td (It is a class.",
         "2.1 The class bee\n\nIt is a class."),
        # Ligatures where a font names no letters: the codes of TeX's older fonts, then of its newer ones.
        (in_type("F3", r"o\013er de\014ne \015ow e\016cient ba\017e, o\033er de\034ne \035ow e\036cient ba\037e"),
         "offer define flow efficient baffle, offer define flow efficient baffle"),
        (in_type("F5", "o^er and e_cient."), "offer and efficient."),
        (in_type("F4", "Let @ and @@ be."), "Let \U0001d465 and \U0001d465\U0001d465 be."),
        # Letters that are drawn one by one are words by their gaps.
        ("W) Tj 12 0 Td (e found) Tj 50 0 Td (it.", "We found it."),
        # Rows across two columns are read by column.
        ("".join(f"left words here {n} are.) Tj 160 0 Td (right words {n} are.) Tj -160 -12 Td (" for n in range(12)),
         "\n".join(f"{side} {n} are." for side in ("left words here", "right words") for n in range(12))),
    ],
)  # fmt: skip
def test_a_page_is_read_as_it_is_drawn(page: str, text: str, tmp_path: Path) -> None:
    assert drawn(tmp_path, page) == text


def rows(*given: str) -> str:
    """Return rows as the text of one page; a bar moves what follows by 90 points, so that it stands apart."""
    return "".join(row.replace("|", ") Tj 90 0 Td (") + f") Tj {-90 * row.count('|')} -14 Td (" for row in given)


TABLES = {
    "words": ["Smith|Director|Salary", "Bee|Intern|Travel fare", "Wasp|Assistant|Hotel"],
    "amounts": ["Loan Type|Rate|Offset", "Fixed Rate|4.04%|Full", "Variable Rate|5.38%|Partial"],
    "capitals": ["BEE, M|DIRECTOR|37,499.96", "WASP, A|INTERN|21,000.00", "ANT, K|AIDE|446.87"],
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_of_three_cells_are_a_table_and_no_text(table: list[str], tmp_path: Path) -> None:
    with refused("holds no running text"):
        drawn(tmp_path, rows(*table))
    # So is a row with fewer cells among them, and one at the end is not glued to the sentence below.
    among = [*table, "Wide Only Rate", *table]
    assert drawn(tmp_path, rows(*among, "The bees of the garden fly far.")) == "The bees of the garden fly far."


@pytest.mark.parametrize(
    "page",
    [
        # Columns, words between wide gaps, and lists.
        ["Bees fly|far and then|they sting", "and sleep|in the hive|all winter", "or so|we all|believe"],
        ["The bees|of a|garden fly", "in the|spring as|said here", "by the|men of|the town."],
        ["1.|Bees fly", "2.|Wasps sting", "3.|Ants run"],
        # Two rows are few.
        ["Bees|Wasps|Ants", "Fly|Sting|Run", "as all of us have seen in the garden."],
    ],
)
def test_what_is_no_table_stays(page: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(rows(*page)))
    assert not any(line.in_table for line in page_lines(pypdfium2.PdfDocument(tmp_path / "a.pdf")[0]))


@pytest.mark.parametrize("sign", ["¢", "►", "\uf0b7", "→"])
def test_a_sign_that_begins_three_lines_at_one_edge_is_a_bullet(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*texts: str, gap: float = 5, is_math: bool = False) -> list[str]:
        lines = [
            (Run(text[0], 20, 25, y, 10, font=Font(is_math=is_math)), Run(text[1:], 25 + gap, 99, y, 10))
            for y, text in enumerate(texts)
        ]
        monkeypatch.setattr(pdf_page, "_runs", lambda _: [run for line in lines for run in line])
        return [line.text for line in page_lines(None)]

    points = "bees fly", "wasps sting", "ants run"
    assert read(*(sign + each for each in points)) == [f"• {each}" for each in points]
    assert read(*(sign + each for each in points[:2])) == [f"{sign} {each}" for each in points[:2]]
    # So is a letter of a font of signs, but for a name in a formula.
    assert read(*("y" + each for each in points), is_math=True) == [f"• {each}" for each in points]
    assert read(*("y" + each for each in points), gap=2, is_math=True) == [f"y {each}" for each in points]


def test_runs_that_touch_are_one_line_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Run("fly far.", 50, 90, 10, 10), Run("Bees ", 20, 49, 10, 10), Run("Far", 0, 9, 10, 10)]
    monkeypatch.setattr(pdf_page, "_runs", lambda _: runs)
    assert [line.text for line in page_lines(None)] == ["Bees fly far.", "Far"]
    # Not from right to left.
    runs[1] = runs[1]._replace(text="\u05d1")
    assert len(page_lines(None)) == 3


def test_a_formula_that_is_left_out_cuts_its_sentence() -> None:
    text, formula, rest = "The mean of all the bees is", "x = y + z", "where x is the mean of bees."
    page = [PdfLine(each, 10.0, False, 700.0 - 12 * place, 0, 200) for place, each in enumerate((text, formula, rest))]
    assert laid_out([page]) == f"{text}\n{rest}"
    page[1] = page[1]._replace(math=0.9)
    assert laid_out([page]) == laid_out([page[:2], page[2:]]) == f"{text}\n\n{rest}"
    assert laid_out([[page[0]._replace(text=f"{text}."), *page[1:]]]) == f"{text}.\n{rest}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["the sum of re-", "sults is"], ["the sum of results", "is"]),
        (["a result", "of re-", "sults and", "results"], ["a result", "of results", "and", "results"]),
        # Only the compound is known.
        (["is client-driven", "by client-", "driven work"], ["is client-driven", "by client-driven", "work"]),
        (["a non-", "Byzantine fault"], ["a non-Byzantine", "fault"]),
        (["a semi-", "group"], ["a semigroup"]),
        (["see https://a.", "org/b and"], ["see https://a.org/b", "and"]),
        (["see https://a.org/b-", "c"], ["see https://a.org/b-c"]),
        # It may end there, and an empty line behind an address is passed over.
        (["see https://a.org/", "Then go"], ["see https://a.org/", "Then go"]),
        (["see https://a.b/", "\uf0b7", "Bees fly."], ["see https://a.b/", "\uf0b7", "Bees fly."]),
        (["see https://a.b/", "", "Bees fly."], ["see https://a.b/", "Bees fly."]),
        (["the ranges 1-", "2 and"], ["the ranges 1-", "2 and"]),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_goes_unless_only_the_compound_is_known(
    given: list[str], expected: list[str]
) -> None:
    assert texts_of(joined_hyphens([[PdfLine(text, 10) for text in given]])) == [expected]
    # A word goes on over columns and pages.
    pages = joined_hyphens([[PdfLine("the mecha-", 10)], [PdfLine("nism works", 10)]])
    assert texts_of(pages) == [["the mechanism"], ["works"]]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        # Formulas and tables of contents.
        ("= x + 2 (3)", 10),
        ("]", 10),
        (")-1", 10),
        ("1 Introduction . . . . . . . 3", 10),
        # Captions, keywords and licences.
        ("Figure 3: Genes and how they are found in cells", 9),
        ("Table 2. All that was measured in this work", 9),
        ("Keywords: genes, cells, measuring, and drugs", 9),
        ("Permission to make digital or hard copies of this work", 9),
    ],
)
def test_what_is_no_prose_is_left_out(text: str, size: float) -> None:
    given = (BODY, 10), (text, size), (END, 10)
    found = laid_out([[PdfLine(text, size, False, 700 - 12 * at, 0, 200) for at, (text, size) in enumerate(given)]])
    assert found.split("\n") == [BODY, END] or found.split("\n\n") == [BODY, END]


def test_chinese_prose_ends_a_table_of_contents_and_no_line_that_ends_a_sentence_is_a_heading() -> None:
    given = [("目录", 20.0), ("第一章 蜜蜂", 16.0), ("蜜蜂在花园里飞得很快而且很远。", 10.0)]
    given += [("它们在下雨的时候回家。", 12.0), *[("蜜蜂每天都在花园里采集很多花蜜。", 10.0)] * 3]
    found = laid_out([[PdfLine(text, size, False, 700 - 12 * at, 0, 200) for at, (text, size) in enumerate(given)]])
    assert "蜜蜂在花园里飞得很快而且很远。" in found and list(found.levels.values()) == []


LINES = {
    "slides": ["Pollinate most crops we eat", "Decline since the nineties", "Pesticides harm young queens"],
    "bullets": ["• Milk", "• Bread", "• Cheese and Eggs"],
    "a poem": ["Tyger tyger burning bright", "In the forests of the night", "What immortal hand or eye"],
    "a résumé": ["Jane Doe", "12 Bee Street, London", "Software Engineer, Acme Ltd", "Built Web Shops in Python"],
    "an invitation": ["Anna and Ben", "Three in the Afternoon", "The Old Mill, River Road"],
    "a form in Korean": ["성명 생년월일", "지능화 견고성", "자동화 확장성 내재화"],
    "Chinese": ["长期待摊费用", "递延所得税资产", "项目", "流动资产合计"],
}


@pytest.mark.parametrize("page", LINES.values(), ids=LINES)
def test_lines_without_a_full_stop_are_text_beside_a_sentence_and_a_table(page: list[str]) -> None:
    assert laid_out([plain(*page)]).split("\n") == page
    sentence = "The bees of the garden fly far, and sting."
    assert laid_out([plain(sentence, *page)]).split("\n") == [sentence, *page]
    cells = [line._replace(in_table=True) for line in plain(*["Smith Director Salary"] * 10)]
    assert laid_out([plain(*page, *page), cells]).split("\n") == page * 2
    # A few labels are no text, but a sentence or a phrase is.
    assert laid_out([plain("Loan Rates"), cells]) == ""
    assert laid_out([plain("Bees sting."), cells]) == "Bees sting."
    assert laid_out([plain("bees fly far in the spring"), cells]) == "bees fly far in the spring"


def test_a_line_with_room_for_the_first_word_below_ends_a_block() -> None:
    def text(*given: tuple[str, float]) -> str:
        return laid_out([[PdfLine(each, 10, y=700 - 12 * n, right=right) for n, (each, right) in enumerate(given)]])

    points = ("• Bees fly to the meadow", 130), ("• Wasps stay at home all day, and", 190), ("sting.", 40)
    assert text(*points) == "• Bees fly to the meadow\n\n• Wasps stay at home all day, and\nsting."
    # Not where the next word is longer than the room, nor within a sentence.
    assert "\n\n" not in text(("We have seen the bees of", 130), ("Donaudampfschifffahrt fly far.", 190))
    assert "\n\n" not in text(("We have seen the bees", 110), ("of a garden that fly far.", 190))
    # Nor beside a picture: behind a short word, where lines go on, or where they are even.
    for around in (
        [("The engineers who came from", 270), ("London said that they would need", 300)],
        [("it was the new", 240), ("mayor of the small city", 270), ("London who said", 250)],
        [("the engineers of old", 240), ("London said", 270), ("that they come from far away", 270)],
        [("Ingenieure aus der alten", 270), ("Stadt sagten", 271)],
        [("蜜蜂在花园里飞得很快", 270), ("它们在下雨的时候", 270)],
    ):
        assert "\n\n" not in text(("The council met and spoke of the bridge to the old town", 480), *around)
    # Items and the ends of sentences end a block there, too.
    for above, below in (("The bees in the", "• Wasps"), ("• Bees of a", "• Wasps"), ("He saw bees.", "Wasps fly and")):
        assert "\n\n" in text(("The council met and spoke of the bridge", 480), (above, 270), (below, 270))


def test_a_line_of_korean_without_a_space_at_its_end_cuts_a_word_where_others_have_one() -> None:
    page = plain("꿀벌은 큰 무리를 지어 ", "함께 사는 곤충이며 정", "원에서 꿀을 모은다. ", "그들은 춤으로 ", "말한다.")
    assert laid_out([page]) == "꿀벌은 큰 무리를 지어\n함께 사는 곤충이며 정원에서 꿀을 모은다.\n그들은 춤으로\n말한다."
    page = plain("꿀벌은 큰 무리를 지어", "함께 산다.")
    assert laid_out([page]) == "꿀벌은 큰 무리를 지어\n함께 산다."


def test_a_note_at_the_foot_of_a_column_is_left_out_and_the_sentence_goes_on() -> None:
    first = [PdfLine("Genes of the cells are", 10, y=100), PdfLine("1 Or of viruses, as we know.", 8, y=80)]
    page = [*first, PdfLine("found in many ways.", 10, y=700)]
    assert laid_out([page]) == "Genes of the cells are\nfound in many ways."


@pytest.mark.parametrize(
    ("page", "fault"),
    [("", "right to left"), (pdf_lines("\\001\\002 \\003", "both words."), "letters")],
    ids=["rtl", ""],
)
def test_a_text_that_we_read_badly_is_read_by_pdftotext_or_told(
    page: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "a.pdf").write_bytes(pdf(page or "A word."))
    hebrew = "\u05d1\u05e9\u05e0\u05ea"
    if not page:
        monkeypatch.setattr(reader, "_pages", lambda *_: ([[PdfLine(hebrew)], [PdfLine("and")]], [], 0))
    alone = "both words." if page else f"{hebrew}\nand"
    monkeypatch.setattr(reader, "_by_poppler", lambda _: [[PdfLine("Two words.")]])
    assert pdf_text(path) == ("Two words." if page else "Two words.\nand")
    told = capsys.readouterr().err
    assert fault in told and "pdftotext" in told
    monkeypatch.setattr(reader, "_by_poppler", lambda _: [])
    assert pdf_text(path) == alone
    assert str(path) in capsys.readouterr().err
    if page:
        path.write_bytes(pdf(pdf_lines("\\001\\002 \\003", "words.")))
        with refused("67% of its words are garbled"):
            pdf_text(path)


def test_signs_garble_a_text_but_the_points_of_a_plot_do_not() -> None:
    assert odd_share([[PdfLine("A plot: " + "● " * 99)]]) == 0
    assert odd_share([[PdfLine("!# $% &' (! 12")]]) == 0.8


def test_a_sentence_goes_on_over_a_page_with_header_footer_and_number(tmp_path: Path) -> None:
    text = ["Networks of genes", "were measured. Cancer", "changes them,", "and drugs do."]
    pages = [
        pdf_lines("Smith et al.", "Gene co-expression", line, f"Page {number}", "Downloaded on May 3")
        for number, line in enumerate(text, 1)
    ]
    assert [unit.text for unit in outline(drawn(tmp_path, *pages)).units] == [
        "Networks of genes were measured.",
        "Cancer changes them, and drugs do.",
    ]


def test_running_lines_go_of_odd_and_even_pages_and_of_chapters() -> None:
    names = "Authors", "Title"
    pages = [[f"{names[n % 2]} {n}", f"text {letter}"] for n, letter in enumerate(letters(1, 6), 1)]
    assert left(*pages) == [[f"text {letter}"] for letter in letters(1, 6)]
    pages = [[f"Chapter {chr(65 + number // 4)}", letter] for number, letter in enumerate(letters(1, 26))]
    # The last chapter has two pages only.
    assert left(*pages) == [[letter] for letter in letters(1, 24)] + pages[24:]
    # Pages that are all alike, and letters whose beginnings differ, are text.
    pages = [[f"line {letter}" for letter in letters(1, 20)]] * 3
    assert left(*pages) == pages
    pages = [
        [
            f"Dear {name}",
            *[f"We write about the bees of your garden, as all of us have said {n * 'x'}" for n in range(9)],
        ]
        for name in letters(1, 3)
    ]
    assert left(*pages) == pages
    # So are many short lines that would be most of their pages, and all lines of a file.
    pages = [[*(f"Street {letter}" for letter in letters(1, 6)), letter] for letter in letters(1, 3)]
    assert left(*pages) == pages
    for pages in ([[f"line {letter}" for letter in letters(1, count)]] * 3 for count in (2, 4, 8)):
        assert left(*pages) == pages
    assert left(*pages, ["another line"]) == [*pages, ["another line"]]
    # A head and a foot of a page with a picture go.
    pages = [["A head", *(["A text"] * (number == 2)), "A foot"] for number in range(4)]
    assert left(*pages) == [[], [], ["A text"], []]


def test_a_header_that_changes_from_page_to_page_goes_by_the_page_number_beside_it() -> None:
    pages = [[f"1.{n} Section {letter} {n + 10}", letter] for n, letter in enumerate(letters(1, 4), 1)]
    assert left(*pages) == [[letter] for letter in letters(1, 4)]
    assert left(*pages[:2]) == pages[:2]
    # Headings in larger type, beside numbers of their own.
    body = [PdfLine("text of the page", 10)]
    chapters = [[PdfLine(f"{n} Chapter {letter}", 16), *body] for n, letter in enumerate(letters(1, 4), 1)]
    assert without_running_lines([page + body for page in chapters]) != chapters
    assert [page[:1] for page in without_running_lines(chapters)] == [page[:1] for page in chapters]
    # A title stays above headers of the same words in smaller type.
    titled = [[PdfLine("A paper", 24.0 if text == "a" else 9.0), PdfLine(text, 10.0)] for text in "abcd"]
    assert without_running_lines(titled) == [titled[0], *(page[1:] for page in titled[1:])]


@pytest.mark.parametrize(
    "given", ["1 2", "511 512 513", "-_9_- -_10_-", "Page_1_of_2 Page_2_of_2", "1/3 2/3 3/3", "i ii iii iv"]
)
def test_page_numbers_go_from_either_end(given: str) -> None:
    numbers = [each.replace("_", " ") for each in given.split()]
    texts = [f"a text {letter}" for letter in letters(1, len(numbers))]
    expected = [[text] for text in texts]
    assert left(*([text, number] for text, number in zip(texts, numbers, strict=True))) == expected
    assert left(*([number, text] for text, number in zip(texts, numbers, strict=True))) == expected


@pytest.mark.parametrize(
    "pages",
    [
        [["A header", "one"], ["A header", "two"], ["three"]],
        # Far apart.
        [["Results", "one"], *([letter] for letter in letters(1, 8)), ["Results", "two"], ["Results", "three"]],
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


def add_picture(page: pypdfium2.PdfPage, bottom: float, height: float) -> None:
    """Add a picture as wide as a page of 100 points."""
    strip = pypdfium2.PdfImage.new(page.pdf)
    strip.set_bitmap(pypdfium2.PdfBitmap.new_native(10, 10, 1))
    strip.set_matrix(pypdfium2.PdfMatrix(100, 0, 0, height, 0, bottom))
    page.insert_obj(strip)
    page.gen_content()


def scan(folder: Path, *texts: str) -> Path:
    """Write a file of pages; one without a text is a picture."""
    whole = pypdfium2.PdfDocument.new()
    for text in texts:
        if text:
            whole.import_pages(pypdfium2.PdfDocument(pdf(text)))
        else:
            add_picture(whole.new_page(100, 100), 0, 100)
    whole.save(path := folder / "scan.pdf")
    return path


def test_scanned_pages_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = scan(tmp_path, "", "", "One two three.", "", "Four five six.", "", "")
    assert Extractor("lead").extract_file(path).text == "One two three. Four five six."
    command = "`ocrmypdf --force-ocr --pages 1-2,4,6-7 IN OUT`"
    assert command in capsys.readouterr().err
    with refused("`ocrmypdf --force-ocr --pages 1 IN OUT`"):
        Extractor("lead").extract_file(scan(tmp_path, ""))


def test_a_scan_with_a_stamp_is_a_picture_but_one_with_a_text_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scan(tmp_path, "")
    monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page: [PdfLine("Exhibit 12")])
    with refused("page 1 is a picture"):
        pdf_text(path)
    # So is one whose text layer lost its letters.
    monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page: [PdfLine("20I5 ( ) 4,804", y=50)] * 3)
    with refused("page 1 is a picture"):
        pdf_text(path)
    # A title in the middle of a slide is text; so are three lines at its edge.
    for found in ([PdfLine("Bees fly.", y=50)], [PdfLine(f"Bees fly {number}.") for number in range(3)]):
        monkeypatch.setattr("pyramidions.documents.pdf.page_lines", lambda page, found=found: found)
        assert "Bees fly" in pdf_text(path)


def test_a_page_that_is_more_than_half_in_strips_is_a_scan(tmp_path: Path) -> None:
    for strips in (5, 6):
        whole = pypdfium2.PdfDocument.new()
        page = whole.new_page(100, 100)
        for number in range(strips):
            add_picture(page, 10 * number, 9)
        whole.save(tmp_path / "strips.pdf")
        with refused("strips.pdf holds no text") as error:
            pdf_text(tmp_path / "strips.pdf")
        assert ("page 1" in str(error.value)) is (strips == 6)


@pytest.mark.parametrize("content", [b"", b"<html>"])
def test_a_file_that_is_no_pdf_is_told_in_these_words(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    with refused("a.pdf must be a PDF file, but is damaged or of another kind"):
        pdf_text(tmp_path / "a.pdf")

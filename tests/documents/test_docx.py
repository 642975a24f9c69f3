"""What mammoth leaves out of documents of Word, or reads otherwise than Word shows it."""

from pathlib import Path

import pytest
from documents import docx, shown, written
from refusals import refused

from pyramidions.documents.file_formats import file_text


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*inside: str, properties: str = "") -> str:
    """Return a paragraph of runs; what is no XML is the text of one."""
    runs = (each if each.startswith("<") else run(each) for each in inside)
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(runs)}</w:p>"


def table(*rows: list[str]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def said(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


ONE, TWO, X = said("1"), said("2"), said("x")
HALF = f"<m:f><m:num>{ONE}</m:num><m:den>{TWO}</m:den></m:f>"
POWER = f"<m:sSup><m:e>{X}</m:e><m:sup>{TWO}</m:sup></m:sSup>"
ROOT = f"<m:rad><m:deg>{{}}</m:deg><m:e>{said('16')}</m:e></m:rad>"
TEXT = f"<w:txbxContent>{paragraph('In a box.')}</w:txbxContent>"
# Twice, in the forms of newer programs and of older ones.
BOX = f"<c:AlternateContent><c:Choice>{TEXT}</c:Choice><c:Fallback>{TEXT}</c:Fallback></c:AlternateContent>"
RUBY = f"<w:r><w:ruby><w:rt>{run('かんじ')}</w:rt><w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby></w:r>"
STYLES = """<w:style w:type="paragraph" w:styleId="a"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="b"><w:name w:val="B"/><w:basedOn w:val="a"/></w:style>
<w:style w:type="paragraph" w:styleId="c"><w:name w:val="C"/><w:pPr><w:outlineLvl w:val="7"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="d"><w:basedOn w:val="a"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="e"><w:basedOn w:val="f"/></w:style>
<w:style w:type="paragraph" w:styleId="f"><w:basedOn w:val="e"/></w:style>
<w:style w:type="paragraph" w:styleId="g"><w:name w:val="caption"/></w:style>
<w:style w:type="paragraph" w:styleId="h"><w:name w:val="HTML Preformatted"/></w:style>
<w:style w:type="paragraph" w:styleId="i"><w:name w:val="I"/><w:basedOn w:val="h"/></w:style>"""
STYLED = "".join(paragraph(style, properties=f'<w:pStyle w:val="{style}"/>') for style in "abcdef")
LONG = "Bees fly far and sleep in winter."


def field(*pieces: str) -> str:
    """Return a field of Word, whose instruction stands in pieces."""
    runs = "".join(f'<w:r><w:instrText xml:space="preserve">{piece}</w:instrText></w:r>' for piece in pieces)
    return "{0}begin{1}{2}{0}end{1}".format('<w:r><w:fldChar w:fldCharType="', '"/></w:r>', runs)


SEQUENCE = f'<w:fldSimple w:instr=" SEQ Table ">{run("12")}</w:fldSimple>'

READ = {
    "field": (paragraph(field(r" EQ \f(1;2) "), " of 3", field(r"eq \f(1", r",2)"), "."), "1/2 of 3 1/2."),
    "simple field": (paragraph(r'<w:fldSimple w:instr="EQ \r(3;8)"/>', " is 2."), "8^(1/3) is 2."),
    "power in a field": (paragraph("10", field(r"EQ \s\up8(6)"), " bees, ", field(r"EQ \r(16)")), "10^6 bees, √16"),
    "reading in a field": (paragraph(field(r'EQ \* jc2 \* "Font:A" \* hps10 \o\ad(\s\up 9(かんじ),漢字)')), "漢字"),
    "brackets in a field": (paragraph("2", field(r"EQ \b\lc\{(\a\al\co1(x=1,y=2))"), " and ",
                                      field(r"EQ \b(x)\b\bc\[(y)")), "2{x=1; y=2 and (x)[y]"),
    "signs in a field": (paragraph(field(r"EQ \d \fo10 \li () a\s\do3(1)\x\to(b) \b \bc\( (\f(2\,5,f\(x\)))")),
                         "a_1b (2,5/(f(x)))"),
    "other fields": (paragraph("See", field(" PAGEREF x "), " ", SEQUENCE, "."), "See 12."),
    "open field": (paragraph(field(r"EQ \f(1;2"), " cup"), "1/2 cup"),
    "formula": (paragraph("At ", f"<m:oMath>{said('p&lt;0.05')}</m:oMath>", " it holds."), "At p<0.05 it holds."),
    "fraction": (paragraph(f"<m:oMath>{TWO}{HALF}</m:oMath>", " cups"), "2 1/2 cups"),
    "power": (paragraph(f"<m:oMath><m:d><m:e>{POWER}{said('+1')}</m:e></m:d></m:oMath>"), "(x^2+1)"),
    "roots": (paragraph(f"<m:oMath>{ROOT.format('')}={ROOT.format(TWO)}</m:oMath>"), "√16 16^(1/2)"),
    "formula of its own": (paragraph("So", f"<m:oMathPara><m:oMath>{X}</m:oMath></m:oMathPara>"), "So"),
    "drop cap": (paragraph("T", properties='<w:framePr w:dropCap="drop"/>') + paragraph("he bees."), "The bees."),
    "outline": (paragraph("A", properties='<w:outlineLvl w:val="1"/>') + paragraph("a."), "## A | a."),
    "styles": (STYLED, "## a | ## b | ###### c | d | e | f"),
    "text box": (paragraph("Before.", BOX), "Before. | In a box."),
    "text box of a caption": (
        paragraph("Bees.", BOX, properties='<w:pStyle w:val="g"/>') + paragraph("They fly."),
        "In a box. | They fly.",
    ),
    "hidden": (paragraph("Seen", run(" not", "<w:vanish/>"), run(" all", '<w:vanish w:val="0"/>')), "Seen all"),
    "reading": (paragraph(RUBY), "漢字"),
    "direction": (paragraph(f"<w:bdo>{run('One')}</w:bdo><w:dir>{run(' two')}</w:dir>"), "One two"),
    "table": (paragraph(LONG) + table(["a", "b"], ["1", "2"]), LONG),
    "frame": (paragraph(LONG) + table(["Note."]), f"{LONG} | Note."),
    "cells": (paragraph("Bees fly.") + table(["A cell of a bee", "b"], ["Another cell", "2"]), "Bees fly."),
    "caption": (paragraph("Bees.", properties='<w:pStyle w:val="g"/>') + paragraph("They fly."), "They fly."),
    # Code is no text, but what is set as code may be all of it.
    "code": (paragraph("Bees.", properties='<w:pStyle w:val="h"/>') + paragraph("They fly."), "They fly."),
    "set as code": ("".join(paragraph(LONG, properties=f'<w:pStyle w:val="{each}"/>') for each in "hih"),
                    f"{LONG} | {LONG} | {LONG}"),
    "columns": (table(["Led a team of 3 engineers in Zurich", "Wrote the plans of 5 bridges"]) + paragraph("A life."),
                "Led a team of 3 engineers in Zurich | Wrote the plans of 5 bridges | A life."),
    "Chinese columns": (table(["负责带领三名工程师的项目", "撰写五座桥梁的规划"]),
                        "负责带领三名工程师的项目 | 撰写五座桥梁的规划"),
    "layout": (paragraph("One.") + table(["Two.", LONG]), f"One. | Two. | {LONG}"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "lines"), READ.values(), ids=READ)
def test_what_word_shows_is_read(body: str, lines: str, tmp_path: Path) -> None:
    assert shown(file_text(written(tmp_path / "a.docx", docx(body=body, styles=STYLES)))) == lines


@pytest.mark.parametrize(
    "body", [table(["Plant", "Count"], ["Bees", "12"]), READ["caption"][0].partition("</w:p>")[0] + "</w:p>"]
)
def test_a_document_that_is_a_table_or_a_caption_alone_is_refused(body: str, tmp_path: Path) -> None:
    with refused("no running text, only tables"):
        file_text(written(tmp_path / "a.docx", docx(body=body, styles=STYLES)))

"""Numbers that do not stand on one line of a document: raised, lowered, in fractions, roots and units."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents import PLAIN, docx, epub, pdf, pdf_lines, presentation, shape, shown, slide, written

from pyramidions.documents.file_formats import file_text
from pyramidions.documents.markdown_page import markdown_pages
from pyramidions.documents.page_text import page_text

#: What stands raised is ^{...} here, and what stands lowered is _{...}; and what is read of it, in every format.
PLACED = {
    "10^{6}": "10^6",
    "5x10^{-8}": "5x10^-8",
    "10^{12}": "10^12",
    "10^{n} to 10^{2n}": "10^n to 10^2n",
    "10^{6.5}": "10^6.5",
    "2^{n+1} or 2^{n-k}": "2^(n+1) or 2^(n-k)",
    "10^{3}-10^{4}": "10^3-10^4",
    "10^{3-4}": "10^(3-4)",
    "10^{(6)}": "10^(6)",
    "2^{1}/_{2} cups": "2 1/2 cups",
    "^{3}/_{4} cup": "3/4 cup",
    "3 m^{2} of 5 cm^{3}": "3 m2 of 5 cm3",
    "H_{2}O": "H2O",
    "C_{6}H_{12}O_{6}": "C6H12O6",
    "SO_{4}^{2-}": "SO4^2-",
    "Ca^{2+}": "Ca2+",
    "x_{1}^{2}": "x1^2",
    "10_{2}": "10_2",
    "log_{10}5": "log10 5",
    "5^{th}, 3^{rd} and 1^{st}": "5th, 3rd and 1st",
    "at 20^{o}C": "at 20°C",
    "(10)^{6}": "(10)^6",
    "^{14}C": "14C",
    "m^{2}5": "m2 5",
    "$5^{99}": "$5.99",
    "chi^{2} of Ser^{9}": "chi2 of Ser9",
    # Names notes or sources.
    "bees,^{1} wasps^{2,3} and": "bees, wasps and",
    "in May.^{[4]} Of wasps^{*}": "in May. Of wasps",
}
_PLACE = re.compile(r"([\^_])\{([^}]*)\}")


def marked(text: str, raised: str, lowered: str) -> str:
    return _PLACE.sub(lambda found: (raised if found[1] == "^" else lowered).format(found[2]), text)


def runs(text: str, run: Callable[[str, int], str]) -> str:
    """Return text in runs, which are raised (1), lowered (-1) or neither (0)."""
    first, *others = _PLACE.split(text)
    made = [run(first, 0)]
    for sign, inside, behind in zip(others[::3], others[1::3], others[2::3], strict=True):
        made += [run(inside, 1 if sign == "^" else -1), run(behind, 0)]
    return "".join(made)


def word_run(text: str, place: int) -> str:
    style = ("", '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>')[place]
    return f'<w:r><w:rPr>{style}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def moved_run(text: str, place: int) -> str:
    """Return a run that only its height raises, in half points."""
    return word_run(text, 0).replace("<w:rPr>", f'<w:rPr><w:position w:val="{8 * place}"/>')


def slide_run(text: str, place: int) -> str:
    return f'<a:r><a:rPr baseline="{30000 * place}"/><a:t>{text}</a:t></a:r>'


def typed_run(text: str, place: int) -> str:
    """Return characters of a PDF file: 5 points up or 2 points down, in smaller type."""
    text = text.replace("(", r"\(").replace(")", r"\)")
    height = (0, 5, -2)[place]
    return f") Tj /F1 7 Tf {height} Ts ({text}) Tj /F1 12 Tf 0 Ts (" if place else text


def in_latex(raised: str, lowered: str) -> Callable[[list[str]], str]:
    return lambda lines: "\n\n".join(marked(each.replace("$", r"\$"), raised, lowered) for each in lines)


def of_html(raised: str = "<sup>{}</sup>", lowered: str = "<sub>{}</sub>") -> Callable[[list[str]], str]:
    return lambda lines: "".join(f"<p>{marked(each, raised, lowered)}</p>" for each in lines)


HI = '<hi rend="{}">{{}}</hi>'
WRITTEN: dict[str, Callable[[list[str]], str | bytes]] = {
    "a.html": of_html(),
    "b.html": of_html("<span class=superscript>{}</span>", "<span style='vertical-align: sub'>{}</span>"),
    "a.md": lambda lines: "\n\n".join(marked(each, "<sup>{}</sup>", "<sub>{}</sub>") for each in lines),
    # As pandoc writes it; ^[4] is a footnote there.
    "b.md": lambda lines: "\n\n".join(marked(each.replace("[4]", "4"), "^{}^", "~{}~") for each in lines),
    "a.xml": lambda lines: PLAIN.replace("<p>{}</p>", of_html()(lines)),
    "b.xml": lambda lines: (
        f"<TEI><text><body>{of_html(HI.format('superscript'), HI.format('sub'))(lines)}</body></text></TEI>"
    ),
    "a.epub": lambda lines: epub(**{"OEBPS/text/a.xhtml": of_html()(lines), "OEBPS/text/b c.xhtml": "<p/>"}),
    "a.docx": lambda lines: docx(body="".join(f"<w:p>{runs(each, word_run)}</w:p>" for each in lines)),
    "b.docx": lambda lines: docx(body="".join(f"<w:p>{runs(each, moved_run)}</w:p>" for each in lines)),
    "a.pptx": lambda lines: presentation(
        **{
            "ppt/slides/slide1.xml": slide(
                *(shape("X").replace("<a:r><a:t>X</a:t></a:r>", runs(each, slide_run)) for each in lines)
            )
        }
    ),
    "a.pdf": lambda lines: pdf(*(pdf_lines(runs(each, typed_run)) for each in lines)),
    # In type of the size of the line.
    "b.pdf": lambda lines: pdf(
        *(pdf_lines(runs(each, typed_run).replace("F1 7", "F1 12").replace("-2 Ts", "-4 Ts")) for each in lines)
    ),
    "a.tex": in_latex(r"\textsuperscript{{{}}}", r"\textsubscript{{{}}}"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_raised_and_lowered_numbers_are_read_alike_from_every_format(name: str, tmp_path: Path) -> None:
    sentences = {f"They saw {piece} all day.": f"They saw {said} all day." for piece, said in PLACED.items()}
    text = " ".join(file_text(written(tmp_path / name, WRITTEN[name](list(sentences)))).split())
    assert [said for said in sentences.values() if said not in text] == []


#: Parts of a formula, by name: in MathML, in Word and in LaTeX.
LANGUAGES = {
    "power": ("<msup>{}{}</msup>", "<m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup>", "{}^{{{}}}"),
    "index": ("<msub>{}{}</msub>", "<m:sSub><m:e>{}</m:e><m:sub>{}</m:sub></m:sSub>", "{}_{{{}}}"),
    "index and power": ("<msubsup>{}{}{}</msubsup>", "<m:sSubSup><m:e>{}</m:e><m:sub>{}</m:sub><m:sup>{}</m:sup>"
                        "</m:sSubSup>", "{}_{{{}}}^{{{}}}"),
    "fraction": ("<mfrac>{}{}</mfrac>", "<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", r"\frac{{{}}}{{{}}}"),
    "small fraction": ("<mfrac>{}{}</mfrac>", "<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", r"\tfrac {}{}"),
    "stroke": ("<mfrac>{}{}</mfrac>", "<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", r"{{{} \over {}}}"),
    "root": ("<msqrt>{}</msqrt>", "<m:rad><m:deg/><m:e>{}</m:e></m:rad>", r"\sqrt{{{}}}"),
    "cube root": ("<mroot>{}<mn>3</mn></mroot>", "<m:rad><m:deg><m:t>3</m:t></m:deg><m:e>{}</m:e></m:rad>",
                  r"\sqrt[3]{{{}}}"),
    "sum": ("<munderover><mo>∑</mo>{}{}</munderover>", '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>'
            "<m:sub>{}</m:sub><m:sup>{}</m:sup></m:nary>", r"\sum_{{{}}}^{{{}}}"),
    "row": ("<mtable><mtr><mtd>{}</mtd><mtd>{}</mtd></mtr></mtable>",
            "<m:m><m:mr><m:e>{}</m:e><m:e>{}</m:e></m:mr></m:m>", r"{}\ {}"),
    "pair": ("<mfenced>{}{}</mfenced>", "<m:d><m:e>{}</m:e><m:e>{}</m:e></m:d>", "({},{})"),
    "choice": ("<mfenced separators=''>{}{}</mfenced>", '<m:f><m:fPr><m:type m:val="noBar"/></m:fPr><m:num>{}</m:num>'
               "<m:den>{}</m:den></m:f>", r"\binom{}{}"),
    "isotope": ("<mmultiscripts>{1}<mprescripts/><none/>{0}</mmultiscripts>",
                "<m:sPre><m:sub/><m:sup>{}</m:sup><m:e>{}</m:e></m:sPre>", "^{{{}}}{}"),
}  # fmt: skip
FORMULAS: list[tuple[list[str | tuple[Any, ...]], str]] = [
    ([("power", "10", "-8")], "10^-8"),
    (["5×", ("power", "10", "3")], "5×10^3"),
    ([("power", "x", "n+1")], "x^(n+1)"),
    ([("power", "10", ("power", "10", "2"))], "10^(10^2)"),
    ([("fraction", "1", "2")], "1/2"),
    (["2", ("fraction", "1", "2")], "2 1/2"),
    (["2", ("small fraction", "1", "2"), "3"], "2 1/2 3"),
    ([("stroke", "1", "3")], "1/3"),
    ([("fraction", ("power", "x", "2"), "2")], "(x^2)/2"),
    ([("fraction", "a+1", "b")], "(a+1)/b"),
    ([("root", "16")], "√16"),
    ([("cube root", "8")], "8^(1/3)"),
    ([("index", "10", "2")], "10_2"),
    ([("index", "N", "s")], "N_s"),
    ([("index and power", "N", "s", "H")], "N_s^H"),
    ([("index and power", "T", "max", "2")], "T_max^2"),
    ([("sum", "1", "5"), "3"], "∑_1^5 3"),
    ([("row", "1", "2")], "1 2"),
    ([("pair", "1", "2")], "(1,2)"),
    ([("isotope", "14", "C")], "14C"),
]


def formula(parts: list[str | tuple[Any, ...]], language: int) -> str:
    """Return a formula in a language."""

    def said(part: str | tuple[Any, ...]) -> str:
        if isinstance(part, str):
            return (f"<mrow><mtext>{part}</mtext></mrow>", f"<m:r><m:t>{part}</m:t></m:r>", part)[language]
        return LANGUAGES[part[0]][language].format(*map(said, part[1:]))

    return "".join(map(said, parts))


MATHJAX = '<script src="https://cdn.org/MathJax.js"></script>{}'
MML = PLAIN.replace("<article>", '<article xmlns:mml="http://www.w3.org/1998/Math/MathML">').replace("<p>{}</p>", "{}")
TEX = "<tex-math>\\documentclass{minimal}\\begin{document}$${}$$\\end{document}</tex-math>"
TEX = f"<p>It is <inline-formula>{TEX}</inline-formula>.</p>"


def test_dollars_and_brackets_are_formulas_in_a_page_with_a_script_that_typesets_them() -> None:
    page = r"<p>The $10^6$ bees and \(\frac12\) of $5 or $x$, \(y\) and $6.</p><p>\[x = \sqrt{2}\]</p>"
    assert shown(page_text(page)) == r"The $10^6$ bees and \(\frac12\) of $5 or $x$, \(y\) and $6. | \[x = \sqrt{2}\]"
    assert shown(page_text(MATHJAX.format(page))) == "The 10^6 bees and 1/2 of $5 or x, y and $6."


@pytest.mark.parametrize(
    "lines",
    [
        r"It says \[ to open. | Of my_variable and x_1 it tells. | It says \] to close.",
        "It says $$ to open. | Of my_variable and x_1 it tells. | It says $$ to close.",
        r"It says \[ to open, and this is the text of x_1 that stays, and \] to close.",
        "It says $$ to open; of my_variable it tells, and $$ to close.",
        "It rose from $20 a barrel to 30$ in a week, or from $20 to 30$.",
        r"Here \\(x_1 and \\[x_2 open nothing, and \(see below\) is text.",
    ],
)
@pytest.mark.parametrize("script", ["<p>MathJax or KaTeX?</p>", MATHJAX.format("")])
def test_text_between_the_marks_of_formulas_stays(script: str, lines: str) -> None:
    page = script + "".join(f"<p>{line}</p>" for line in lines.split(" | "))
    assert shown(page_text(page)).removeprefix("MathJax or KaTeX? | ") == lines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"He left \(in May 2020\) and \(see $5\) and $6.", "He left (in May 2020) and (see $5) and $6."),
        (r"So \(x^2\), \(a\) and `\(x^2 b\)`.", r"So x^2, (a) and \(x^2 b\)."),
        ("\\[\nx = \\alpha\n\\]\n\nSo it is.", "So it is."),
        ("\\[\nx^2 is what the teacher said.\n\\]", "[ x^2 is what the teacher said. ]"),
        ("\\[\nOf my_variable.\n\nIt is long.\n\\]", "[ Of my_variable. | It is long. ]"),
        ("From 10~20~30 or a~b~c to H~2~O.", "From 10~20~30 or a~b~c to H2O."),
    ],
)
def test_brackets_in_markdown_are_formulas_where_they_hold_one(text: str, said: str) -> None:
    assert shown(page_text("".join(markdown_pages(text)))) == said


@pytest.mark.parametrize(
    ("name", "language", "line", "page"),
    [
        ("a.html", 0, "<p>It is <math>{}</math>.</p>", "{}"),
        ("a.xml", 0, "<p>It is <inline-formula><mml:math>{}</mml:math></inline-formula>.</p>", MML),
        ("b.xml", 2, TEX, MML),
        ("a.docx", 1, "<w:p><w:r><w:t>It is </w:t></w:r><m:oMath>{}</m:oMath><w:r><w:t>.</w:t></w:r></w:p>", "{}"),
        ("a.tex", 2, "It is ${}$.\n\n", "{}"),
        ("a.md", 2, "It is ${}$.\n\n", "{}"),
        ("b.md", 2, "It is \\({}\\,\\).\n\n", "{}"),
        ("b.html", 2, "<p>It is \\({}\\).</p>", MATHJAX),
        ("c.html", 2, "<p>It is ${}$.</p>", MATHJAX),
        ("d.html", 2, "<p>It is <script type='math/tex'>{}</script>.</p>", "{}"),
    ],
)
def test_formulas_keep_their_numbers_apart(name: str, language: int, line: str, page: str, tmp_path: Path) -> None:
    content = page.replace("{}", "".join(line.replace("{}", formula(parts, language)) for parts, _ in FORMULAS))
    made = docx(body=content) if name == "a.docx" else content
    assert shown(file_text(written(tmp_path / name, made))).split(" | ") == [f"It is {said}." for _, said in FORMULAS]

"""Papers in LaTeX, alone, in parts and in archives."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from documents import sample, shown, written
from refusals import refused

from pyramidions.data.papers import open_papers, paper_files
from pyramidions.documents import latex_parser
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.latex import read_latex
from pyramidions.documents.source import list_files


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_paper_is_read_with_its_headings_and_without_what_is_no_text(tmp_path: Path) -> None:
    assert shown(file_text(written(tmp_path / "a.tex", sample("paper.tex")))) == (
        "# On Apis | ## Abstract | We count bees. There are 10 % more. | ## Introduction | Bees fly. | ## Méthods | "
        "They were counted, as in a beehive, twice. So x_1 ∈A holds. “Quoted”—text. | where x is large. | "
        "### Rulers | of wood | of steel | ## Results | Section 1 and Section 2, but not Figure."
    )


def document(body: str) -> str:
    return rf"\begin{{document}}{body}\end{{document}}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("One\ntwo.\n\nThree.", "One two. | Three."),
        (r"\chapter{A}\section{B}\paragraph{C} d", "## A | ### B | ###### C | d"),
        (r"\addchap{A}\addsec{B}\section[short]{Long \cite{x}}", "## A | ### B | ### Long"),
        (r"\section{A}\begin{comment}no\end{comment}\begin{quote}Yes.\end{quote}", "## A | Yes."),
        (r"{\bf Bold} \"Uber \ss{} 5\% \& \LaTeX{} \verb|a_b|", "Bold Über ß 5% & LaTeX a_b"),
        (r"\renewcommand{\a}{x\a}\newcommand{\b}{y}\a\b{z}", "xyz"),
        (r"\def\a#1{no}\def\b{yes}A.\b{}", "A.yes"),
        (r"A \unknown{word} and \emph{another}", "A word and another"),
        (r"$\overline{L}$ is not $L$, and $\overline{x+y}$", "L\u0305 is not L, and x+y"),
        (r"{a \section{B} c", "a | ## B | c"),  # a brace that nothing closes
        ("% \\end{document} and \\begin{document}\nA. \\% B.", "A. % B."),
        ("{" * 50 + "A." + "}" * 50, "A."),
        # What follows these macros is no argument of theirs.
        (r"A.\printbibliography\section{B}\titlespacing*{\section}{0pt}{1ex}{1ex}\section{C}", "A. | ## B | ## C"),
        (r"A.\vskip 0.2in plus 1fil B.\vskip 2\baselineskip C.", "A. B. C."),
        (r"\ProvidesFile{a.tex}[2022 a]A.\list[\chapter*]{x} B.", "A.x B."),
        (r"A\footnotemark[1] B.\linebreak[4] C.\marginpar{no}\color{red} D.", "A B. C. D."),
        (r"\captionof{figure}[B.]{Bees.}A.\figcaption{C.}\captionof*{table}{D.}\captionbox{E.}[3cm]{F.} G.", "A. G."),
        # Of these arguments, one is text.
        (r"\parbox[t]{5cm}{A} \foreignlanguage{german}{B} \hyperref[sec:c]{C} \fcolorbox{a}{b}{D} \rotatebox{9}{E}",
         "A B C D E"),
        (r"\begin{multicols}{2}A.\end{multicols}\begin{lemma}[Bee] B.\end{lemma}{\begin{list}{-}{x}\item C.\end{list}",
         "A. | B. | C."),
        (r"\SI{20}{\kilo\gram}, \qty[x=y]{5e-3}{\metre\per\second\squared}, \SI{3}{m.s^{-1}}, \num{1e6}, \ang{30}",
         "20 kg, 5×10^-3 m/s^2, 3 m s^-1, 1×10^6, 30°"),
        (r"\SI{3 +- 0.5}{\per\cubic\metre}, \ang{12;30;5}, \unit[5]{kg}, \unitfrac[5]{m}{s}, \np[kg]{5}, \nicefrac12",
         "3±0.5 /m^3, 12°30′5″, 5 kg, 5 m/s, 5 kg, 1/2"),
        (r"2\^{}10 is 4$^{5}$ m$^2$ in Ca$^{2+}$, $25^\circ$C, the $3^{rd}$, $x^\frac12$, 5 s$^{-1}$, $1\,000$",
         "2^10 is 4^5 m2 in Ca2+, 25°C, the 3rd, x^(1/2), 5 s^-1, 1 000"),
        (r"\SIrange{1}{5}{\metre}, \numrange{1}{5}, \qtylist{1;2}{\furlong}, \si{\micro\ohm}",
         "1 to 5 m, 1 to 5, 1, 2 furlong, µΩ"),
        (r"10\textsuperscript{6} for \pounds5\slash\euro{}6", "10^6 for £5/€6"),
        (r"\input p\section{B}\input part", "Letter. | ## B | Part."),
        (r"\import{.}{part}\subimport{./}{part.tex}\input part B.", "Part.Part.Part. B."),
        # A definition begins no environment, however many there are.
        (r"\newcommand{\be}{\begin{equation}}\def\ee{\par\end{equation}}A. \be x \ee\section{B} C.", "A. | ## B | C."),
        ("\\newenvironment{x}[1]{\\begin{y}{\\bf #1}}%\n{\\end{y}}" * 40 + r"\section{A}\begin{x}B.\end{x}",
         "## A | B."),
        # Drafts, as TeX knows them.
        ("A.\n\\iffalse\nA draft.\n\\fi\nB.", "A. B."),
        (r"A \iffalse no \ifnum1=1 no \else no \fi no \fi and \iffalse no \else B\fi.", "A and B."),
        (r"\newif\ifdraft A \ifdraft no\else B\fi \drafttrue\ifdraft C\else no\fi \iftrue D \else no \fi", "A B C D"),
        ("A.\n\\if0\nno\n\\fi\nB. \\if 11 C.\\fi\\ifx\\u\\w D.\\else E.\\fi", "A. B. C.D.E."),
        (r"A. \iffalse B.", "A. B."),
        # What stands in listings and addresses ends no formula, group or document.
        *((f"A.\n\\begin{{{name}}}\n$ {{ \\begin{{x}} \\end{{document}}\n\\end{{{name}}}\nB.\\section{{C}} D.",
           "A. B. | ## C | D.") for name in ("lstlisting", "minted", "Verbatim", "verbatim*", "alltt", "comment")),
        (r"A \lstinline|${| \lstinline[language=C]{a\{b} \verb+{$+ \mintinline{c}{x} B.", r"A ${ a\{b {$ x B."),
        (r"A \url{http://a.b/%7Ec_$d#e} \path|c$| and \href{http://a.b/c%20e#f}{the page} B.", "A and the page B."),
        ("% \\begin{verbatim}\nA.\\begin{verbatim} B.", "A. B."),
        ("It is .5 of \\cite{a}.", "It is .5 of [?]."),
        # A hole behind a preposition, as TeX prints it; elsewhere, what is left out leaves none.
        (r"In~\citet{a} and by \cref{b}, bees (see \citep{c}) fly \cite{d} (Section~\ref{e}; \eqref{f}). By \eqref{g}.",
         "In [?] and by [?], bees fly. By [?]."),
        # What nothing ends is no formula.
        ("It is $5.\\section{B} C $5 to $6 x.\n\nD $7 more.", "It is $5. | ## B | C $5 to $6 x. | D $7 more."),
        (r"A \[ x = 1\section{B} C.", "A x = 1 | ## B | C."),
        # Macros of the author with arguments.
        (r"\newcommand{\mark}[2][red]{\color{#1}#2}\mark{A} \mark[blue]{B} \def\e#1{\times10^{#1}}$5\e{-6}$",
         "A B 5×10^-6"),
        (r"\def\thm#1{\begin{theorem}[#1]}\thm{A} B.\section{C} D.", "A B. | ## C | D."),
        (r"\newcommand{\half}{\frac12}\def\pair(#1,#2){no}Or $2\half$ of $\mbox{A}$.", "Or 2 1/2 of A."),
        ("\\newcommand{\\x}[1]{\\begin{y}#1}" * 300 + "A.", "A."),
        # An accent that the paper redefines takes no end of a formula.
        (r"\def\H{{\cal H}}Here $\H$ is {\bf\c} a set.\section{B} C.", "Here H is a set. | ## B | C."),
        # Definitions apply from where they stand, unless a comment holds them, and as long and deep as they are.
        ("\\newcommand{\\m}{Bee}\n%\\newcommand{\\m}{Old}\nWe \\\\%\\def\\m{Old}\nsaw 5\\% of \\m{}.",
         "We saw 5% of Bee."),
        (r"\def\n{Ann}I met \n{}.\def\n{Bob} Then I met \n, \def\p#1{\def\n{#1}}\p{Cy}\n{} and {\p{Di}\n}.",
         "I met Ann. Then I met Bob, Cy and Di."),
        (r"\def\n{A}$\n\def\n{B}\n$ \makeatletter\def\n{C}\makeatother\n \verb|%{\def\n{D}|\n.", "AB C%{\\def\\n{D}C."),
        (r"\AtBeginDocument{\newcommand{\n}{A}}\n{} \begin{tabular}{l}\def\k{B}\end{tabular}\k.", "A B."),
        (rf"\newcommand{{\abs}}{{{'word ' * 900}}}A \abs B.", f"A {'word ' * 900}B."),
        (r"\def\a{a {b {c {d {e {f} e}}}}}We \a{} here.\def\b#1{{{{{{{b #1}}}}}}}\b{c}.", "We a b c d e f e here.b c."),
        # An abstract may be an argument, or several.
        (r"\abstract{Bees fly.} They sleep.", "## Abstract | Bees fly. | ## Text | They sleep."),
        ("\\abstract\n{Aims.}%\n{Bees fly.} They {really} sleep.",
         "## Abstract | Aims. Bees fly. | ## Text | They really sleep."),
        (r"\abstract \input{part}", "Part."),
        ("\\abstract{Bees fly.}\n\n{They sleep.}", "## Abstract | Bees fly. | ## Text | They sleep."),
    ],
    ids=lambda part: part[:32],
)  # fmt: skip
def test_what_latex_prints_is_read(source: str, lines: str, tmp_path: Path) -> None:
    for name, text in (("part", "Part."), ("p", "Letter.")):
        (tmp_path / f"{name}.tex").write_text(text)
    assert shown(file_text(written(tmp_path / "a.tex", document(source)))) == lines
    # A chapter without a document of its own is read as well.
    assert shown(file_text(written(tmp_path / "a.tex", source))) == lines


def test_files_of_the_folder_are_included_and_no_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret.tex").write_text("A secret.")
    folder = tmp_path / "a"
    (folder / "parts").mkdir(parents=True)
    for name, text in (("parts/b", r"\section{B} \input{c}"), ("c", "two"), ("a", r"\x{} one"), ("m", r"\def\x{The}")):
        (folder / f"{name}.tex").write_text(text)
    (folder / "loop.tex").symlink_to("loop.tex")
    outside = rf"\input{{../secret}}\input{{/etc/passwd}}\import{{..}}{{secret}}\input{{loop}}\input{{{'x' * 5000}}}"
    source = r"\input{m}" + document(r"\input{a.tex} \include{parts/b} \input{b/absent} \input{main.bbl}" + outside)
    path = written(folder / "paper.tex", source)
    assert shown(read_latex(path).text) == "The one | ## B | two"
    said = f"{path} includes files that are not in its folder and were left out: b/absent, ../secret, /etc/passwd, "
    assert capsys.readouterr().err.startswith(said)
    # Of an archive, the longest document is read, and its files alone.
    files: dict[str, str | bytes] = {
        "supplement.tex": document(r"Short. \input{c}"),
        "ms/main.tex": document(r"\section{A} Bees fly far. \input{sections/b} \input{c} \input{../d} \input{e}"),
        "sections/b.tex": "They sleep.",
        "ms/c.tex": "They eat.",
        "d.tex": "They dance.",
        "figure.pdf": "none",
        "ms/._main.tex": document("A longer text than that of the paper, which macOS has put beside it."),
        "bytes.tex": b"\0\xff",
    }
    archive = packed(tmp_path / "2101.00001.tar.gz", files)
    assert shown(file_text(archive)) == "## A | Bees fly far. They sleep. They eat. They dance."
    read_latex(archive)
    assert capsys.readouterr().err.endswith("were left out: e.\n")
    with refused("holds none"):
        read_latex(packed(tmp_path / "a.tar.gz", {"a.tex": "no document"}))


def test_a_paper_that_includes_a_part_again_and_again_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latex_parser, "MOST", 10_000)
    (tmp_path / "a.tex").write_text("x" * 999)
    with refused("10,000"):
        read_latex(written(tmp_path / "paper.tex", document(r"\input{a}" * 20)))


def test_of_a_folder_papers_are_read_and_neither_parts_nor_other_xml(tmp_path: Path) -> None:
    for name, text in (
        ("a.tex", document("Text.")),
        ("part.tex", "A part."),
        ("paper.xml", "<article><body><p>Bees fly.</p></body></article>"),
        ("pom.xml", "<project/>"),
        ("s2orc.json", '{"paper_id": "a", "body_text": [{"text": "Bees fly."}]}'),
    ):
        (tmp_path / name).write_text(text)
    found = list_files([tmp_path])
    assert [path.name for path in found.paths] == ["a.tex", "paper.xml"]
    assert {path.name for path in found.skipped} >= {"pom.xml", "s2orc.json"}
    assert [path.name for path in paper_files(tmp_path)] == ["a.tex", "paper.xml"]


def test_a_paper_in_an_archive_is_a_record_with_its_abstract_and_sections(tmp_path: Path) -> None:
    packed(tmp_path / "a.tar.gz", {"a.tex": sample("paper.tex")})
    # Its id decides which split it is in.
    (record,) = [each for split in ("train", "valid", "test") for each in open_papers(tmp_path, split).read()]
    assert record.value["id"] == "a" and record.value["abstract"] == "We count bees. There are 10 % more."
    assert record.value["section_names"] == ["", "Méthods", "Rulers", "Results"]

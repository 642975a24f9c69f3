"""Papers in LaTeX are read with their headings and without what is not their text."""

import io
import tarfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.papers import open_papers, paper_files
from pyramidions.documents import latex
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.latex import read_latex
from pyramidions.documents.paper_xml import Paper
from pyramidions.documents.source import list_files

PAPER = r"""
\documentclass[11pt]{article}
\usepackage{amsmath}
\newcommand{\bee}{\emph{Apis}\xspace} \def\hive{bee\-hive}
\newcommand{\hidden}[1]{}
\title[short]{On \bee\thanks{Paid by bees.}}
\author{A. Keeper}
\begin{document}
\maketitle
\begin{abstract}
We count~bees. % there are many

There are 10\,\% more.
\end{abstract}
Bees fly \cite{bee,fly}.
\section{M\'ethods}\label{sec:methods}
They were counted \citep[p.~2]{bee}, as in a \hive{}, \textbf{twice} (see \cite{a}; \cite{b}).
So $x_1 \in A$ holds.\footnote{Not always.} ``Quoted''---text.
\begin{figure}\caption{A bee.}\end{figure}
\begin{align}x &= 1\end{align}
where \textcolor{red}{x} is \href{http://bee.org}{large}.

\subsection*{Rulers}
\begin{itemize}
\item of wood
\item[b)] of steel
\end{itemize}
\section{Results} \label{r}
Section~\ref{sec:methods} and Section~\ref{r}, but not Figure~\ref{fig}.
\begin{thebibliography}{9}\bibitem{bee} Bee 1999\end{thebibliography}
\end{document}
Never read.
"""


def paper(tmp_path: Path, source: str = PAPER, **included: str) -> Paper:
    for name, text in included.items():
        (tmp_path / f"{name}.tex").write_text(text)
    path = tmp_path / "paper.tex"
    path.write_text(source)
    return read_latex(path)


def document(body: str) -> str:
    return rf"\begin{{document}}{body}\end{{document}}"


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_paper_is_its_title_its_abstract_and_its_sections(tmp_path: Path) -> None:
    found = paper(tmp_path)
    assert (found.title, found.abstract) == ("On Apis", "We count bees. There are 10 % more.")
    assert found.body == [
        (0, "Bees fly."),
        (2, "Méthods"),
        (0, "They were counted, as in a beehive, twice (see). So x_1 ∈A holds. “Quoted”—text. where x is large."),
        (3, "Rulers"),
        (0, "of wood"),
        (0, "of steel"),
        (2, "Results"),
        (0, "Section 1 and Section 2, but not Figure."),
    ]


@for_each(
    ("source", "lines"),
    [
        # What two lines share is one paragraph.
        ("One\ntwo.\n\nThree.", [(0, "One two."), (0, "Three.")]),
        (r"\chapter{A}\section{B}\paragraph{C} d", [(2, "A"), (3, "B"), (6, "C"), (0, "d")]),
        (r"\section[short]{Long \cite{x}}", [(2, "Long")]),
        (r"\section{A}\begin{comment}no\end{comment}\begin{quote}Yes.\end{quote}", [(2, "A"), (0, "Yes.")]),
        (r"{\bf Bold} \"Uber \ss{} 5\% \& \LaTeX{} \verb|a_b|", [(0, "Bold Über ß 5% & LaTeX a_b")]),
        (r"\renewcommand{\a}{x\a}\newcommand{\b}{y}\a\b\c{z}", [(0, "xyz")]),
        (r"A \unknown{word} and \emph{another}", [(0, "A word and another")]),
        (r"{a \section{B} c", [(0, "a"), (2, "B"), (0, "c")]),  # a brace that nothing closes
        ("% \\end{document} and \\begin{document}\nA. \\% B.", [(0, "A. % B.")]),
        (r"\def\a#1{no}\def\b{yes}A.\b{}", [(0, "A.yes")]),
        ("{" * 50 + "A." + "}" * 50, [(0, "A.")]),
        ("", []),
    ],
)
def test_lines_are_what_is_printed(source: str, lines: list[tuple[int, str]], tmp_path: Path) -> None:
    assert paper(tmp_path, document(source)).body == lines
    # A chapter without a document of its own is read as well.
    assert paper(tmp_path, source).body == lines


def test_files_of_the_folder_are_included(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "b.tex").write_text(r"\section{B} \input{c} \input{absent}")
    found = paper(
        tmp_path,
        r"\input{macros}" + document(r"\input{a.tex} \include{parts/b}"),
        a=r"\x{} one",
        c="two",
        macros=r"\def\x{The}",
    )
    assert found.body == [(0, "The one"), (2, "B"), (0, "two")]


def test_a_paper_that_includes_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"paper\.tex must include files and macros at most 16 deep\.$"):
        paper(tmp_path, r"\input{paper}")


def test_files_outside_of_the_folder_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret.tex").write_text("A secret.")
    (tmp_path / "a").mkdir()
    long = "x" * 5000
    source = rf"Bees fly.\input{{../secret}}\input{{/etc/passwd}}\import{{..}}{{secret}}\input{{{long}}}"
    assert paper(tmp_path / "a", source).body == [(0, "Bees fly.")]
    told = "includes files that are not in its folder and were left out: ../secret, /etc/passwd, "
    assert told in capsys.readouterr().err
    packed_ = packed(tmp_path / "a.tar.gz", {"a.tex": document(source), "secret.tex": "A secret."})
    assert "secret" not in str(read_latex(packed_).body)


@for_each(
    ("source", "body"),
    [
        # What follows these macros is no argument of theirs.
        (r"A.\printbibliography\section{B}", [(0, "A."), (2, "B")]),
        (r"\titlespacing*{\section}{0pt}{1ex}{1ex}\section{B}", [(2, "B")]),
        (r"A.\vskip 0.2in plus 1fil B.", [(0, "A. B.")]),
        (r"A.\vskip 2\baselineskip B.", [(0, "A.B.")]),
        (r"\input p\section{B}", [(0, "Letter."), (2, "B")]),
        (r"\ProvidesFile{a.tex}[2022 a]A.", [(0, "A.")]),
        (r"A.\list[\chapter*]{x} B.", [(0, "A.x B.")]),
        (r"\addchap{A}\addsec{B}", [(2, "A"), (3, "B")]),
        (r"\input part B.", [(0, "Part. B.")]),
        (r"\input part", [(0, "Part.")]),
        (r"\import{.}{part}\subimport{./}{part.tex}", [(0, "Part.Part.")]),
    ],
)
def test_macros_take_their_own_arguments_alone(source: str, body: list[tuple[int, str]], tmp_path: Path) -> None:
    assert paper(tmp_path, source, part="Part.", p="Letter.").body == body


@for_each(
    ("source", "abstract", "body"),
    [
        (r"\abstract{Bees fly.} They sleep.", "Bees fly.", "They sleep."),
        ("\\abstract\n{Aims.}%\n{Bees fly.} They {really} sleep.", "Aims. Bees fly.", "They really sleep."),
        (r"\abstract \input{part}", "", "Part."),
        ("\\abstract{Bees fly.}\n\n{They sleep.}", "Bees fly.", "They sleep."),
    ],
)
def test_an_abstract_may_have_several_parts_or_none(source: str, abstract: str, body: str, tmp_path: Path) -> None:
    found = paper(tmp_path, source, part="Part.")
    assert (found.abstract, found.body) == (abstract, [(0, body)])


def test_bytes_of_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_bytes(b"A caf\xe9.")
    assert file_text(tmp_path / "paper.tex").strip() == "A café."
    (tmp_path / "paper.tex").write_bytes(bytes(range(256)))
    with pytest.raises(UserError, match=r"paper\.tex must hold LaTeX, but holds bytes of no text\.$"):
        file_text(tmp_path / "paper.tex")


def test_a_paper_that_includes_a_part_again_and_again_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latex, "_MOST", 10_000)
    with pytest.raises(UserError, match="must have at most 10,000 characters with all that it includes"):
        paper(tmp_path, document(r"\input{a}" * 20), a="x" * 999)


def test_macros_that_grow_without_end_are_refused_at_once(tmp_path: Path) -> None:
    names = [f"m{chr(97 + number)}" for number in range(15)]
    macros = "".join(rf"\newcommand{{\{a}}}{{\{b} \{b} \{b} \{b}}}" for a, b in pairwise(names))
    with pytest.raises(UserError, match=r"paper\.tex must use its own macros at most 100,000 times\."):
        paper(tmp_path, rf"{macros}\newcommand{{\{names[-1]}}}{{x}}\begin{{document}}\ma\end{{document}}")


def test_files_that_are_missing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = r"\section{One} Bees fly. \input{a/intro} \include{b} \input{b} \input{main.bbl}"
    paper(tmp_path, rf"\input{{macros}}\begin{{document}}{body}\end{{document}}")
    where = f"{tmp_path}/paper.tex"
    assert (
        capsys.readouterr().err == f"{where} includes files that are not in its folder and were left out: a/intro, b.\n"
    )
    # Of an archive, those of the document that is read.
    files = {"short.tex": document(r"Short. \input{c}"), "long.tex": document(r"Bees fly far. \input{d}")}
    read_latex(packed(tmp_path / "sources.tar.gz", files))
    assert capsys.readouterr().err.endswith("were left out: d.\n")


def test_of_the_sources_that_arxiv_hands_out_the_longest_document_is_read(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "supplement.tex": document("Short."),
        "ms/main.tex": document(r"\section{A} Bees fly far. \input{sections/b} \input{c} \input{../d}"),
        "sections/b.tex": "They sleep.",
        "ms/c.tex": "They eat.",
        "d.tex": "They dance.",
        "figure.pdf": "none",
        "ms/._main.tex": document("A longer text than that of the paper, which macOS has put beside it."),
        "bytes.tex": b"\0\xff",
    }
    path = packed(tmp_path / "2101.00001.tar.gz", files)
    assert read_latex(path).body == [(2, "A"), (0, "Bees fly far. They sleep. They eat. They dance.")]
    assert file_text(path).startswith("A")


def test_archives_without_a_document_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tar.gz", {"a.tex": "no document"})
    with pytest.raises(UserError) as error:
        read_latex(path)
    assert str(error.value) == rf"{path} must hold a .tex file with \begin{{document}}, but holds none."


@for_each("content", [b"", b"no archive", b"\x1f\x8b\x08\x00damaged"])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.tar\.gz cannot be read as \.tar\.gz \(\w+\)\.$"):
        read_latex(tmp_path / "a.tar.gz")


def test_parts_of_a_document_are_passed_over_in_a_folder(tmp_path: Path) -> None:
    paper(tmp_path, document("Text."), part="A part.")
    assert list_files([tmp_path]).paths == [tmp_path / "paper.tex"]
    assert paper_files(tmp_path) == [tmp_path / "paper.tex"]


def test_papers_in_latex_make_a_corpus(tmp_path: Path) -> None:
    for number in range(40):
        packed(tmp_path / f"{number}.tar.gz", {"a.tex": PAPER})
    records = [record.value for split in ("train", "valid", "test") for record in open_papers(tmp_path, split).read()]
    assert sorted(record["id"] for record in records) == sorted(map(str, range(40)))
    assert records[0]["abstract"] == "We count bees. There are 10 % more."
    assert records[0]["section_names"] == ["", "Méthods", "Rulers", "Results"]

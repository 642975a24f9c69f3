"""The macros and environments of LaTeX that tell what of a source is prose."""

#: From the highest to the lowest, with those of KOMA-Script, which have no numbers. A run-in heading is one, too.
RANKS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
UNNUMBERED = {"addpart": 0, "addchap": 1, "addsec": 2}
#: The rank of each.
HEADINGS = {**{name: rank for rank, name in enumerate(RANKS)}, **UNNUMBERED}
#: Refer to a label; and include a file by its name.
REFERENCES = ("ref", "autoref", "cref", "Cref")
INCLUDES = ("input", "include", "subfile")
#: Include a file by its folder and its name.
IMPORTS = ("import", "subimport")
#: Define a macro, by such arguments.
DEFINE, DEFINITION = ("newcommand", "renewcommand", "providecommand"), "*{[[{"
#: Hold no prose.
SKIPPED_ENVIRONMENTS = frozenset(
    """
    figure figure* table table* tabular tabular* tabularx longtable sidewaystable sidewaysfigure wrapfigure wraptable
    subfigure minipage equation equation* align align* alignat alignat* gather gather* multline multline* eqnarray
    eqnarray* flalign flalign* math displaymath array split verbatim verbatim* Verbatim lstlisting minted algorithm
    algorithm* algorithmic algorithm2e tikzpicture tikzcd pgfpicture picture thebibliography comment filecontents
    filecontents* CCSXML keywords IEEEkeywords
    """.split()  # noqa: SIM905, a list has a line for each word
)
#: Their arguments hold no prose of the paper, and how many they have: * may follow, [ is optional, { is not.
SKIPPED_MACROS = {
    **dict.fromkeys(
        """
        eqref pageref nameref vref citestyle bibliography bibliographystyle thanks
        footnotetext affil affiliation institute address email ead author date url path nolinkurl includegraphics
        vspace hspace pagestyle thispagestyle pagenumbering usetikzlibrary graphicspath hypersetup lstset
        captionof caption addbibresource keywords input include subfile ccsdesc acmConference
        acmJournal acmYear acmDOI acmISBN received accepted shorttitle shortauthors titlerunning authorrunning orcid
        markboth index glsadd todo
        """.split(),  # noqa: SIM905
        "*[{",
    ),
    **dict.fromkeys(
        """
        cite citep citealp citeauthor citeyear citeyearpar parencite footcite autocite textcite citet citealt Citet
        Citep nocite footnote
        """.split(),  # noqa: SIM905
        "*[[{",
    ),
    **dict.fromkeys(
        ["setlength", "addtolength", "setcounter", "addtocounter", "newtheorem", "DeclareMathOperator"], "*{[{"
    ),
    **dict.fromkeys(["usepackage", "documentclass", "RequirePackage"], "[{"),
    **dict.fromkeys(["ProvidesFile", "ProvidesPackage", "ProvidesClass"], "{["),
    **dict.fromkeys(IMPORTS, "*{{"),
    "printbibliography": "*[",
    "titleformat": "*{[{{{{[",
    "titlespacing": "*{{{{",
    "rule": "[{{",
    "maketitle": "",
    "-": "",
}
#: Of these the last argument is prose.
LAST = {
    "href": "{{",
    "textcolor": "[{{",
    "colorbox": "{{",
    "texorpdfstring": "{{",
    "resizebox": "{{{",
    "raisebox": "{{",
}

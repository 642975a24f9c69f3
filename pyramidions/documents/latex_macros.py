"""The macros and environments of LaTeX that tell what of a source is prose, and the numbers and units of siunitx."""

import re

#: Stands where a definition stood, with its number.
DEFINED = "\ue002"
#: From the highest to the lowest, with those of KOMA-Script, which have no numbers. A run-in heading is one, too.
RANKS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
UNNUMBERED = {"addpart": 0, "addchap": 1, "addsec": 2}
#: The rank of each.
HEADINGS = {**{name: rank for rank, name in enumerate(RANKS)}, **UNNUMBERED}
#: Refer to a label; and include a file by its name.
REFERENCES = ("ref", "autoref", "cref", "Cref")
#: Print what is not known here: the number of a formula or a page, and a source.
UNKNOWN = frozenset(
    """
    eqref pageref nameref vref cite citep citealp citeauthor citeyear citeyearpar parencite autocite textcite citet
    citealt Citet Citep
    """.split()  # noqa: SIM905, a list has a line for each word
)
INCLUDES = ("input", "include", "subfile")
#: Include a file by its folder and its name.
IMPORTS = ("import", "subimport")
#: Formulas in lines of their own, perhaps with a star.
DISPLAYED = ("equation", "align", "alignat", "gather", "multline", "eqnarray", "flalign", "displaymath")
#: Hold no prose.
SKIPPED_ENVIRONMENTS = frozenset(
    """
    figure figure* table table* tabular tabular* tabularx longtable sidewaystable sidewaysfigure wrapfigure wraptable
    subfigure equation equation* align align* alignat alignat* gather gather* multline multline* eqnarray
    eqnarray* flalign flalign* math displaymath array split verbatim verbatim* Verbatim lstlisting minted algorithm
    algorithm* algorithmic algorithm2e tikzpicture tikzcd pgfpicture picture thebibliography comment filecontents
    filecontents* CCSXML keywords IEEEkeywords
    """.split()  # noqa: SIM905, a list has a line for each word
)
#: Their arguments hold no prose of the paper, and how many they have: * may follow, [ is optional, { is not.
SKIPPED_MACROS = {
    **dict.fromkeys(
        """
        citestyle bibliography bibliographystyle thanks footnotetext affil affiliation institute address email ead
        author date url path nolinkurl includegraphics vspace hspace pagestyle thispagestyle pagenumbering
        usetikzlibrary graphicspath hypersetup lstset caption figcaption tabcaption tablecaption captionabove
        captionbelow subcaption addbibresource keywords input include subfile ccsdesc acmConference acmJournal
        acmYear acmDOI acmISBN received accepted shorttitle shortauthors titlerunning authorrunning orcid
        markboth index glsadd todo marginpar marginnote color pagecolor selectlanguage phantom hphantom vphantom
        enlargethispage linespread setstretch stepcounter refstepcounter captionsetup sisetup
        """.split(),  # noqa: SIM905
        "*[{",
    ),
    **dict.fromkeys([*UNKNOWN, "nocite", "footcite", "footnote"], "*[[{"),
    **dict.fromkeys(
        "setlength addtolength setcounter addtocounter newtheorem DeclareMathOperator fontsize colorlet".split(),  # noqa: SIM905
        "*{[{",
    ),
    "captionof": "*{[{",
    **dict.fromkeys(["captionbox", "subcaptionbox"], "*[{[[{"),
    **dict.fromkeys(["newcommand", "renewcommand", "providecommand"], "*{[[{"),
    **dict.fromkeys(["usepackage", "documentclass", "RequirePackage"], "[{"),
    **dict.fromkeys(["ProvidesFile", "ProvidesPackage", "ProvidesClass"], "{["),
    **dict.fromkeys(IMPORTS, "*{{"),
    **dict.fromkeys(["printbibliography", "printglossary", "printglossaries", "printacronyms", "printindex"], "*["),
    "titleformat": "*{[{{{{[",
    "titlespacing": "*{{{{",
    **dict.fromkeys(["footnotemark", "linebreak", "nolinebreak", "pagebreak", "nopagebreak"], "["),
    **dict.fromkeys(["addcontentsline", "definecolor"], "{{{"),
    "rule": "[{{",
    "maketitle": "",
    "-": "",
}
#: Of these the last argument is prose.
LAST = {
    **dict.fromkeys(["href", "texorpdfstring", "adjustbox", "hyperlink", "hypertarget"], "{{"),
    **dict.fromkeys(["textcolor", "colorbox", "foreignlanguage", "glslink", "glsdisp"], "[{{"),
    **dict.fromkeys(["makebox", "framebox"], "[[{"),
    **dict.fromkeys(["resizebox", "multicolumn"], "*{{{"),
    "hyperref": "[{",
    "parbox": "[[[{{",
    "fcolorbox": "[{[{{",
    "scalebox": "{[{",
    "rotatebox": "[{{",
    "raisebox": "{[[{",
}
#: Of these the first of the last two arguments is prose, and the other how it is read.
READ_AS = dict.fromkeys(["ruby", "jruby", "gruby", "mruby", "furigana"], "[{{")
#: Arguments of environments, which are no prose; that of any other may be one in brackets.
ENVIRONMENTS = {
    **dict.fromkeys(["multicols", "spacing", "otherlanguage", "otherlanguage*"], "{"),
    **dict.fromkeys(["adjustwidth", "list"], "{{"),
    "adjustwidth*": "{{",
    "minipage": "[[[{",
}
#: What they print.
WORDS = {
    **{name: name for name in ("TeX", "LaTeX", "BibTeX")},
    **dict.fromkeys(["\\", "newline", "linebreak", " ", "quad", "qquad", "xspace", "thinspace"], " "),
    "slash": "/", "pounds": "£", "textsterling": "£", "euro": "€", "EUR": "€", "S": "§", "P": "¶", "copyright": "©",
    "degree": "°", "ddag": "‡", "textless": "<", "textgreater": ">", "textbar": "|",
    "textasciicircum": "^",
}  # fmt: skip
#: What does not stand on the line: what `formulas` calls it, and its arguments; and what stands between two parts.
COMPOSED = {
    **dict.fromkeys(["frac", "tfrac", "dfrac", "textfrac"], ("mfrac", "{{")),
    **dict.fromkeys(["cfrac", "nicefrac", "sfrac"], ("mfrac", "[{{")),
    **dict.fromkeys(["binom", "dbinom", "tbinom"], ("binom", "{{")),
    "sqrt": ("mroot", "[{"),
    "textsuperscript": ("sup", "{"),
    "textsubscript": ("sub", "{"),
}
BETWEEN = {"over": "mfrac", "choose": "binom", "atop": "binom"}
#: Signs in formulas that the parser's library does not know.
SIGNS = {"gt": ">", "lt": "<", "thinspace": " ", "degree": "°", "textasciicircum": "^"}
#: Numbers and units of siunitx and of older packages, by their arguments.
QUANTITIES = {
    **dict.fromkeys(["num", "numlist", "ang", "si", "unit", "tablenum", "numprint", "np"], "[{"),
    **dict.fromkeys(["SI", "SIlist"], "[{[{"),
    **dict.fromkeys(["qty", "qtylist", "numrange", "qtyproduct", "unitfrac"], "[{{"),
    "SIrange": "[{{[{",
    "qtyrange": "[{{{",
}
#: Stand before the unit that has this power.
POWERS = {"square": "^2", "cubic": "^3"}
#: All macros whose arguments are known.
ARGUMENTS = {
    **SKIPPED_MACROS,
    **LAST,
    **READ_AS,
    **QUANTITIES,
    **{name: arguments for name, (_, arguments) in COMPOSED.items()},
    **dict.fromkeys(HEADINGS, "*[{"),
    **dict.fromkeys(REFERENCES, "*{"),
    "title": "[{",
    "abstract": "",
    "label": "{",
}
PREFIXES = dict(
    pair.split("=")
    for pair in """
    quecto=q ronto=r yocto=y zepto=z atto=a femto=f pico=p nano=n micro=µ mu=µ milli=m centi=c deci=d hecto=h kilo=k
    deca=da mega=M giga=G tera=T peta=P exa=E zetta=Z yotta=Y per=/
    """.split()  # noqa: SIM905
)
#: The signs of units whose macros are not named by them.
UNITS = dict(
    pair.split("=")
    for pair in """
    metre=m meter=m gram=g kilogram=kg second=s ampere=A kelvin=K mole=mol candela=cd hertz=Hz newton=N pascal=Pa
    joule=J watt=W coulomb=C volt=V farad=F ohm=Ω siemens=S weber=Wb tesla=T henry=H lumen=lm lux=lx becquerel=Bq
    gray=Gy sievert=Sv minute=min hour=h day=d litre=L liter=L tonne=t hectare=ha electronvolt=eV dalton=Da byte=B
    decibel=dB celsius=°C degreeCelsius=°C degree=° arcminute=′ arcsecond=″ percent=% angstrom=Å micron=µm um=µm ug=µg
    us=µs ul=µL uL=µL squared=^2 cubed=^3 tothe=^
    """.split()  # noqa: SIM905
)
_TIMES = re.compile(r"(?<=\d)x(?=[\d+-])")
_EXPONENT, _UNIT = re.compile(r"[eE]\+?(-?\d+)$"), re.compile(r"\\([A-Za-z]+)|([^\\{}~\s]+)")


def quantity(name: str, arguments: list[str]) -> str:
    """Return numbers and their unit as siunitx prints them; older packages have one of the two in brackets."""
    options = [each.strip("[] ") for each in arguments if each.startswith("[") and "=" not in each]
    arguments = [each.strip("{} ") for each in arguments if not each.startswith("[")]
    unit = ""
    if name in ("unit", "unitfrac", "si"):
        arguments = [*options[:1], "/".join(arguments)]
    if name in ("numprint", "np"):
        unit = "".join(options)
    elif not name.startswith(("num", "ang", "tab")):
        *arguments, unit = arguments or [""]
    numbers = [_number(number) for argument in arguments for number in argument.split(";")]
    if name == "ang":
        return "".join(number + sign for number, sign in zip(numbers, "°′″", strict=False) if number)
    return f"{(' to ' if name.endswith('range') else ', ').join(numbers)} {_unit(unit)}".strip()


def _number(source: str) -> str:
    """Return a number, or a product of some, as siunitx prints it."""
    said = "".join(source.split()).replace("+-", "±").replace("\\pm", "±")
    return _EXPONENT.sub(r"×10^\1", _TIMES.sub("×", said))


def _unit(source: str) -> str:
    """Return a unit as it is printed: m/s^2 of ``\\metre\\per\\second\\squared``."""
    text, is_apart, power = "", False, ""
    for macro, written in _UNIT.findall(source):
        if macro in POWERS:
            power = POWERS[macro]
            continue
        sign = PREFIXES.get(macro) or UNITS.get(macro, macro) or written.replace(".", " ")
        text += f" {sign}" if is_apart and sign[0] not in "/^" else sign
        is_apart = macro not in PREFIXES and sign[-1] not in "^/"
        text, power = (f"{text}{power}", "") if macro in UNITS or is_apart else (text, power)
    return text

"""Finds the text of an HTML page in one pass, without a tree, which would take many times the page's memory."""

import codecs
import re
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple

from lxml import etree

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.documents.formulas import APART, END, MARKS, NEXT, on_the_line, typeset
from pyramidions.files.lines import decoded_file, is_utf16
from pyramidions.text.headings import HeadedText
from pyramidions.text.normalization import STOPS, WIDE

#: Deepest nesting of elements. The parser compares an end tag with all open elements, so its time is linear in the
#: size of the page only if the depth is bounded; browsers stop at 512.
DEPTH_LIMIT = 2000

# Elements whose contents are not part of the text, and those around it.
_NO_TEXT = frozenset(
    """
    script style template svg title figure footer menu dialog label button select textarea annotation annotation-xml
    del s strike rt rp rtc
    """.split()  # noqa: SIM905, a list has a line for each word
)
_CODE = frozenset(["script", "style"])
_AROUND_TEXT = frozenset(["nav", "aside", "noscript"])
# The same as words in the names of a page's own elements, such as <site-navigation>.
_OWN_AROUND = frozenset(["nav", "navbar", "navigation", "footer", "sidebar"])
# Letters around the text for each letter of it, and their least number, where the text itself stands there: in a header
# that nothing closes, or in what a script shows later.
_MOST_AROUND, _TEXT_AROUND = 15, 1000
# Share of the letters of the text, from which on what a region without an end tag hides is read.
_MOST_SWALLOWED = 0.5
# Letters of what may be a sentence.
_SENTENCE = 20
# Inside of these, a header belongs to the text.
_TEXT = frozenset(["main", "article", "section"])
# Elements that may be the main block of a page, which is the smallest one with this share of its prose. What stands
# below it or above its title is left out, unless this is most of the letters. It goes on beside it below a heading that
# is no link, in what has no name of an aside. An article or the main part that holds it is the block if more than a
# share of its prose stands below.
_BLOCKS, _MAIN, _MOST_BESIDE = frozenset(["article", "div", "main", "section"]), 0.75, 2 / 3
_WHOLE, _MOST_BELOW = frozenset(["article", "main"]), 0.1
# Words of a class, a role or an id that tell what stands around the text, in elements that have no meaning themselves.
_AROUND = frozenset(
    """
    nav navigation navbar navheader navfooter sidebar sphinxsidebar breadcrumb breadcrumbs toc toc-placeholder
    table-of-contents doc-toc banner contentinfo complementary search footer headerlink copiable-link copiable-anchor
    api_metadata changelog docnav dialog modal cookiebanner cookie-banner cookie-bar cookieconsent cookie-consent
    cookie-notice mw-editsection
    """.split()  # noqa: SIM905, a list has a line for each word
)
# Words of a class, a role or a type of EPUB that tell that an element names a note.
_NOTES = frozenset("noteref doc-noteref footnote-ref footnote-reference footnoteref footnote-anchor".split())  # noqa: SIM905
# Those of raised and lowered text, and a style that says the same.
_PLACES = dict.fromkeys(["sup", "super", "superscript"], "sup") | dict.fromkeys(["sub", "subscript"], "sub")
_PLACED = re.compile(r"vertical-align\s*:\s*(super|sub)\b", re.IGNORECASE)
# Parts of such words that tell the same of blocks that hold little of a page: what readers add, links to other texts,
# notices, and what a script shows later. A teaser is one of another text if it holds a link.
_ASIDE = re.compile(
    r"(?<!has-)(?<!no-)(?<!with-)(?:cookie|consent|gdpr|dsgvo|newsletter|subscri|crumb|log-?in|sign-?up|register|popup|"
    r"popin|modal|overlay|related|recommend|similar|trending|popular|recent|latest|most-?read|pagination|pager|byline|"
    r"author|autor|side-?bar|textwidget|widget-area|footer|copyright|disclaimer|disclosure|tagline|social|shar(?:e|ing)|"
    r"shariff|donat|comments|comment-?(?:form|list|respond|reply|body)|kommentar[\w-]|respond|reply|rating|metadata|tagcloud|"
    r"masthead|mw-references|reflist|hatnote|dablink|navbox|catlinks|messagebox|adblock|advert|blogroll|sponsor|banner|"
    r"(?:entry|post|article)-?meta)|"
    r"(?<![a-z])(?:bio|cta|widget_[a-z_]+|tags|notice|alert|follow|promo|logo|search|menu|(?<!item-)caption|carousel)(?![a-z])|"
    r"(?<![\w-])(?:hidden|hide|d-none|mfp-hide)(?![\w:-])"
)
_TEASER = re.compile(r"(?<![a-z])teaser(?!-text|[a-z])")
# Elements whose names tell nothing of the kind.
_NAMED_OTHERWISE = frozenset(["article", *(f"h{level}" for level in range(1, 7))])
#: Share of the letters of a page, from which on a block is the text, whatever its name.
_SMALL = 0.5
# The same of what readers add to a text, which is often longer.
_COMMENTS, _SMALL_COMMENTS = frozenset("comments comment-list commentlist kommentare".split()), 0.9  # noqa: SIM905
_HIDDEN = re.compile(r"(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
# Formulas of Wikipedia that pictures show.
_BEHIND_PICTURES = frozenset(["mwe-math-mathml-inline"])
_MEANINGLESS = frozenset(["div", "ul", "ol", "dl", "table", "details", "p", "a", "span"])
# The same of a listing, in <pre> or the element around it.
_LISTING = frozenset(
    """
    highlight highlighted listingblock literalblock programlisting screen synopsis example verbatim sourcecode code sh
    lisp
    """.split()  # noqa: SIM905, a list has a line for each word
)
#: Letters in links for each other letter of a block, above which it is no text.
_LINKED = 4
# Attributes whose words tell what an element is.
_TELLING = ("class", "role", "id", "epub:type")
#: Signs of a link to a heading.
_ANCHORS = ("¶", "§", "🔗")
_SENTENCE_END = tuple(STOPS)
# Elements that hold no sentences if another element is inside: a table with headers, and a listing of code. Tables
# without headers lay out pages, and whole pages are preformatted.
_NO_TEXT_WITH = {"table": "th", "pre": "code"}
# Tags that end a word. Any other may stand inside one, as in H<sub>2</sub>O, those that HTML does not know as well.
_BLOCK = frozenset(
    """
    address article aside audio blockquote body br canvas caption center col colgroup dd details dialog dir div dl dt
    embed fieldset figcaption figure footer form frame frameset head header hgroup hr html iframe legend li listing main
    menu nav object ol optgroup p plaintext pre search section summary table tbody tfoot thead title tr ul video xmp h1
    h2 h3 h4 h5 h6
    """.split()  # noqa: SIM905
)
# Those that end a word and stand in a line of text all the same.
_IN_LINE = frozenset(["button", "img", "input", "label", "option", "select", "svg", "td", "textarea", "th"])
_WORD_END = re.compile(rf"(?=</(?:{'|'.join(sorted(_BLOCK | _IN_LINE))})[\s/>])", re.IGNORECASE)
# A line end between Chinese characters or kana, with tags beside it.
_UNSPACED_BREAK = re.compile(
    rf"([{WIDE}](?:<[^<>]{{1,200}}>){{0,3}})[ \t\r]*\n\s*(?=(?:<[^<>]{{1,200}}>){{0,3}}[{WIDE}“‘])"
)
# Where a page names its encoding, among its first so many bytes, as HTML and XML have it.
_CHARSET = re.compile(
    rb"(?:<meta[^>]{0,200}charset|<\?xml[^>]{0,200}encoding)\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE
)
_HEAD = 2**16
# What a script reads as a formula of LaTeX, and the names of such scripts.
_FORMULA_SCRIPT = re.compile(r"<script\s+type=[\"']math/tex[\"']\s*>([^<]{1,300})</script\s*>", re.IGNORECASE)
_TYPESETS = re.compile("<(?:script|link)\\b[^<>]{0,400}(?:mathjax|katex|math/tex)", re.IGNORECASE)
# Tags of elements inside of which tags are text.
_RAW = re.compile(r"<(/?)(?:title|textarea)\b", re.IGNORECASE)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_PIECE = 2**16  # characters that are parsed at a time


def decoded_page(content: bytes, name: str) -> str:
    """Decode a page: UTF-8, UTF-16 with its mark, or what the page says that it is."""
    if is_utf16(content):
        return content.decode("utf-16", "replace")
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8").removeprefix("\ufeff")
    said = _CHARSET.search(content[:_HEAD])
    return (_in_encoding(content, said[1].decode()) if said else "") or decoded_file(content, name)


def _in_encoding(content: bytes, name: str) -> str:
    """Decode a page; "" if that fails. Browsers read Latin-1 and ASCII as Windows' encoding, which contains them."""
    try:
        known = codecs.lookup(name).name
        found: str = content.decode("cp1252" if known in ("iso8859-1", "ascii") else known, "replace")
    except (LookupError, UnicodeError):  # some of Python's encodings are for no text
        return ""
    return found


def page_text(html: str, name: str = "A page") -> HeadedText:
    """Return the text between the tags of a page, with a space in place of each tag that ends a word.

    Any string is a page: everything but markup is text. Each heading, paragraph, item or row is a line of its own, with
    an empty line between them. Figures, tables with headers, code listings, formulas in lines of their own and marks of
    notes are left out, and so is what stands around the text: navigation, headers, asides, footers, blocks of links,
    and what stands beside the main block. The time is linear in the page's length.
    """
    read = typeset if _TYPESETS.search(html) else str
    # The parser does not report an end tag without a start tag, so the space is inserted before parsing.
    html = _WORD_END.sub(" ", _FORMULA_SCRIPT.sub(r"\(\1\)", html.replace("\0", ""))) + " "
    html = html if html.isascii() else _UNSPACED_BREAK.sub(r"\1", html)
    page = _parsed(html, _Page(name))
    # A region without an end holds the rest of the page.
    if page.swallowed > _MOST_SWALLOWED * page.letters:
        if (raw := [*_RAW.finditer(html)]) and not raw[-1][1]:
            html = f"{html[: raw[-1].start()]}<i{html[raw[-1].end() :]}"
        page = _parsed(html, _Page(name, shown=page.unclosed))
    # A header that is never closed holds the whole page.
    is_elsewhere = page.around > max(_MOST_AROUND * page.letters, _TEXT_AROUND)
    if is_elsewhere or (page.tells_around and not page.letters):
        note(f"{name} has its text in a header, menu or hidden part, so all of these are read.")
        page = _parsed(html, _Page(name, shown=page.unclosed, keeps_around=True))
    parts = groupby(page.without_asides(), lambda part: isinstance(part, str))
    return HeadedText.of(
        part for is_text, some in parts for part in ([on_the_line(read("".join(map(str, some))))] if is_text else some)
    )


def _parsed(html: str, page: "_Page") -> "_Page":
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    for start in range(0, len(html), _PIECE):
        # UTF-8 cannot encode half a surrogate pair, which is not a character.
        parser.feed(html[start : start + _PIECE].encode("utf-8", "ignore"))
    if html:
        parser.close()
    return page


class _Place(NamedTuple):
    """A place in a page: the numbers of the parts, of the letters, of those in prose, and of headings, before it."""

    parts: int = 0
    letters: int = 0
    prose: int = 0
    headings: int = 0


@dataclass
class _InQuestion:
    """An open element that may turn out to hold no sentences."""

    tag: str
    start: _Place
    has_no_text: bool = False


@dataclass
class _Aside:
    """An open element that is left out below a share of the letters; a teaser has a number of links before it."""

    depth: int
    start: _Place
    share: float
    links: int = -1


class _Page:
    """Receives the parser's events, every start with an end, and collects parts as `HeadedText.of` takes them.

    It counts the letters of the text, and those around it, which ``keeps_around`` reads as well, and sees whether these
    hold a sentence. It also counts the characters in elements that are no text and have no end, unless these, which are
    counted from the beginning, are ``shown``.
    """

    def __init__(self, name: str, *, shown: Set[int] = frozenset(), keeps_around: bool = False) -> None:
        self._name, self._keeps_around, self._elements = name, keeps_around, 0
        self.unclosed, self.swallowed, self._hidden, self._ended, self._in_code = set(shown), 0, 0, (0, 0), False
        self.letters, self.around, self.tells_around = 0, 0, False
        self.parts: list[str | int] = []
        self._depth = self._skipped = self._unseen = self._in_heading = self._preformatted = 0
        self._in_question: list[_InQuestion] = []
        self._kinds: list[str] = [""]  # of each open element, what `MARKS` calls it
        self._in_text = self._in_link = self._link = self._links = self._without_scripts = self._in_formula = 0
        # Of each open element: its number if it is no text; 1 if it is left out; the characters hidden before it.
        self._hides: list[tuple[int, int, int]] = []
        self._marks: list[frozenset[str]] = [frozenset()]  # likewise, below that of the page
        self._asides: list[tuple[int, int, int, float]] = []  # start, end, letters and share of what may be left out
        self._open_asides: list[_Aside] = []
        self._prose = self._headings = 0
        self._open_blocks: list[_Place] = []  # the start of each
        # Start and end of those that may be the main one, and the end of what goes on; the depth of the last, or 0.
        self._blocks: list[tuple[_Place, _Place, _Place, bool]] = []
        self._beside = 0
        self._titles = [_Place()]  # the beginning, and the start of each
        self._begin_block()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        self._ended, self._in_code = (0, 0), tag in _CODE
        if self._depth > DEPTH_LIMIT:
            raise UserError(
                f"{self._name} must have at most {DEPTH_LIMIT:,} elements inside one another, but has more."
            )
        if tag in _BLOCK:
            self._end_block()
        names = " ".join(attributes.get(name, "") for name in _TELLING).lower()
        marks = frozenset(names.split())
        if tag in _BLOCKS:
            self._open_blocks.append(self._here())
        if tag in _BLOCK and tag not in _NAMED_OTHERWISE:
            if (found := _ASIDE.search(names)) or tag == "form":
                share = _SMALL_COMMENTS if found and found[0] in _COMMENTS else _SMALL
                self._open_asides.append(_Aside(self._depth, self._here(), share))
            elif _TEASER.search(names):
                self._open_asides.append(_Aside(self._depth, self._here(), _SMALL, self._links))
        is_listing = tag == "pre" and (marks | self._marks[-1]) & _LISTING
        hides = bool(tag in _NO_TEXT or is_listing) and self._elements not in self.unclosed
        is_hidden = _is_hidden(attributes) and not marks & _BEHIND_PICTURES
        is_around = not self._keeps_around and (self._is_around(tag, marks) or is_hidden)
        # No header, aside or navigation holds the main part of a page, unless it lacks its end.
        is_main = (tag == "main" or "main" in attributes.get("role", "")) and not self._unseen
        unseen, skipped = (0, -self._skipped) if is_main else (int(hides), int(hides or is_around))
        self._hides.append((self._elements if unseen else 0, skipped, self._hidden))
        self._marks.append(marks)
        self._unseen += unseen
        self._skipped += skipped
        self._in_text += tag in _TEXT
        self._in_link += tag == "a"
        self._without_scripts += tag == "noscript"
        self._links += tag == "a"
        self._in_formula += tag.endswith("math")
        self._link = len(self.parts) if tag == "a" else self._link
        if self._in_question and tag == _NO_TEXT_WITH[self._in_question[-1].tag]:
            self._in_question[-1].has_no_text = True
        if tag in _NO_TEXT_WITH:
            self._in_question.append(_InQuestion(tag, self._here()))
        self._preformatted += tag == "pre"
        if tag in _HEADINGS and not self._skipped and not self._in_heading:
            if tag == "h1":
                self._titles.append(self._here())
            self.parts += ["\n\n", _HEADINGS[tag]]
            self._begin_block()
        else:
            self._separate(tag)
        self._in_heading += tag in _HEADINGS
        if self._kinds[-1] in APART:
            self.parts.append(NEXT)
        self._kinds.append("" if self._skipped else self._kind(tag.rpartition(":")[2], attributes, marks))
        if self._kinds[-1]:
            self.parts.append(MARKS[self._kinds[-1]])

    def end(self, tag: str) -> None:
        if self._kinds.pop():
            self.parts.append(END)
        # There is a space before each end tag of these.
        has_end = tag in _BLOCK or tag in _IN_LINE
        if self._ended[0] and has_end:
            self.unclosed.add(self._ended[0])
            self.swallowed += self._ended[1]
        if tag in _HEADINGS and not self._skipped:
            self._headings += self._plain > 0 and not self._linked
        if tag in _BLOCK:
            self._end_block()
        if tag in _BLOCKS and self._prose - (start := self._open_blocks.pop()).prose > _MAIN * self._prose:
            self._blocks.append((start, self._here(), self._here(), tag in _WHOLE))
            self._beside = self._depth if tag in _MEANINGLESS | {"section"} else 0
        elif self._depth <= self._beside and tag not in _HEADINGS | _NO_TEXT_WITH:
            self._end_beside(tag)
        if self._open_asides and self._open_asides[-1].depth == self._depth:
            aside = self._open_asides.pop()
            if aside.links < self._links:
                letters = self.letters - aside.start.letters
                self._asides.append((aside.start.parts, len(self.parts), letters, aside.share))
                if letters < aside.share * self.letters:
                    self._forget_prose(aside.start)
        self._depth -= 1
        self._marks.pop()
        unseen, skipped, hidden = self._hides.pop()
        if has_end:
            self._ended = (unseen, self._hidden - hidden) if unseen else (0, 0)
        self._in_code = False
        self._unseen -= unseen > 0
        self._skipped -= skipped
        self._in_text -= tag in _TEXT
        self._in_link -= tag == "a"
        self._without_scripts -= tag == "noscript"
        self._in_formula -= tag.endswith("math")
        if tag in _NO_TEXT_WITH and (ended := self._in_question.pop()).has_no_text:
            del self.parts[ended.start.parts :]
            while self._asides and self._asides[-1][1] > ended.start.parts:
                self._asides.pop()
            self._forget_prose(ended.start)
            while self._titles[-1].parts > ended.start.parts:
                self._titles.pop()
        self._preformatted -= tag == "pre"
        self._in_heading -= tag in _HEADINGS
        if tag != "br":
            self._separate(tag)

    def _kind(self, tag: str, attributes: Mapping[str, str], marks: frozenset[str]) -> str:
        """Return what `MARKS` calls an element; "" if it stands on the line."""
        # A raised number that is a link names a note.
        is_raised = self._kinds[-1] == "sup" if tag == "a" else tag == "sup" and self._link == len(self.parts)
        if marks & _NOTES or (is_raised and (tag == "a" or self._in_link)):
            return "note"
        if tag != "span":
            return tag if tag in MARKS else ""
        said = {_PLACES[each] for each in marks & _PLACES.keys()}
        said |= {_PLACES[each.lower()] for each in _PLACED.findall(attributes.get("style", ""))}
        return next(iter(said)) if len(said) == 1 else ""

    def _separate(self, tag: str) -> None:
        if tag in _BLOCK or tag in _IN_LINE:
            in_line = tag in _IN_LINE or self._in_heading or self._skipped
            self.parts.append(" " if in_line else "\n" if tag == "br" else "\n\n")

    def _is_around(self, tag: str, marks: frozenset[str]) -> bool:
        is_around = tag in _AROUND_TEXT or (tag == "header" and not self._in_text)
        is_around |= tag in _MEANINGLESS and bool(marks & _AROUND)
        return is_around or not _OWN_AROUND.isdisjoint(tag.split("-")[1:])

    def _here(self) -> _Place:
        return _Place(len(self.parts), self.letters, self._prose, self._headings)

    def _forget_prose(self, start: _Place) -> None:
        """Count no prose from a place on, where no block is the main one then."""
        self._prose = start.prose
        while self._blocks and self._blocks[-1][1].parts > start.parts:
            self._blocks.pop()
            self._beside = 0

    def _end_beside(self, tag: str) -> None:
        """Let the last block that may be the main one go on if text below a heading stands beside it.

        Each block needs a heading of its own; a paragraph or a list has that of those before it.
        """
        if self._depth < self._beside:
            self._beside = 0
        elif not self._open_asides:
            start, end, last, is_whole = self._blocks[-1]
            before = last if tag in _BLOCKS else end
            if self._headings > before.headings and self.letters > before.letters + _SENTENCE:
                self._blocks[-1] = (start, end, self._here(), is_whole)

    def _begin_block(self) -> None:
        self._block, self._linked, self._plain, self._formula = len(self.parts), 0, 0, 0

    def _end_block(self) -> None:
        """Count the text since the last border of a block; remove it if it is a formula, or links and no sentence."""
        if self._plain >= _SENTENCE and self._plain > self._linked and not self._in_heading:
            self._prose += self._plain
        elif self._formula and not (self._linked + self._plain or self._in_heading):
            del self.parts[self._block :]
        elif self._linked > _LINKED * self._plain and not self._in_heading:
            text = on_the_line("".join(map(str, self.parts[self._block :]))).rstrip()
            if text.endswith(_SENTENCE_END):
                self._asides.append((self._block, len(self.parts), self._linked + self._plain, _SMALL))
            else:
                del self.parts[self._block :]
                self.letters -= self._linked + self._plain
        self._begin_block()

    def data(self, text: str) -> None:
        self._ended = (0, 0)
        self._hidden += len(text.strip()) if self._unseen and not self._in_code else 0
        # Spaces between the elements of a formula say nothing.
        is_anchor = self._in_link and text.strip() in _ANCHORS
        if self._unseen or is_anchor or (self._in_formula and not text.strip(" \t\r\n")):
            return
        letters = sum(map(str.isalnum, text))
        if self._skipped:
            self.around += 0 if self._in_link else letters
            # A page for scripts says so where there are none.
            says = text.rstrip().endswith(_SENTENCE_END) and letters >= _SENTENCE and not self._without_scripts
            self.tells_around |= says
            return
        self.letters += letters
        if self._in_formula:
            self._formula += letters
        elif self._in_link:
            self._linked += letters
        else:
            self._plain += letters
        # A line break in the source of a page is a space.
        self.parts.append(text if self._preformatted and not self._in_heading else text.replace("\n", " "))

    def without_asides(self) -> list[str | int]:
        """Return the parts from the title to the end of the main block, without what is aside.

        These are all parts if next to nothing would be left.
        """
        begin, end = _Place(), self._here()
        found = [block for block in self._blocks if block[1].prose - block[0].prose > _MAIN * self._prose]
        if found:
            main = found[0]
            whole = next((block for block in found if block[3]), main)
            if whole[1].prose - main[2].prose > _MOST_BELOW * (whole[1].prose - whole[0].prose):
                main = whole
            title = next(title for title in reversed(self._titles) if title.parts <= main[0].parts)
            if main[1].letters - title.letters > (1 - _MOST_BESIDE) * self.letters:
                begin, end = title, main[2]
        kept, last, left = list[list[str | int]](), end.parts, end.letters - begin.letters
        for start, stop, letters, share in reversed(self._asides):  # a block stands before those inside
            if begin.parts <= start and stop <= last and letters < share * self.letters:
                kept.append(self.parts[stop:last])
                last, left = start, left - letters
        kept.append(self.parts[begin.parts : last])
        return list(chain.from_iterable(reversed(kept))) if left * _MOST_AROUND > self.letters - left else self.parts

    def close(self) -> None:
        """Nothing is left to do at the end of a page."""


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    """Whether a reader does not see an element."""
    # A reader may unfold what is "until-found".
    hides = attributes.get("hidden", "until-found") != "until-found" or attributes.get("aria-hidden") == "true"
    return hides or _HIDDEN.search(attributes.get("style", "")) is not None

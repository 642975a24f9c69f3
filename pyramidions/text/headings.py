"""Finds headings among the lines of a text."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice, pairwise
from typing import NamedTuple, TypeAlias

from pyramidions.text.normalization import PAUSES, STOPS, unbroken
from pyramidions.text.text_windows import lines as lines_of

# Titles of sections of papers, reports and meetings, which are headings even where no empty line stands before them.
_TITLES = re.compile(
    r"(abstract|introduction|background|related works?|preliminar(y|ies)|(materials? and )?methods?|methodology|"
    r"experiments?|experimental (setup|procedures?)|results?( and discussions?)?|evaluation|discussions?|limitations|"
    r"conclusions?|(concluding|final) remarks|summary|future works?|acknowledge?ments?|references|bibliography|"
    r"appendix|appendices|supplementary materials?|"
    # German, Dutch, Swedish
    r"zusammenfassung|einleitung|einführung|hintergrund|stand der (technik|forschung)|(material und )?methoden?|"
    r"methodik|experimente|ergebnisse?( und diskussion)?|auswertung|diskussion|fazit|schlussfolgerung(en)?|schluss|"
    r"ausblick|danksagung(en)?|literatur(verzeichnis)?|anhang|"
    r"samenvatting|inleiding|achtergrond|methoden|resultaten|discussie|conclusies?|literatuur|bijlagen?|"
    r"sammanfattning|inledning|bakgrund|metod(er)?|resultat|diskussion|slutsats(er)?|referenser|bilagor|"
    # French, Spanish, Italian, Portuguese
    r"résumé|contexte|état de l['’]art|(matériels? et )?méthodes|résultats( et discussion)?|discussion|remerciements|"
    r"bibliographie|références( bibliographiques)?|annexes?|"
    r"resumen|introducción|antecedentes|(materiales y )?métodos?|metodología|resultados( y discusión)?|discusión|"
    r"conclusi(ón|ones)|agradecimientos|bibliografía|referencias|anexos?|"
    r"sommario|riassunto|introduzione|(materiali e )?metodi|metodologia|risultati( e discussione)?|discussione|"
    r"conclusioni?|ringraziamenti|bibliografia|riferimenti|appendici|"
    r"resumo|introdução|(materiais e )?métodos?|resultados( e discussão)?|discussão|conclus(ão|ões)|agradecimentos|"
    r"referências|apêndices?|anexos?|"
    # Finnish, Polish, Russian
    r"tiivistelmä|johdanto|tausta|menetelmät|aineisto ja menetelmät|tulokset|pohdinta|johtopäätökset|lähteet|liitteet|"
    r"streszczenie|wstęp|wprowadzenie|(materiał i )?metody|metodyka|wyniki|dyskusja|wnioski|podsumowanie|literatura|"
    r"аннотация|введение|(материалы и )?методы|методика|результаты( и обсуждение)?|обсуждение|выводы?|заключение|"
    r"благодарности|(список )?литератур[аы]|приложени[ея]|"
    # Arabic, Hindi, Chinese, Japanese
    r"ملخص|المقدمة|مقدمة|المنهجية|الطرق|النتائج|المناقشة|الخاتمة|الخلاصة|المراجع|"
    r"सारांश|परिचय|प्रस्तावना|भूमिका|विधि|परिणाम|चर्चा|निष्कर्ष|संदर्भ|"
    r"摘要|引言|绪论|緒論|前言|背景|相关工作|相關工作|方法|材料[与和與]方法|实验|實驗|结果|結果|讨论|討論|结论|結論|致谢|致謝|参考文献|參考文獻|附录|附錄|"
    r"要旨|要約|概要|はじめに|序論|緒言|関連研究|手法|材料と方法|実験|考察|おわりに|まとめ|謝辞|付録)",
    re.IGNORECASE,
)
#: Titles of tables of contents and of indexes.
CONTENTS = re.compile(
    r"(?:table of )?contents|list of (?:figures|tables)|index|inhalt(?:sverzeichnis)?|sommaire|table des matières|"
    r"índice|contenido|indice|sumário|inhoud(?:sopgave)?|sisällys(?:luettelo)?|innehåll|spis treści|оглавление|"
    r"содержание|目次|目录|目錄",
    re.IGNORECASE,
)
#: Most lines of a table of contents.
_MOST_ENTRIES = 2_000
# "2", "2.", "2.1", "A.1", "A.", "IV."; a letter alone may be a word.
_NUMBER = re.compile(r"(?P<number>\d{1,2}(\.\d{1,2})*|[A-Z](\.\d{1,2})+|([A-Z]|[IVX]{1,5})(?=\.))\.?[ \t]+(?=[^\W\d_])")
_TENS = "一二三四五六七八九十"
_NUMERALS = rf"{_TENS}百〇零壹贰叁肆伍陆柒捌玖拾\d"
# What begins parts of books, laws and reports, by their level: "Part I", "Chapter 2.", "Article 3", and the like in
# other languages.
_PART = re.compile(
    rf"""(?:
    (?P<level1>第\s?[{_NUMERALS}]{{1,4}}\s?[编編部篇卷]
      | 제\s?\d{{1,3}}\s?[편부]
      | (?:part|book|volume|teil|buch|partie|livre|titre|parte|libro|título|titolo|deel|del|osa|część|část|časť|rész
        |часть|книга|частина|kısım|μέρος|الباب)\s(?:\d{{1,3}}|[IVXLC]{{1,6}}|[A-Z]\b|one\b|two\b|three\b))
    | (?P<level2>第\s?[{_NUMERALS}]{{1,4}}\s?章 | 제\s?\d{{1,3}}\s?장 | [{_TENS}]{{1,3}}、
      | (?:chapter|appendix|annex|schedule|exhibit|kapitel|kap\.|anhang|anlage|chapitre|annexe|capítulo|anexo|capitolo
        |allegato|hoofdstuk|bijlage|luku|liite|rozdział|kapitola|fejezet|poglavlje|capitolul|глава|приложение|розділ
        |додаток|bölüm|κεφάλαιο|الفصل|अध्याय|bab|chương)\s(?:\d{{1,3}}|[IVXLC]{{1,6}}|[A-Z]\b
          |(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b))
    | (?P<level3>第\s?[{_NUMERALS}]{{1,4}}\s?[節节條条項] | 제\s?\d{{1,3}}\s?[절조]
      | [（(][{_TENS}]{{1,3}}[）)] | \d{{1,2}}(?:\.\d{{1,2}})*[、．.](?=[㐀-鿿])
      | \d{{1,2}}(?:\.\d{{1,2}})+(?=(?![公平毫千厘万亿米元年月])[㐀-鿿]{{2}})
      | [가나다라마바사아자차카타파하]\.(?=\s) | §§?\s?\d{{1,4}}[a-z]?\b
      | (?:article|art\.|section|sec\.|clause|rule|artikel|abschnitt|paragraph|artículo|sección|articolo|sezione|artigo
        |seção|secção|artykuł|art|článek|článok|cikk|članak|articolul|статья|раздел|стаття|член|madde|άρθρο|المادة|धारा
        |pasal|điều)\s(?:\d{{1,4}}|[IVXLC]{{1,6}})\b)
    )(?:[.:：)]|\s[-–—])?\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKDOWN = re.compile(r"[ ]{0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*)")
_UNDERLINE = re.compile(r"[ ]{0,3}(=+|-{3,}|~{5,})[ \t]*$")
#: Begins or ends a listing of code in markdown.
FENCE = re.compile(r"[ ]{0,3}(```|~~~)")
_ITEM = re.compile(r"([ \t]*([-*+•‣–]|\(?\d{1,3}[.)]|\(?[a-z][.)])|[ \t]{1,4}o)[ \t]+\S")
# A line that a mail quotes, in its marks; behind that of a prompt stands a call.
_QUOTED = re.compile(r"[ \t]{0,3}(?!>>> )((?:>[ \t]?)+)(?![ \t]?[\w.]{1,40} ?(?:\(|<-))")
# Headers of mails, those that tell them in several languages, and any other.
_MAIL = re.compile(
    r"(from|to|date|sent|subject|von|an|gesendet|datum|betreff|de|à|envoyé|objet|para|enviado|fecha|asunto|da|inviato|"
    r"data|oggetto|assunto|van|aan|verzonden|onderwerp|från|till|skickat|ämne|fra|til|sendt|emne|od|do|temat|"
    r"от|кому|дата|тема|kimden|kime|tarih|konu|发件人|收件人|主题|日期|寄件者|主旨|差出人|宛先|件名|日時)\s?[:：]\s?\S",
    re.IGNORECASE,
)
_HEADER = re.compile(r"[^\W\d_][\w-]{0,30}\s?[:：]|[ \t]+\S")
# What stands above the name below a mail or a letter.
_CLOSES = re.compile(
    r"(?:regards|sincerely(?: yours)?),|(?:(?:with )?(?:best|kind|warm|many) (?:regards|wishes)|"
    r"yours (?:sincerely|truly|faithfully)|mit (?:freundliche[mn]|besten|herzlichen) gr(?:ü|ue|u)(?:ß|ss)(?:en)?|"
    r"(?:viele|beste|liebe|herzliche|freundliche) gr(?:ü|ue)(?:ß|ss)e|(?:bien )?cordialement|"
    r"(?:un )?saludos? cordial(?:es)?|atentamente|atenciosamente|(?:cordiali|distinti) saluti|"
    r"met vriendelijke groet(?:en)?|med vänliga hälsningar|"
    r"z poważaniem|с уважением),?",
    re.IGNORECASE,
)
_POSTSCRIPT = re.compile(r"\s*p\. ?s\.|\s*ps\b", re.IGNORECASE)
#: Most lines of the headers of a mail, of what stands below "--", and of the name below a closing.
_MOST_HEADERS, _MOST_SIGNED, _MOST_NAMED = 100, 8, 5
_ENDS_SENTENCE = tuple(STOPS + PAUSES)
# What somebody says, or what goes on, is no heading.
_SPOKEN = re.compile(r"^[\"“”„«'‘]|--$|[\"”]$|[，；]|(?<=..)、")
_MOST_CHARACTERS, _MOST_WORDS, _SHORT_WORD = 100, 12, 4
#: A longer line above one that begins in lower case is broken by the width of the page.
LONGEST_UNBROKEN = 50
#: Share of the next line at which a line is full; letters are of different widths.
_FULL = 0.85
#: Share of the lines that begin in small letters where each stands for itself.
_NEARLY_ALL = 0.9
#: Lines that tell how wide a text is.
_BEGINNING = 1_000
#: The level of a short line that stands for itself, below that of numbers, capitals and known titles.
SHORT_LINE = 4


#: Gives the lines of a text, anew at each call.
Lines: TypeAlias = Callable[[], Iterable[str]]


class Line(NamedTuple):
    """A line of a text."""

    text: str  # of the line; of a heading without the marks that make it one
    level: int = 0  # of a heading, 1 is the highest; 0 for any other line
    begins_item: bool = False  # it is an entry of a list, or stands behind the last one


class HeadedText(str):
    """A text with known headings.

    Attributes:
        levels: the level of each heading, 1 is the highest, by the number of its line from 0.
        is_joined: it is made of several documents, each below a heading of its own.
    """

    levels: dict[int, int]
    is_joined = False

    @classmethod
    def of(cls, parts: Iterable[str | int]) -> "HeadedText":
        """Join the parts of a text; before each heading, a line of its own, stands its level."""
        texts: list[str] = []
        levels: dict[int, int] = {}
        lines = 0
        for is_level, some in groupby(parts, lambda part: isinstance(part, int)):
            if is_level:
                levels[lines] = int(list(some)[-1])
            else:
                texts.append("".join(map(str, some)))
                lines += len(texts[-1].splitlines())
        text = cls("".join(texts))
        text.levels = levels
        return text

    @property
    def as_markdown(self) -> str:
        """The text with its headings in markdown."""
        return "".join(f"{'#' * part} " if isinstance(part, int) else part for part in self.parts())

    def parts(self) -> Iterator[str | int]:
        """Yield the lines as `of` takes them, each with its end."""
        for number, line in enumerate(self.splitlines(keepends=True)):
            if number in self.levels:
                yield self.levels[number]
            yield line


def headed_lines(text: str | Lines) -> Iterator[Line]:
    """Return the lines of a text, headings among them.

    Headings are those of a `HeadedText`, or of markdown; and, in plain text, short lines that end in no punctuation, if
    they are numbered, in capitals, a usual title of a section ("Methods"), or stand below an empty line and above text.
    Two headings that are known or marked suffice: nothing else is a heading then. A table of contents in plain text is
    left out, from its title to where its first entry comes again.
    """
    lines = text if callable(text) else partial(lines_of, text)
    return _known_lines(text, lines) if isinstance(text, HeadedText) else _found_lines(lambda: _unquoted(lines()))


def _unquoted(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text without headers and signatures of mails and the marks of quotes, which stand apart."""
    depth, headers, told = 0, list[str](), set[str]()
    before, is_open = "", True  # headers may begin
    # Lines of a signature that are left, whether it stands below a closing, and whether it has begun.
    signed, closed, named = 0, False, True
    for line in lines:
        marks, bare = 0, line
        # Within a sentence, such a mark compares.
        if (quoted := _QUOTED.match(line)) and (depth or is_open or before.endswith(_ENDS_SENTENCE)):
            marks, bare = quoted[1].count(">"), line[quoted.end() :]
        begins = _MAIL.match(bare)
        if (headers or is_open) and len(headers) < _MOST_HEADERS and (begins or (headers and _HEADER.match(bare))):
            headers.append(bare)
            told |= {begins[1].casefold()} if begins else set()
            continue
        if headers:
            yield from [""] if len(told) > 1 else headers
            headers, told = [], set()
        ends = marks != depth or _POSTSCRIPT.match(bare) or (closed and len(bare) > LONGEST_UNBROKEN)
        if bare.rstrip() == "--":
            signed, closed, named = _MOST_SIGNED, False, True
        elif (is_open or before.endswith(_ENDS_SENTENCE)) and _CLOSES.fullmatch(bare.strip()):
            signed, closed, named = _MOST_NAMED + 1, True, False
        elif bare.strip() and not ends:
            signed, named = max(signed - 1, 0), True
        elif ends or named:  # empty lines may stand between a closing and the name
            signed = 0
        if marks != depth:
            yield ""
        depth, is_open = marks, not bare.strip() or bare.startswith("--")
        before = bare.rstrip()
        if not signed:
            yield bare
    if len(told) < 2:
        yield from headers


def _found_lines(lines: Lines) -> Iterator[Line]:
    is_markdown = len(list(islice(filter(_MARKDOWN.match, lines()), 2))) > 1
    contents, items = _contents(lines()), _Items(*_shape(lines()))
    fenced = skipped = False
    for number, (before, line, following) in enumerate(_with_neighbours(lines())):
        if number in contents:
            continue
        if skipped:
            skipped = False
            continue
        if FENCE.match(line):
            fenced = not fenced
            continue
        if fenced:
            yield Line(line)
        elif marked := _MARKDOWN.match(line):
            yield Line(marked["title"].rstrip(" \t#"), len(marked["marks"]))
        elif following is not None and _is_short(line) and _underlines(following, line, before):
            skipped = True
            yield Line(line.strip(), 1 if "=" in following else 2)
        else:
            yield Line(line, 0 if is_markdown else _level(line, before, following), items.begins(line, before))


def _shape(lines: Iterable[str]) -> tuple[int, bool]:
    """Return how long at most nine of ten lines of the beginning of a text are, and whether each stands for itself.

    So it does where nearly all begin in small letters, and most have room for the first word of the next, as in a chat.
    """
    begun = [line.strip() for line in islice(filter(str.strip, lines), _BEGINNING)]
    width = sorted(map(len, begun))[9 * len(begun) // 10] if begun else 0
    lower, upper = (sum(kind(line[0]) for line in begun) for kind in (str.islower, str.isupper))
    with_room = sum(len(line) + 1 + len(below.split(maxsplit=1)[0]) <= width for line, below in pairwise(begun))
    return width, lower > _NEARLY_ALL * (lower + upper) and 2 * with_room > max(len(begun) - 1, 2)


class _Items:
    """Tells which lines begin an entry of a list.

    A number may also begin a line because the one before it is full, as in "on the | 3. October": then that line goes
    on, and the number does not follow that of an entry. In plain text, a line in upper case that is not indented stands
    behind an entry, if its first word has room in that: most lines have at most so many characters as the width. So
    does any line where each stands for itself.
    """

    def __init__(self, width: int = 0, stands_alone: bool = False) -> None:
        self._last, self._is_inside, self._width, self._stands_alone = 0, False, width, stands_alone

    def begins(self, line: str, before: str | None) -> bool:
        """Return whether a line begins an entry, given the line before it; called for each line in order."""
        broken = (before or "").rstrip()
        if not (item := _ITEM.match(line)):
            ends = self._is_inside and line[:1].isupper() and not broken.endswith(tuple(PAUSES))
            ends = ends and len(broken) + 1 + len(line.split(maxsplit=1)[0]) <= _FULL * self._width
            ends |= self._stands_alone and bool(line.strip()) and len(broken) <= LONGEST_UNBROKEN
            self._is_inside &= bool(line.strip()) and not ends
            return ends
        self._is_inside = True
        digits = (item[2] or "").strip("().")
        if not digits.isdecimal():
            return True
        goes_on = len(broken) > LONGEST_UNBROKEN and not broken.endswith(_ENDS_SENTENCE)
        # A list begins behind a sentence or a colon.
        if goes_on and not 1 < int(digits) == self._last + 1:
            return False
        self._last = int(digits)
        return True


def _contents(lines: Iterable[str]) -> range:
    """Return the numbers of the lines of a table of contents; empty without one."""
    title: int | None = None
    first: tuple[str, ...] = ()
    for number, line in enumerate(lines):
        if title is not None and first:
            if number - title > _MOST_ENTRIES:
                break
            if len(line) <= _MOST_CHARACTERS and _entry(line) in first:
                return range(title, number)
        elif title is not None and len(line) <= _MOST_CHARACTERS:
            # The number at its end may be that of its page.
            without_page = _entry(line.strip().rstrip("0123456789"))
            first = (without_page, _entry(line)) if any(map(str.isalpha, without_page)) else ()
        elif len(line) <= _MOST_CHARACTERS and CONTENTS.fullmatch(line.strip()):
            title = number
    return range(0)


def _entry(line: str) -> str:
    """Return a title without its number, and without the dots that lead to that of its page."""
    return _titled(line.strip().rstrip(" \t.…"))[1]


def _known_lines(text: HeadedText, lines: Lines) -> Iterator[Line]:
    items = _Items()
    for number, (before, line, following) in enumerate(_with_neighbours(lines())):
        # A line that is broken inside of a paragraph goes on; only letters of other scripts say so themselves.
        if following and "\n" not in unbroken(f"{line.rstrip()}\n{following}"):
            following = None
        level = text.levels.get(number, 0 if len(text.levels) > 1 else _level(line, before, following))
        yield Line(line.strip() if level else line, level, not level and items.begins(line, before))


def _with_neighbours(lines: Iterable[str]) -> Iterator[tuple[str | None, str, str | None]]:
    """Yield each line with the ones before and behind it."""
    before = line = None
    for following in lines:
        if line is not None:
            yield before, line, following
        before, line = line, following
    if line is not None:
        yield before, line, None


def _underlines(line: str, title: str, before: str | None) -> bool:
    """Whether a line underlines the one above it; a line of tildes may also begin a listing."""
    if not _UNDERLINE.match(line):
        return False
    is_title = not (before or "").strip() and not title.rstrip().endswith(_ENDS_SENTENCE)
    return "~" not in line or (is_title and len(line.strip()) >= len(title.strip()))


def _is_short(line: str) -> bool:
    # A long line is not cut into words, which take many times its memory.
    title = line.strip()
    return 0 < len(title) <= _MOST_CHARACTERS and len(title.split()) <= _MOST_WORDS


def is_usual_title(line: str) -> bool:
    """Return whether a line is a usual title of a section, with or without a number, not beginning in lower case."""
    title = line.strip()
    bare = _titled(title)[1]
    return not bare[:1].islower() and _TITLES.fullmatch(bare) is not None


def _titled(title: str) -> tuple[int, str]:
    """Return the level that the number of a title or the name of a part tells, 0 without one, and what stands behind.

    That is all of a title where a sentence may go on, as in "Section 3 of the paper".
    """
    if numbered := _NUMBER.match(title):
        return numbered["number"].count(".") + 1, title[numbered.end() :]
    if part := _PART.match(title):
        bare = title[part.end() :]
        if not bare[:1].islower():
            return next(level for level in (1, 2, 3) if part[f"level{level}"]), bare
    return 0, title


def _level(line: str, before: str | None, following: str | None) -> int:
    """Return the level of a heading in plain text, 0 for a line that is none."""
    title = line.strip()
    if not _is_short(title):
        return 0
    level, bare = _titled(title)
    is_part = level > 0 and not _NUMBER.match(title)
    ends = bare.endswith(_ENDS_SENTENCE) and not _is_numbered_title(title, before, following)
    if ends or not (is_part or any(map(str.isalpha, title))):
        return 0
    if _SPOKEN.search(bare) or (_ITEM.match(line) and not level):
        return 0
    depth = level or 1
    above, below = (before or "").strip(), (following or "").strip()
    # Parts of one level in a row are a list.
    if is_part and level in (_titled(above)[0], _titled(below)[0]):
        return 0
    stands_apart = not above or (is_part and (above.endswith(tuple(STOPS)) or _titled(above)[0] > 0))
    # A word alone in a line may be the end of a sentence.
    if _TITLES.fullmatch(bare) and (stands_apart or not bare[0].islower()):
        return depth
    if bare.isupper() and sum(map(str.isalpha, bare)) > 3:
        # A notice may be in capitals as a whole.
        return (level if is_part else 1) * (not above.isupper() and not below.isupper())
    goes_on = len(title) > LONGEST_UNBROKEN and below[:1].islower()
    # "15 patients" counts patients.
    counted = None if is_part else _NUMBER.match(title)
    if counted and counted["number"].isdigit() and "." not in counted[0] and bare[0].islower():
        return 0
    if level and stands_apart and not goes_on:
        return depth
    return SHORT_LINE if following is not None and _stands_above_text(line, before, following) else 0


def _is_numbered_title(title: str, before: str | None, following: str | None) -> bool:
    """Whether a line such as "3. Rights of Bees." stands alone, with all of its longer words in capitals."""
    level, bare = _titled(title)
    if not level or not title.endswith(".") or (before or "").strip() or (following or "").strip():
        return False
    words = [word for word in bare.split() if len(word) > _SHORT_WORD]
    return bool(words) and all(word[0].isupper() for word in words)


def _stands_above_text(line: str, before: str | None, following: str) -> bool:
    """Whether a short line is set apart as a heading is, or, in the first line of a text, as its title is."""
    if before is None:
        return not following.strip()
    # A short line above an empty one may be anything: a date, a byline, a caption.
    if before.strip() or not following.strip() or _ITEM.match(line) or _ITEM.match(following):
        return False
    goes_on = line.strip()[0].isupper() and following.strip()[:1].islower()
    return len(following) > len(line) and not goes_on and not _is_wrapped(line.strip(), following.strip())


def _is_wrapped(line: str, following: str) -> bool:
    """Whether the first word of the next line has no room in a line: the width of the page breaks it."""
    first = following.split(maxsplit=1)[0]
    return len(line) > LONGEST_UNBROKEN and len(line) + 1 + len(first) > _FULL * len(following)

"""Numbers in a text, with what they count, so that 5 km and 5 m differ and $5m and 5 million dollars do not."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from pyramidions.text.normalization import normalize

_CURRENCIES = "$€£¥₹"
# Small letters stand behind the first of a name.
_CAPITAL = "[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я][A-ZÀ-ÖØ-ÞΑ-ΩЀ-Яа-яα-ω]{0,7}"
_MATCH = re.compile(
    # Capitals with a number behind them, as B12 and GPT-4, and numbers of Chinese.
    rf"(?P<code>(?<![^\W_]){_CAPITAL}-?\d[^\W_]*|[一二三四五六七八九两兩][十百千万萬亿億][一-九十百千万萬亿億零〇]*)"
    rf"|(?<![A-Za-z0-9])(?P<sign>(?<![^\s(\[<>={_CURRENCIES}])[-−])?(?P<currency>[A-Z]{{0,3}}[{_CURRENCIES}])?"
    r"(?P<number>(?:\d+(?:[.,:/'’]\d+)*|(?<![\d.])\.\d+)(?:[eE][-+]?\d{1,3}(?![^\W_]))?(?:\^[-+−–]?\d+)?)"
    rf"(?P<space> ?)(?P<unit>[%{_CURRENCIES}]|°? ?[A-Za-zµμΩÅ]+\d?(?:\^-?\d+)?(?:/[A-Za-z]+)?|°)?"
    r"(?: (?P<behind>[a-z]+))?"
)
_SIGNS = str.maketrans("−–", "--", "+")
_SPACED = re.compile(r"(?<![\d.,])(\d{1,3}(?: \d{3})+)(?!\d)")
_MIXED = re.compile(r"(?<![\d./])(\d{1,4}) (\d{1,2})/(\d{1,2})(?![\d/])")
_COMMAS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_STOPS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_ACRONYM = re.compile(r"\b(?:[A-Z]\.){2,}")
#: Languages that write 1.000,5 for one thousand and a half, and those that write 1 000,5.
_WITH_STOPS = frozenset("az bs ca da de el es eu gl hr id is it mk nl pt ro sl sr tr vi".split())  # noqa: SIM905, shorter
_WITH_COMMAS = _WITH_STOPS | frozenset("be bg cs et fi fr hu hy ka kk lt lv nb no nn pl ru sk sq sv uk".split())  # noqa: SIM905
_SCALES = {"thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
# Without a space behind a number, and behind an amount of money.
_ATTACHED, _OF_MONEY = {"k": 3, "K": 3}, {"m": 6, "b": 9, "tn": 12}
_SYMBOLS = "% ° °C °F kg g mg µg ng t km m cm mm µm nm l ml dl s ms h min kJ kW MW Hz kHz MHz GHz Pa kPa Ω Å mol"
_UNITS = {
    **{unit: unit for unit in [*_SYMBOLS.split(), *_CURRENCIES, "day", "week", "month", "year"]},
    **dict(
        pair.split("=")
        for pair in """
        percent=% mL=ml L=l sec=s second=s minute=min hour=h mile=mi metre=m meter=m kilometre=km kilometer=km gram=g
        kilogram=kg litre=l liter=l tonne=t dollar=$ euro=€ pound=£ yen=¥
        """.split()  # noqa: SIM905, a list has a line for each word
    ),
}
_NUMERALS = (
    *("zero", "one first", "two second", "three third", "four fourth", "five fifth", "six sixth", "seven seventh"),
    *("eight eighth", "nine ninth", "ten tenth", "eleven eleventh", "twelve twelfth"),
)
_WORDS = {word: str(value) for value, words in enumerate(_NUMERALS) for word in words.split()}


class Quantity(NamedTuple):
    """A number of a text."""

    value: str  # equal for numbers that are equal, however they are written; of a code, the code
    unscaled: str  # likewise, without "million" or "k" behind it
    unit: str  # by its usual name; "" for none that is known
    shown: str  # as it is written, with its unit


def quantities(text: str, language: str) -> Iterator[Quantity]:
    """Yield the numbers of a text, and codes such as GPT-4; the language says what separates thousands.

    ``text`` is as `as_compared` returns it.
    """
    for found in _MATCH.finditer(text):
        if code := found["code"]:
            plain = code.replace("-", "")
            yield Quantity(plain, plain, "", code)
            continue
        space, unit, money = found["space"], found["unit"] or "", (found["currency"] or "")[-1:]
        exponent = _SCALES.get(unit.casefold(), 0)
        exponent = exponent or (0 if space else _ATTACHED.get(unit, 0)) or (_OF_MONEY.get(unit, 0) if money else 0)
        counted = money or _unit(found["behind"] or "" if exponent else unit)
        sign, number = "-" if found["sign"] else "", found["number"]
        value, unscaled = (sign + _value(number, language, power) for power in (exponent, 0))
        said = f"{space}{unit}" if exponent or not space or _unit(unit) else ""
        yield Quantity(value, unscaled, counted, f"{found['sign'] or ''}{found['currency'] or ''}{number}{said}")


class Held:
    """The numbers of a document, with what they count."""

    def __init__(self, texts: Iterable[str], language: str) -> None:
        self._language = language
        self._units: dict[str, set[str]] = {}
        for text in texts:
            # Three digits behind a space may be a number of their own.
            for form in {as_compared(text), as_compared(text, joined=False)}:
                for each in quantities(form, language):
                    self._add(each)
            if language == "en":
                for word in text.casefold().split():
                    if number := _WORDS.get(word.strip(",.;:()")):
                        self._units.setdefault(number, set()).add("")

    def _add(self, each: Quantity) -> None:
        self._units.setdefault(each.value, set()).add(each.unit)
        # A text may leave out the sign or the scale, and what looks like a power may be the mark of a note.
        for value in (each.value.lstrip("-"), each.unscaled.lstrip("-"), each.value.partition("^")[0]):
            if value != each.value:
                self._units.setdefault(value, set()).add(each.unit if each.value.lstrip("-") == value else "")

    def missing(self, text: str) -> Iterator[str]:
        """Yield the numbers of a text that the document lacks, or that count something else there."""
        for each in quantities(as_compared(text), self._language):
            units = self._units.get(each.value)
            if units is None or (each.unit and not units & {each.unit, ""}):
                yield each.shown


def is_code(text: str, begin: int, end: int) -> bool:
    """Return whether a word of a text is a code, or its letters, as GPT of GPT-4."""
    found = _MATCH.match(text, begin)
    return found is not None and found["code"] is not None and found.end() >= end


def as_compared(text: str, *, joined: bool = True) -> str:
    """Return a text with digits of any script as 0 to 9, U.S. as US, and thousands without spaces if ``joined``."""
    text = normalize(text)
    if not text.isascii():
        text = "".join(str(int(c)) if not c.isascii() and c.isdecimal() else c for c in text)
    if joined:
        text = _SPACED.sub(lambda found: found[0].replace(" ", ""), text)
    text = _MIXED.sub(lambda found: f"{int(found[1]) + Decimal(found[2]) / (int(found[3]) or 1):f}", text)
    return _ACRONYM.sub(lambda found: found[0].replace(".", ""), text)


def _unit(said: str) -> str:
    """Return the usual name of a unit with its power, "" for none that is known; symbols differ by their case."""
    base, slash, rest = said.replace("μ", "µ").replace("° ", "°").partition("/")
    plain = base.rstrip("^-0123456789")
    known = _UNITS.get(plain) or (_UNITS.get(plain.casefold().removesuffix("s"), "") if len(plain) > 3 else "")
    return f"{known}{base[len(plain) :]}{slash}{rest}" if known else ""


def _value(number: str, language: str, exponent: int) -> str:
    number = number.translate(_SIGNS).replace("'", "").replace("’", "")
    separator, form = (".", _STOPS) if language in _WITH_STOPS else (",", _COMMAS)
    number = number.replace(separator, "") if form.fullmatch(number) else number
    number = number.replace(",", ".") if language in _WITH_COMMAS else number
    try:
        return number if "^" in number else str((Decimal(number) * 10**exponent).normalize())
    except ArithmeticError:
        return number  # of a date, a time, a version

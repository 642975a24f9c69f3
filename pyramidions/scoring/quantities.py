"""Numbers in a text, with what they count, so that 5 km and 5 m differ and $5m and 5 million dollars do not."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from pyramidions.text.normalization import normalize

_CURRENCIES = "$€£¥₹"
_MATCH = re.compile(
    # Letters with a number behind them, as B12 and GPT-4, and numbers of Chinese.
    r"(?P<code>(?<![A-Za-z0-9])[A-Za-z]+-?\d[A-Za-z0-9]*(?:-\d+)*|[一二三四五六七八九十百千万萬亿億两兩〇]{2,})"
    rf"|(?<![A-Za-z0-9])(?P<sign>(?<![^\s(\[<>={_CURRENCIES}])[-−])?(?P<currency>[{_CURRENCIES}])?"
    r"(?P<number>(?:\d+(?:[.,:/'’]\d+)*|(?<![\d.])\.\d+)(?:[eE][-+]?\d+(?![A-Za-z]))?(?:\^[-+−–]?\d+)?)"
    rf"(?P<space> ?)(?P<unit>[%{_CURRENCIES}]|°? ?[A-Za-zµμΩÅ][A-Za-z0-9]*(?:\^-?\d+)?(?:/[A-Za-z]+(?:\^-?\d+)?)?|°)?"
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
_SCALES = {"k": 3, "thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
# Behind an amount of money.
_OF_MONEY = {"m": 6, "b": 9, "tn": 12}
_UNITS = {
    **{
        unit: unit
        for unit in """
        % ° °C °F K kg g mg µg ng t km m cm mm µm nm mi ft l ml dl s ms h min day week month year
        J kJ W kW V A Hz kHz MHz GHz Pa kPa bar Ω Å mol
        """.split()  # noqa: SIM905, a list has a line for each word
    },
    "percent": "%",
    "L": "l",
    "mL": "ml",
    "sec": "s",
    "second": "s",
    "minute": "min",
    "hour": "h",
    "hr": "h",
    "metre": "m",
    "meter": "m",
    "kilometre": "km",
    "kilometer": "km",
    "gram": "g",
    "kilogram": "kg",
    "mile": "mi",
    "litre": "l",
    "liter": "l",
    "tonne": "t",
    "dollar": "$",
    "euro": "€",
    "pound": "£",
    "yen": "¥",
    **{sign: sign for sign in _CURRENCIES},
}
_NUMERALS = (
    *("zero", "one first", "two second", "three third", "four fourth", "five fifth", "six sixth", "seven seventh"),
    *("eight eighth", "nine ninth", "ten tenth", "eleven eleventh", "twelve twelfth"),
)
_WORDS = {word: str(value) for value, words in enumerate(_NUMERALS) for word in words.split()}


class Quantity(NamedTuple):
    """A number of a text."""

    value: str  # equal for numbers that are equal, however they are written; of a code, the code
    unit: str  # by its usual name; "" for none that is known
    shown: str  # as it is written
    measured: str  # likewise, with a unit behind a space


def quantities(text: str, language: str) -> Iterator[Quantity]:
    """Yield the numbers of a text, and words of letters and digits; the language says what separates thousands."""
    for found in _MATCH.finditer(as_compared(text)):
        if code := found["code"]:
            yield Quantity(code.replace("-", "").casefold(), "", code, code)
            continue
        unit, money = found["unit"] or "", found["currency"]
        scale = _SCALES.get(unit.casefold(), _OF_MONEY.get(unit, 0) if money else 0)
        scale = 0 if unit == "k" and found["space"] else scale
        value = _value(found["number"], language, scale)
        base, slash, rest = unit.replace("μ", "µ").replace("° ", "°").partition("/")
        plain = base.rstrip("^-0123456789")
        known = _UNITS.get(plain) or _UNITS.get(plain.casefold().removesuffix("s"), "")
        measure = money or (f"{known}{base[len(plain) :]}{slash}{rest}" if known else "")
        sign = "-" if found["sign"] else ""
        number = f"{found['sign'] or ''}{money or ''}{found['number']}"
        attached = number if found["space"] else number + unit
        yield Quantity(sign + value, measure, attached, f"{number}{found['space']}{unit}" if known else attached)


class Held:
    """The numbers of a document."""

    def __init__(self, texts: Iterable[str], language: str) -> None:
        self._language = language
        self._units: dict[str, set[str]] = {}
        for text in texts:
            for each in quantities(text, language):
                # What looks like a power may be the mark of a note.
                for value in {each.value, each.value.partition("^")[0]}:
                    self._units.setdefault(value, set()).add(each.unit)
            if language == "en":
                for word in text.casefold().split():
                    if number := _WORDS.get(word.strip(",.;:()")):
                        self._units.setdefault(number, set()).add("")

    def missing(self, text: str) -> Iterator[str]:
        """Yield the numbers of a text that the document lacks, and those that count something else there."""
        for each in quantities(text, self._language):
            units = self._units.get(each.value)
            if units is None:
                yield each.shown
            # A number may count what is not said beside it, but no percent.
            elif each.unit not in units and ("" not in units or each.unit == "%") and (each.unit or units == {"%"}):
                yield each.measured if each.unit else each.shown


def as_compared(text: str) -> str:
    """Return a text with digits of any script as 0 to 9, thousands without spaces, and U.S. as US."""
    text = normalize(text)
    if not text.isascii():
        text = "".join(str(int(c)) if not c.isascii() and c.isdecimal() else c for c in text)
    text = _SPACED.sub(lambda found: found[0].replace(" ", ""), text)
    text = _MIXED.sub(lambda found: f"{int(found[1]) + Decimal(found[2]) / (int(found[3]) or 1):f}", text)
    return _ACRONYM.sub(lambda found: found[0].replace(".", ""), text)


def _value(number: str, language: str, scale: int) -> str:
    number = number.translate(_SIGNS).replace("'", "").replace("’", "")
    separator, form = (".", _STOPS) if language in _WITH_STOPS else (",", _COMMAS)
    number = number.replace(separator, "") if form.fullmatch(number) else number
    number = number.replace(",", ".") if language in _WITH_COMMAS else number
    try:
        return f"{(Decimal(number) * 10**scale).normalize():f}" if len(number) < 40 and "^" not in number else number
    except ArithmeticError:
        return number  # of a date, a time, a version

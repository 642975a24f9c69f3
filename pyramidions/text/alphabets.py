"""What models of characters read: the letters of a language, spaces and line ends, as text8 has them, or bytes."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from string import ascii_letters
from typing import Any

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.text.normalization import normalize
from pyramidions.text.tokenizer import SPACE, SPECIALS

# What wiki40b marks the beginnings of articles, sections and paragraphs with, and line breaks.
_MARKERS = re.compile("_START_ARTICLE_|_START_SECTION_|_START_PARAGRAPH_|_NEWLINE_")
_LINE_ENDS = re.compile(" ?\n[ \n]*")
_WITH_LINES = "-lines"
#: How fairseq's dictionary spells the end of a line.
LINE_END = "\u2424"
# Accents and vowel signs of Hebrew; the punctuation between them, such as the maqaf, stays.
_HEBREW_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_TONES = ("", "\u0300", "\u0301", "\u0303", "\u0309", "\u0323")


class Alphabet(ABC):
    """The characters that a model tells apart."""

    language: str
    #: White space of which one remains where two parts of a text meet, the line end before the space.
    met = " \n"

    @property
    @abstractmethod
    def name(self) -> str:
        """What folders and models record, and `recorded_alphabet` reads."""

    @property
    @abstractmethod
    def characters(self) -> str:
        """All characters of a clean text, in the order of their ids."""

    @property
    @abstractmethod
    def symbols(self) -> list[str]:
        """What fairseq's dictionary has for each of the characters behind its special symbols."""

    #: What a model of these characters makes of others, as a sentence.
    limits = "It reads the letters of one alphabet and white space; all else is cleaned away."

    @property
    @abstractmethod
    def about(self) -> str:
        """The characters, in words."""

    @abstractmethod
    def clean(self, text: str) -> str:
        """Return what is left of a text, in these characters."""

    @abstractmethod
    def written(self, clean: str) -> str:
        """Return a clean text as people read it."""

    @abstractmethod
    def outside(self, text: str) -> Counter[str]:
        """Count the characters of a text that `clean` turns into spaces."""

    @property
    def vocab_size(self) -> int:
        """Number of ids, those of fairseq's special symbols included."""
        return len(SPECIALS) + len(self.symbols)

    def encode(self, text: str) -> np.ndarray:
        """Return the ids of a clean text in fairseq's dictionary, (characters,)."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        ids = self._ids[np.minimum(codes, len(self._ids) - 1)]
        if not ids.all():
            self.check(text)
        return ids

    def decode(self, ids: np.ndarray) -> str:
        """Return the clean text of ids that `encode` gave."""
        codes = np.array([ord(each) for each in self.characters], "<u4")
        return codes[ids - len(SPECIALS)].tobytes().decode("utf-32-le")

    def check(self, text: str) -> None:
        """Raise a UserError unless a text has characters of the alphabet alone."""
        if foreign := self._foreign.search(text):
            raise UserError(
                f"The text must have letters of the alphabet {self.language!r} and spaces alone, but character "
                f"{foreign.start() + 1} is {foreign[0]!r} (U+{ord(foreign[0]):04X})."
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its ids."""
        return np.dtype(np.uint8 if self.vocab_size <= 2**8 else np.uint16)

    @cached_property
    def _ids(self) -> np.ndarray:
        """The id of each code point, 0 outside the alphabet, as is the last one."""
        codes = [ord(each) for each in self.characters]
        ids = np.zeros(max(codes) + 2, self.dtype)
        ids[codes] = np.arange(len(SPECIALS), self.vocab_size)
        return ids

    @cached_property
    def _foreign(self) -> re.Pattern[str]:
        return re.compile(f"[^{re.escape(self.characters)}]")


@dataclass(frozen=True)
class Bytes(Alphabet):
    """The bytes of UTF-8, as enwik8 is read; the character U+00xx stands for the byte xx. Nothing is cleaned away."""

    language = name = "bytes"
    met = ""
    limits = "It reads any text by its bytes in UTF-8."
    about = "256 bytes"
    characters = "".join(map(chr, range(256)))

    @property
    def symbols(self) -> list[str]:
        """Each printable character of ASCII for itself, others by the letter of the code 256 above."""
        shown = {" ": SPACE, "\n": LINE_END}
        return [shown.get(each, each if "!" <= each <= "~" else chr(256 + ord(each))) for each in self.characters]

    def clean(self, text: str) -> str:
        """Return the bytes of a text. Half a surrogate pair, which is no character, becomes a question mark."""
        return text.encode("utf-8", "replace").decode("latin-1")

    def written(self, clean: str) -> str:
        """Return the text of bytes, with U+FFFD for those that are not UTF-8."""
        return clean.encode("latin-1").decode("utf-8", "replace")

    def outside(self, text: str) -> Counter[str]:
        return Counter()


@dataclass(frozen=True)
class Letters(Alphabet):
    """The letters of a language, and what becomes of other characters."""

    language: str  # ISO 639-1 code
    letters: str  # in the order of the dictionary, lower case, composed; no white space
    digits: str  # the words for 0 to 9, in these letters, with spaces between
    points: str = ""  # signs that are removed, as the inside of a regular expression's brackets; others become spaces
    lines: bool = True  # ends of lines stay, and homoglyphs become letters. 0.2.0 did neither.

    @property
    def name(self) -> str:
        return self.language + _WITH_LINES * self.lines

    @property
    def characters(self) -> str:
        return f" {self.letters}{self._line_end}"

    @property
    def symbols(self) -> list[str]:
        return [SPACE, *self.letters, *[LINE_END] * self.lines]

    @property
    def about(self) -> str:
        return f"{self.language}, {len(self.letters)} letters, the space" + ", the line end" * self.lines

    @property
    def _line_end(self) -> str:
        return "\n" * self.lines

    def clean(self, text: str) -> str:
        """Return a text in letters, single spaces and line ends, by the rules of text8 (Mahoney 2006).

        NFKC; letters of other scripts that look like Latin ones become these (Nawrot et al. 2023, section 4.1); lower
        case; markers of wiki40b end lines; each digit becomes its word; each run of other symbols becomes one line end
        if it holds one, and one space if not, at the ends of the text as well. Cleaning twice changes nothing.
        """
        if "_" in text:
            text = _MARKERS.sub("\n", text)
        if not text.isascii():
            # Without the full stops, `normalize` would take the spaces at the ends.
            text = "\n".join(normalize(f".{line}.")[1:-1] for line in text.split("\n"))
        text = self._in_latin(text).lower()
        if self.points:
            text = self._points.sub("", text)
        # Ten replacements take a tenth of the time of one translation.
        for digit, word in enumerate(self.digits.split()):
            text = text.replace(str(digit), f" {word} ")
        text = self._others.sub(" ", text)
        return _LINE_ENDS.sub("\n", text) if self.lines else text

    def outside(self, text: str) -> Counter[str]:
        """Count what `clean` turns into spaces: all but letters, spaces, digits, which become words, and points."""
        text = self._in_latin(normalize(_MARKERS.sub(" ", text))).lower()
        if self.points:
            text = self._points.sub("", text)
        return Counter(each for each in self._foreign.findall(text) if each not in "0123456789")

    def written(self, clean: str) -> str:
        return clean

    def _in_latin(self, text: str) -> str:
        return text if text.isascii() or not self.lines or "a" not in self.letters else text.translate(_homoglyphs())

    @cached_property
    def _points(self) -> re.Pattern[str]:
        return re.compile(f"[{self.points}]+")

    @cached_property
    def _others(self) -> re.Pattern[str]:
        return re.compile(f"[^{self.letters}{self._line_end}]+")


def _latin(more: str = "") -> str:
    return "abcdefghijklmnopqrstuvwxyz" + more


def _with_tones(vowels: str) -> Iterable[str]:
    return (unicodedata.normalize("NFC", vowel + tone) for vowel in vowels for tone in _TONES)


_KNOWN = (
    Letters("en", _latin(), "zero one two three four five six seven eight nine"),
    Letters("fi", _latin("åäö"), "nolla yksi kaksi kolme neljä viisi kuusi seitsemän kahdeksan yhdeksän"),
    Letters(
        "he",
        # From alef to tav, final forms among them; then maqaf, geresh and gershayim, which stand inside words.
        "".join(map(chr, range(0x05D0, 0x05EB))) + "\u05be\u05f3\u05f4",
        # As they are written without vowel signs: with them, each word would fall apart into single letters.
        "אפס אחד שניים שלושה ארבעה חמישה שישה שבעה שמונה תשעה",
        points=_HEBREW_POINTS,
    ),
    Letters(
        "vi", "bcdđghklmnpqrstvx" + "".join(_with_tones("aăâeêioôơuưy")), "không một hai ba bốn năm sáu bảy tám chín"
    ),
)
#: The letters of each language.
LETTERS = {alphabet.language: alphabet for alphabet in _KNOWN}
#: All alphabets by the name that users give.
ALPHABETS: dict[str, Alphabet] = {**LETTERS, Bytes.language: Bytes()}


def alphabet_of(language: str) -> Alphabet:
    """Return the alphabet of a language, or that of bytes."""
    if language not in ALPHABETS:
        raise UserError(f"`characters` must be one of {', '.join(ALPHABETS)}, but is {language!r}.")
    return ALPHABETS[language]


def recorded_alphabet(name: str) -> Alphabet:
    """Return the alphabet that a folder or a model names; 0.2.0 recorded the language alone."""
    alphabet = alphabet_of(name.removesuffix(_WITH_LINES))
    return replace(alphabet, lines=name.endswith(_WITH_LINES)) if isinstance(alphabet, Letters) else alphabet


@cache
def _homoglyphs() -> dict[int, str]:
    """Return the Latin letter that each look-alike of another script stands for, as Unicode's confusables have it."""
    from confusable_homoglyphs.confusables import confusables_data

    alike = {each["c"]: letter for letter in ascii_letters for each in confusables_data[letter]}
    return {
        ord(each): letter for each, letter in alike.items() if each.isalpha() and len(each) == 1 and not each.isascii()
    }

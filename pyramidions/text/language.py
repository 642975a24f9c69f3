"""Splits text of a language into sentences and words, and stems words."""

import re
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from unicodedata import category

from pyramidions.base.errors import UserError
from pyramidions.text.normalization import normalize, split_sentences
from pyramidions.text.words import words_of

#: The language of a text that is too short to tell, or in none of `LANGUAGES`.
ENGLISH = "en"
# Those for which nltk has a stemmer of Snowball (Porter 2001), by ISO 639-1 code.
_SNOWBALL = dict(
    pair.split("=")
    for pair in """
    ar=arabic da=danish de=german es=spanish fi=finnish fr=french hu=hungarian it=italian nl=dutch no=norwegian
    pt=portuguese ro=romanian ru=russian sv=swedish
    """.split()  # noqa: SIM905
)
# They put no spaces between words. ROUGE of Chinese is over characters (Hu et al. 2015, LCSTS), and so it is here of
# the others.
_WITHOUT_SPACES = frozenset({"bo", "ja", "km", "lo", "my", "th", "zh"})
# Written in words with spaces between them; compared as they stand.
_PLAIN = frozenset(
    """
    af am az be bg bn bs ca cs cy el et eu fa ga gl gu ha he hi hr hy id ig is ka kk kn ko ky lt lv mk ml mn mr ms
    ne pa pl ps rw si sk sl so sq sr sw ta te tg tk tr uk ur uz vi xh yo zu
    """.split()  # noqa: SIM905
)
LANGUAGES = tuple(sorted({"en", *_SNOWBALL, *_WITHOUT_SPACES, *_PLAIN}))

# Articles, pronouns, prepositions, conjunctions, auxiliaries and a few adverbs, of two letters at least.
_ENGLISH = frozenset(
    """
    an the this that these those he him his she her hers it its we us our ours they them their theirs you your
    yours me my mine who whom whose which what where when why how of in on at by for with from to into onto over
    under between among through during before after above below up down out off about against within without as
    than and or but nor so yet if because while although though until unless whether am is are was were be been
    being do does did done have has had having can could may might must shall should will would not no yes there
    here then thus also only both each either neither some any all most more such other another same own very
    too just even however therefore further once again one two per via
    """.split()  # noqa: SIM905, a list has a line for each word
)

_TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    # Equal to rouge-score's for a text in lower case, in a fifth of the time.
    "ascii": re.compile("[a-z0-9]+").findall,
    "words": words_of,
    # Vowel signs of scripts such as Thai are no letters to Unicode.
    "characters": lambda text: [each for each in text if each.isalnum() or category(each).startswith("M")],
}
TOKENIZATIONS = tuple(_TOKENIZERS)


class Language:
    """Words of a language, lower case, without punctuation.

    Tokenizations are "ascii" (runs of a-z and 0-9, as rouge-score has), "words" (runs of letters and digits of any
    script) and "characters"; None is the language's own: "ascii" for English, "characters" for languages without spaces
    between words, else "words". None as a stemmer is "porter" for English, "snowball" where there is one, else "none".
    A UserError names a code, a tokenization or a stemmer that is unknown, or that the language has not.
    """

    def __init__(self, code: str, tokenization: str | None = None, stemmer: str | None = None) -> None:
        _check("language", code, LANGUAGES)
        own = "ascii" if code == "en" else "characters" if code in _WITHOUT_SPACES else "words"
        self.code = code
        self.tokenization = tokenization or own
        _check("tokenization", self.tokenization, TOKENIZATIONS)
        has_stemmer = self.tokenization != "characters" and (code == "en" or code in _SNOWBALL)
        # The language's own comes first.
        stemmers = (*["porter"] * (code == "en"), "snowball", "none") if has_stemmer else ("none",)
        self.stemmer = stemmer or stemmers[0]
        _check("stemmer", self.stemmer, stemmers, f" for {self.tokenization} of the language {code}")

    def words(self, text: str) -> list[str]:
        """Return the words of a text, normalised and not stemmed."""
        return _TOKENIZERS[self.tokenization](normalize(text).lower())

    def stem(self, word: str) -> str:
        """Return the stem of a word."""
        return word if self.stemmer == "none" else _stem_with(self.stemmer, self.code)(word)

    @property
    def stop_words(self) -> frozenset[str]:
        """Words that say little of what a text is about, in lower case; none for a language without such a list."""
        return _stop_words(self.code)

    def sentences(self, text: str) -> list[str]:
        """Split a text into normalised sentences."""
        return split_sentences(text, self.code, spaced=self.code not in _WITHOUT_SPACES)

    def signature(self) -> str:
        """Say language, tokenization and stemmer."""
        stemmer = self.stemmer if self.stemmer == "none" else f"{self.stemmer} (nltk {version('nltk')})"
        return f"language {self.code} | tokenization {self.tokenization} | stemmer {stemmer}"


def _check(name: str, value: str, known: tuple[str, ...], where: str = "") -> None:
    if value not in known:
        raise UserError(f"`{name}` must be one of {', '.join(known)}{where}, but is {value!r}.")


@cache
def _stop_words(code: str) -> frozenset[str]:
    if code == "en":
        return _ENGLISH
    from stop_words import LANGUAGE_MAPPING, get_stop_words

    # Its Norwegian is Bokmål.
    code = "nb" if code == "no" else code
    return frozenset(get_stop_words(code)) if code in LANGUAGE_MAPPING else frozenset()


@cache
def _stem_with(stemmer: str, code: str) -> Callable[[str], str]:
    """Return a stemmer that remembers the words of a corpus: most are few and come often."""
    made: Any
    if stemmer == "porter":
        made = _porter()
    else:
        from nltk.stem.snowball import SnowballStemmer

        made = SnowballStemmer("english" if code == "en" else _SNOWBALL[code])
    return lru_cache(maxsize=2**17)(made.stem)


def _porter() -> Any:
    """Return nltk's stemmer of Porter without the rest of nltk, which takes two seconds and 150 MB to load."""
    if "nltk" not in sys.modules:
        (folder,) = find_spec("nltk").submodule_search_locations  # type: ignore[union-attr,misc]
        for name, place in (("nltk", folder), ("nltk.stem", f"{folder}/stem")):
            sys.modules[name] = ModuleType(name)
            sys.modules[name].__path__ = [place]
        try:
            return import_module("nltk.stem.porter").PorterStemmer()
        finally:
            # Whoever needs nltk later gets all of it.
            for name in [name for name in sys.modules if name.partition(".")[0] == "nltk"]:
                del sys.modules[name]
    return import_module("nltk.stem.porter").PorterStemmer()

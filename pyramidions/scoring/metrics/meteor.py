"""METEOR (Banerjee and Lavie, 2005)."""

import warnings
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from pyramidions.base.errors import UserError
from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.language import Language
from pyramidions.text.normalization import NORMALISATION

# In the notation of Lavie and Agarwal (2007), who tuned others for translation: 10PR / (R + 9P), 0.5 (c/m)³.
_ALPHA, _BETA, _GAMMA = 0.9, 3.0, 0.5
_DATABASE = tuple(f"{kind}.{part}" for kind in ("data", "index") for part in ("noun", "verb", "adj", "adv")) + (
    "lexnames",
)


@METRICS.register("meteor")
class Meteor(Metric):
    """METEOR of nltk, 0 to 100; of several references the best.

    Words are matched as they stand, then by their stems and, with WordNet, by synonyms. Without WordNet the signature
    says "exact and stem": such figures are lower, and must not stand beside those with synonyms.

    Args:
        language, tokenization, stemmer: as in `Language`.
        wordnet: folder of WordNet's database files, which are English; None for no synonyms.
    """

    figures: ClassVar = {"meteor": Figure("METEOR")}

    def __init__(
        self,
        language: str = "en",
        tokenization: str | None = None,
        stemmer: str | None = None,
        wordnet: str | None = None,
    ) -> None:
        self._language = Language(language, tokenization, stemmer)
        self._wordnet = wordnet
        if wordnet is not None:
            if language != "en":
                raise UserError(f"`wordnet` has English words, but `language` is {language}.")
            if lacking := [name for name in _DATABASE if not (Path(wordnet) / name).is_file()]:
                raise UserError(f"`wordnet` must be a folder of WordNet's database, but {wordnet} has no {lacking[0]}.")
            _synonyms(wordnet)

    def of(self, example: Example) -> list[float]:
        from nltk.translate.meteor_score import meteor_score

        words = [self._language.words(text) for text in (example.prediction, *example.references)]
        prediction, *references = words
        kinds = {"stemmer": self._language, "wordnet": _synonyms(self._wordnet)}
        return [100 * float(meteor_score(references, prediction, **kinds, alpha=_ALPHA, beta=_BETA, gamma=_GAMMA))]

    def signature(self) -> str:
        kinds = ["exact", *(["stem"] if self._language.stemmer != "none" else [])]
        matches = " and ".join(kinds) + ", no WordNet" if self._wordnet is None else ", ".join(kinds) + " and WordNet"
        return (
            f"METEOR nltk {version('nltk')} | {matches} | {self._language.signature()} | "
            f"alpha {_ALPHA} beta {_BETA} gamma {_GAMMA} | normalisation {NORMALISATION}"
        )


class _NoSynonyms:
    """Stands for a WordNet without a word in it."""

    def synsets(self, word: str) -> list[Any]:
        return []


@lru_cache(maxsize=1)
def _synonyms(folder: str | None) -> Any:
    if folder is None:
        return _NoSynonyms()
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class EnglishWordNet(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            """Load no second WordNet, to which other languages would be mapped."""

    # nltk reads only what lies in folders that are listed here.
    nltk.data.path.append(str(Path(folder).absolute()))
    try:
        with warnings.catch_warnings():
            # Of other languages, which are not asked for.
            warnings.simplefilter("ignore")
            return EnglishWordNet(str(Path(folder).absolute()), None)
    except (AssertionError, ValueError, OSError) as error:
        raise UserError(f"`wordnet` must be a folder of WordNet, but {folder} is damaged ({error}).") from None

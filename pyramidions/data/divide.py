"""Divides documents and summaries: by sections, or into single sentences to train a model that rewrites one."""

from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.data.pairing import Pairing, Pairs
from pyramidions.data.readers import Document
from pyramidions.data.section_types import SectionTypes, section_types
from pyramidions.files.progress import counted
from pyramidions.text.language import ENGLISH, Language
from pyramidions.text.outline import outline
from pyramidions.text.subsequence import Subsequences
from pyramidions.text.tokenizer import Tokenizer
from pyramidions.text.turns import read_outline, with_speakers
from pyramidions.text.words import count_words

#: Fewest words of a section and of its part of the summary.
LEAST_WORDS = 20
_ENGLISH = Language(ENGLISH)


class Divide(Pairing):
    """Pairs each section with the sentences of the summary that match it best (DANCER).

    Gidiotis and Tsoumakas 2020, "A Divide-and-Conquer Approach to the Summarization of Long Documents", section 3.1.
    All sections with a heading compete for the sentences of the summary; pairs are made of the sections of certain
    types. The reference decides about pairs, so this is for training and validation, never for test.

    Args:
        types: the table of section types.
        least_words: pairs with fewer words in the section or in its part of the summary are left out; the authors
            took 50.
    """

    whole_because = "no section of a type in the table"

    def __init__(self, types: SectionTypes | None = None, least_words: int = LEAST_WORDS) -> None:
        if least_words < 1:
            raise UserError(f"`least_words` must be at least 1, but is {least_words}.")
        self.types = types or section_types()
        self.least_words = least_words
        words = counted(least_words, "word")
        self.left_out_because = f"no pair with at least {words} in the section and in its part of the summary"

    def __call__(self, document: Document, tokenizer: Tokenizer | None = None) -> Pairs:
        """Return a pair for each section with enough words, named ID/1, ID/2 …; the whole document if it has none."""
        found = outline(document.source, language=document.language)
        if not any(True for _ in self.types.sections(found, self.types.train)):
            return Pairs([document], is_whole=True)
        headed = [
            (heading, sentences)
            for heading, sentences in zip(found.headings, found.sections, strict=True)
            if heading and sentences
        ]
        language = Language(found.language)
        parts = assign(language.sentences(document.target), [sentences for _, sentences in headed], language)
        pairs = []
        for number, ((heading, sentences), part) in enumerate(zip(headed, parts, strict=True), 1):
            if self.types.of(heading) in self.types.train and self._suffice(sentences) and self._suffice(part):
                texts = {"source": " ".join(sentences), "target": " ".join(part)}
                pairs.append(document._replace(id=f"{document.id}/{number}", **texts))
        return Pairs(pairs)

    def _suffice(self, sentences: list[str]) -> bool:
        return sum(count_words(sentence) for sentence in sentences) >= self.least_words

    def about(self) -> dict[str, Any]:
        return {"kind": "sections", "least_words": self.least_words, "section_types": self.types.as_json()}


def assign(summary: list[str], sections: list[list[str]], language: Language = _ENGLISH) -> list[list[str]]:
    """Give each sentence of a summary to the section whose best sentence has the highest ROUGE-L recall of it.

    Words are compared as they are, without stemming. Of equal sections, the first gets the sentence. A sentence that
    shares no word with any section goes to none.
    """
    words = [[language.words(sentence) for sentence in sentences] for sentences in sections]
    parts: list[list[str]] = [[] for _ in sections]
    for sentence in summary:
        recall = Subsequences(language.words(sentence)).recall
        best = [max(map(recall, sentences), default=0.0) for sentences in words]
        highest = max(best, default=0.0)
        if highest > 0:
            parts[best.index(highest)].append(sentence)
    return parts


class DivideSentences(Pairing):
    """Pairs each sentence of the summary with the sentence of the document that has the highest ROUGE-L recall of it.

    Chen and Bansal 2018, "Fast Abstractive Summarization with Reinforce-Selected Sentence Rewriting", equation (5).
    Words are compared as they are, without stemming; of equal sentences, the first is taken. A sentence that shares no
    word with the document has no pair. The reference decides about pairs, so this is for training and validation, never
    for test.
    """

    whole_because = "no sentence"

    def __call__(self, document: Document, tokenizer: Tokenizer | None = None) -> Pairs:
        """Return the pairs, named ID/1, ID/2 …; the whole document if it has no sentence."""
        found = read_outline(document.source, language=document.language)
        sentences = list(with_speakers(found))
        if not sentences:
            return Pairs([document], is_whole=True)
        language = Language(found.language)
        words = [language.words(sentence) for sentence in sentences]
        pairs: list[Document] = []
        for target in language.sentences(document.target):
            recall = [*map(Subsequences(language.words(target)).recall, words)]
            if (highest := max(recall)) > 0:
                source = sentences[recall.index(highest)]
                pairs.append(document._replace(id=f"{document.id}/{len(pairs) + 1}", source=source, target=target))
        return Pairs(pairs)

    def about(self) -> dict[str, Any]:
        return {"kind": "single sentences"}

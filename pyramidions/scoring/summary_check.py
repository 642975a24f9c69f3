"""Checks a summary by anybody against its document, sentence by sentence, and shows both on an HTML page."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from pyramidions.base.arguments import checked, refuse_path
from pyramidions.base.errors import UserError
from pyramidions.files.progress import counted
from pyramidions.pages.page import MOST, DocumentPage, Item, Kind, Sentence, sentence_of, supported_by, text_of
from pyramidions.scoring.metric import EntailmentJudge
from pyramidions.scoring.quantities import Held, as_compared, is_code
from pyramidions.text.headings import HeadedText, Line, Lines, headed_lines
from pyramidions.text.language import Language
from pyramidions.text.outline import Outline, ends_sentence, outline
from pyramidions.text.support import SummarySentence, SupportIndex, Supporting
from pyramidions.text.words import word_places, words_of

# What an item of a list begins with.
_MARK = re.compile(r"^\s*(?:[-*+•‣–]|\(?\d{1,3}[.)])\s+")

_KIND: Kind = {
    "layout": "sentences",
    "title": "A summary and its document",
    "unit": "sentence",
    "heading": "Summary",
    "chart": "Where the document supports the summary",
    "chosen": "Supports",
    "alone": "No sentences of the document support it enough.",
    "help": "Choose a sentence of the summary to find what supports it in the document.",
    "legend": [
        (0.8, "supports the summary; the darker, the more"),
        ("", "Numbers in the margin count sentences.", "wide"),
    ],
    "figure": "Blue: supports the summary; the darker, the more.",
}


class CheckedSummary(NamedTuple):
    """A summary beside its document."""

    document: Outline  #: in sentences
    sentences: tuple[SummarySentence, ...]  #: of the summary
    truncated: int = 0  #: pairs of sentences that are longer than the classifier reads

    @property
    def told(self) -> str:
        """How many sentences have support, and how many numbers and names are missing."""
        known = [sentence.is_supported for sentence in self.sentences if sentence.is_supported is not None]
        short, missing = len(self.sentences) - len(known), sum(len(sentence.missing) for sentence in self.sentences)
        told = f"With support: {sum(known)} of {counted(len(known), 'sentence')}"
        told += f", {short:,} too short to tell" if short else ""
        told += f". Numbers and names that are not in the document: {missing:,}."
        return told + (f" Pairs that were truncated: {self.truncated:,}." if self.truncated else "")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the sentences as values that JSON holds, with those that support them."""

        def place(found: Supporting) -> dict[str, Any]:
            return {"position": found.start, "section": self.heading(found.start)}

        values = []
        for sentence in self.sentences:
            value = sentence.to_dict(place) | {"missing": list(sentence.missing)}
            for name, found in (("entailment", sentence.entailment), ("contradiction", sentence.contradiction)):
                if found is not None:
                    value[name] = {"probability": round(found.share, 4), "sentence": found.text, **place(found)}
            values.append(value)
        return values

    def heading(self, position: int) -> str:
        """Return the heading above a sentence of the document."""
        return self.document.headings[self.document.sentences[position].section]


@checked
def check_summary(
    summary: str,
    document: str | Lines,
    language: str | None = None,
    entails: EntailmentJudge | None = None,
    on_progress: Callable[[str], object] = lambda _: None,
) -> CheckedSummary:
    """Look for each sentence of a summary in the document.

    Args:
        summary: any text.
        document: likewise, or what gives its lines; headings are found as in `extract`.
        language: of both, an ISO 639-1 code; decides where sentences end, and what a name is. None to detect it.
        entails: a classifier, or None.
        on_progress: called with each sentence.

    Raises:
        UserError: the path of a file, an unknown language, or a classifier of two labels.
    """
    for name, text in (("summary", summary), ("document", document)):
        refuse_path(name, text, "`pyramidions check` reads files")
    cut = outline(document, language=None if language is None else Language(language).code)
    if entails is not None and entails.is_binary:
        raise UserError(
            "`entailment` must be a classifier that tells contradiction apart, but has two labels: any document has a "
            "sentence that does not entail another."
        )
    texts = list(cut.texts)
    index = SupportIndex(texts, cut.language)
    # Names may stand in headings alone.
    units = [unit.text for unit in cut.units]
    words = {word for text in units for word in words_of(as_compared(text))}
    numbers = Held(units, cut.language)
    found, truncated = [], 0
    # As the document is split.
    for text in (unit.text for part in _parts(summary) for unit in outline(part, language=cut.language).units):
        missing = tuple(dict.fromkeys(_missing(text, words, numbers, cut.language)))
        sentence = replace(index.support(text), missing=missing)
        if entails is not None and texts:
            judged = entails.judged(texts, text)
            best = zip(judged.probabilities.argmax(axis=0), judged.probabilities.max(axis=0), strict=True)
            entailment, contradiction = (Supporting(texts[at], int(at), int(at) + 1, float(most)) for at, most in best)
            sentence = replace(sentence, entailment=entailment, contradiction=contradiction)
            truncated += judged.truncated
        found.append(sentence)
        on_progress(text)
    return CheckedSummary(cut, tuple(found), truncated)


def checked_page(checked: CheckedSummary, name: str, model: str | None = None) -> str:
    """Return the page of a checked summary; the document and a classifier have these names on it."""
    page = DocumentPage(_KIND, {} if model is None else {"entailment": model})
    shades = [0] * len(checked.document.sentences)
    for best in (each for sentence in checked.sentences for each in sentence.by_words):
        shades[best.start] = max(shades[best.start], round(1000 * best.share))
    page.put(
        {
            "name": name,
            "about": checked.told,
            **text_of(checked.document),
            "shades": [shades],
            "items": [_item(sentence) for sentence in checked.sentences],
            "sentences": [_sentence(sentence) for sentence in checked.sentences],
        }
    )
    if page.left_out:
        raise UserError(f"A page holds at most {MOST // 2**20} MiB, but the document is longer.")
    return page.html()


def _item(sentence: SummarySentence) -> Item:
    note = sentence.told + (f"; not in the document: {', '.join(sentence.missing)}" if sentence.missing else "")
    best = [each.start for each in sentence.by_words[:1] if sentence.is_supported]
    return {"text": sentence.text, "note": note, "links": [{"to": best} if best else None]}


def _sentence(sentence: SummarySentence) -> Sentence:
    shown = sentence_of(sentence)
    if sentence.missing:
        shown["support"].append(supported_by(f"Not in the document: {', '.join(sentence.missing)}"))
    for title, found in (("Entailed", sentence.entailment), ("Contradicted", sentence.contradiction)):
        if found is not None:
            shown["support"].append(supported_by(f"{title}: {found.share:.0%}", [found]))
    return shown


def _parts(summary: str) -> Iterator[str]:
    """Yield the paragraphs and the items of a summary; headings say nothing.

    In plain text, a line that stands alone without a full stop is a heading above an item or what ends as a sentence.
    """
    begun: list[str] = []
    parts: list[tuple[str, bool, bool]] = []  # text, may be a heading, is an item
    is_item = False
    for line in chain(headed_lines(summary), [Line("")]):
        if line.level or line.begins_item or not line.text.strip():
            parts += [("\n".join(begun), len(begun) == 1 and not is_item, is_item)] if begun else []
            begun, is_item = [], line.begins_item
        if line.level and not isinstance(summary, HeadedText):
            parts.append((line.text, True, False))
        elif not line.level and line.text.strip():
            begun.append(_MARK.sub("", line.text).replace("**", ""))
    kept, is_below = list[str](), False
    for text, may_head, is_item in reversed(parts):
        ends = ends_sentence(text)
        if not may_head or ends or not is_below:
            kept.append(text)
            is_below = ends or is_item or not may_head
    yield from reversed(kept)


def _missing(text: str, words: set[str], numbers: Held, language: str) -> Iterator[str]:
    """Yield the numbers and the names of a sentence that are not among those of the document, in any order."""
    yield from numbers.missing(text)
    text = as_compared(text)
    capital_nouns = language == "de"
    for place, (word, begin, end) in enumerate(word_places(text)):
        written = text[begin:end]
        # The first word of a sentence has a capital, whatever it is.
        tells = place > 0 and not capital_nouns and written != "I"
        is_name = written[1:] != written[1:].lower() or (tells and written[:1].isupper())
        if is_name and word not in words and not word.isdigit() and not is_code(text, begin, end):
            yield written

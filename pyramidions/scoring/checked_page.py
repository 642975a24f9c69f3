"""Shows a checked summary beside its document on an HTML page: one file that needs no network."""

from collections.abc import Iterator

from pyramidions.base.errors import UserError
from pyramidions.pages.page import MOST, Document, DocumentPage, Item, Kind, Sentence, Support
from pyramidions.scoring.summary_check import CheckedSentence, CheckedSummary
from pyramidions.text.outline import blocks

#: sentences of a paragraph
_BLOCK = 8
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


def checked_page(checked: CheckedSummary, name: str, model: str | None = None) -> str:
    """Return the page of a checked summary.

    Args:
        checked: as `check_summary` returned it.
        name: of the document, its heading.
        model: what to call the classifier, if there was one.

    Raises:
        UserError: the document is too long for a page.
    """
    page = DocumentPage(_KIND, {} if model is None else {"entailment": model})
    sentences = checked.document.sentences
    shades = [0] * len(sentences)
    for sentence in checked.sentences:
        for place, share in () if sentence.support is None else sentence.support.shares:
            shades[place] = max(shades[place], round(1000 * share))
    document: Document = {
        "name": name,
        "about": checked.told,
        "segments": [f" {each.text}" for each in sentences],
        "blocks": list(blocks(checked.document, _BLOCK)),
        "shades": [shades],
        "items": [_item(sentence) for sentence in checked.sentences],
        "sentences": [_sentence(sentence) for sentence in checked.sentences],
    }
    if not (size := page.room.reserve(document)):
        raise UserError(f"A page holds at most {MOST // 2**20} MiB, but the document is longer.")
    page.keep(document, size)
    return page.html()


def _item(sentence: CheckedSentence) -> Item:
    support = sentence.support
    note = sentence.told + (f"; not in the document: {', '.join(sentence.missing)}" if sentence.missing else "")
    best = support.sentences[:1] if support is not None and support.is_enough else ()
    return {"text": sentence.text, "note": note, "links": [{"to": [*best]} if best else None]}


def _sentence(sentence: CheckedSentence) -> Sentence:
    return {"text": sentence.text, "enough": sentence.is_supported, "support": list(_support(sentence))}


def _support(sentence: CheckedSentence) -> Iterator[Support]:
    support, verdict = sentence.support, sentence.verdict
    if support is None:
        yield {"title": "By words: too short to tell", "places": []}
    else:
        places = [[round(share, 4), place, place + 1] for place, share in support.shares]
        yield {"title": f"By words: {support.recall:.0%} of its pairs of words", "places": places}
    if sentence.missing:
        yield {"title": f"Not in the document: {', '.join(sentence.missing)}", "places": []}
    if verdict is not None:
        for title, chance, place in (
            ("Entailed", verdict.entailment, verdict.entails),
            ("Contradicted", verdict.contradiction, verdict.contradicts),
        ):
            yield {"title": f"{title}: {chance:.0%}", "places": [[round(chance, 4), place, place + 1]]}

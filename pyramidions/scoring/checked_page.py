"""Shows a checked summary beside its document on an HTML page: one file that needs no network."""

from pyramidions.base.errors import UserError
from pyramidions.pages.page import MOST, DocumentPage, Item, Kind, Sentence, sentence_of, supported_by, text_of
from pyramidions.scoring.summary_check import CheckedSummary
from pyramidions.text.support import SummarySentence

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

"""Shortens a document to a budget of tokens, for the prompt of a language model."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.arguments import Count, CountOrZero, checked, fits, shown
from pyramidions.base.errors import UserError
from pyramidions.extract import Budget, select
from pyramidions.extract.extraction import Extraction, extraction_of
from pyramidions.extract.fitness import as_extracted, fit_for_summary
from pyramidions.extract.selection import Redundancy
from pyramidions.files.bounded import read_regular
from pyramidions.files.hub import fetch, hub_name
from pyramidions.inference.extractor import Extractor, Ranked, document_outline
from pyramidions.text.headings import SHORT_LINE, HeadedText, Line, headed_lines
from pyramidions.text.normalization import UNSPACED, readable
from pyramidions.text.outline import Outline
from pyramidions.text.tokenizer.json_file import load, run
from pyramidions.text.turns import dialogue_outline, spoken, with_speakers

#: Counts the tokens of each of some texts.
CountTokens = Callable[[Sequence[str]], list[int]]

#: Characters of a token, where no tokenizer counts: what tokenizers of large models need for English.
CHARACTERS = 4
_FILE = "tokenizer.json"
#: A title takes at most the budget by this.
_TITLE_SHARE = 4
_DEEPEST = 6  # level of a heading in Markdown
# What stands for sentences that are left out.
_GAP = "[...]"
# Sentences that do not fit before the search for smaller ones ends.
_TRIES = 50
_UNSPACED = re.compile(f"[{UNSPACED}]")


class Compressed(NamedTuple):
    """A document in fewer tokens."""

    # Markdown: the most important sentences in reading order, below their headings; [...] stands for what is left out
    # between them.
    text: str
    tokens: int  # of it
    extraction: Extraction  # the sentences


@checked
def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Return about how many tokens each text has: one for four characters, or for one in scripts without spaces."""
    found = []
    for text in texts:
        unspaced = len(_UNSPACED.findall(text))
        found.append(unspaced + -(-(len(text) - unspaced) // CHARACTERS))
    return found


@checked
def tokens_of(tokenizer: str | Path) -> CountTokens:
    """Return what counts tokens by a tokenizer.json, a folder with one, or a model on the hub that has one."""
    name = hub_name(tokenizer)
    place = Path(tokenizer) if name is None else fetch(name, [_FILE])
    file = place if place.is_file() else place / _FILE
    if not file.is_file():
        raise UserError(f"`tokenizer` must be a {_FILE}, or a model that has one, but {tokenizer} is none.")
    try:
        model, _ = load(read_regular(file))
    except UserError as error:
        raise UserError(f"`tokenizer` must be a {_FILE} that can be read, but is {file}: {error}") from None

    def count(texts: Sequence[str]) -> list[int]:
        encoded: list[Any] = run(lambda: model.encode_batch(list(texts), add_special_tokens=False))
        return [len(each.ids) for each in encoded]

    return count


@checked
def as_markdown(document: str) -> str:
    """Return a document as Markdown, with its headings as they are found; white space is made single.

    Of a dialogue, the turns are paragraphs, without noises such as {vocalsound}.
    """
    if (dialogue := dialogue_outline(document)) is not None:
        turns = groupby(zip(dialogue.speakers, dialogue.texts, strict=True), lambda said: said[0])
        return "\n\n".join(" ".join(spoken(said)) for _, said in turns)
    begun, blocks = list[str](), list[str]()
    lines = list(headed_lines(document))
    is_marked = isinstance(document, HeadedText) or document.lstrip().startswith("#")
    for line in lines if is_marked else _with_title_on_top(lines):
        text = readable(line.text)
        if line.level or line.begins_item or not text:
            blocks.append(" ".join(begun))
            begun = []
        if line.level and text:
            blocks.append(f"{'#' * line.level} {text}")
        elif text:
            begun.append(text)
    return "\n\n".join(filter(None, [*blocks, " ".join(begun)]))


def _with_title_on_top(lines: list[Line]) -> list[Line]:
    """Rank the title of a plain text, a short line, above its sections, whose levels follow one another."""
    first = next((place for place, line in enumerate(lines) if line.text.strip()), 0)
    has_title = bool(lines) and lines[first].level == SHORT_LINE
    levels = sorted(
        {line.level for place, line in enumerate(lines) if line.level and not (has_title and place == first)}
    )
    ranks = {level: rank + has_title for rank, level in enumerate(levels, 1)}
    ranked = [line._replace(level=min(ranks.get(line.level, 0), _DEEPEST)) for line in lines]
    if has_title:
        ranked[first] = ranked[first]._replace(level=1)
    return ranked


@checked
def compress(
    text: str,
    extractor: Extractor,
    budget: Count,
    count: CountTokens = estimate_tokens,
    query: str | None = None,
    redundancy: Redundancy | None = None,
) -> Compressed:
    """Keep the most important sentences of a document, below their headings, and all below its title.

    The title is left out where it takes more than a quarter of the budget, or nothing would fit. Headings and [...]
    count among the tokens of the budget. The extractor's own rules say what becomes of repetitions, and of sentences
    that do not fit.
    """
    count = partial(_counted, count)
    outline = document_outline(text, language=extractor.language)
    # More words do not fit: hardly any is less than half a token.
    (scores,) = extractor.rank([Ranked(outline, query=query)], Budget(2 * budget))
    fitting = fit_for_summary(outline, scores)
    rules = extractor.rules(sentences=len(scores), redundancy=redundancy)
    texts = list(with_speakers(outline))
    ranked = sorted(select(texts, fitting, rules, language=outline.language), key=lambda place: -fitting[place])
    headings, below = _headings(outline)
    sizes = count([as_extracted(each) for each in texts])
    (gap,) = count([f" {_GAP} "])
    least = 0

    def filled(title: str, headings: list[str]) -> Compressed | None:
        nonlocal least

        def tried(places: list[int]) -> Compressed:
            kept = title + _text(outline, sorted(places), headings, below)
            return Compressed(kept, count([kept])[0], extraction_of(outline, scores, sorted(places)))

        of_title, *of_headings = count([title, *map(_heading, headings)])
        chosen, begun, tries = list[int](), set[int](), 0
        left = budget - of_title  # what is surely left of it
        for place in ranked:
            cost = sizes[place] + 1 + 2 * gap + (0 if below[place] in begun else of_headings[below[place]])
            if cost > left:
                # Less may do: gaps close, and a tokenizer needs less for a whole text.
                larger = tried([*chosen, place])
                if larger.tokens > budget:
                    least, tries = min(least or larger.tokens, larger.tokens), tries + 1
                    if tries == _TRIES or (rules.stops and chosen):
                        break
                    continue
                cost = left - (budget - larger.tokens)
            chosen.append(place)
            begun.add(below[place])
            left -= cost
        while chosen:
            found = tried(chosen)
            if found.tokens <= budget:
                return found
            # Or more.
            chosen.pop()
        return None

    found = None
    if _begins_with_title(outline) and _TITLE_SHARE * count([headings[1]])[0] <= budget:
        found = filled(f"# {headings[1]}\n\n", ["", "", *headings[2:]])
    found = found or filled("", headings)
    if found is None:
        raise UserError(f"`budget` must hold a sentence with its heading, {least or 1:,} tokens, but is {budget:,}.")
    return found


def _begins_with_title(outline: Outline) -> bool:
    """Return whether a document begins with a heading that is that of no section."""
    return bool(outline.units) and outline.units[0].is_heading and outline.units[0].text != outline.headings[0]


def _counted(count: CountTokens, texts: Sequence[str]) -> list[int]:
    """Return what a function of the user's own counts."""
    if fits(found := count(texts), Sequence[CountOrZero]) and len(found) == len(texts):
        return found
    raise UserError(
        f"`count` must return a whole number for each of {len(texts):,} texts, but returned {shown(found)}."
    )


def _headings(outline: Outline) -> tuple[list[str], list[int]]:
    """Return the headings of a document, "" for none, and which of them each sentence stands below."""
    headings, below = [""], list[int]()
    for unit in outline.units:
        if unit.is_heading:
            headings.append(unit.text)
        else:
            below.append(len(headings) - 1)
    return headings, below


def _heading(heading: str) -> str:
    return f"## {heading}\n\n" if heading else ""


def _text(outline: Outline, chosen: Sequence[int], headings: Sequence[str], below: Sequence[int]) -> str:
    """Return sentences below their headings; each gap is marked."""
    speakers = [outline.speakers[place] if outline.speakers else "" for place in chosen]
    said = spoken(zip(speakers, (as_extracted(outline.texts[place]) for place in chosen), strict=True))
    blocks, before, last = list[str](), None, -1
    for place, speaker, text in zip(chosen, speakers, said, strict=True):
        marked = f"{_GAP} {text}" if place > last + 1 else text
        if before == (below[place], speaker):
            blocks[-1] += f" {marked}"
        else:
            opened = before is None or before[0] != below[place]
            blocks.append(f"{_heading(headings[below[place]]) if opened else ''}{marked}")
        before, last = (below[place], speaker), place
    if last < len(below) - 1:
        blocks[-1] += f" {_GAP}"
    return "\n\n".join(blocks)

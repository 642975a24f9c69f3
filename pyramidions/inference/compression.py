"""Shortens a document to a budget of tokens, for the prompt of a language model."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.arguments import Count, checked
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.extract import Budget, select
from pyramidions.extract.extraction import Extraction, extraction_of
from pyramidions.extract.fitness import as_extracted, fit_for_summary
from pyramidions.files.hub import fetch, hub_name
from pyramidions.inference.extractor import Extractor, Ranked, document_outline
from pyramidions.text.headings import headed_lines
from pyramidions.text.normalization import normalize
from pyramidions.text.turns import with_speakers
from pyramidions.text.words import UNSPACED

#: Counts the tokens of each of some texts.
CountTokens = Callable[[Sequence[str]], list[int]]

#: Characters of a token, where no tokenizer counts: what tokenizers of large models need for English.
CHARACTERS = 4
_FILE = "tokenizer.json"
_UNSPACED = re.compile(f"[{UNSPACED}]")


class Compressed(NamedTuple):
    """A document in fewer tokens.

    Attributes:
        text: Markdown: the most important sentences in reading order, below the headings of their sections; [...]
            stands for others between two of a section.
        tokens: of it.
        extraction: the sentences.
    """

    text: str
    tokens: int
    extraction: Extraction


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Return about how many tokens each text has: one for four characters, or for one in scripts without spaces."""
    found = []
    for text in texts:
        unspaced = len(_UNSPACED.findall(text))
        found.append(unspaced + -(-(len(text) - unspaced) // CHARACTERS))
    return found


def tokens_of(tokenizer: str | Path) -> CountTokens:
    """Return what counts tokens by the tokenizer of a model.

    Args:
        tokenizer: a tokenizer.json, a folder with one, or a model on the hub that has one: OWNER/NAME or
            OWNER/NAME@REVISION.

    Raises:
        UserError: there is none, it cannot be read, or the library tokenizers is missing.
    """
    library = optional_library("tokenizers", "`tokenizer`")
    name = hub_name(tokenizer)
    place = Path(tokenizer) if name is None else fetch(name, [_FILE]).path
    file = place if place.is_file() else place / _FILE
    if not file.is_file():
        raise UserError(f"`tokenizer` must be a {_FILE}, or a model that has one, but {tokenizer} is none.")
    try:
        model = library.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise UserError(
            f"`tokenizer` must be a {_FILE} of the library tokenizers, but {file} is none: {error}."
        ) from None
    model.no_truncation()
    model.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        encoded: list[Any] = model.encode_batch(list(texts), add_special_tokens=False)
        return [len(each.ids) for each in encoded]

    return count


def as_markdown(document: str) -> str:
    """Return a document as Markdown, with its headings as they are found; white space is made single."""
    begun, blocks = list[str](), list[str]()
    for line in headed_lines(document):
        text = normalize(line.text)
        if line.level or line.begins_item or not text:
            blocks.append(" ".join(begun))
            begun = []
        if line.level and text:
            blocks.append(f"{'#' * line.level} {text}")
        elif text:
            begun.append(text)
    return "\n\n".join(filter(None, [*blocks, " ".join(begun)]))


@checked
def compress(
    text: str, extractor: Extractor, budget: Count, count: CountTokens = estimate_tokens, query: str | None = None
) -> Compressed:
    """Keep the most important sentences of a document, below the headings of their sections.

    Args:
        text: of the document.
        extractor: rates the sentences, by its own rules about repetitions, and about sentences that do not fit.
        budget: most tokens of what is kept, headings and [...] included.
        count: counts tokens.
        query: what the reader wants to know, for an extractor that reads queries.

    Raises:
        UserError: not even one sentence fits into the budget, or the document has none; or as `Extractor.rank`.
    """
    outline = document_outline(text, language=extractor.language)
    (scores,) = extractor.rank([Ranked(outline, query=query)], Budget())
    fitting = fit_for_summary(outline, scores)
    rules = extractor.rules(sentences=len(scores))
    texts = list(with_speakers(outline))
    ranked = sorted(select(texts, fitting, rules), key=lambda place: -fitting[place])
    sizes, headings = (
        count([as_extracted(each) for each in texts]),
        count([*map(_heading, outline.headings), " [...] "]),
    )
    chosen, begun, left = list[int](), set[int](), budget
    for place in ranked:
        section = outline.sentences.sections[place]
        # A space, and what stands before it: the heading, or the mark of a gap.
        cost = sizes[place] + 1 + headings[-1 if section in begun else section]
        if cost <= left:
            chosen.append(place)
            begun.add(section)
            left -= cost
        elif rules.stops and chosen:
            break
    while chosen:
        found = extraction_of(outline, scores, sorted(chosen))
        kept = "\n\n".join(f"{_heading(heading)}{some}" for heading, some in found.by_section())
        (tokens,) = count([kept])
        if tokens <= budget:
            return Compressed(kept, tokens, found)
        # A tokenizer may need more for the whole than for its parts.
        chosen.pop()
    least = min((sizes[place] + 1 + headings[outline.sentences.sections[place]] for place in ranked), default=1)
    raise UserError(f"`budget` must hold a sentence with its heading, {least:,} tokens, but is {budget:,}.")


def _heading(heading: str) -> str:
    return f"## {heading}\n\n" if heading else ""

"""Shortens a document to a budget of tokens, for the prompt of a language model."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyramidions.base.arguments import Count, checked
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.extract import Budget, SelectionRules
from pyramidions.extract.extraction import Extraction, extract
from pyramidions.extract.fitness import as_extracted
from pyramidions.files.hub import fetch, hub_name
from pyramidions.text.headings import headed_lines
from pyramidions.text.normalization import normalize
from pyramidions.text.outline import Outline
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
        text: Markdown: the headings of sections, and their most important sentences in reading order; [...] stands for
            sentences between them.
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
    outline: Outline,
    scores: np.ndarray,
    budget: Count,
    count: CountTokens = estimate_tokens,
    name: str = "budget",
) -> Compressed:
    """Keep the most important sentences of a document, with the headings of their sections.

    Args:
        outline: of the document.
        scores: (sentences,), as a `Ranker` gives them.
        budget: most tokens of the text, headings and [...] included.
        count: counts tokens.
        name: what an error calls the budget.

    Raises:
        UserError: not even one sentence fits into the budget.
    """
    lengths = [1 + tokens for tokens in count([as_extracted(text) for text in with_speakers(outline)])]
    room = budget
    while True:
        found = extract(outline, scores, SelectionRules(Budget(room)), lengths)
        text = "\n\n".join(
            f"{f'## {heading}{2 * chr(10)}' if heading else ''}{kept}" for heading, kept in found.by_section()
        )
        (tokens,) = count([text])
        if tokens <= budget:
            return Compressed(text, tokens, found)
        # Headings take room, too; how much depends on what is kept.
        room -= tokens - budget
        if room < 1 or len(found.sentences) < 2:
            raise UserError(f"`{name}` must hold a sentence with its heading, {tokens:,} tokens, but is {budget:,}.")

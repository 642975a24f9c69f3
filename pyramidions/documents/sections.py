"""Texts with headings, from records that list a document's sections.

Records of the arXiv and PubMed release (Cohan et al. 2018) have `sections`, a list of sentences for each section, and
`section_names`.
"""

from collections.abc import Mapping
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.text.normalization import normalize

SENTENCES, NAMES = SECTION_FIELDS = "sections", "section_names"


def sectioned_text(record: Mapping[str, Any], place: str) -> str | None:
    """Return the text of a record's sections, each below its name as a markdown heading, one sentence a line.

    The section of the abstract is left out. A section without a name continues the one before it.

    Args:
        record: with `sections` and `section_names`, or without.
        place: where the record stands, for errors.

    Returns:
        The text; None if the record has no sections that hold text.

    Raises:
        UserError: the two lists do not fit together.
    """
    sections, names = record.get(SENTENCES), record.get(NAMES)
    if not isinstance(sections, list) or not isinstance(names, list):
        return None
    if len(sections) != len(names):
        raise UserError(
            f"{place}: `{SENTENCES}` and `{NAMES}` must have as many entries as each other, "
            f"but have {len(sections)} and {len(names)}."
        )
    if not all(isinstance(name, str) for name in names) or not all(map(_is_list_of_texts, sections)):
        raise UserError(f"{place}: `{SENTENCES}` must hold lists of texts, and `{NAMES}` must hold texts.")
    texts = []
    for name, sentences in zip(map(normalize, names), sections, strict=True):
        if name.lower() == "abstract":
            continue
        lines = [line for sentence in sentences if (line := normalize(sentence))]
        if lines or name:
            texts.append("\n".join([*([f"# {name}"] if name else []), *lines]))
    holds_text = any(line and not line.startswith("# ") for text in texts for line in text.split("\n"))
    return "\n\n".join(texts) if holds_text else None


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)

"""The fields of records: their names in the two known shapes, and what they hold.

Two shapes of record are recognised by their fields: `article`, `abstract` and `id`; and those of the arXiv and
PubMed release by Cohan et al. (2018), `article_text`, `abstract_text` (lists of sentences, the latter inside
`<S> </S>`) and `article_id`, and perhaps `sections`, a list of sentences for each section, and `section_names`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.documents.records import Record, kind
from pyramidions.text.headings import HeadedText
from pyramidions.text.normalization import normalize


class FieldNames(NamedTuple):
    """Names of a record's fields.

    Where the `id` is None, it is found as in `id_of` and may be absent. Where the `query` is None, queries are not
    read.
    """

    source: str
    target: str
    id: str | None
    query: str | None = None


PLAIN = FieldNames("article", "abstract", "id")
RELEASE = FieldNames("article_text", "abstract_text", "article_id")
SENTENCES, NAMES = SECTION_FIELDS = "sections", "section_names"


def id_of(record: Record, field: str | None = None) -> str | None:
    """Return the id of a record, from the field that is named or the usual one of its shape; None without one."""
    found = record.value.get(id_field(record.value, field))
    if found is None and field is not None:
        raise _missing(record, field, "--id-field")
    return None if found is None else str(found)


def id_field(record: dict[Any, Any], named: str | None = None) -> str:
    """Return the field of a record's id: the ``named`` one, else the usual one of its shape."""
    return named or str(shape(record).id)


def shape(record: dict[Any, Any]) -> FieldNames:
    """Return the fields of a record's shape."""
    return RELEASE if RELEASE.source in record and PLAIN.source not in record else PLAIN


def text_of(record: Record, field: str, option: str) -> str:
    """Return the text of a field of a record that is an object, as `joined` does."""
    value = record.value.get(field)
    if value is None:
        raise _missing(record, field, option)
    if (text := joined(value)) is not None:
        return text
    found = kind(value)
    if isinstance(value, list):
        found += f" that holds {next(kind(item) for item in value if not isinstance(item, str))}"
    raise UserError(f"{record.place}: the field {field!r} must be text or a list of texts, but is {found}.")


def joined(value: object) -> str | None:
    """Return a text as it is, or a list of sentences as the release has them, one a line; None if it is neither."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(sentence, str) for sentence in value):
        return "\n".join(s.strip().removeprefix("<S>").removesuffix("</S>").strip() for s in value)
    return None


def _missing(record: Record, field: str, option: str) -> UserError:
    if field in record.value:
        return UserError(f"{record.place}: the field {field!r} must be text, but is null.")
    present = ", ".join(map(repr, record.value))[:200] or "none"
    return UserError(f"{record.place}: lacks the field {field!r}; its fields are {present}; {option} names another.")


def sectioned_text(record: Mapping[str, Any], place: str) -> HeadedText | None:
    """Return the text of a record's sections, each below its name as a heading, one sentence a line.

    The section of the abstract is left out. A section without a name continues the one before it. The text is None if
    no section holds any.
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
    parts: list[str | int] = []
    holds_text = False
    for name, sentences in zip(map(normalize, names), sections, strict=True):
        if name.lower() == "abstract":
            continue
        lines = [line for sentence in sentences if (line := normalize(sentence))]
        if parts and (lines or name):
            parts.append("\n\n")
        if name:
            parts += [1, f"{name}\n" if lines else name]
        if lines:
            parts.append("\n".join(lines))
        holds_text = holds_text or bool(lines)
    return HeadedText.of(parts) if holds_text else None


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)

"""Documents from the records of dialogue corpora."""

from collections.abc import Iterator
from typing import Any

from pyramidions.base.arguments import fits
from pyramidions.base.errors import UserError
from pyramidions.documents.records import Record

_TURNS, _GENERAL, _SPECIFIC = MEETING_COLUMNS = ("meeting_transcripts", "general_query_list", "specific_query_list")
INTERVIEW_COLUMNS = ("speaker", "utt")


def questions_of_meeting(record: Record) -> Iterator[Record]:
    """Yield a record for each query about a meeting of QMSum, general ones first, named MEETING/1, MEETING/2 ….

    The source is the whole meeting, a line for each turn: `speaker: content`. Meetings have numbers, from 1: their
    records have no names.

    Raises:
        UserError: a turn or a query is not as in the release.
    """
    turns = _pairs(record, _TURNS, "speaker", "content")
    queries = [pair for column in (_GENERAL, _SPECIFIC) for pair in _pairs(record, column, "query", "answer")]
    meeting = "\n".join(f"{speaker}: {content}" for speaker, content in turns)
    for number, (query, answer) in enumerate(queries, 1):
        value = {"id": f"{record.number}/{number}", "source": meeting, "target": answer, "query": query}
        yield record._replace(value=value, place=f"{record.place}, query {number}")


def turns_of_meeting(record: Record) -> Iterator[Record]:
    """Yield the record of a meeting of AMI or ICSI, a line for each turn: `role speaker: words`.

    Raises:
        UserError: a turn is not as in the release of HMNet.
    """
    try:
        turns = [(turn["role"], turn["speaker"], turn["utt"]["word"]) for turn in record.value["meeting"]]
        if not all(fits(words, list[str]) for _, _, words in turns):
            raise TypeError
        meeting = "\n".join(f"{role} {speaker}: {' '.join(words)}" for role, speaker, words in turns)
    except (KeyError, TypeError):
        raise UserError(
            f"{record.place}: the field 'meeting' must be a list of turns with `role`, `speaker` and, in `utt`, a list "
            "`word`."
        ) from None
    yield record._replace(value=record.value | {"meeting": meeting})


def turns_of_interview(record: Record) -> Iterator[Record]:
    """Yield the record of an interview of MediaSum, a line for each turn: `speaker: text`.

    Raises:
        UserError: it does not have a speaker for each text.
    """
    speakers, texts = (record.value[name] for name in INTERVIEW_COLUMNS)
    if not (fits(speakers, list[str]) and fits(texts, list[str]) and len(speakers) == len(texts)):
        raise UserError(
            f"{record.place}: the fields 'speaker' and 'utt' must be lists of texts, and have as many entries as each "
            "other."
        )
    turns = [f"{speaker}: {' '.join(text.split())}" for speaker, text in zip(speakers, texts, strict=True)]
    yield record._replace(value=record.value | {"utt": "\n".join(turns)})


def join_subwords(record: Record) -> Iterator[Record]:
    """Yield the record of an episode of SummScreen with whole words: the release cut them into `sub@@ words`."""
    yield record._replace(value={name: _whole(value) for name, value in record.value.items()})


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value.replace("@@ ", "") if isinstance(value, str) else value


def _pairs(record: Record, column: str, *names: str) -> list[tuple[Any, ...]]:
    found = record.value[column]
    items = found if isinstance(found, list) else [None]
    pairs = [tuple(item.get(name) if isinstance(item, dict) else None for name in names) for item in items]
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise UserError(
            f"{record.place}: the field {column!r} must be a list of objects with texts under "
            f"{' and '.join(map(repr, names))}."
        )
    return pairs

"""Queries: what is asked of a document, from its record to the data folder."""

import hashlib
import json
import re

import pytest

from pyramidions.base.errors import UserError
from pyramidions.data.divide import Divide
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.data.manifest import InputHash
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document, known_fields
from pyramidions.data.select_sentences import SelectSentences
from pyramidions.data.vocabulary import Settings
from pyramidions.extract import Lead
from pyramidions.text.tokenizer import EOS


def read(path, **options):
    return list(Corpus(str(path), **options))


def test_a_query_is_read_from_the_field_that_is_named(tmp_path):
    path = tmp_path / "meetings.jsonl"
    path.write_text('{"id": "a", "query": "Why?", "article": "text", "abstract": "short"}\n')
    assert read(path, fields=known_fields(None, None, None, "query")) == [Document("a", "text", "short", "Why?")]
    assert read(path) == [Document("a", "text", "short")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "lacks the field 'query'; its fields are 'id', 'article', 'abstract'; --query-field names another"),
        ({"query": " \n"}, "the field 'query' is empty"),
        ({"query": 3}, "the field 'query' must be text or a list of texts, but is a number"),
    ],
)
def test_a_query_that_was_asked_for_must_be_there(record, message, tmp_path):
    path = tmp_path / "meetings.jsonl"
    path.write_text(json.dumps({"id": "a", "article": "text", "abstract": "short"} | record))
    with pytest.raises(UserError, match=re.escape(f"line 1: {message}")):
        read(path, fields=known_fields(None, None, None, "query"))


def test_query_document_and_summary_have_fields_of_their_own():
    with pytest.raises(UserError, match="--query-field and --source-field must name two fields, but both are 'text'"):
        known_fields("text", None, None, "text")
    with pytest.raises(UserError, match="--query-field and --target-field must name two fields, but both are 'abs"):
        known_fields(None, None, None, "abstract")


def test_a_document_is_read_again_with_its_query(tmp_path):
    path = tmp_path / "meetings.jsonl"
    path.write_text('{"id": "a", "query": "Why?", "article": "text", "abstract": "short", "place": "Bern"}\n')
    corpus = Corpus(str(path), fields=known_fields(None, None, None, "query"))
    ((document, record),) = corpus.with_records()
    assert corpus.fields_read(document, record) == {"id": "a", "query": "Why?", "article": "text", "abstract": "short"}


def test_the_hash_of_documents_without_queries_is_that_of_their_three_texts():
    without, with_query = InputHash(), InputHash()
    without.add(Document("a", "text", "short"))
    with_query.add(Document("a", "text", "short", "Why?"))
    plain = b"".join(len(text).to_bytes(8, "little") + text for text in (b"a", b"text", b"short"))
    assert without.sha256 == hashlib.sha256(plain).hexdigest() != with_query.sha256


MEETINGS = [
    {
        "id": place,
        "query": f"What of the budget {place}? Why.",
        "article": f"We met in {place} and spoke of quick brown foxes. {place}. " * 9,
        "abstract": "So it is.",
    }
    for place in ("Bern", "Rome", "Oslo", "Kyiv")
]


@pytest.fixture(scope="module")
def meetings(tmp_path_factory):
    path = tmp_path_factory.mktemp("meetings") / "train.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in MEETINGS))
    return path


def corpus(path, **options):
    return Corpus(str(path), fields=known_fields(None, None, None, "query"), **options)


def small(markers=False):
    return Settings(vocab_size=40, sentence_markers=markers)


@pytest.mark.parametrize("markers", [False, True])
def test_each_prepared_document_begins_with_its_query_without_markers(meetings, tmp_path, markers):
    prepare(tmp_path / "data", {"train": corpus(meetings)}, small(markers))
    folder = DataFolder(tmp_path / "data")
    tokenizer, read = folder.tokenizer(), IndexedReader(folder.prefix("train", "source"))
    for record, ids in zip(MEETINGS, read, strict=True):
        query = [i for i in tokenizer.encode(record["query"]) if i != tokenizer.marker_id]
        assert list(ids) == [*query, EOS, *tokenizer.encode(record["article"]), EOS]
    assert folder.has_queries and folder.manifest["settings"]["queries"] is True
    lengths = [len(tokenizer.asked(record["query"])) for record in MEETINGS]
    assert folder.manifest["splits"]["train"]["query_tokens"]["max"] == max(lengths)
    assert folder.manifest["splits"]["train"]["query_tokens"]["total"] == sum(lengths)


def test_a_folder_without_queries_says_nothing_of_them(meetings, tmp_path):
    prepare(tmp_path / "data", {"train": Corpus(str(meetings))}, small())
    folder = DataFolder(tmp_path / "data")
    assert not folder.has_queries and "queries" not in folder.manifest["settings"]
    assert "query_tokens" not in folder.manifest["splits"]["train"]


def test_splits_that_differ_in_queries_are_refused(meetings, tmp_path):
    with pytest.raises(UserError, match="All splits must have queries, or none, but train has them and valid does not"):
        prepare(tmp_path / "data", {"train": corpus(meetings), "valid": Corpus(str(meetings))}, small())


def test_labels_exclude_queries(meetings, tmp_path):
    with pytest.raises(UserError, match="--labels excludes --query-field"):
        prepare(tmp_path / "data", {"train": corpus(meetings)}, small(), labels=True)


def test_sections_keep_the_query_of_their_document():
    text = (
        "# Introduction\n"
        + "We talked of the budget at length. " * 9
        + "\n# Results\n"
        + "Nothing else was said today. " * 9
    )
    summary = "We talked of the budget at length. Nothing else was said today."
    pairs = Divide(least_words=1)(Document("x", text, summary, "Why?")).documents
    assert [(pair.id, pair.query) for pair in pairs] == [("x/1", "Why?"), ("x/2", "Why?")]


def test_a_selection_leaves_room_for_the_query(meetings, tmp_path):
    prepare(tmp_path / "data", {"train": corpus(meetings)}, small())
    tokenizer = DataFolder(tmp_path / "data").tokenizer()
    query, budget = "What of the budget Bern?", 100
    selecting = SelectSentences(Lead, budget, {})
    ((kept,), _) = selecting(Document("x", "We met. " * 90, "So.", query), tokenizer)
    assert kept.query == query
    assert len(tokenizer.framed(tokenizer.encode(kept.source), tokenizer.asked(query))) <= budget
    ((alone,), _) = selecting(Document("x", "We met. " * 90, "So."), tokenizer)
    assert len(alone.source) > len(kept.source)


def test_a_query_of_more_than_half_the_budget_is_refused(meetings, tmp_path):
    prepare(tmp_path / "data", {"train": corpus(meetings)}, small())
    tokenizer, query = DataFolder(tmp_path / "data").tokenizer(), "What of the budget Bern?"
    tokens = len(tokenizer.asked(query))
    document = Document("x", "We met. " * 90, "So.", query)
    SelectSentences(Lead, 2 * tokens + 1, {})(document, tokenizer)
    message = f"must have at most {tokens - 1} tokens, half of `budget`, .* but that of 'x' has {tokens}"
    with pytest.raises(UserError, match=message):
        SelectSentences(Lead, 2 * tokens, {})(document, tokenizer)

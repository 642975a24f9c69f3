"""Queries: what is asked of a document, from its record to the data folder."""

import hashlib
import json

import pytest
from refusals import refused

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

SMALL = Settings(vocab_size=40)


def read(path, **options):
    return list(Corpus(str(path), **options))


def corpus(path):
    return Corpus(str(path), fields=known_fields(None, None, None, "query"))


def test_a_query_is_read_from_the_field_that_is_named(tmp_path):
    path = tmp_path / "meetings.jsonl"
    path.write_text('{"id": "a", "query": "Why?", "article": "text", "abstract": "short", "place": "Bern"}\n')
    assert read(path) == [Document("a", "text", "short")]
    found = corpus(path)
    ((document, record),) = found.with_records()
    assert document == Document("a", "text", "short", "Why?")
    assert found.fields_read(document, record) == {"id": "a", "query": "Why?", "article": "text", "abstract": "short"}


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


@pytest.mark.parametrize("markers", [False, True])
def test_each_prepared_document_begins_with_its_query_without_markers(meetings, tmp_path, markers):
    prepare(tmp_path / "data", {"train": corpus(meetings)}, Settings(vocab_size=40, sentence_markers=markers))
    folder = DataFolder(tmp_path / "data")
    tokenizer, read = folder.tokenizer(), IndexedReader(folder.prefix("train", "source"))
    for record, ids in zip(MEETINGS, read, strict=True):
        query = [i for i in tokenizer.encode(record["query"]) if i != tokenizer.marker_id]
        assert list(ids) == [*query, EOS, *tokenizer.encode(record["article"]), EOS]
    assert folder.has_queries and folder.manifest["settings"]["queries"] is True
    lengths = [len(tokenizer.asked(record["query"])) for record in MEETINGS]
    about = folder.manifest["splits"]["train"]["query_tokens"]
    assert (about["max"], about["total"]) == (max(lengths), sum(lengths))


def test_a_folder_without_queries_says_nothing_of_them(meetings, tmp_path):
    prepare(tmp_path / "data", {"train": Corpus(str(meetings))}, SMALL)
    folder = DataFolder(tmp_path / "data")
    assert not folder.has_queries and "queries" not in folder.manifest["settings"]
    assert "query_tokens" not in folder.manifest["splits"]["train"]


def test_queries_of_all_splits_exclude_labels(meetings, tmp_path):
    with pytest.raises(UserError):
        prepare(tmp_path / "data", {"train": corpus(meetings), "valid": Corpus(str(meetings))}, SMALL)
    with pytest.raises(UserError):
        prepare(tmp_path / "data", {"train": corpus(meetings)}, SMALL, labels=True)


def test_sections_keep_the_query_of_their_document():
    sentences = ("We talked of the budget at length.", "Nothing else was said today.")
    text = f"# Introduction\n{sentences[0]}\n# Results\n{sentences[1]}"
    pairs = Divide(least_words=1)(Document("x", text, " ".join(sentences), "Why?")).documents
    assert [(pair.id, pair.query) for pair in pairs] == [("x/1", "Why?"), ("x/2", "Why?")]


def test_a_selection_leaves_room_for_the_query(meetings, tmp_path):
    prepare(tmp_path / "data", {"train": corpus(meetings)}, SMALL)
    tokenizer, query = DataFolder(tmp_path / "data").tokenizer(), "What of the budget Bern?"
    tokens = len(tokenizer.asked(query))
    document, budget = Document("x", "We met. " * 90, "So.", query), 100
    ((kept,), _) = SelectSentences(Lead, budget, {})(document, tokenizer)
    assert kept.query == query
    assert len(tokenizer.framed(tokenizer.encode(kept.source), tokenizer.asked(query))) <= budget
    ((alone,), _) = SelectSentences(Lead, budget, {})(document._replace(query=None), tokenizer)
    assert len(alone.source) > len(kept.source)
    # The query may take half of it at most.
    SelectSentences(Lead, 2 * tokens + 1, {})(document, tokenizer)
    with refused(f"that of 'x' has {tokens}"):
        SelectSentences(Lead, 2 * tokens, {})(document, tokenizer)

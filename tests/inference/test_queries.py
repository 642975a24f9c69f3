"""Documents with queries: what is read of both, what is written, and what is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import Result
from explanations import page_data
from invoking import run
from refusals import refused

from pyramidions.base.reading import LONG
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import SavedModel, Summarizer, export_model
from pyramidions.inference.long_documents import LongReader
from pyramidions.inference.reader import Reader
from pyramidions.models import PyramidionConfig, build
from pyramidions.pretrained.model_card import model_card
from pyramidions.pretrained.saved_model import load_model
from pyramidions.text.tokenizer import EOS, Tokenizer

_METHODS = " ".join(f"Bees dance at night {n}. Rain fell." for n in range(9))
MEETING = f"# Methods\n\n{_METHODS}\n\n# Results\n\nWe saw it."
QUERIES = ["Why do bees dance?", "Who saw rain?"]
MOST = 48  # tokens that the model reads
SHORT = {"beam": 1, "min_len": 1, "max_len": 8}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([*MEETING.split("."), *QUERIES], Settings(46, sentence_markers=True))


@pytest.fixture(scope="module")
def summarizer(tokenizer: Tokenizer) -> Summarizer:
    """Return a tiny model for documents with queries, which was never trained."""
    torch.manual_seed(1)
    shape = {"embed_dim": 16, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1}
    pooled = {"pooling_lengths": "16,None", "scorer": "query"}
    config = PyramidionConfig(**shape, **pooled, max_source_positions=MOST, decoding_min_length=4)
    model = build(config, tokenizer.vocab_size, marker_idx=tokenizer.marker_id).eval()
    return Summarizer(SavedModel(model, config, tokenizer, MOST, 32, queries=True), "cpu")


@pytest.fixture(scope="module")
def without(summarizer: Summarizer) -> Summarizer:
    """Return the same as a model that was trained without queries."""
    return Summarizer(replace(summarizer.model, queries=False), "cpu")


@pytest.fixture(scope="module")
def exported(summarizer: Summarizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "answerer"
    export_model(summarizer.model, folder, "A card.")
    return folder


def command(*arguments: object) -> Result:
    return run("summarize", *arguments, "--beam", 1, "--max-len", 8)


@pytest.mark.parametrize("long", LONG)
def test_each_part_of_a_document_stands_behind_the_whole_query(tokenizer: Tokenizer, long: str) -> None:
    parts = list(LongReader(Reader(tokenizer, MOST, queries=True), long).parts(MEETING, "a text", None, QUERIES[0]))
    asked = tokenizer.asked(QUERIES[0])
    assert tokenizer.marker_id not in asked
    for part in parts:
        ids = tokenizer.framed(tokenizer.ids_of(part.tokenized.tokens), part.tokenized.query)
        assert ids[: len(asked)] == asked and ids.count(EOS) == 2
        assert len(ids) == part.tokenized.read <= MOST and part.query == QUERIES[0]


def test_two_queries_have_summaries_and_kept_tokens_of_their_own(summarizer: Summarizer) -> None:
    first, second = (summarizer.explain(MEETING, query=query, **SHORT) for query in QUERIES)
    assert [first.summary.query, second.summary.query] == QUERIES
    # The document begins behind query and `</s>`.
    assert "".join(first.document[: first.asked]).strip() == QUERIES[0]
    shares = [each.reached[each.asked : each.asked + 20] for each in (first, second) if each.reached is not None]
    assert (shares[0] - shares[1]).abs().max() > 0.1
    assert first.summary.score != second.summary.score


def test_one_query_serves_all_documents_or_each_has_its_own(summarizer: Summarizer) -> None:
    both = summarizer.summarize([MEETING, MEETING], query=QUERIES, **SHORT)
    alone = [summarizer.summarize([MEETING], query=query, **SHORT)[0] for query in QUERIES]
    assert [(one.text, one.query) for one in both] == [(one.text, one.query) for one in alone]
    same = summarizer.summarize([MEETING, MEETING], query=QUERIES[0], **SHORT)
    assert [one.query for one in same] == [QUERIES[0]] * 2
    for queries, said in ((QUERIES[:1], "fewer"), ([*QUERIES, "Why?"], "more")):
        with refused(said):
            summarizer.summarize([MEETING, MEETING], query=queries, **SHORT)
    # Summaries of summaries answer it, too.
    (merged,) = summarizer.summarize([MEETING], query=QUERIES[0], long="merge", **SHORT)
    assert merged.query == QUERIES[0] and len(merged.pieces) > 1
    assert {piece.query for piece in merged.pieces} == {QUERIES[0]}


def test_a_query_takes_at_most_half_of_what_the_model_reads(summarizer: Summarizer) -> None:
    tokenizer, query = summarizer.model.tokenizer, "b" * 9
    while len(tokenizer.asked(f"{query}b")) <= (MOST - 1) // 2:
        query += "b"
    summarizer.summarize([MEETING], query=query, **SHORT)
    with refused("24"):
        summarizer.summarize([MEETING], query=f"{query}b", **SHORT)


def test_an_export_says_that_its_model_answers_queries(exported: Path, without: Summarizer, tmp_path: Path) -> None:
    assert load_model(exported).queries
    export_model(without.model, tmp_path / "plain", "A card.")
    assert not load_model(tmp_path / "plain").queries
    assert "queries" not in json.loads((tmp_path / "plain" / "config.json").read_text())
    # The card shows how to ask.
    assert '.summarize(["A long document ..."], query="What ...?")' in model_card(load_model(exported), "x")
    assert '.summarize(["A long document ..."])' in model_card(without.model, "x")


def test_the_command_summarizes_each_document_once_for_each_query(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "meeting.md").write_text(MEETING)
    (tmp_path / "queries.txt").write_text("\n".join(["", *QUERIES, ""]))
    given = [part for query in QUERIES for part in ("--query", query)]
    found = command(exported, tmp_path / "meeting.md", *given, "--json")
    assert [json.loads(line)["query"] for line in found.stdout.splitlines()] == QUERIES
    of_file = ("--query-file", tmp_path / "queries.txt")
    assert found.stdout == command(exported, tmp_path / "meeting.md", *of_file, "--json").stdout
    text = command(exported, tmp_path / "meeting.md", *given).stdout
    assert [line[7:] for line in text.splitlines() if line.startswith("Query: ")] == QUERIES
    # The summary alone, as of one document without a query.
    assert "Query:" not in command(exported, tmp_path / "meeting.md", "--query", QUERIES[0]).stdout


def test_records_have_queries_of_their_own(exported: Path, tmp_path: Path) -> None:
    records = [{"id": "a", "text": MEETING, "ask": query} for query in [*QUERIES, " ", "b" * 99]] + [{"text": MEETING}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    found = command(exported, path, "--query-field", "ask", "--json")
    assert [(json.loads(line)["id"], json.loads(line)["query"]) for line in found.stdout.splitlines()] == [
        ("a", QUERIES[0]),
        ("a#2", QUERIES[1]),
    ]
    assert found.exit_code == 1
    assert re.findall(r"a\.jsonl:(\d)", found.stderr) == ["3", "4", "5"]
    (tmp_path / "a.txt").write_text(MEETING)
    without_fields = command(exported, tmp_path / "a.txt", "--query-field", "ask")
    assert without_fields.exit_code == 1 and "--query-field" in without_fields.stderr


def test_the_page_has_each_query_with_its_tokens_in_front(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(MEETING)
    given = [part for query in QUERIES for part in ("--query", query)]
    found = command(exported, tmp_path / "a.txt", *given, "--explain", tmp_path / "page.html")
    assert found.exit_code == 0, found.output
    documents = page_data((tmp_path / "page.html").read_text(encoding="utf-8"))["documents"]
    assert [document["query"] for document in documents] == QUERIES
    for document in documents:
        (query, begin, _), (text, end, _) = document["blocks"][:2]
        assert (query, begin, text) == ("query", 0, "p")
        assert "".join(document["segments"][:end]).strip() == document["query"]

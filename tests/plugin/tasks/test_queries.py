"""Tasks on documents with queries: what they load, what they refuse, and what travels in a checkpoint."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, known_fields
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask
from pyramidions.plugin.tasks.queries import check_query_model
from pyramidions.text.tokenizer import EOS


def make(data: DataFolder, has_queries: bool | None = None, **overrides: Any) -> LongDocumentSummarizationTask:
    """Return a task; ``has_queries`` is what a checkpoint says, None begins a training."""
    task = LongDocumentSummarizationTask(LongDocumentSummarizationConfig(data=str(data.path), **overrides))
    if has_queries is None:
        task.preprocessing.learn_queries()
    else:
        task.load_state_dict({**task.state_dict(), "queries": has_queries})
    return task


@pytest.fixture(scope="module")
def asked(data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Return a folder with two documents for each of two queries, encoded with the tokenizer of ``data``."""
    folder = tmp_path_factory.mktemp("asked")
    records = [
        {"id": f"{number}", "query": query, "article": "We tested the cells again. " * 60, "abstract": "They grew."}
        for number, query in enumerate(["What was tested?", "Why did the cells of the second group grow?"] * 2)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = Corpus(str(folder / "train.jsonl"), fields=known_fields(None, None, None, "query"))
    prepare(folder / "data", {"train": corpus}, tokenizer=data.tokenizer())
    return DataFolder(folder / "data")


def test_truncation_cuts_the_document_and_never_the_query(asked: DataFolder) -> None:
    task, tokenizer = make(asked, max_source_positions=48, max_target_positions=16), asked.tokenizer()
    task.load_dataset("train")
    for number in range(4):
        source = task.datasets["train"][number]["source"].tolist()
        query = tokenizer.asked(["What was tested?", "Why did the cells of the second group grow?"][number % 2])
        assert len(source) == 48 and source[: len(query)] == query and source[-1] == EOS
        assert source[len(query) : -1] == tokenizer.encode("We tested the cells again. " * 60)[: 47 - len(query)]


def test_a_query_of_more_than_half_of_what_the_model_reads_is_refused(asked: DataFolder) -> None:
    longest = asked.manifest["splits"]["train"]["query_tokens"]["max"]
    make(asked, max_source_positions=2 * longest + 1).load_dataset("train")
    with pytest.raises(UserError) as error:
        make(asked, max_source_positions=2 * longest).load_dataset("train")
    assert str(error.value) == (
        f"The query of the document '1' in the split 'train' has {longest} tokens with its end, but must have at most "
        f"{longest - 1}, half of what the model reads: `max_source_positions` is {2 * longest}."
    )


def test_a_checkpoint_says_whether_its_model_answers_queries(asked: DataFolder, data: DataFolder) -> None:
    assert make(asked).state_dict()["queries"] is True and make(data).state_dict()["queries"] is False
    # As do those of older releases, which do not say it.
    task = make(data)
    task.load_state_dict({name: value for name, value in task.state_dict().items() if name != "queries"})
    assert not task.preprocessing.has_queries


def test_the_data_of_a_training_decides_whatever_the_model_that_it_starts_from_was_trained_on(
    asked: DataFolder,
) -> None:
    task = make(asked)
    task.load_state_dict({**task.state_dict(), "queries": False})
    assert task.preprocessing.has_queries


def test_a_model_and_a_folder_that_differ_in_queries_are_refused(asked: DataFolder, data: DataFolder) -> None:
    with pytest.raises(UserError, match="have queries, but the model was trained without: prepare them without --que"):
        make(asked, has_queries=False).load_dataset("train")
    with pytest.raises(UserError, match="have no queries, but the model was trained with them: prepare them with --qu"):
        make(data, has_queries=True).load_dataset("valid")


def test_models_with_and_without_queries_are_no_ensemble(asked: DataFolder) -> None:
    task = make(asked, has_queries=True)
    with pytest.raises(UserError, match="^Models that answer queries and models that do not cannot be an ensemble.$"):
        task.load_state_dict({**task.state_dict(), "queries": False})


def test_a_line_of_interactive_is_a_query_a_tab_and_a_document(asked: DataFolder) -> None:
    task, tokenizer = make(asked, has_queries=True), asked.tokenizer()
    line = "What was tested?\tWe tested\tthe cells."
    (tokens,), _ = task.get_interactive_tokens_and_lengths([line], task.build_bpe(None).encode)
    assert tokens.tolist() == tokenizer.framed(tokenizer.encode("We tested the cells."), tokenizer.asked(line[:16]))
    for wrong in ("We tested the cells.", "\tWe tested the cells.", "What was tested?\t "):
        with pytest.raises(UserError, match="each line must hold a query, a tab and a document, but one is '"):
            task.build_bpe(None).encode(wrong)


def test_without_queries_a_tab_is_a_space(data: DataFolder) -> None:
    codec = make(data).build_bpe(None)
    assert codec.encode("We tested\tthe cells.") == codec.encode("We tested the cells.")


def test_a_long_query_of_interactive_is_refused(asked: DataFolder) -> None:
    task = make(asked, has_queries=True, max_source_positions=12)
    task.build_dataset_for_inference([torch.tensor([5, 6, 7, 8, EOS, 9, EOS])], [7])
    message = "The query of document number 2 of those just read has 6 tokens with its end, but must have at most 5,"
    with pytest.raises(UserError, match=message):
        task.build_dataset_for_inference(
            [torch.tensor([5, EOS, 9, EOS]), torch.tensor([*[5] * 5, EOS, 9, EOS])], [4, 8]
        )


@pytest.mark.parametrize(
    ("fields", "named"), [({"scorer": "linear | query"}, "--scorer query"), ({}, "--global-query")]
)
def test_a_model_that_asks_for_queries_needs_some(
    asked: DataFolder, data: DataFolder, fields: dict[str, str], named: str
) -> None:
    cfg = SimpleNamespace(**{"scorer": "linear", "global_query": not fields, **fields})
    check_query_model(cfg, make(asked).preprocessing)
    with pytest.raises(UserError, match=f"^{named} needs documents with queries, but those of .* have none: prepare"):
        check_query_model(cfg, make(data).preprocessing)

"""Prefixes and queries in front of documents: what is cut, and what travels in a checkpoint."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from small_tokenizers import bart_bytes

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig, LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.datasets import HeadDataset
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask
from pyramidions.plugin.tasks.preprocessing import SOURCE_PREFIX, TAGS, Preprocessing, Setting
from pyramidions.plugin.tasks.queries import check_query_model
from pyramidions.plugin.tasks.splits import documents_alone
from pyramidions.text.tokenizer import EOS


def preprocessing(folder: Path, longest: int) -> Preprocessing:
    (folder / "tokenizer.json").write_bytes(bart_bytes())
    return Preprocessing(DataFolder(folder), "a_task", {"max_source_positions": Setting(longest)})


def test_a_text_begins_with_the_prefix_and_keeps_it_when_it_is_cut() -> None:
    texts = [torch.tensor([5, 6, 7, 8, 2]), torch.tensor([5, 6, 2])]
    head = HeadDataset(texts, np.array([5, 3]), max_length=4, eos=2, prefix=(0,))
    assert [text.tolist() for text in (head[0], head[1])] == [[0, 5, 6, 2], [0, 5, 6, 2]]
    assert head.sizes.tolist() == [4, 4] and head.longest == 6
    assert head.report == "1 of 2 cut at 4 tokens (2 tokens lost, 20.0%)"
    assert texts[0].tolist() == [5, 6, 7, 8, 2]


def test_what_is_typed_begins_with_it_too(tmp_path: Path) -> None:
    documents = documents_alone(preprocessing(tmp_path, 4), [torch.tensor([9, 8, 7, 2])], reads_end=True)
    assert documents[0]["source"].tolist() == [0, 9, 8, 2]


def test_a_prefix_of_documents_follows_that_of_the_tokenizer(tmp_path: Path) -> None:
    asked = preprocessing(tmp_path, 8).need_tokenizer().encode("summarize: ")
    for room, kept in ((4, [9, 8]), (3, [9])):
        given = {"max_source_positions": Setting(len(asked) + room), SOURCE_PREFIX: Setting("summarize: ", "")}
        asking = Preprocessing(DataFolder(tmp_path), "a_task", given)
        documents = documents_alone(asking, [torch.tensor([9, 8, 7, 2])], reads_end=True)
        assert documents[0]["source"].tolist() == [0, *asked, *kept, 2]
    assert asking.state_dict()[SOURCE_PREFIX] == "summarize: "


def test_the_dictionary_holds_every_piece_under_its_id(tmp_path: Path) -> None:
    found = preprocessing(tmp_path, 8)
    assert found.dictionary.symbols == found.need_tokenizer().pieces()
    text = "The fox – it's 漢"
    line = " ".join(found.need_tokenizer().encode_as_pieces(text))
    ids = found.dictionary.encode_line(line, add_if_not_exist=False, append_eos=False)
    assert ids.tolist() == found.need_tokenizer().encode(text)
    assert found.need_tokenizer().decode_pieces(found.dictionary.string(ids).split()) == text


def test_only_where_words_are_tagged_has_a_token_many_ids(tmp_path: Path) -> None:
    untagged = preprocessing(tmp_path, 8).dictionary
    assert untagged[9 + len(untagged)] == "<unk>"
    tagged = Preprocessing(DataFolder(tmp_path), "a_task", {TAGS: Setting(True, False)}).dictionary
    assert tagged[9 + len(tagged)] == tagged[9] == untagged[9] != "<unk>"


# Tasks on documents with queries: what they load, what they refuse, and what travels in a checkpoint.


def make(data: DataFolder, has_queries: bool | None = None, **overrides: Any) -> LongDocumentSummarizationTask:
    """Return a task; ``has_queries`` is what a checkpoint says, None begins a training."""
    task = LongDocumentSummarizationTask(LongDocumentSummarizationConfig(data=str(data.path), **overrides))
    if has_queries is None:
        task.preprocessing.learn_queries()
    else:
        task.load_state_dict({**task.state_dict(), "queries": has_queries})
    return task


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
    assert str(error.value).startswith(f"The query of the document '1' in the split 'train' has {longest} tokens with ")
    make(asked, max_source_positions=12).build_dataset_for_inference([torch.tensor([5, 6, 7, 8, EOS, 9, EOS])], [7])


def test_a_checkpoint_says_whether_its_model_answers_queries(asked: DataFolder, data: DataFolder) -> None:
    assert make(asked).state_dict()["queries"] is True and make(data).state_dict()["queries"] is False
    # Those of older releases do not say it, and have none.
    task = make(data)
    task.load_state_dict({name: value for name, value in task.state_dict().items() if name != "queries"})
    assert not task.preprocessing.has_queries
    # In a training the data decides, whatever the model that it starts from was trained on.
    task = make(asked)
    task.load_state_dict({**task.state_dict(), "queries": False})
    assert task.preprocessing.has_queries
    check_query_model(SimpleNamespace(scorer="linear | query", global_query=True), task.preprocessing)


def test_a_line_of_interactive_is_a_query_a_tab_and_a_document(asked: DataFolder, data: DataFolder) -> None:
    task, tokenizer = make(asked, has_queries=True), asked.tokenizer()
    line = "What was tested?\tWe tested\tthe cells."
    (tokens,), _ = task.get_interactive_tokens_and_lengths([line], task.build_bpe(None).encode)
    assert tokens.tolist() == tokenizer.framed(tokenizer.encode("We tested the cells."), tokenizer.asked(line[:16]))
    for wrong in ("\tWe tested the cells.", "What was tested?\t "):
        with pytest.raises(UserError):
            task.build_bpe(None).encode(wrong)
    # Without queries a tab is a space.
    codec = make(data).build_bpe(None)
    assert codec.encode("We tested\tthe cells.") == codec.encode("We tested the cells.")


# What a checkpoint says, and a flag settles.


SETTLED = [
    (LongDocumentSummarizationTask, "max_source_positions", (64, 32, 16)),
    (LongDocumentSummarizationTask, "max_target_positions", (16, 12, 8)),
    (ExtractiveSummarizationTask, "max_source_positions", (64, 32, 16)),
    (ExtractiveSummarizationTask, "extract_words", (7, 8, 9)),
    (ExtractiveSummarizationTask, "redundancy", ("mmr", "trigrams", "none")),
    (ExtractiveSummarizationTask, "mmr_weight", (0.0, 0.5, 0.25)),
]


@pytest.mark.parametrize(("kind", "option", "values"), SETTLED)
def test_a_checkpoint_says_what_no_flag_does_and_a_flag_settles_it_for_an_ensemble(
    kind: Any, option: str, values: tuple[Any, ...], labelled_data: DataFolder, tmp_path: Path
) -> None:
    def task(folder: Path = labelled_data.path, **options: Any) -> Any:
        config = (
            LongDocumentSummarizationConfig if kind is LongDocumentSummarizationTask else ExtractiveSummarizationConfig
        )
        return kind(config(data=str(folder), **options))

    def has(made: Any) -> Any:
        if option.startswith("max_"):
            positions = made.max_positions()
            return positions[option == "max_target_positions"] if isinstance(positions, tuple) else positions
        return (
            made.extract_words if option == "extract_words" else getattr(made.validation_generator(None).rules, option)
        )

    first, second, asked = values
    plain, flagged = task(tmp_path), task(**{option: asked})
    states = [task(**{option: value}).state_dict() for value in (first, second)]
    plain.load_state_dict(states[0])
    assert has(plain) == first and plain.source_dictionary == task().source_dictionary
    for state in states:
        flagged.load_state_dict(state)
    assert has(flagged) == asked


def test_where_a_checkpoint_of_an_older_release_says_nothing_there_are_defaults(labelled_data: DataFolder) -> None:
    made = ExtractiveSummarizationTask(ExtractiveSummarizationConfig(data=str(labelled_data.path)))
    # Of a training an extract is as long as its summaries.
    assert made.extract_words == round(labelled_data.manifest["splits"]["train"]["target_words"]["mean"])
    state = made.state_dict()
    assert state.keys() == {"tokenizer", "max_source_positions", "extract_words", "redundancy", "mmr_weight"}
    made.load_state_dict({name: value for name, value in state.items() if name not in ("redundancy", "mmr_weight")})
    rules = made.validation_generator(None).rules
    assert (rules.redundancy, rules.mmr_weight) == ("none", 0.7)

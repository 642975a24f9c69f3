"""A prefix of texts, such as `<s>`, counts in the limits, and no truncation takes it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_tokenizers import bart_bytes

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.plugin.tasks.datasets import HeadDataset
from pyramidions.plugin.tasks.preprocessing import SOURCE_PREFIX, TAGS, Length, Preprocessing, Setting
from pyramidions.plugin.tasks.splits import documents_alone


def preprocessing(folder: Path, longest: int) -> Preprocessing:
    (folder / "tokenizer.json").write_bytes(bart_bytes())
    return Preprocessing(DataFolder(folder), "a_task", {"max_source_positions": Length(longest, None)})


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
    with pytest.raises(UserError, match="number 1 of those just read is empty"):
        documents_alone(preprocessing(tmp_path, 4), [torch.tensor([2])], reads_end=True)


def test_a_prefix_of_documents_follows_that_of_the_tokenizer(tmp_path: Path) -> None:
    found = preprocessing(tmp_path, 8)
    asked = found.need_tokenizer().encode("summarize: ")
    lengths = {"max_source_positions": Length(len(asked) + 4, None)}
    asking = Preprocessing(DataFolder(tmp_path), "a_task", lengths, {SOURCE_PREFIX: Setting("summarize: ", "")})
    documents = documents_alone(asking, [torch.tensor([9, 8, 7, 2])], reads_end=True)
    assert documents[0]["source"].tolist() == [0, *asked, 9, 8, 2]
    assert asking.state_dict()[SOURCE_PREFIX] == "summarize: "
    short = {"max_source_positions": Length(len(asked) + 2, None)}
    asking = Preprocessing(DataFolder(tmp_path), "a_task", short, {SOURCE_PREFIX: Setting("summarize: ", "")})
    with pytest.raises(UserError, match=f"must be at least {len(asked) + 3}, with the .* tokens of --source-prefix"):
        documents_alone(asking, [torch.tensor([9, 8, 7, 2])], reads_end=True)


def test_a_limit_leaves_room_for_a_token(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="`max_source_positions` must be at least 3, <s>, a token and the end of the "):
        documents_alone(preprocessing(tmp_path, 2), [torch.tensor([9, 2])], reads_end=True)


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
    tagged = Preprocessing(DataFolder(tmp_path), "a_task", {}, {TAGS: Setting(True, False)}).dictionary
    assert tagged[9 + len(tagged)] == tagged[9] == untagged[9] != "<unk>"


def test_a_name_with_a_space_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(bart_bytes().replace(b'"<mask>"', b'"<my mask>"'))
    with pytest.raises(UserError, match="must name each piece once and without spaces, unlike '<my mask>'"):
        Preprocessing(DataFolder(tmp_path), "a_task", {})

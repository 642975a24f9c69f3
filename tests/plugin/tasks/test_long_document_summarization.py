import gc
import json
import logging
import math
import multiprocessing
import shutil
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.plugin.hooks import NGramBlocker, unset_defaults
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.datasets import HeadDataset
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask
from pyramidions.plugin.tasks.validation import ValidationScores
from pyramidions.text.tokenizer import Tokenizer


def make(data: DataFolder, **overrides: Any) -> LongDocumentSummarizationTask:
    return LongDocumentSummarizationTask(LongDocumentSummarizationConfig(data=str(data.path), **overrides))


def test_ids_of_the_dictionary_are_the_tokenizers(data: DataFolder) -> None:
    task = make(data)
    assert task.source_dictionary is task.target_dictionary
    symbols = task.source_dictionary.symbols
    assert symbols == task.preprocessing.need_tokenizer().pieces()
    assert symbols == type(task.source_dictionary).load(str(data.dictionary_path)).symbols


def test_long_texts_keep_their_head_and_their_end() -> None:
    texts = [torch.tensor([5, 6, 7, 8, 2]), torch.tensor([5, 6, 2])]
    head = HeadDataset(texts, np.array([5, 3]), max_length=3, eos=2)
    assert [text.tolist() for text in (head[0], head[1])] == [[5, 6, 2], [5, 6, 2]]
    assert head.sizes.tolist() == [3, 3]
    assert head.report == "1 of 2 cut at 3 tokens (2 tokens lost, 25.0%)"


def test_what_was_cut_is_reported(data: DataFolder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        make(data, max_source_positions=64, max_target_positions=16).load_dataset("valid")
    assert "valid: documents: 6 of 6 cut at 64 tokens" in caplog.text
    assert "valid: summaries: 6 of 6 cut at 16 tokens" in caplog.text


def test_a_loss_of_more_than_a_quarter_is_a_warning_with_what_to_do(
    caplog: pytest.LogCaptureFixture, data: DataFolder
) -> None:
    make(data, max_source_positions=64, max_target_positions=600).load_dataset("valid")
    (loud,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    longest = data.manifest["splits"]["valid"]["source_tokens"]["max"]
    assert loud.startswith("valid: documents: 6 of 6 cut at 64 tokens (")
    assert loud.endswith(f": train with a higher --max-source-positions; the longest has {longest} tokens")


def test_a_small_loss_is_no_warning(caplog: pytest.LogCaptureFixture, data: DataFolder) -> None:
    longest = data.manifest["splits"]["valid"]["source_tokens"]["max"]
    with caplog.at_level(logging.INFO):
        make(data, max_source_positions=longest - 1, max_target_positions=2000).load_dataset("valid")
    assert "valid: documents: 1 of 6 cut at" in caplog.text
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_documents_are_padded_on_the_right_everywhere(data: DataFolder) -> None:
    task = make(data, max_source_positions=64)
    task.load_dataset("valid")
    inference = task.build_dataset_for_inference([torch.tensor([5, 6, 7, 2]), torch.tensor([5, 2])], [4, 2])
    for dataset in (task.dataset("valid"), inference):
        assert dataset.left_pad_source is False and dataset.left_pad_target is False
    batch = inference.collater([inference[0], inference[1]])
    assert batch["net_input"]["src_tokens"].tolist() == [[5, 6, 7, 2], [5, 2, 1, 1]]
    # Numbers of the host, which fairseq leaves where they are when it moves a batch to a GPU.
    assert batch["net_input"]["lengths"] == [4, 2]


def test_interactive_documents_of_any_length_are_cut(data: DataFolder) -> None:
    dataset = make(data, max_source_positions=8).build_dataset_for_inference([torch.arange(4, 1000)], [996])
    assert dataset[0]["source"].tolist() == [4, 5, 6, 7, 8, 9, 10, 2]


@for_each("batch_size", [1, 4, 7])
def test_no_document_is_ever_dropped(data: DataFolder, batch_size: int) -> None:
    task = make(data, max_source_positions=64)
    task.load_dataset("test")
    iterator = task.get_batch_iterator(
        task.dataset("test"), max_sentences=batch_size, max_positions=(10, 10), required_batch_size_multiple=8
    ).next_epoch_itr(shuffle=False)
    assert sorted(i for batch in iterator for i in batch["id"].tolist()) == list(range(10))


def test_data_workers_end_at_once_when_their_epoch_does(data: DataFolder) -> None:
    task = make(data, max_source_positions=64)
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_sentences=2, num_workers=1, data_buffer_size=10)
    epoch = iterator.next_epoch_itr(shuffle=False)
    assert len(list(epoch)) == 3
    began = time.monotonic()
    # A cycle, as around the loaders of a training: only the garbage collector ends what is in it.
    cycle: list[Any] = [iterator, epoch]
    cycle.append(cycle)
    del iterator, epoch, cycle
    gc.collect()
    while multiprocessing.active_children() and time.monotonic() - began < 4:
        time.sleep(0.01)
    # What is never told to end is killed after five seconds.
    assert time.monotonic() - began < 4


def test_max_tokens_below_the_longest_document_is_refused(data: DataFolder) -> None:
    task = make(data, max_source_positions=64, max_target_positions=16)
    task.load_dataset("test")
    with pytest.raises(UserError, match="--max-tokens must be at least 64, .* but is 63."):
        task.get_batch_iterator(task.dataset("test"), max_tokens=63)


def test_lengths_and_tokenizer_come_from_the_checkpoint(data: DataFolder, tmp_path: Any) -> None:
    state = make(data, max_source_positions=64, max_target_positions=16).state_dict()
    empty = LongDocumentSummarizationTask(LongDocumentSummarizationConfig(data=str(tmp_path)))
    empty.load_state_dict(state)
    assert empty.max_positions() == (64, 16)
    assert empty.source_dictionary == make(data).source_dictionary
    flag = make(data, max_source_positions=32)
    flag.load_state_dict(state)
    assert flag.max_positions() == (32, 16)


def test_an_empty_document_is_named(data: DataFolder) -> None:
    with pytest.raises(UserError, match="number 2 of those just read is empty"):
        make(data).build_dataset_for_inference([torch.tensor([5, 2]), torch.tensor([2])], [2, 1])


def test_another_tokenizer_on_the_command_line_is_refused(data: DataFolder) -> None:
    with pytest.raises(UserError, match="--bpe asks for 'gpt2'"):
        make(data).build_bpe("gpt2")


def test_a_checkpoint_with_another_tokenizer_is_refused(data: DataFolder) -> None:
    state = {**make(data).state_dict(), "tokenizer": b"another"}
    with pytest.raises(UserError, match="trained with another tokenizer than that of the data folder"):
        make(data).load_state_dict(state)


def test_models_of_different_lengths_need_a_flag(data: DataFolder) -> None:
    states = [make(data, max_source_positions=length).state_dict() for length in (64, 32)]
    task = make(data)
    task.load_state_dict(states[0])
    with pytest.raises(UserError, match="`max_source_positions` 64 and 32: give the flag --max-source-positions"):
        task.load_state_dict(states[1])
    flag = make(data, max_source_positions=16)
    for state in states:
        flag.load_state_dict(state)


def test_a_checkpoint_of_another_task_is_refused(data: DataFolder) -> None:
    with pytest.raises(UserError, match="not trained with --task long_document_summarization"):
        make(data).load_state_dict({})


@pytest.mark.parametrize("name", ["max_source_positions", "max_target_positions"])
def test_a_length_below_two_is_refused(data: DataFolder, name: str) -> None:
    with pytest.raises(UserError, match=f"`{name}` must be at least 2, .* but is 1."):
        make(data, **{name: 1})


def test_a_folder_without_data_says_what_it_lacks(tmp_path: Any) -> None:
    with pytest.raises(UserError, match="is not a folder made by `pyramidions prepare`: it lacks sentencepiece.model"):
        LongDocumentSummarizationTask(LongDocumentSummarizationConfig(data=str(tmp_path))).load_dataset("train")


def test_a_missing_split_is_named(data: DataFolder) -> None:
    with pytest.raises(UserError, match=r"lacks test2.source.bin; its splits are train, valid, test."):
        make(data).load_dataset("test2")


@pytest.fixture
def copied(data: DataFolder, tmp_path: Path) -> DataFolder:
    return DataFolder(shutil.copytree(data.path, tmp_path / "copied"))


def test_a_damaged_folder_is_named_before_fairseq_opens_it(copied: DataFolder) -> None:
    for path in (copied.path / "valid.source.idx", copied.path / "valid.target.bin"):
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(UserError, match=rf"{path.name} is damaged: it must have {len(content)} bytes"):
            make(copied).load_dataset("valid")
        path.write_bytes(content)
    make(copied).load_dataset("valid")


def test_a_flipped_token_is_found_where_the_data_is_to_be_checked(copied: DataFolder) -> None:
    path = copied.tokens_path("valid", "source")
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    make(copied).load_dataset("valid")
    with pytest.raises(UserError, match=r"valid\.source\.bin is damaged: its SHA-256 is not the one in the manifest"):
        make(copied, check_data=True).load_dataset("valid")


def test_a_damaged_tokenizer_is_named(copied: DataFolder) -> None:
    content = bytearray(copied.sentencepiece_path.read_bytes())
    content[-40] ^= 1
    copied.sentencepiece_path.write_bytes(content)
    with pytest.raises(UserError, match=r"sentencepiece\.model is damaged: its SHA-256"):
        make(copied)


def test_references_of_another_number_are_refused(copied: DataFolder) -> None:
    path = copied.references_path("valid")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    manifest = json.loads(copied.manifest_path.read_text())
    del manifest["sizes"]
    copied.manifest_path.write_text(json.dumps(manifest))
    task = make(copied, eval_rouge=True)
    task._validation = ValidationScores(None, Tokenizer.from_file(copied.sentencepiece_path), {})
    with pytest.raises(UserError, match=r"valid\.references\.jsonl must have 6 summaries, .* but has 5\.$"):
        task.load_dataset("valid")


def test_pieces_go_back_to_text(data: DataFolder) -> None:
    codec = make(data).build_bpe(None)
    assert codec.decode(codec.encode("the gene  was expressed .")) == "the gene was expressed ."


def settings(**overrides: Any) -> SimpleNamespace:
    own = {
        "decoding_beam": 2,
        "decoding_length_penalty": 1.5,
        "decoding_min_length": 7,
        "decoding_max_length": 90,
        "decoding_no_repeat_ngram": 3,
    }
    return SimpleNamespace(config=SimpleNamespace(**{**own, **overrides}), max_decoder_positions=lambda: 50)


def test_decoding_settings_of_the_checkpoint_yield_to_flags() -> None:
    parser = ArgumentParser()
    for flag, default in (("--beam", 5), ("--lenpen", 1.0), ("--min-len", 1), ("--max-len-b", 200)):
        parser.add_argument(flag, type=type(default), default=default)
    unset_defaults(parser, decoding.FIELDS)
    args = parser.parse_args(["--beam", "5", "--min-len", "0"])
    decoding.fill_in(args, [settings()])
    assert vars(args) == {"beam": 5, "lenpen": 1.5, "min_len": 0, "max_len_b": 90, "no_repeat_ngram_size": 3}


@pytest.mark.parametrize(("flags", "beam"), [((), 2), (("--beam", "5"), 5)])
def test_fairseqs_own_default_is_no_wish(flags: tuple[str, ...], beam: int) -> None:
    parser = options.get_generation_parser()
    words = ["data", "--task", "long_document_summarization", "--path", "model.pt", *flags]
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
    decoding.fill_in(config.generation, [settings()])
    assert (config.generation.beam, config.generation.lenpen) == (beam, 1.5)


def test_a_training_gets_no_decoding_flags() -> None:
    parser = ArgumentParser()
    unset_defaults(parser, decoding.FIELDS)
    assert vars(parser.parse_args([])) == {}


def test_a_length_bound_relative_to_the_source_stands_alone() -> None:
    args = Namespace(max_len_a=0.5)
    decoding.fill_in(args, [settings()])
    # A short document may not allow the shortest summary of the model.
    assert args.max_len_b == 0 and args.min_len == 1


def test_a_summary_must_not_be_longer_than_the_model_writes() -> None:
    with pytest.raises(UserError, match="must have at most 49 tokens, as many as the model may write, but has 50."):
        decoding.fill_in(Namespace(min_len=50), [settings()])
    with pytest.raises(UserError, match="must have at most 6 tokens, as many as the model may write, but has 7."):
        decoding.fill_in(Namespace(max_len_b=6), [settings()])


def test_any_value_given_is_a_wish() -> None:
    args = Namespace(lenpen=-1.0)
    decoding.fill_in(args, [settings()])
    assert args.lenpen == -1.0


def test_unknown_generation_arguments_are_named() -> None:
    with pytest.raises(UserError, match="`eval_rouge_args` knows no argument 'beams', only beam, "):
        decoding.from_options({"beams": 4})


@for_each(
    ("name", "value"),
    [("beam", "two"), ("beam", True), ("beam", 2.5), ("beam", None), ("sampling", 1), ("lenpen", "1")],
)
def test_generation_arguments_of_another_type_are_named(name: str, value: object) -> None:
    with pytest.raises(
        UserError, match=f"'{name}' in `eval_rouge_args` must be (a whole number|True or False|a number), but is "
    ):
        decoding.from_options({name: value})


def test_a_beam_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="--beam must be at least 1, but is 0."):
        decoding.fill_in(Namespace(beam=0), [settings()])


def test_no_repeated_unigram_still_lets_a_summary_end() -> None:
    blocked = NGramBlocker(1)(torch.tensor([[2, 5, 1, 1]]), torch.zeros(1, 7), 1, 1, 1)
    assert blocked.isneginf().nonzero().tolist() == [[0, 5]]


def test_a_prefix_may_repeat_itself() -> None:
    scores = torch.zeros(2, 7)
    # fairseq leaves nothing else possible where a text has to begin so.
    scores[0] = -math.inf
    scores[0, 5] = 0.0
    blocked = NGramBlocker(1)(torch.tensor([[2, 5, 1, 1]] * 2), scores, 2, 1, 1)
    assert blocked.isneginf().sum(dim=1).tolist() == [6, 1] and blocked[0, 5] == 0


@for_each("name", ["constraints", "print_alignment", "retain_dropout"])
def test_what_no_model_heeds_is_refused(name: str) -> None:
    flag = name.replace("_", "-")
    with pytest.raises(UserError, match=f"--{flag} is not supported by --task a_task."):
        decoding.check_heeded(Namespace(**{name: "ordered"}), "a_task")


def test_only_what_the_search_of_validation_heeds_can_be_told_to_it() -> None:
    with pytest.raises(UserError, match="`eval_rouge_args` knows no argument 'score_reference', only beam, diverse"):
        decoding.from_options({"score_reference": True})
    assert decoding.from_options({"sampling": True, "temperature": 1}) == Namespace(sampling=True, temperature=1)


def test_models_that_disagree_need_a_flag() -> None:
    with pytest.raises(UserError, match=r"disagree on --beam \(2, 4\): give the flag"):
        decoding.fill_in(Namespace(), [settings(), settings(decoding_beam=4)])
    with pytest.raises(UserError, match="holds no decoding settings: give the flag --beam"):
        decoding.fill_in(Namespace(), [SimpleNamespace()])

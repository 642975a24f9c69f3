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

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from refusals import refused

from pyramidions.data.folder import DataFolder
from pyramidions.plugin.hooks import NGramBlocker, unset_defaults
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
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
    codec = task.build_bpe(None)
    assert codec.decode(codec.encode("the gene  was expressed .")) == "the gene was expressed ."


def test_only_a_loss_of_more_than_a_quarter_is_a_warning(caplog: pytest.LogCaptureFixture, data: DataFolder) -> None:
    longest = data.manifest["splits"]["valid"]["source_tokens"]["max"]
    with caplog.at_level(logging.INFO):
        make(data, max_source_positions=64, max_target_positions=longest).load_dataset("valid")
        make(data, max_source_positions=longest - 1, max_target_positions=16).load_dataset("valid")
    of_all, *_, small, summaries = [record for record in caplog.records if " cut at " in record.message]
    assert [record.levelno for record in (of_all, small, summaries)] == [30, 20, 30]
    assert of_all.message.startswith("valid: documents: 6 of 6 cut at 64 tokens (")
    assert of_all.message.endswith(f": train with a higher --max-source-positions; the longest has {longest} tokens")
    assert small.message.startswith(f"valid: documents: 1 of 6 cut at {longest - 1} tokens (1 tokens lost, ")
    assert "valid: summaries: 6 of 6 cut at 16 tokens" in summaries.message


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


@pytest.mark.parametrize("batch_size", [1, 7])
def test_no_document_is_ever_dropped(data: DataFolder, batch_size: int) -> None:
    task = make(data, max_source_positions=64, max_target_positions=16)
    task.load_dataset("test")
    iterator = task.get_batch_iterator(
        task.dataset("test"), max_tokens=64 * batch_size, max_positions=(10, 10), required_batch_size_multiple=8
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
    for child in multiprocessing.active_children():
        child.join(5)
    # What is never told to end is killed after five seconds.
    assert time.monotonic() - began < 4


@pytest.fixture
def copied(data: DataFolder, tmp_path: Path) -> DataFolder:
    return DataFolder(shutil.copytree(data.path, tmp_path / "copied"))


def test_a_damaged_folder_is_named_before_fairseq_opens_it(copied: DataFolder) -> None:
    for name in ("valid.source.idx", "valid.target.bin", "sentencepiece.model"):
        path = copied.path / name
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with refused(name):
            make(copied).load_dataset("valid")
        path.write_bytes(content)
    path = copied.tokens_path("valid", "source")
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    # Each byte is compared where that is asked for.
    make(copied).load_dataset("valid")
    with refused("valid.source.bin"):
        make(copied, check_data=True).load_dataset("valid")


def test_references_of_another_number_are_refused(copied: DataFolder) -> None:
    path = copied.references_path("valid")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    manifest = json.loads(copied.manifest_path.read_text())
    del manifest["sizes"]
    copied.manifest_path.write_text(json.dumps(manifest))
    task = make(copied, eval_rouge=True)
    task._validation = ValidationScores(None, Tokenizer.from_file(copied.sentencepiece_path), {})
    with refused("valid.references.jsonl"):
        task.load_dataset("valid")


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
    unset_defaults(parser, decoding.FIELDS)
    assert vars(parser.parse_args([])) == {}  # A training gets no decoding flags.
    for flag, default in (("--beam", 5), ("--lenpen", 1.0), ("--min-len", 1), ("--max-len-b", 200)):
        parser.add_argument(flag, type=type(default), default=default)
    unset_defaults(parser, decoding.FIELDS)
    args = parser.parse_args(["--beam", "5", "--min-len", "0"])
    decoding.fill_in(args, [settings()])
    assert vars(args) == {"beam": 5, "lenpen": 1.5, "min_len": 0, "max_len_b": 90, "no_repeat_ngram_size": 3}


@pytest.mark.filterwarnings("ignore")  # hydra deprecates what fairseq does
def test_fairseqs_own_default_is_no_wish() -> None:
    for flags, beam in (((), 2), (("--beam", "5"), 5)):
        words = ["data", "--task", "long_document_summarization", "--path", "model.pt", *flags]
        config = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_generation_parser(), words))
        decoding.fill_in(config.generation, [settings()])
        assert (config.generation.beam, config.generation.lenpen) == (beam, 1.5)


def test_a_length_bound_relative_to_the_source_stands_alone() -> None:
    args = Namespace(max_len_a=0.5)
    decoding.fill_in(args, [settings()])
    # A short document may not allow the shortest summary of the model.
    assert args.max_len_b == 0 and args.min_len == 1


def test_a_summary_may_be_as_long_as_the_model_writes() -> None:
    for given in ({"min_len": 49}, {"max_len_b": 7}, {"lenpen": -1.0}):
        args = Namespace(**given)
        decoding.fill_in(args, [settings()])
        assert given.items() <= vars(args).items()


def test_arguments_of_the_search_of_validation_have_the_types_of_fairseqs() -> None:
    assert decoding.from_options({"sampling": True, "temperature": 1}) == Namespace(sampling=True, temperature=1)


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

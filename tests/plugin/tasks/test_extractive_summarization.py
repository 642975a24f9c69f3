import json
import logging
import re
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_commands import EXTRACTION
from tables import for_each
from torch import Tensor, nn

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader, IndexedWriter
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig, LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask
from pyramidions.text.tokenizer import EOS


def make(data: DataFolder, **overrides: Any) -> ExtractiveSummarizationTask:
    return ExtractiveSummarizationTask(ExtractiveSummarizationConfig(data=str(data.path), **overrides))


class ByPosition(nn.Module):
    """Rates a unit by its number, the last the highest, or the first."""

    def __init__(self, sign: int = 1) -> None:
        super().__init__()
        self.sign = sign

    def forward(self, src_tokens: Tensor, allowed: Tensor | None = None, **unused: Any) -> Tensor:
        units = 1 + src_tokens[:, 1:].eq(MARKER[0]).sum(1, keepdim=True)
        numbers = torch.arange(int(units.max())).expand(len(src_tokens), -1)
        left_out = numbers >= units if allowed is None else (numbers >= units) | ~allowed
        return (self.sign * numbers.float()).masked_fill(left_out, -torch.inf)


MARKER: list[int] = []


@pytest.fixture(autouse=True)
def marker(labelled_data: DataFolder) -> None:
    found = labelled_data.tokenizer().marker_id
    assert found is not None
    MARKER[:] = [found]


def first_batch(task: ExtractiveSummarizationTask, split: str = "valid", size: int = 3) -> dict[str, Any]:
    task.load_dataset(split)
    dataset = task.dataset(split)
    batch: dict[str, Any] = dataset.collater([dataset[i] for i in range(size)])
    return batch


def test_a_batch_holds_the_labels_of_what_truncation_left(labelled_data: DataFolder) -> None:
    task = make(labelled_data, max_source_positions=256)
    batch = first_batch(task)
    tokens, labels = batch["net_input"]["src_tokens"], batch["labels"]
    assert not tokens.eq(EOS).any() and batch["net_input"]["src_lengths"].tolist() == [255] * 3
    units = [int(row.eq(MARKER[0]).sum()) for row in tokens]
    assert labels.shape == (3, max(units))
    whole = IndexedReader(labelled_data.prefix("valid", "labels"))
    for row, index, count in zip(labels.tolist(), batch["id"].tolist(), units, strict=True):
        assert row == whole[index][:count] + [0] * (max(units) - count)
    summaries = IndexedReader(labelled_data.prefix("valid", "target"))
    assert [[i for i in row if i != 1] for row in batch["target"].tolist()] == [summaries[i] for i in batch["id"]]


def test_summaries_count_for_no_batch(labelled_data: DataFolder) -> None:
    # They are longer than documents of 64 tokens.
    task = make(labelled_data, max_source_positions=64)
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=128).next_epoch_itr(shuffle=False)
    assert [len(batch["id"]) for batch in iterator] == [2, 2, 2]


def test_what_was_cut_is_reported(labelled_data: DataFolder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        make(labelled_data, max_source_positions=64).load_dataset("valid")
    assert "valid: documents: 6 of 6 cut at 64 tokens" in caplog.text and "summaries" not in caplog.text


def test_an_extract_is_as_long_as_the_training_summaries_unless_asked(labelled_data: DataFolder) -> None:
    mean = labelled_data.manifest["splits"]["train"]["target_words"]["mean"]
    assert make(labelled_data).extract_words == round(mean)
    assert make(labelled_data, extract_words=7).extract_words == 7


def test_lengths_and_tokenizer_come_from_the_checkpoint(labelled_data: DataFolder, tmp_path: Path) -> None:
    state = make(labelled_data, max_source_positions=64, extract_words=7).state_dict()
    assert state.keys() == {"tokenizer", "max_source_positions", "extract_words", "redundancy", "mmr_weight"}
    empty = ExtractiveSummarizationTask(ExtractiveSummarizationConfig(data=str(tmp_path)))
    empty.load_state_dict(state)
    assert (empty.max_positions(), empty.extract_words) == (64, 7)
    flag = make(labelled_data, extract_words=9)
    flag.load_state_dict(state)
    assert (flag.max_positions(), flag.extract_words) == (64, 9)


def selection(task: ExtractiveSummarizationTask) -> tuple[str, float]:
    found = task.validation_generator(None).rules
    return found.redundancy, found.mmr_weight


def test_generation_selects_as_validation_did_unless_asked_otherwise(labelled_data: DataFolder) -> None:
    trained = make(labelled_data, redundancy="mmr", mmr_weight=0.0)
    assert selection(trained) == ("mmr", 0.0)
    plain, asked = make(labelled_data), make(labelled_data, redundancy="none", mmr_weight=0.5)
    assert selection(plain) == ("none", 0.7)
    for task in (plain, asked):
        task.load_state_dict(trained.state_dict())
    assert selection(plain) == ("mmr", 0.0) and selection(asked) == ("none", 0.5)


def test_an_older_checkpoint_selects_as_it_did(labelled_data: DataFolder) -> None:
    state = make(labelled_data, redundancy="mmr").state_dict()
    del state["redundancy"], state["mmr_weight"]
    task = make(labelled_data)
    task.load_state_dict(state)
    assert selection(task) == ("none", 0.7)


def test_an_ensemble_must_agree_on_the_redundancy_unless_it_is_given(labelled_data: DataFolder) -> None:
    states = [make(labelled_data, redundancy=kind).state_dict() for kind in ("none", "trigrams")]
    task, asked = make(labelled_data), make(labelled_data, redundancy="mmr")
    task.load_state_dict(states[0])
    with pytest.raises(UserError, match="with `redundancy` none and trigrams: give the flag --redundancy"):
        task.load_state_dict(states[1])
    for state in states:
        asked.load_state_dict(state)
    assert selection(asked) == ("mmr", 0.7)


def extracts(task: ExtractiveSummarizationTask, batch: dict[str, Any], *models: nn.Module) -> list[dict[str, Any]]:
    generator = task.build_generator(list(models), GenerationConfig(beam=decoding.NOT_GIVEN, **UNSET))
    return [hypotheses[0] for hypotheses in task.inference_step(generator, list(models), batch)]


UNSET = dict.fromkeys(("lenpen", "min_len", "max_len_b", "no_repeat_ngram_size"), decoding.NOT_GIVEN)


def test_an_extract_is_of_the_best_sentences_in_reading_order(labelled_data: DataFolder) -> None:
    task = make(labelled_data, max_source_positions=256, extract_words=40)
    batch = first_batch(task)
    tokenizer = labelled_data.tokenizer()
    for row, labels, extract in zip(
        batch["net_input"]["src_tokens"].tolist(),
        batch["labels"].tolist(),
        extracts(task, batch, ByPosition(-1)),
        strict=True,
    ):
        text = [i for i in row if i not in (1, EOS)][1:]
        starts = [0, *(i + 1 for i, each in enumerate(text) if each == MARKER[0])]
        units = [text[a:b] for a, b in zip(starts, [i - 1 for i in starts[1:]] + [len(text)], strict=True)]
        left, expected = 40, []
        for unit, label in zip(units, labels, strict=False):
            words = len(tokenizer.decode(unit).split())
            if label and words <= left:
                expected += [*([MARKER[0]] if expected else []), *unit]
                left -= words
        assert extract["tokens"].tolist() == [*expected, EOS]
        assert len(extract["positional_scores"]) == len(expected) + 1


def test_the_score_is_the_mean_of_all_sentences_and_models(labelled_data: DataFolder) -> None:
    task = make(labelled_data, max_source_positions=256, extract_words=1)
    batch = first_batch(task, size=1)
    (one,) = extracts(task, batch, ByPosition())
    (both,) = extracts(task, batch, ByPosition(), ByPosition(-1))
    assert one["score"] > 0 and both["score"] == 0


def test_without_labels_every_unit_is_a_sentence(labelled_data: DataFolder) -> None:
    task = make(labelled_data, extract_words=1)
    ids = labelled_data.tokenizer().encode_units(["one", "two", "three"])
    dataset = task.build_dataset_for_inference([torch.tensor([*ids, EOS])], [len(ids) + 1])
    (extract,) = extracts(task, dataset.collater([dataset[0]]), ByPosition())
    assert task.preprocessing.need_tokenizer().decode(extract["tokens"].tolist()) == "three"


@for_each(
    ("redundancy", "weight", "expected"),
    [
        ("none", 0.7, "a protein was a protein was"),
        ("trigrams", 0.7, "two cells grow a protein was"),
        ("mmr", 1.0, "a protein was a protein was"),
        ("mmr", 0.1, "two cells grow a protein was"),
    ],
)
def test_redundancy_decides_what_is_extracted(
    labelled_data: DataFolder, redundancy: str, weight: float, expected: str
) -> None:
    task = make(labelled_data, extract_words=6, redundancy=redundancy, mmr_weight=weight)
    ids = labelled_data.tokenizer().encode_units(["two cells grow", "a protein was", "a protein was"])
    dataset = task.build_dataset_for_inference([torch.tensor([*ids, EOS])], [len(ids) + 1])
    (found,) = extracts(task, dataset.collater([dataset[0]]), ByPosition())
    assert labelled_data.tokenizer().decode(found["tokens"].tolist()) == expected


def test_a_document_of_headings_has_an_empty_extract(labelled_data: DataFolder) -> None:
    task = make(labelled_data, max_source_positions=64)
    batch = first_batch(task, size=1)
    batch["labels"].zero_()
    (extract,) = extracts(task, batch, ByPosition())
    assert extract["tokens"].tolist() == [EOS] and extract["score"] == 0


@pytest.mark.filterwarnings("ignore")  # hydra deprecates what fairseq does
@for_each(
    ("flags", "given"),
    [
        (("--no-repeat-ngram-size", "3", "--nbest", "5"), "--nbest 5"),
        (("--no-repeat-ngram-size", "3"), "--no-repeat-ngram-size 3"),
        (("--sampling",), "--sampling"),
        (("--beam", "5"), "--beam 5"),
        (("--prefix-size", "2"), "--prefix-size 2"),
        (("--print-alignment",), "--print-alignment hard"),
        (("--lm-path", "model.pt"), "--lm-path model.pt"),
        (("--score-reference",), "--score-reference"),
    ],
)
def test_every_flag_of_beam_search_is_refused(labelled_data: DataFolder, flags: tuple[str, ...], given: str) -> None:
    message = f"{given} is an option of beam search, which --task extractive_summarization does not have."
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        make(labelled_data).build_generator([], generation(labelled_data, *flags))


@pytest.mark.filterwarnings("ignore")
def test_flags_of_generation_that_search_nothing_are_taken(labelled_data: DataFolder) -> None:
    args = generation(labelled_data, "--sacrebleu", "--quiet", "--batch-size", "2", "--seed", "3")
    make(labelled_data).build_generator([], args)
    assert args.beam == 1


def generation(data: DataFolder, *flags: str) -> GenerationConfig:
    """Return what fairseq-generate hands to the task."""
    words = [str(data.path), *EXTRACTION, "--path", "model.pt", *flags]
    args = options.parse_args_and_arch(options.get_generation_parser(), words)
    found: GenerationConfig = convert_namespace_to_omegaconf(args).generation
    return found


def test_flags_of_beam_search_are_refused(labelled_data: DataFolder) -> None:
    with pytest.raises(UserError, match=r"^--lenpen 2\.0 is an option of beam search, which --task extractive_summ"):
        make(labelled_data).build_generator([], Namespace(lenpen=2.0))


def test_a_folder_without_labels_is_refused(data: DataFolder) -> None:
    with pytest.raises(UserError, match=r"has no labels of its sentences: make it with `pyramidions prepare --labels`"):
        make(data).load_dataset("valid")


def test_labels_of_other_documents_are_named(labelled_data: DataFolder, tmp_path: Path) -> None:
    folder = DataFolder(shutil.copytree(labelled_data.path, tmp_path / "data"))
    manifest = json.loads(folder.manifest_path.read_text())
    for name in ("valid.labels.bin", "valid.labels.idx"):
        del manifest["files"][name], manifest["sizes"][name]
    folder.manifest_path.write_text(json.dumps(manifest))
    with IndexedWriter(folder.prefix("valid", "labels"), 3) as writer:
        for _ in range(6):
            writer.add(np.ones(3))
    task = make(DataFolder(folder.path), max_source_positions=256)
    task.load_dataset("valid")
    with pytest.raises(
        UserError, match=r"labels of document 0 are damaged: there must be one for each of its \d+ head"
    ):
        task.dataset("valid")[0]


@for_each(
    ("option", "value", "sentence"),
    [
        ("extract_words", 0, "`extract_words` must be at least 1, one word, but is 0."),
        ("max_source_positions", 1, "`max_source_positions` must be at least 2, a token and the end of the text, but"),
        ("redundancy", "some", "`redundancy` must be one of none, trigrams, mmr, but is 'some'."),
        ("mmr_weight", 2.0, "`mmr_weight` must be from 0 to 1, but is 2.0."),
    ],
)
def test_an_option_out_of_its_range_is_named(
    labelled_data: DataFolder, option: str, value: object, sentence: str
) -> None:
    with pytest.raises(UserError, match=f"^{sentence}"):
        make(labelled_data, **{option: value})


def test_a_weight_without_mmr_is_refused(labelled_data: DataFolder) -> None:
    task = make(labelled_data, redundancy="trigrams", mmr_weight=0.5)
    with pytest.raises(
        UserError, match="^--mmr-weight is an option of --redundancy mmr, but --redundancy is trigrams.$"
    ):
        task.build_model(None)


def test_a_folder_without_a_train_split_needs_the_words(labelled_data: DataFolder, tmp_path: Path) -> None:
    shutil.copy(labelled_data.sentencepiece_path, tmp_path)
    task = make(DataFolder(tmp_path))
    with pytest.raises(UserError, match="^Give --extract-words: neither a checkpoint nor the data says what it is.$"):
        task.extract_words  # noqa: B018


def test_a_checkpoint_of_the_other_task_is_refused(labelled_data: DataFolder) -> None:
    writes = LongDocumentSummarizationTask(LongDocumentSummarizationConfig(data=str(labelled_data.path)))
    with pytest.raises(UserError, match="was not trained with --task extractive_summarization"):
        make(labelled_data).load_state_dict(writes.state_dict())
    with pytest.raises(UserError, match="was not trained with --task long_document_summarization"):
        writes.load_state_dict(make(labelled_data).state_dict())

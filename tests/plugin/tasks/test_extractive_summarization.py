import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_commands import EXTRACTION
from refusals import refused
from torch import Tensor, nn

from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader, IndexedWriter
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask
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


def test_summaries_count_for_no_batch(labelled_data: DataFolder, caplog: pytest.LogCaptureFixture) -> None:
    # They are longer than documents of 64 tokens.
    task = make(labelled_data, max_source_positions=64)
    with caplog.at_level(logging.INFO):
        task.load_dataset("valid")
    assert "valid: documents: 6 of 6 cut at 64 tokens" in caplog.text and "summaries" not in caplog.text
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=128).next_epoch_itr(shuffle=False)
    assert [len(batch["id"]) for batch in iterator] == [2, 2, 2]


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


@pytest.mark.parametrize(
    ("redundancy", "weight", "expected"),
    [
        ("trigrams", 0.7, "two cells grow a protein was"),
        ("mmr", 1.0, "a protein was a protein was"),
        ("mmr", 0.1, "two cells grow a protein was"),
    ],
)
def test_redundancy_decides_what_is_extracted(
    labelled_data: DataFolder, redundancy: str, weight: float, expected: str
) -> None:
    # All units of a document without labels are sentences.
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
def test_flags_of_beam_search_are_refused_and_others_taken(labelled_data: DataFolder) -> None:
    def generation(*flags: str) -> GenerationConfig:
        words = [str(labelled_data.path), *EXTRACTION, "--path", "model.pt", *flags]
        args = options.parse_args_and_arch(options.get_generation_parser(), words)
        found: GenerationConfig = convert_namespace_to_omegaconf(args).generation
        return found

    for flag, *value in (("--beam", "5"), ("--sampling",), ("--prefix-size", "2"), ("--score-reference",)):
        with refused(" ".join([flag, *value, "is an option of beam search"])):
            make(labelled_data).build_generator([], generation(flag, *value))
    args = generation("--sacrebleu", "--quiet", "--batch-size", "2", "--seed", "3")
    make(labelled_data).build_generator([], args)
    assert args.beam == 1


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
    with refused("The labels of document 0 are damaged"):
        task.dataset("valid")[0]


def test_a_folder_without_a_train_split_needs_the_words(labelled_data: DataFolder, tmp_path: Path) -> None:
    shutil.copy(labelled_data.sentencepiece_path, tmp_path)
    task = make(DataFolder(tmp_path))
    with refused("--extract-words"):
        task.extract_words  # noqa: B018

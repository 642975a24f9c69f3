"""Summarizers and extractors as maps over batches, as `datasets` and Ray call them."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from datasets.fingerprint import Hasher
from refusals import refused
from small_exports import extractor as exported

from pyramidions.inference import Extractor, ExtractorMap, SamplingOptions, Summarizer, SummarizerMap

TEXTS = ["One two three.", "Bees fly. A bee with a ruler flies fast.", "Four.", "Five and six words."]
SHORT = {"beam": 1, "min_len": 3, "max_len": 3}


@pytest.fixture(scope="module")
def summaries(checkpoint: Path) -> list[str]:
    return [summary.text for summary in Summarizer.from_pretrained(checkpoint).summarize(TEXTS, **SHORT)]


def test_a_batch_gets_a_column_of_its_own_kind(checkpoint: Path, summaries: list[str]) -> None:
    batch = {"id": [1, 2, 3, 4], "text": TEXTS}
    assert SummarizerMap(checkpoint, **SHORT)(batch) == {**batch, "summary": summaries}
    # Ray gives arrays.
    for texts in (np.array(TEXTS), np.array(TEXTS, dtype=object)):
        found = SummarizerMap(checkpoint, into="short", **SHORT)({"id": np.arange(4), "text": texts})
        assert list(found) == ["id", "text", "short"] and found["text"] is texts
        assert isinstance(found["short"], np.ndarray) and found["short"].tolist() == summaries


@pytest.mark.parametrize("options", [{"precision": "int8"}, {"sampling": SamplingOptions(top_p=0.9, seed=7)}])
def test_a_map_writes_what_its_summarizer_does(checkpoint: Path, options: dict[str, Any]) -> None:
    precision = {key: value for key, value in options.items() if key == "precision"}
    lengths = {"min_len": 3, "max_len": 5}
    alone = Summarizer.from_pretrained(checkpoint, **precision)
    expected = alone.summarize(TEXTS, **lengths, sampling=options.get("sampling"))
    found = SummarizerMap(checkpoint, **lengths, **options)({"text": TEXTS})
    assert found["summary"] == [summary.text for summary in expected]


@pytest.fixture
def threads() -> Iterator[None]:
    """Compute in threads, for which workers that are forked later must not wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.randn(1500, 1500) @ torch.randn(1500, 1500)
    yield
    torch.set_num_threads(before)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("threads")
def test_datasets_are_mapped_in_one_process_and_in_two(checkpoint: Path, summaries: list[str], tmp_path: Path) -> None:
    dataset = Dataset.from_dict({"article": TEXTS, "id": [1, 2, 3, 4]})
    summarize = SummarizerMap(checkpoint, column="article", **SHORT)
    model = exported(tmp_path / "model")
    extractor = Extractor(model)
    alone = [extractor.extract(text, sentences=1).text for text in TEXTS]
    for workers in (None, 2):
        found = dataset.map(summarize, batched=True, batch_size=2, num_proc=workers)
        assert found["summary"] == summaries and found["article"] == TEXTS and found["id"] == [1, 2, 3, 4]
        extract = ExtractorMap(model, column="article", sentences=1)
        assert dataset.map(extract, batched=True, batch_size=2, num_proc=workers)["summary"] == alone


def test_the_oracle_reads_a_column_of_references() -> None:
    extract = ExtractorMap("oracle", reference_column="abstract", sentences=1)
    found = extract({"text": ["Red is a colour. Two is a number."], "abstract": ["A number."]})
    assert found["summary"] == ["Two is a number."]


def test_only_the_path_and_the_options_are_pickled(checkpoint: Path, summaries: list[str]) -> None:
    summarize = SummarizerMap(checkpoint, **SHORT)
    before = pickle.dumps(summarize)
    summarize({"text": TEXTS})
    assert pickle.dumps(summarize) == before and len(before) < 2000 < checkpoint.stat().st_size
    assert pickle.loads(before)({"text": TEXTS})["summary"] == summaries  # noqa: S301, our own


def test_datasets_knows_a_map_again_by_its_options_and_its_model(checkpoint: Path, tmp_path: Path) -> None:
    model = tmp_path / "checkpoint_best.pt"
    model.write_bytes(checkpoint.read_bytes())
    summarize = SummarizerMap(tmp_path, beam=2, max_len=9)
    first = Hasher.hash(summarize)
    assert Hasher.hash(SummarizerMap(tmp_path, max_len=9, beam=2)) == first
    summarize({"text": TEXTS[:1]})
    assert Hasher.hash(summarize) == first
    assert Hasher.hash(SummarizerMap(tmp_path, beam=3, max_len=9)) != first
    assert Hasher.hash(SummarizerMap(tmp_path, beam=2, max_len=9, column="article")) != first
    assert Hasher.hash(SummarizerMap(tmp_path, beam=2, max_len=9, select="auto")) != first
    model.write_bytes(checkpoint.read_bytes() + b"0")
    assert Hasher.hash(SummarizerMap(tmp_path, beam=2, max_len=9)) != first
    folder = exported(tmp_path / "model")
    first = Hasher.hash(ExtractorMap(folder))
    assert Hasher.hash(ExtractorMap(folder)) == first
    os.utime(folder / "model.safetensors", ns=(1, 1))
    assert Hasher.hash(ExtractorMap(folder)) != first


def test_a_document_without_text_is_an_error_or_none(checkpoint: Path) -> None:
    batch = {"text": ["One.", " ", None]}
    with refused("document 2"):
        SummarizerMap(checkpoint, **SHORT)(batch)
    first, *others = SummarizerMap(checkpoint, skip_empty=True, **SHORT)(batch)["summary"]
    assert isinstance(first, str) and others == [None, None]
    assert ExtractorMap(skip_empty=True)({"text": ["# A heading", "One."]})["summary"] == [None, "One."]
    assert ExtractorMap(skip_empty=True)({"text": [None]})["summary"] == [None]


def test_a_mistake_is_told_before_the_first_batch_where_it_can_be(checkpoint: Path, tmp_path: Path) -> None:
    early: list[tuple[Any, dict[str, Any], str]] = [
        (SummarizerMap, {"model": tmp_path / "none"}, "none"),
        (SummarizerMap, {"model": checkpoint, "into": "text"}, "into"),
        (SummarizerMap, {"model": checkpoint, "min_len": 5, "max_len": 4}, "max_len"),
        (SummarizerMap, {"model": checkpoint, "long": "merge", "select": "lead"}, "select"),
        (ExtractorMap, {"method": "lead", "precision": "int8"}, "precision"),
    ]
    for kind, options, named in early:
        with refused(named):
            kind(**options)
    for batch, named in (
        ({"article": TEXTS}, "column"),
        ({"text": TEXTS, "summary": TEXTS}, "into"),
        ({"text": [1]}, "text"),
    ):
        with refused(named):
            ExtractorMap()(batch)


@pytest.mark.slow
def test_ray_data_maps_batches_in_two_workers(checkpoint: Path, summaries: list[str]) -> None:
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        documents = data.from_items([{"number": number, "text": text} for number, text in enumerate(TEXTS)])
        options = {"model": str(checkpoint), **SHORT}
        two = data.ActorPoolStrategy(size=2)
        found = documents.map_batches(SummarizerMap, fn_constructor_kwargs=options, compute=two, batch_size=2)
        rows = sorted(found.take_all(), key=lambda row: row["number"])
        assert [row["summary"] for row in rows] == summaries
    finally:
        ray.shutdown()

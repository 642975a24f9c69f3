"""Summarizers and extractors as maps over batches, as `datasets` and Ray call them."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from datasets.fingerprint import Hasher
from small_extractor import exported
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.inference import Extractor, ExtractorMap, SamplingOptions, Summarizer, SummarizerMap

TEXTS = ["One two three.", "Bees fly. A bee with a ruler flies fast.", "Four.", "Five and six words."]
SHORT = {"beam": 1, "min_len": 3, "max_len": 3}


@pytest.fixture(scope="module")
def summaries(checkpoint: Path) -> list[str]:
    return [summary.text for summary in Summarizer.from_pretrained(checkpoint).summarize(TEXTS, **SHORT)]


def test_a_batch_of_lists_gets_a_column(checkpoint: Path, summaries: list[str]) -> None:
    batch = {"id": [1, 2, 3, 4], "text": TEXTS}
    assert SummarizerMap(checkpoint, **SHORT)(batch) == {**batch, "summary": summaries}


def test_a_batch_of_arrays_as_ray_gives_it_gets_an_array(checkpoint: Path, summaries: list[str]) -> None:
    for texts in (np.array(TEXTS), np.array(TEXTS, dtype=object)):
        found = SummarizerMap(checkpoint, into="short", **SHORT)({"id": np.arange(4), "text": texts})
        assert list(found) == ["id", "text", "short"] and found["text"] is texts
        assert isinstance(found["short"], np.ndarray) and found["short"].tolist() == summaries


def test_a_dataset_is_mapped_in_one_process_and_in_two(checkpoint: Path, summaries: list[str]) -> None:
    dataset = Dataset.from_dict({"article": TEXTS, "id": [1, 2, 3, 4]})
    summarize = SummarizerMap(checkpoint, column="article", **SHORT)
    for workers in (None, 2):
        found = dataset.map(summarize, batched=True, batch_size=2, num_proc=workers)
        assert found["summary"] == summaries and found["article"] == TEXTS and found["id"] == [1, 2, 3, 4]


def test_a_trained_extractor_maps_a_dataset(tmp_path: Path) -> None:
    dataset = Dataset.from_dict({"text": TEXTS})
    for model in (exported(tmp_path / "model"), "biomedical"):
        extractor = Extractor(model)
        alone = [extractor.extract(text, sentences=1).text for text in TEXTS]
        for workers in (None, 2):
            found = dataset.map(ExtractorMap(model, sentences=1), batched=True, batch_size=2, num_proc=workers)
            assert found["summary"] == alone


def test_a_map_computes_in_the_precision_that_it_is_given(checkpoint: Path) -> None:
    alone = Summarizer.from_pretrained(checkpoint, precision="int8").summarize(TEXTS, **SHORT)
    found = SummarizerMap(checkpoint, precision="int8", **SHORT)({"text": TEXTS})
    assert found["summary"] == [summary.text for summary in alone]
    with pytest.raises(UserError, match="`precision` must be one of auto, float32, bfloat16, int8, but is 'half'."):
        SummarizerMap(checkpoint, precision="half")
    with pytest.raises(UserError, match="`precision` is for trained extractors, but the method is 'lead'."):
        ExtractorMap("lead", precision="int8")


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
    model.write_bytes(checkpoint.read_bytes() + b"0")
    assert Hasher.hash(SummarizerMap(tmp_path, beam=2, max_len=9)) != first


def test_a_changed_file_of_an_exported_model_makes_another_map(tmp_path: Path) -> None:
    model = exported(tmp_path / "model")
    first = Hasher.hash(ExtractorMap(model))
    assert Hasher.hash(ExtractorMap(model)) == first
    os.utime(model / "model.safetensors", ns=(1, 1))
    assert Hasher.hash(ExtractorMap(model)) != first


def test_a_document_without_text_is_an_error_or_none(checkpoint: Path) -> None:
    batch = {"text": ["One.", " ", None]}
    with pytest.raises(UserError, match="A document must hold text, but document 2 holds none."):
        SummarizerMap(checkpoint, **SHORT)(batch)
    first, *others = SummarizerMap(checkpoint, skip_empty=True, **SHORT)(batch)["summary"]
    assert isinstance(first, str) and others == [None, None]
    assert ExtractorMap(skip_empty=True)({"text": ["# A heading", "One."]})["summary"] == [None, "One."]
    assert ExtractorMap(skip_empty=True)({"text": [None]})["summary"] == [None]


def test_sampled_summaries_are_those_of_the_summarizer(checkpoint: Path) -> None:
    sampling = SamplingOptions(top_p=0.9, seed=7)
    alone = Summarizer.from_pretrained(checkpoint).summarize(TEXTS, sampling=sampling, max_len=5)
    found = SummarizerMap(checkpoint, sampling=sampling, max_len=5)({"text": TEXTS})
    assert found["summary"] == [summary.text for summary in alone]


@for_each(
    ("options", "sentence"),
    [
        ({"query_column": 3}, "`query_column` must be a text or None, but is 3."),
        ({"into": "text"}, "`into` must be a new column, but 'text' is read."),
        ({"skip_empty": 1}, "`skip_empty` must be True or False, but is 1."),
        ({"beam": 0}, "`beam` must be at least 1, but is 0."),
        ({"beam": 1.5}, "`beam` must be a whole number or None, but is 1.5."),
        ({"min_len": 5, "max_len": 4}, "`max_len` .*4"),
        ({"length_penalty": 11}, "`length_penalty` must be from -10 to 10, but is 11."),
        ({"no_repeat_ngram": -1}, "`no_repeat_ngram` must .* but is -1."),
        ({"sampling": {"top_k": 3}}, "`sampling` must be a SamplingOptions or None, but is a dict."),
        ({"sampling": SamplingOptions(), "beam": 3}, "`beam` is an option of beam search, but is 3 with sampling."),
        ({"batch_size": 0}, "`batch_size` must be at least 1, but is 0."),
        ({"long": "short"}, "`long` must be one of .* but is 'short'."),
        ({"long": "merge", "select": "lead"}, "`select` needs `long` 'extract' or 'rewrite', but `long` is 'merge'."),
        ({"long": "extract", "select": "best"}, "`select` must be one of .* but is 'best'."),
        ({"long": "merge", "section_types": "a.csv"}, "`section_types` is an argument of .* but `long` is 'merge'."),
        ({"device": "gpu"}, "`device` must be one that torch finds here .* but is 'gpu'."),
    ],
)
def test_an_option_of_a_summarizer_that_breaks_a_rule_is_refused_at_once(
    checkpoint: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        SummarizerMap(checkpoint, **options)


@for_each(
    ("options", "sentence"),
    [
        ({"method": "best"}, "`method` must be one of hiporank, .*, or a trained extractor, but is 'best'."),
        ({"method": "oracle"}, "The method 'oracle' and `reference_column` must be given together."),
        ({"reference_column": "abstract"}, "The method 'oracle' and `reference_column` must be given together."),
        ({"options": {"nu": 1}}, "no option 'nu'; it knows mu, lambda_1, lambda_2, alpha."),
        ({"words": 0}, "`words` must be at least 1, but is 0."),
        ({"redundancy": "some"}, "`redundancy` must be one of none, trigrams, mmr, but is 'some'."),
        ({"device": "cpu"}, "`device` is for trained extractors, but the method is 'hiporank'."),
    ],
)
def test_an_option_of_an_extractor_that_breaks_a_rule_is_refused_at_once(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        ExtractorMap(**options)


def test_a_missing_model_is_refused_at_once_and_a_missing_column_at_the_first_batch(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="The model .*none does not exist."):
        SummarizerMap(tmp_path / "none")
    with pytest.raises(UserError, match="`column` must be a column of the batch .'article'., but is 'text'."):
        ExtractorMap()({"article": TEXTS})
    with pytest.raises(UserError, match="`into` must be a new column, but the batch has 'summary' already."):
        ExtractorMap()({"text": TEXTS, "summary": TEXTS})
    with pytest.raises(UserError, match="The column 'text' .0. must be a text or None, but is 1."):
        ExtractorMap()({"text": [1]})


@pytest.mark.slow
def test_workers_forked_from_a_process_that_computed_in_threads_do_not_wait_forever(tmp_path: Path) -> None:
    program = (
        "import sys, torch\nfrom datasets import Dataset\nfrom pyramidions.inference import ExtractorMap\n"
        "torch.set_num_threads(2)\ntorch.randn(1500, 1500) @ torch.randn(1500, 1500)\n"
        "texts = Dataset.from_dict({'text': ['One. Two.', 'Three.'] * 200})\n"
        "print(len(texts.map(ExtractorMap(sys.argv[1]), batched=True, num_proc=2)['summary']))\n"
    )
    command = [sys.executable, "-c", program, str(exported(tmp_path / "model"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "400\n"


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

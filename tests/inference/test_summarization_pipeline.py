"""The pipeline "summarization" is called, and answers, as transformers' did."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import kinds_of_summarizers
import pytest
from doc_pages import blocks
from refusals import refused
from small_pretrained import end_soon, model_of, save
from small_tokenizers import SENTENCES
from transformers import AutoTokenizer

from pyramidions import Summarizer, pipeline
from pyramidions.inference.summarization_pipeline import SummarizationPipeline

Pipes = tuple[SummarizationPipeline, Any, Path]


@pytest.fixture(scope="module")
def pipes(tmp_path_factory: pytest.TempPathFactory) -> Pipes:
    """A pipeline, the model of transformers that it runs, and their folder."""
    end_soon(theirs := model_of("bart"))
    folder = save(theirs, tmp_path_factory.mktemp("bart"))
    return pipeline("summarization", model=folder, device=-1), theirs, folder


# Of the first, some end by themselves; all of the second end at the limit.
@pytest.mark.parametrize(("shortest", "longest", "lengths"), [(10, 30, {11, 12}), (11, 12, {12})])
def test_summaries_are_those_of_generate_at_the_same_lengths(
    shortest: int, longest: int, lengths: set[int], pipes: Pipes
) -> None:
    pipe, theirs, folder = pipes
    tokenizer, texts = AutoTokenizer.from_pretrained(folder), SENTENCES[:6]
    options = {"min_length": shortest, "max_length": longest, "num_beams": 2, "length_penalty": 1.0}
    rows = [theirs.generate(**tokenizer(text, return_tensors="pt"), **options)[0] for text in texts]
    expected = [{"summary_text": tokenizer.decode(row, skip_special_tokens=True)} for row in rows]
    assert {len(row) for row in rows} == lengths
    assert pipe(texts, **options, no_repeat_ngram_size=0, do_sample=False) == expected
    # One text gets a list, too.
    assert pipe(texts[0], **options) == expected[:1]


def test_truncation_reads_the_beginning_alone() -> None:
    model = kinds_of_summarizers.model_of("blockwise")
    model = replace(model, config=replace(model.config, decoding_long="chunk"))
    pipe, text = SummarizationPipeline(Summarizer(model, "cpu")), " ".join(kinds_of_summarizers.TEXTS * 5)
    (whole,), (cut,) = pipe(text), pipe(text, truncation=True)
    assert whole["summary_text"].startswith(cut["summary_text"]) and whole != cut


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    # A local path takes precedence over a name on the hub.
    save(model_of("bart", max_position_embeddings=200), tmp_path / "facebook" / "bart-large-cnn")
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("docs/pipeline.md", "python")
    exec(example, {})  # noqa: S102, the example of the page
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_the_call_lacks_is_refused(pipes: Pipes) -> None:
    pipe, _, folder = pipes
    with refused("`task` must be 'summarization', but is 'translation'."):
        pipeline("translation", folder)
    with refused("`do_sample` must be False"):
        pipe("A text.", do_sample=True)
    with refused("unexpected keyword argument 'max_new_tokens'", TypeError):
        pipe("A text.", max_new_tokens=30)  # type: ignore[call-arg]
    with refused("`max_length` must be at least 3, but is 2."):
        pipe("A text.", max_length=2)
    with refused("`device` must be at least -1, but is -2."):
        pipeline("summarization", folder, device=-2)

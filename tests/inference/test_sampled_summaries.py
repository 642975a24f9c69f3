"""Sampled summaries are the same for the same seed, whatever shares a batch, a file or a page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invoking import succeed
from small_pretrained import model_of, save

from pyramidions.documents.source import DocumentOrigin, InputText
from pyramidions.inference import SamplingOptions, Summarizer
from pyramidions.inference.search import decoding_settings
from pyramidions.inference.stream import Stream
from pyramidions.pretrained.importing import import_model, write_checkpoint

TEXTS = ["Bees fly fast over roses.", "A rose.", "Bees fly fast over roses.", "May is warm, and June is warmer. " * 3]
SHORT: dict[str, Any] = {"min_len": 2, "max_len": 12}


@pytest.fixture(scope="module")
def summarizer(tmp_path_factory: pytest.TempPathFactory) -> Summarizer:
    return Summarizer(import_model(save(model_of("bart"), tmp_path_factory.mktemp("bart"))).model, "cpu")


def written(summarizer: Summarizer, texts: list[str], seed: int = 1, **options: Any) -> list[str]:
    sampling = SamplingOptions(temperature=1.5, seed=seed)
    return [found.text for found in summarizer.summarize(texts, sampling=sampling, **SHORT, **options)]


def test_batches_change_nothing_and_a_seed_changes_all(summarizer: Summarizer) -> None:
    together = written(summarizer, TEXTS)
    assert together == written(summarizer, TEXTS, batch_size=1) == written(summarizer, TEXTS, batch_size=3)
    assert together[:1] == written(summarizer, TEXTS[:1])
    assert all(one != other for one, other in zip(together, written(summarizer, TEXTS, seed=2), strict=True))
    # The same document again is sampled anew.
    assert len(set(written(summarizer, [TEXTS[0]] * 4))) == 4


def test_an_explanation_is_of_the_summary_that_is_written(summarizer: Summarizer) -> None:
    sampling = SamplingOptions(top_k=30, top_p=0.9, temperature=2.0)
    (summary,) = summarizer.summarize(TEXTS[:1], sampling=sampling, **SHORT)
    explanation = summarizer.explain(TEXTS[0], sampling=sampling, **SHORT)
    assert explanation.summary.text == summary.text
    told = "temperature 2, the 30 most probable tokens, the most probable tokens that make up 0.9"
    assert explanation.settings["sampling"] == told and "beam" not in explanation.settings


@pytest.mark.parametrize("long", ["truncate", "merge"])
def test_a_stream_samples_what_a_list_does(summarizer: Summarizer, long: str) -> None:
    texts = [*TEXTS, TEXTS[3] * 4]
    settings = decoding_settings(summarizer.model, **SHORT, sampling=SamplingOptions(temperature=1.5))

    def streamed(batch_size: int) -> list[str]:
        documents = (
            InputText(DocumentOrigin(f"{number}", None, 1), text, len(text), number=number)
            for number, text in enumerate(texts, 1)
        )
        found = Stream(summarizer, summarizer.long_reader(long), settings).summarized(documents, batch_size)
        return [" ".join(summary.text for summary in each.summaries) for each in found]

    assert streamed(1) == streamed(8) == written(summarizer, texts, long=long)


def test_a_tiny_nucleus_is_greedy_search(summarizer: Summarizer) -> None:
    greedy = summarizer.summarize(TEXTS, beam=1, **SHORT)
    sampled = summarizer.summarize(TEXTS, sampling=SamplingOptions(top_p=1e-6), **SHORT)
    assert [one.text for one in sampled] == [other.text for other in greedy]
    assert [one.score for one in sampled] == pytest.approx([other.score for other in greedy], abs=1e-4)


@pytest.fixture
def command(summarizer: Summarizer, tmp_path: Path) -> Callable[..., str]:
    """Summarizes a file on the command line; returns what is printed."""
    write_checkpoint(tmp_path / "bart.pt", summarizer.model)
    (tmp_path / "text.txt").write_text(TEXTS[0])

    def invoke(*flags: object) -> str:
        files = (tmp_path / "bart.pt", tmp_path / "text.txt", "--min-len", 2, "--max-len", 12, "--precision", "float32")
        return succeed("summarize", *files, *flags).stdout

    return invoke


def test_the_command_samples_what_the_summarizer_does(summarizer: Summarizer, command: Callable[..., str]) -> None:
    (expected,) = written(summarizer, TEXTS[:1], seed=5)
    assert command("--sampling", "--temperature", 1.5, "--seed", 5).split() == expected.split()
    assert command("--sampling", "--top-k", 1).split() == command("--beam", 1).split()

"""A stream of documents is summarized a few batches at a time."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from small_exports import summarizer as exported

from pyramidions.base.reading import Long
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.documents.source import DocumentOrigin, InputText
from pyramidions.inference import Summarizer, Summary, stream
from pyramidions.inference.explanation import Explanation
from pyramidions.inference.explanation_page import ExplanationPage
from pyramidions.inference.long_documents import LongReader
from pyramidions.inference.reader import Reader, TokenizedText
from pyramidions.inference.search import decoding_settings
from pyramidions.inference.stream import Stream
from pyramidions.inference.summarizer import OnWritten, UnwritableError
from pyramidions.text.tokenizer import Tokenizer

UNWRITABLE = "No summary was found."


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["abc 0 1 2 3 4 5"], Settings(16, model_type="bpe"))


class Echo:
    """Summarizes a text by its tokens."""

    def __init__(self, tokenizer: Tokenizer, most: int) -> None:
        self.reader = Reader(tokenizer, most)

    def write(
        self, documents: Sequence[TokenizedText], decoding: None, batch_size: int, on_written: OnWritten | None, _: bool
    ) -> list[Summary]:
        assert on_written is not None
        for place in range(len(documents)):
            on_written(place)
        return [Summary("".join(document.tokens), 0.0, 1, 1, 1) for document in documents]


def documents(asked: list[int]) -> Iterator[InputText]:
    for number in range(1, 6):
        asked.append(number)
        yield InputText(DocumentOrigin(f"a:{number}", None, number), f"a b {number}", 16, number=number)


def streamed(
    given: Iterable[InputText], writer: Echo, long: Long, batch_size: int = 2, tells: bool = True
) -> tuple[dict[str, list[str]], list[str], float]:
    """Return the summaries of each document, why others have none, and the sum of the progress."""
    told, done = list[str](), list[float]()
    refuse = [lambda error: told.append(str(error))] if tells else []
    stream = Stream(writer, LongReader(writer.reader, long), None, done.append, *refuse)
    results = list(stream.summarized(given, batch_size))
    return {each.origin.name: [summary.text.strip() for summary in each.summaries] for each in results}, told, sum(done)


def test_documents_are_asked_for_a_few_batches_at_a_time(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BATCHES", 2)
    asked: list[int] = []
    done: list[float] = []
    echo = Echo(tokenizer, 99)
    results = Stream(echo, LongReader(echo.reader), None, done.append).summarized(documents(asked), 1)
    origin, (summary,) = next(results)
    assert (origin.name, origin.position, summary.text.strip()) == ("a:1", 1, "a b 1")
    assert asked == [1, 2]
    assert [result.summaries[0].text.strip() for result in results] == ["a b 2", "a b 3", "a b 4", "a b 5"]
    # Each byte counts when it is read and when its summary is written.
    assert sum(done) == pytest.approx(2 * 5 * 16)


@pytest.mark.parametrize("long", ["truncate", "chunk"])
def test_a_document_in_which_the_model_finds_no_text_is_passed_over(tokenizer: Tokenizer, long: Long) -> None:
    given = list(documents([]))
    # What a tokenizer takes for a space is text to nobody else.
    given[1], given[4] = given[1]._replace(text="▁"), given[4]._replace(text="▁")
    found, told, done = streamed(given, Echo(tokenizer, 99), long)
    assert list(found) == ["a:1", "a:3", "a:4"] and done == pytest.approx(2 * 5 * 16)
    assert all(f"a:{number} " in each for number, each in zip((2, 5), told, strict=True))
    with refused("a:2 "):
        streamed(given, Echo(tokenizer, 99), long, tells=False)


class Stuck(Echo):
    """Cannot summarize what holds a 3."""

    def write(self, documents: Sequence[TokenizedText], *arguments: Any) -> list[Summary]:
        if any("3" in "".join(document.tokens) for document in documents):
            raise UnwritableError(UNWRITABLE)
        return super().write(documents, *arguments)


@pytest.mark.parametrize(("long", "batch_size"), [("truncate", 2), ("truncate", 8), ("chunk", 1), ("chunk", 3)])
def test_a_document_that_cannot_be_summarized_is_passed_over(tokenizer: Tokenizer, long: Long, batch_size: int) -> None:
    stuck = Stuck(tokenizer, 99 if long == "truncate" else 1 + len(tokenizer.encode("a b")))
    found, told, done = streamed(documents([]), stuck, long, batch_size)
    # The pieces of a document come together whatever shares a batch.
    assert list(found) == ["a:1", "a:2", "a:4", "a:5"]
    assert found["a:4"] == (["a b 4"] if long == "truncate" else ["a b", "4"])
    assert told == ["a:3: " + UNWRITABLE] and done == pytest.approx(2 * 5 * 16)
    with refused("a:3: ", UnwritableError):
        streamed(documents([]), stuck, long, batch_size, tells=False)


def test_a_document_whose_summaries_cannot_be_summarized_is_passed_over(tokenizer: Tokenizer) -> None:
    class StuckAtLast(Echo):
        """Summarizes pieces, but not their summaries where they hold a 3."""

        def write(
            self, documents: Sequence[TokenizedText], decoding: None, size: int, on_written: OnWritten | None, _: bool
        ) -> list[Summary]:
            if on_written is None and any("3" in "".join(document.tokens) for document in documents):
                raise UnwritableError(UNWRITABLE)
            return super().write(documents, decoding, size, on_written or (lambda _: None), False)

    given = (each._replace(text=f"{each.number} a b") for each in documents([]))
    found, told, _ = streamed(given, StuckAtLast(tokenizer, 1 + len(tokenizer.encode("a b"))), "merge")
    assert list(found) == ["a:1", "a:2", "a:4", "a:5"] and told == ["a:3: " + UNWRITABLE]


@pytest.mark.parametrize("long", ["truncate", "chunk"])
def test_a_document_that_cannot_be_explained_is_passed_over(
    long: Long, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summarizer = Summarizer.from_pretrained(exported(tmp_path / "model", 16 if long == "truncate" else 6), "cpu")
    decoding = decoding_settings(summarizer.model, beam=1, min_len=1, max_len=2)
    explain, told, page, done = summarizer.explain_tokenized, list[str](), ExplanationPage(), list[float]()

    def stuck(document: TokenizedText, *arguments: Any) -> Explanation:
        if "3" in "".join(document.tokens):
            raise UnwritableError(UNWRITABLE)
        return explain(document, *arguments)

    monkeypatch.setattr(summarizer, "explain_tokenized", stuck)
    others = [document for document in documents([]) if document.number != 3]
    given = summarizer, summarizer.long_reader(long), decoding, done.append
    list(Stream(*given).explained(others, page))
    left, page = page.left, ExplanationPage()
    done.clear()
    found = Stream(*given, lambda error: told.append(str(error))).explained(documents([]), page)
    assert [result.origin.name for result in found] == ["a:1", "a:2", "a:4", "a:5"]
    assert told == ["a:3: " + UNWRITABLE] and page.left_out == 0
    assert page.left == left and sum(done) == pytest.approx(2 * 5 * 16)


@pytest.mark.parametrize("explains", [False, True])
def test_progress_counts_each_piece_when_its_summary_is_written(
    explains: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summarizer = Summarizer.from_pretrained(exported(tmp_path / "model", 16), "cpu")
    decoding = decoding_settings(summarizer.model, beam=1, min_len=1, max_len=2)
    text = "bees fly fast " * 20
    pieces = len(list(summarizer.reader.pieces(text, "a")))
    done, seen = [0.0], list[float]()
    best = summarizer._best

    def watched(*batch: Any) -> Any:
        seen.append(sum(done))
        return best(*batch)

    monkeypatch.setattr(summarizer, "_best", watched)
    given = [InputText(DocumentOrigin("a", None, 1), text, 100, number=1)]
    found = Stream(summarizer, summarizer.long_reader("chunk"), decoding, done.append)
    list(found.explained(given, ExplanationPage()) if explains else found.summarized(given, 1))
    assert len(seen) == pieces > 5 and sum(done) == pytest.approx(200)
    # A batch is read ahead, which takes a tenth of the time.
    assert all(0 <= 100 * place / pieces - share / 2 + 10 <= 30 for place, share in enumerate(seen))

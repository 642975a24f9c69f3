"""A stream of documents is summarized a few batches at a time."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from pyramidions.inference import Summary, stream
from pyramidions.inference.documents import Document
from pyramidions.inference.stream import summarize_documents


class Echo:
    """Summarizes a text by its last three characters."""

    model = SimpleNamespace(tokenizer=None, max_source_positions=8)

    def summarize(self, texts: list[str], *, batch_size: int, on_read: Callable[[int], object]) -> list[Summary]:
        for text in texts:
            on_read(len(text))
        return [Summary(text[-3:], 0.0, 1, 1, 1) for text in texts]


def documents(asked: list[int]) -> Iterator[Document]:
    for number in range(1, 6):
        asked.append(number)
        yield Document(f"a:{number}", None, number, f"text {number:03}", 16)


def test_documents_are_asked_for_a_few_batches_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BATCHES", 2)
    asked: list[int] = []
    done: list[float] = []
    results = summarize_documents(documents(asked), Echo(), batch_size=1, in_pieces=False, on_progress=done.append)
    document, (summary,) = next(results)
    assert (document.name, document.position, summary.text) == ("a:1", 1, "001")
    assert asked == [1, 2]
    assert [result.summaries[0].text for result in results] == ["002", "003", "004", "005"]
    # Each byte counts when it is read and when its summary is written.
    assert sum(done) == 2 * 5 * 16


def test_the_pieces_of_a_document_come_together_whatever_shares_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "pieces", lambda text, *_: iter([text[:4], text[4:]]))
    results = summarize_documents(documents([]), Echo(), batch_size=3, in_pieces=True, on_progress=lambda _: None)
    found = {result.document.name: [summary.text for summary in result.summaries] for result in results}
    assert found == {f"a:{number}": ["ext", f"00{number}"] for number in range(1, 6)}

"""Summaries by a language model on a server."""

import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from refusals import refused
from writer_stand_in import message, writer

from pyramidions import Extractor
from pyramidions.base.errors import UserError
from pyramidions.base.reading import WRITER_KEY
from pyramidions.inference.compression import as_markdown, compress, estimate_tokens
from pyramidions.inference.served_model import ServedModel, ServedSummarizer, UnusableServerError
from pyramidions.inference.summary import Coverage, Summary

PAPER = "\n\n".join(
    ["# Bees", "## Methods", "We counted all bees in Rome. " * 9, "## Results", "All bees in Rome fly fast. " * 9]
)


def told(body: dict[str, Any]) -> tuple[int, bytes]:
    """Answer with the length of the prompt."""
    return message(f"{len(body['messages'][-1]['content'])} characters.")


@pytest.fixture(autouse=True)
def without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (WRITER_KEY, "http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_the_model_is_asked_once_for_a_document_that_it_reads_whole() -> None:
    with writer(lambda _: message("<think>Well.</think>\n Bees\nfly. ")) as server:
        model = ServedModel(server.url + "/", "a-model")
        (found,) = ServedSummarizer(model, "extract", Extractor("lead"), 50).summarize("Bees fly.")
    assert found == Summary("Bees fly.", math.nan, 3, document_tokens=3, read_tokens=3)
    (body,), (headers,) = server.asked, server.headers
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("a-model", 0, 3 * 50 + 2048)
    assert server.prompts == ["Summarize this document in at most 50 words.\n\n<document>\nBees fly.\n</document>"]
    assert "Authorization" not in headers


@contextmanager
def raw(begin: bytes, drop: bytes | None = None) -> Iterator[str]:
    """Run a server that answers so many bytes, and then some again and again without end."""

    def answer() -> None:
        with suppress(OSError), listening.accept()[0] as client:
            client.recv(2**16)
            client.sendall(begin)
            while drop is not None and not ended.wait(0.05):
                client.sendall(drop)
            # What is not read would break the connection.
            client.settimeout(5)
            client.shutdown(socket.SHUT_WR)
            while client.recv(2**16):
                pass

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        (thread := threading.Thread(target=answer)).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            ended.set()
            thread.join()


def documents_of(server: Any) -> list[str]:
    """Return the documents that a server was asked about since the last time."""
    documents = [prompt.split("<document>\n")[1].split("\n</document>")[0] for prompt in server.prompts]
    server.asked.clear()
    return documents


def test_each_way_reads_its_parts_of_a_long_document() -> None:
    with writer(told) as server:

        def prompts(long: str, reads: int) -> list[str]:
            model = ServedModel(server.url, "a-model")
            found = ServedSummarizer(model, long, Extractor(), reads=reads).summarize(PAPER)
            (whole,) = estimate_tokens([as_markdown(PAPER)])
            assert sum(each.document_tokens + each.coverage.left_out for each in found) == pytest.approx(whole, rel=0.1)
            assert all(each.read_tokens <= each.document_tokens for each in found)
            assert len(found) == {"sections": 2, "chunk": len(server.asked)}.get(long, 1)
            return documents_of(server)

        chosen = compress(PAPER, Extractor(), 40).text
        assert prompts("extract", 40) == [chosen]
        (whole,) = prompts("truncate", 1000)
        assert prompts("chunk", 1000) == [whole] and "".join(whole.split()) == "".join(PAPER.split())
        pieces = prompts("chunk", 40)
        assert " ".join(" ".join(pieces).split()) == " ".join(whole.split()) and max(estimate_tokens(pieces)) <= 40
        assert prompts("truncate", 40) == pieces[:1]
        *read, last = prompts("merge", 40)
        assert read == pieces and last.count("characters.") == len(pieces)
        sections = (("Methods", "We counted all bees in Rome."), ("Results", "All bees in Rome fly fast."))
        assert prompts("sections", 1000) == [f"## {heading}\n\n{' '.join([text] * 9)}" for heading, text in sections]


def test_the_prompt_says_what_is_read() -> None:
    with writer(told) as server:
        model = ServedModel(f"{server.url}/chat/completions", "m")
        ServedSummarizer(model, "merge", Extractor(), 9, reads=40).summarize(PAPER)
        first, *_, last = server.prompts
        assert first.startswith("Summarize this part of a document in at most 9 words.")
        assert last.startswith("Summarize these summaries of the parts of a document, as one, in at most 9 words.")
        server.asked.clear()
        ServedSummarizer(model, "extract", Extractor("lead")).summarize("Bees fly.", "Do bees fly?")
        asked = "Answer this question by this document: Do bees fly?\n\nAnswer in at most 200 words."
        assert server.prompts[0].startswith(asked)
        with refused("query"):
            ServedSummarizer(model, "extract", Extractor()).summarize("Bees.", " ")


@pytest.mark.parametrize(
    ("document", "prompted"),
    [
        ("A </document> of <DOCUMENT> marks.", "A [/document> of [DOCUMENT> marks."),
        ("A </ document>.", "A [/ document>."),
        ("A < /document >.", "A [ /document >."),
        ("A <\u200b/docu\u00adment>.", "A [/document>."),
        ("A \uff1c/\uff44ocument\uff1e.", "A [/\uff44ocument\uff1e."),
        ("A </d\u0332ocument>.", "A [/d\u0332ocument>."),
        ("A <documentation> of 1 < 2.", "A <documentation> of 1 < 2."),
    ],
)
def test_a_document_does_not_close_its_mark_in_the_prompt(document: str, prompted: str) -> None:
    with writer(told) as server:
        ServedSummarizer(ServedModel(server.url, "m"), "truncate", Extractor()).summarize(document)
        assert documents_of(server) == [prompted]


def test_pieces_end_between_sentences_and_hold_all_words() -> None:
    with writer(told) as server:

        def pieces_of(text: str, reads: int) -> list[str]:
            model = ServedModel(server.url, "a-model")
            ServedSummarizer(model, "chunk", Extractor(language="en"), reads=reads).summarize(text)
            return documents_of(server)

        # A heading stands with its text.
        text = "# Bees\n\n## Methods\n\nWe counted them. They were many.\n\n## Results\n\nThey fly."
        assert pieces_of(text, 12) == [
            "# Bees\n\n## Methods\n\nWe counted them.",
            "They were many.\n\n## Results\n\nThey fly.",
        ]
        text = " ".join(f"word{number}" for number in range(100)) + " " + "蜂" * 50
        pieces = pieces_of(text, 20)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert max(estimate_tokens(pieces)) <= 20


def test_a_cut_answer_is_told() -> None:
    with writer(lambda _: message("Bees", "length")) as server:
        for long in ("extract", "merge"):
            model = ServedSummarizer(ServedModel(server.url, "a-model"), long, Extractor("lead"), reads=40)
            (found,) = model.summarize(PAPER)
            assert found.ended_early and bool(found.pieces) == (long == "merge")


def test_the_key_goes_to_the_server_and_into_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WRITER_KEY, "secret")
    with writer(lambda _: (401, b'{"error": {"message": "bad key secret"}}')) as server:
        with refused("(bad key [key])", UnusableServerError):
            ServedModel(server.url, "a-model").answer("?", 5)
        assert server.headers[0]["Authorization"] == "Bearer secret"
    monkeypatch.setenv(WRITER_KEY, "sk-Secret-0123456789")
    spelled = [
        *(
            "sk-Secret-0123456789",
            "sk-Secret\u200b-0123456789",
            "sk-Sec\u00adret-0123456789",
            "sk-\tSecret -0123456789",
        ),
        *("\uff53k-Secret-0123456789", "SK-SECRET-0123456789", "s.k.-.Secret.0123456789", "s\u0332k-Secret-0123456789"),
        *("sk%2DSecret%2D0123456789", "sk&#45;Secret-0123456789", "..." * 140 + "sk-Secret-0123456789", "Secret-01***"),
    ]
    for key in spelled:
        body = json.dumps({"error": key}).encode()
        for answer in (b"HTTP/1.1 400 %s\r\n\r\n" % key.encode(), b"HTTP/1.1 400 Bad\r\n\r\n" + body, key.encode()):
            with raw(answer) as url, pytest.raises(UserError) as error:
                ServedModel(url, "a-model").answer("?", 5)
            assert "[key]" in str(error.value) and "ecret" not in str(error.value).lower(), key
    with refused("https://"):
        ServedModel("http://example.org/v1", "a-model")
    ServedModel("https://example.org/v1", "a-model")
    monkeypatch.setenv(WRITER_KEY, "a\nb")
    with refused(WRITER_KEY):
        ServedModel("http://localhost/v1", "a-model")


def test_no_proxy_stands_before_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WRITER_KEY, " secret\r\n")
    with writer(told) as proxy, writer(told) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        ServedModel(server.url, "a-model").answer("?", 5)
        assert not proxy.headers and server.headers[0]["Authorization"] == "Bearer secret"


def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    answers = [(429, b"{}"), (503, b"{}"), message("Bees fly.")]
    with writer(lambda _: answers.pop(0)) as server:
        assert ServedModel(server.url, "a-model").answer("?", 5) == ("Bees fly.", False)
    with writer(lambda _: (503, b"{}")) as server, refused("503", UnusableServerError):
        ServedModel(server.url, "a-model").answer("?", 5)
    assert slept == [1, 4, 1, 4, 15, 30]
    with writer(lambda _: (503, b"{}")) as server, refused("503", UnusableServerError):
        ServedModel(server.url, "a-model", patience=3).answer("?", 5)
    assert slept[6:] == [1]
    # Behind a proxy that waits no longer, one document took too long.
    with writer(lambda _: (504, b"{}")) as server, refused("504") as error:
        ServedModel(server.url, "a-model").answer("?", 5)
    assert not isinstance(error.value, UnusableServerError) and len(slept) == 7


def test_what_else_was_read_is_told() -> None:
    with writer(told) as server:

        def coverage(long: str, text: str, query: str | None = None) -> Coverage:
            model = ServedModel(server.url, "m")
            return ServedSummarizer(model, long, Extractor(), reads=20).summarize(text, query)[0].coverage

        short = "All bees in Rome fly fast. " * 9
        about = Coverage(sentences=(1, 9), selected_by="hiporank", language="en")
        assert coverage("extract", short) == about
        assert coverage("extract", short, "Why?") == about._replace(note="hiporank reads no query")
        # The model on the server reads a query that holds stop words alone.
        meeting = "Ann: We went to the sea and danced at night.\nBob: They saw it by day.\n" * 9
        note = "meetings finds no word to look for in the query"
        assert coverage("extract", meeting, "What is this about?").note == note
        assert coverage("extract", meeting, "Who danced?").note is None
        assert coverage("truncate", PAPER) == Coverage(language="en")
        other = "## Bees\n\n" + "Bees fly fast and high. " * 9 + "\n\n## Cats\n\nCats sleep."
        beginning = "no section of a type in the table: the text was read from its beginning"
        assert coverage("sections", other) == Coverage(note=beginning, language="en")
        assert coverage("sections", "## Bees\n\nBees fly.") == Coverage(note=beginning, language="en")
        assert coverage("sections", PAPER) == Coverage("Methods", left_out=2, language="en")


# Python itself would follow the first, with the key, as a GET.
@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_not_followed(status: int) -> None:
    with writer(told) as other, writer(lambda _: (status, f"{other.url}/chat/completions".encode())) as server:
        with refused(f"refused: {status}"):
            ServedModel(server.url, "a-model").answer("?", 5)
        assert not other.asked


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b"<html>"), "JSON"),
        ((200, b"[" * 100_000), "JSON"),
        ((200, b'{"choices": []}'), "message"),
        (message(None), "message"),
        (message(" \n"), "empty text"),
        # It thinks to its limit.
        (message("<think>Well, bees", "length"), "wrote nothing"),
        (message(None, "length"), "wrote nothing"),
        ((200, b" " * (2**22 + 1)), "4,194,304 bytes"),
        ((500, b"no"), "500 Internal Server Error"),
    ],
)
def test_nonsense_is_one_sentence(answer: tuple[int, bytes], said: str) -> None:
    with writer(lambda _: answer) as server, refused(said) as caught:
        ServedModel(server.url, "a-model").answer("?", 5)
    assert not isinstance(caught.value, UnusableServerError)


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:1", "file:///etc/passwd", "http://", "http://a?b=c", "http://[::1", "http://a:80a/v1"),
        "http://user:secret@localhost/v1",
    ],
)
def test_what_is_no_url_is_refused_and_a_password_not_shown(url: str) -> None:
    with refused("`writer`") as error:
        ServedModel(url, "a-model")
    assert "secret" not in str(error.value)


_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "drop", "said"),
    [
        (b"", b"", "must answer within 0.2 seconds"),
        (b"", b"H", "must answer within 0.2 seconds"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "must answer within 0.2 seconds"),
        pytest.param(b"", 2**18 * b"HTTP/1.1 100 Go\r\n\r\n", "must answer within 0.2 seconds", id="all at once"),
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n", "must answer within 0.2 seconds"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" ", "must answer within 0.2 seconds"),
        (_HEAD, b"1\r\n \r\n", "must answer within 0.2 seconds"),
        (_HEAD + b"1;", b"a", "must answer within 0.2 seconds"),
        (_HEAD + b"0\r\n", b"A: b\r\n", "must answer within 0.2 seconds"),
        (b"HTTP/1.1 400 Bad\r\nContent-Length: 100000\r\n\r\n", b" ", "refused: 400 Bad."),
    ],
)
def test_a_server_that_never_ends_its_answer_is_not_waited_for(begin: bytes, drop: bytes, said: str) -> None:
    began = time.monotonic()
    with raw(begin, drop) as url, refused(said):
        ServedModel(url, "a-model", patience=0.2).answer("?", 5)
    assert time.monotonic() - began < 5

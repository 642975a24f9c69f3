"""The page of `serve`, as a program asks it."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from documents import pdf
from served_page import Page

from pyramidions import ExtractionPage, Extractor
from pyramidions.inference import extraction_page
from pyramidions.serve.app import KEPT, MOST, Pages

TEXT = (
    "# Bees\n\n## Methods\n\nWe counted all bees in Rome. They were fed.\n\n## Results\n\nAll bees in Rome fly fast.\n"
)


@pytest.mark.parametrize(("name", "content"), [("a.md", TEXT.encode()), ("d.PDF", pdf("All bees in Rome fly."))])
def test_a_document_of_each_kind_is_summarized(page: Page, name: str, content: bytes) -> None:
    status, key = page.upload(content, name, words=6)
    assert status == 200, key
    answer = page.ask("GET", f"/page/{key}")
    html = answer.read().decode()
    assert answer.headers["Content-Security-Policy"].startswith(
        "sandbox allow-scripts allow-downloads; default-src 'none'"
    )
    assert name in html and "bees in Rome" in html
    assert 'filename="' + Path(name).stem in page.ask("GET", f"/page/{key}?save").headers["Content-Disposition"]


def test_the_summary_is_that_of_extract_and_what_is_told_stands_on_its_page(page: Page) -> None:
    _, key = page.upload(rb"\begin{document}Bees fly far. \input{absent}\end{document}", "a.tex")
    told = "a.tex includes files that are not in its folder and were left out: absent."
    assert told in page.ask("GET", f"/page/{key}").read().decode()
    _, key = page.upload(TEXT.encode(), "a.txt", words=6, method="lead")
    expected = ExtractionPage("lead", settings={"words": "6"})
    expected.add("a.txt", Extractor("lead").extract(TEXT, words=6))
    assert page.ask("GET", f"/page/{key}").read().decode() == expected.html()


@pytest.mark.parametrize(
    ("options", "status", "sentence"),
    [
        ({"name": "a.exe"}, 415, "A document must end in .txt"),
        ({"method": "oracle"}, 422, "`method` must be one of auto, "),
        ({"words": "0"}, 422, "`words` must be a number from 1 to 10,000, but is '0'."),
        ({"words": "x"}, 422, "`words` must be a number from 1 to 10,000"),
        ({"words": "5" * 5000}, 422, f"`words` must be a number from 1 to 10,000, but is '{'5' * 79}…."),
        ({"name": "../../a.docx"}, 422, "a.docx cannot be read as .docx"),
    ],
)
def test_what_cannot_be_summarized_is_one_sentence(
    page: Page, options: dict[str, str], status: int, sentence: str
) -> None:
    found, said = page.upload(b"nonsense", **{"name": "a.txt", **options})
    assert (found, said[: len(sentence)], said.count("\n")) == (status, sentence, 0)
    assert not list(page.folder.iterdir())


def test_an_error_that_nobody_foresaw_is_told(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Extractor, "extract_file", fail)
    assert page.upload(b"Bees fly.", "a.txt") == (
        500,
        "The document cannot be summarized (ZeroDivisionError: by zero).",
    )


def test_a_document_that_is_too_large_is_refused_and_leaves_nothing(page: Page) -> None:
    status, said = page.upload(b" " * (MOST * 2**20 + 1), "a.txt")
    assert (status, said) == (413, "A document must have at most 64 MiB.")
    assert not list(page.folder.iterdir())


def test_a_document_that_no_page_holds_is_told_what_one_holds(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction_page, "MOST_SENTENCES", 1)
    said = "The document is too long for a page, which holds at most 24 MiB, and 65,536 sentences of one document: "
    status, sentence = page.upload(TEXT.encode(), "a.txt")
    assert status == 422 and sentence.startswith(said), sentence


def test_other_pages_and_other_names_are_refused(page: Page) -> None:
    assert page.ask("GET", "/", Host="evil.example").status == 400
    answer = page.ask("POST", "/summary?name=a.txt&method=lead", b"Bees fly.", Origin="http://evil.example")
    assert (answer.status, answer.read()) == (403, b"Other pages must not use this one.")
    own = page.ask("POST", "/summary?name=a.txt&method=lead", TEXT.encode(), Origin=f"http://127.0.0.1:{page.port}")
    assert own.status == 200
    # An unknown page is refused.
    assert page.ask("GET", "/page/..%2f..%2fetc%2fpasswd").status == 404
    assert page.ask("GET", "/page/nothing").status == 404


def test_the_newest_pages_are_kept(tmp_path: Path) -> None:
    pages = Pages(tmp_path)
    keys = [pages.add("a.txt", str(number)) for number in range(KEPT + 2)]
    assert [pages.find(key) is None for key in keys] == [True] * 2 + [False] * KEPT
    assert len(list(tmp_path.iterdir())) == KEPT


def test_a_document_whose_client_has_left_does_not_block_the_next(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = page.folder / "begun"

    def never_ends(*_: object, **__: object) -> None:
        begun.touch()
        time.sleep(600)

    monkeypatch.setattr(Extractor, "extract_file", never_ends)
    with socket.create_connection(("127.0.0.1", page.port)) as client:
        client.sendall(
            b"POST /summary?name=a.txt&method=lead HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nBees fly."
        )
        while not begun.exists():
            time.sleep(0.01)
    monkeypatch.undo()
    assert page.upload(TEXT.encode(), "a.md")[0] == 200


def test_the_process_that_summarizes_keeps_no_connection_open(page: Page) -> None:
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", page.port), timeout=30) as client:
            client.sendall(
                b"POST /summary?name=a.md&method=lead HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                % (len(TEXT), TEXT.encode())
            )
            assert client.makefile("rb").read().startswith(b"HTTP/1.1 200 OK")


def test_many_uploads_at_once_and_one_that_never_ends_are_served(page: Page) -> None:
    slow = socket.create_connection(("127.0.0.1", page.port))
    slow.sendall(
        b"POST /summary?name=a.txt&method=lead HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nBees"
    )
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(partial(page.upload, TEXT.encode()), [f"{number}.md" for number in range(8)]))
    assert [status for status, _ in found] == [200] * 8 and len({key for _, key in found}) == 8
    slow.close()
    # The page notices, and goes on.
    assert page.upload(TEXT.encode(), "a.md")[0] == 200

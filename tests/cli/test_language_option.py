"""The language of documents is detected, and said where it decided something and is not English."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from texts_in_languages import PAPERS
from writer_stand_in import message, writer

Run = Callable[..., Result]
GERMAN = "The document was read as de; --language sets another language.\n"
SHORT = ("--beam", 1, "--min-len", 3, "--max-len", 3)


@pytest.fixture
def german(tmp_path: Path) -> Path:
    (tmp_path / "de.txt").write_text(PAPERS["de"].text)
    return tmp_path / "de.txt"


def test_each_command_that_reads_by_language_says_which(run: Run, checkpoint: Path, german: Path) -> None:
    with writer(lambda _: message("Die Ernte stieg.")) as server:
        for words in (
            ("extract", german),
            ("summarize", checkpoint, german, *SHORT, "--check"),
            ("summarize", checkpoint, german, *SHORT, "--long", "rewrite"),
            ("summarize", "--writer", server.url, "--writer-model", "m", german, "--check"),
            ("summarize", "--writer", server.url, "--writer-model", "m", german, "--writer-reads", 40),
            ("compress", german, "--budget", 20),
        ):
            done = run(*words)
            assert done.exit_code == 0 and GERMAN in done.stderr, words
            assert GERMAN not in run(*words, "--language", "de").stderr, words


def test_a_text_that_is_read_as_it_stands_needs_no_language(run: Run, checkpoint: Path, german: Path) -> None:
    with writer(lambda _: message("Die Ernte stieg.")) as server:
        for words in (
            ("summarize", checkpoint, german, *SHORT, "--long", "truncate"),
            ("summarize", "--writer", server.url, "--writer-model", "m", german),
        ):
            assert GERMAN not in run(*words).stderr

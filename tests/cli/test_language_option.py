"""The language of documents is detected, and said where it decided something and is not English."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from invoking import run
from refusals import refused
from texts_in_languages import PAPERS
from writer_stand_in import message, writer

from pyramidions import ExtractorMap, Summarizer, SummarizerMap
from pyramidions.serve.app import Asked
from pyramidions.serve.summaries import methods

GERMAN = "The document was read as de; --language sets another language.\n"


@pytest.fixture
def german(tmp_path: Path) -> Path:
    (tmp_path / "de.txt").write_text(PAPERS["de"].text)
    return tmp_path / "de.txt"


OURS = "summarize {model} {german} --beam 1 --min-len 3 --max-len 3"
THEIRS = "summarize --writer {url} --writer-model m {german}"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("extract {german}", True),
        ("extract {german} --tokens 20", True),
        (f"{OURS} --check", True),
        (f"{OURS} --long rewrite", True),
        (f"{OURS} --long truncate", False),
        (f"{THEIRS} --check", True),
        (f"{THEIRS} --writer-reads 40", True),
        (THEIRS, False),
    ],
)
def test_a_command_that_reads_by_language_says_which(command: str, says: bool, checkpoint: Path, german: Path) -> None:
    with writer(lambda _: message("Die Ernte stieg.")) as server:
        words = command.format(model=checkpoint, german=german, url=server.url).split()
        done = run(*words)
        assert done.exit_code == 0 and (GERMAN in done.stderr) == says
        assert not says or GERMAN not in run(*words, "--language", "de").stderr


def test_a_model_of_concepts_says_that_it_was_trained_in_another_language(german: Path) -> None:
    said = "The document was in another language than the model of concepts was trained in.\n"
    assert said in run("extract", german, "--method", "biomedical").stderr
    assert said in run("extract", german, "--method", "biomedical", "--language", "de").stderr
    assert said not in run("extract", german, "--method", "biomedical", "--language", "en").stderr


@pytest.mark.parametrize("code", ["DE", "de-AT"])
def test_a_language_may_be_in_capitals_and_with_a_country(code: str, german: Path) -> None:
    assert json.loads(run("extract", german, "--language", code, "--json").stdout)["language"] == "de"


def test_maps_and_the_page_of_serve_read_by_the_language_that_is_given(checkpoint: Path, tmp_path: Path) -> None:
    text = "Es war am 3. Oktober warm. Sie schlief lange."
    assert ExtractorMap("lead", sentences=1, language="de")({"text": [text]})["summary"] == [
        "Es war am 3. Oktober warm."
    ]
    assert ExtractorMap("lead", sentences=1, language="en")({"text": [text]})["summary"] == ["Es war am 3."]
    (path := tmp_path / "document.txt").write_text(text)
    for code, first in (("de", "Es war am 3. Oktober warm."), ("en", "Es war am 3.")):
        page = methods(language=code)["lead"](Asked("lead", path, "a.txt", 1))
        assert f'{first}"' in page
    options: dict[str, Any] = {"long": "rewrite", "beam": 1, "min_len": 3, "max_len": 3}
    read = {}
    for code in ("de", "en"):
        (summary,) = Summarizer.from_pretrained(checkpoint).summarize([text], language=code, **options)
        read[code] = [piece.document_tokens for piece in summary.pieces]
        assert SummarizerMap(checkpoint, language=code, **options)({"text": [text]})["summary"] == [summary.text]
    assert read["de"] != read["en"]
    with refused("language"):
        Summarizer.from_pretrained(checkpoint).summarize([text], long="truncate", language="de")
    for make in (ExtractorMap, partial(SummarizerMap, checkpoint)):
        with refused("language"):
            make(language="deutsch")

"""What the page summarizes documents by: the methods of extraction, and a model that writes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyramidions.base.errors import UserError
from pyramidions.base.notes import listening
from pyramidions.documents.source import Fields, read_file
from pyramidions.extract.methods import AUTO_METHOD, known_methods
from pyramidions.files.parallel import Worker
from pyramidions.inference.extraction_page import ExtractionPage
from pyramidions.inference.extractor import Extractor
from pyramidions.serve.app import Asked

#: Returns the page of a summary.
Summarize = Callable[[Asked], str]

if TYPE_CHECKING:
    from pyramidions.inference.explanation_page import ExplanationPage


def methods(
    model: Path | None = None,
    name: str = "",
    device: str | None = None,
    precision: str = "auto",
    language: str | None = None,
) -> Mapping[str, Summarize]:
    """Return what summarizes, by name; a model that writes, as `Summarizer.from_pretrained` reads it, comes first.

    It must not have the name of a method, nor answer queries. Models are read when they are first asked for.
    """
    # The default of `extract` comes first.
    names = sorted(known_methods(AUTO_METHOD), key=lambda known: known != AUTO_METHOD)
    if model is not None and name in names:
        raise UserError(f"`model` must not have the name of a method, but is called {name}.")
    made: dict[str, Callable[[], Summarize]] = {known: partial(_extracting, known, language) for known in names}
    if model is not None:
        made = {name: partial(_writing, model, name, device, precision, language)} | made
    return {known: _naming(cache(make)) for known, make in made.items()}


def worker_of(found: Mapping[str, Summarize], folder: Path) -> Worker[Asked, str]:
    """Return the process that summarizes what is asked for; it removes the folder of the page if that is killed."""
    # It reads files in processes of its own.
    return Worker(lambda asked: found[asked.method](asked), stays=True, left=folder)


def _extracting(method: str, language: str | None) -> Summarize:
    extractor = Extractor(method, language=language)

    def summarize(asked: Asked) -> str:
        page = ExtractionPage(method, settings={"words": f"{extractor.rules(asked.words).budget.words:,}"})
        with _noted(page, asked):
            extraction = extractor.extract_file(asked.path, words=asked.words)
        by = extractor.suited(extraction.outline).method
        page.add(asked.name, extraction, covered=extractor.covered(extraction), method=by)
        return _whole(page)

    return summarize


def _writing(model: Path, name: str, device: str | None, precision: str, language: str | None) -> Summarize:
    from pyramidions.inference.explanation_page import ExplanationPage
    from pyramidions.inference.reader import check_queries
    from pyramidions.inference.search import decoding_settings
    from pyramidions.inference.stream import Stream
    from pyramidions.inference.summarizer import Summarizer

    summarizer = Summarizer.from_pretrained(model, device, precision)
    check_queries(summarizer.model.queries, False)
    long = summarizer.model.config.decoding_long
    # A summary of summaries cannot be traced back to the document.
    reader = summarizer.long_reader("chunk" if long == "merge" else long, language=language)

    def summarize(asked: Asked) -> str:
        if asked.words is not None:
            raise UserError("The number of words is for extracts: a model that writes has its own length.")
        page = ExplanationPage(name)
        with _noted(page, asked):
            document = read_file(asked.path, Fields(sections=True))
        named = document._replace(origin=document.origin._replace(name=asked.name))
        list(Stream(summarizer, reader, decoding_settings(summarizer.model)).explained([named], page))
        return _whole(page)

    return summarize


def _whole(page: "ExtractionPage | ExplanationPage") -> str:
    if page.left_out:
        raise UserError(
            f"The document is too long for a page, which holds at most {page.limits}: use the commands "
            "`pyramidions extract` and `pyramidions summarize`."
        )
    return page.html()


def _naming(make: Callable[[], Summarize]) -> Summarize:
    """Let errors call the document by the name that its upload had."""

    def named(asked: Asked) -> str:
        summarize = make()
        try:
            return summarize(asked) if asked.name else ""
        except UserError as error:
            raise UserError(str(error).replace(str(asked.path), asked.name)) from None

    return named


@contextmanager
def _noted(page: "ExtractionPage | ExplanationPage", asked: Asked) -> Iterator[None]:
    """Let a page say what is told of a document meanwhile."""
    told: list[str] = []
    with listening(told.append):
        yield
    page.note = " ".join(told).replace(str(asked.path), asked.name)

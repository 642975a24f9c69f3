"""What a command does to documents: one worker a process, made from plain options."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyramidions.base.errors import UserError

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText, Origin


class Layout(NamedTuple):
    """How results are written.

    Attributes:
        kind: "list", by section and in lines; "text"; or "json", an object a document.
        named: texts stand below the names of their documents.
        width: of the lines of a list.
        coloured: a list may have colours.
    """

    kind: str
    named: bool = False
    width: int = 80
    coloured: bool = False


class Result(NamedTuple):
    """What was made of a document.

    Attributes:
        origin: where the document comes from.
        body: what follows id and name in its object; or its text.
        remarks: keys into the command's closing notes.
    """

    origin: "Origin"
    body: dict[str, Any] | str
    remarks: tuple[str, ...] = ()


class Report(Protocol):
    """Hears how the work goes on."""

    def add(self, size: float) -> None:
        """Count bytes: each once when it is read, and once when its result is made."""

    def fail(self, error: UserError) -> None:
        """Report a document that has no result."""

    def note(self, message: str) -> None:
        """Write a line that is no error."""


class Page(Protocol):
    """Gathers documents for an HTML page."""

    @property
    def left_out(self) -> int:
        """The number of documents that are not on the page, or not to their end."""

    def html(self) -> str:
        """Return the page."""


class Worker(ABC):
    """Makes results of documents.

    Attributes:
        said: a sentence about its precision and the machine; None where nothing depends on it.
        page: what gathers its documents for a page; None without one.
        most_shown: the most that the page shows of a document, in words.
    """

    said: str | None = None
    page: Page | None = None
    most_shown = ""

    @abstractmethod
    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield the results of documents that are computed together, in their order.

        Args:
            documents: are read one by one.
            report: is told of those without a result.
        """

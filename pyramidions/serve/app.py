"""The web application: takes documents, and shows the pages of their summaries."""

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.documents.file_formats import LIMITS, file_ending
from pyramidions.files.parallel import Worker

#: MiB of an upload, unless its format has a lower limit; and summaries that are kept, on the disk.
MOST, KEPT = 64, 50
#: The largest length that may be asked for, in words.
MOST_WORDS = 10_000
_INTERVAL = 0.02  # seconds between two looks for a summary, and for a client that leaves
#: Formats of one document.
ENDINGS = tuple(ending for ending in LIMITS if not ending.startswith(".jsonl"))
_NAMES = ("127.0.0.1", "localhost")
# The pages of summaries hold their scripts; in their frame they see neither this page nor the network.
_OWN = (
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'"
)
_FRAMED = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; img-src data: blob:; frame-ancestors 'self'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'"
)
# A registry of the system may say otherwise.
_TYPES = {".css": "text/css", ".js": "text/javascript"}


class Asked(NamedTuple):
    """What is asked for."""

    method: str  #: one of those that the page offers
    path: Path = Path()  #: of the document, whose ending is that of the upload
    name: str = ""  #: that the upload had; "" to make the method ready alone
    words: int | None = None  #: most words of the summary; None for the method's own number


class Pages:
    """The newest pages, as files in a folder."""

    def __init__(self, folder: Path, most: int = KEPT) -> None:
        self._folder, self._most = folder, most
        self._names: OrderedDict[str, str] = OrderedDict()

    def add(self, name: str, page: str) -> str:
        """Keep the page of a document, and return its key."""
        key = secrets.token_hex(16)
        (self._folder / f"{key}.html").write_text(page, encoding="utf-8")
        self._names[key] = name
        while len(self._names) > self._most:
            oldest, _ = self._names.popitem(last=False)
            (self._folder / f"{oldest}.html").unlink()
        return key

    def find(self, key: str) -> tuple[Path, str] | None:
        """Return the file of a page and the name of its document; None for an unknown or old key."""
        return (self._folder / f"{key}.html", self._names[key]) if key in self._names else None


def make_app(methods: Sequence[str], worker: Worker[Asked, str], folder: Path) -> Starlette:
    """Return the application; the first method is chosen at first, and the worker returns the page of a summary.

    The folder, for uploads and pages, is empty.
    """
    pages = Pages(folder)
    one_at_a_time = asyncio.Lock()
    options = "".join(f"<option>{escape(name)}</option>" for name in methods)
    front = _own("serve.html").replace("{{methods}}", options).replace("{{endings}}", ", ".join(ENDINGS))

    async def index(_: Request) -> Response:
        return HTMLResponse(front, headers={"Content-Security-Policy": _OWN})

    async def own_file(request: Request) -> Response:
        path = Path(request.url.path)
        return Response(_own(path.name), media_type=_TYPES[path.suffix])

    async def summarize(request: Request) -> Response:
        try:
            method, name, words = _options(request, methods)
            with TemporaryDirectory(dir=folder) as place:
                path = Path(place) / f"document{file_ending(Path(name))}"
                await _receive(request, path)
                async with one_at_a_time:
                    page = await _summary(request, worker, Asked(method, path, name, words))
            return PlainTextResponse(pages.add(name, page))
        except HTTPException:
            raise
        except UserError as error:
            return PlainTextResponse(str(error), 422)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return PlainTextResponse(f"The document cannot be summarized ({type(error).__name__}: {error}).", 500)

    async def page(request: Request) -> Response:
        found = pages.find(request.path_params["key"])
        if found is None:
            raise HTTPException(404, "This summary is no longer kept.")
        path, name = found
        headers = {"Content-Security-Policy": _FRAMED}
        saved = f"{Path(name).stem}-summary.html" if "save" in request.query_params else None
        return FileResponse(path, media_type="text/html; charset=utf-8", filename=saved, headers=headers)

    routes = [
        Route("/", index),
        *(Route(f"/{name}", own_file) for name in ("serve.css", "serve.js")),
        Route("/summary", summarize, methods=["POST"]),
        Route("/page/{key}", page),
    ]
    # Another name leads here where a page of the web makes a browser ask this machine (DNS rebinding).
    return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(_NAMES))])


def _options(request: Request, methods: Sequence[str]) -> tuple[str, str, int | None]:
    """Return the method, the name of the document, and the number of words; or refuse the request."""
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{request.headers['host']}":
        raise HTTPException(403, "Other pages must not use this one.")
    asked = request.query_params
    method, name, words = asked.get("method", ""), Path(asked.get("name", "")).name, asked.get("words", "")
    if method not in methods:
        raise HTTPException(422, f"`method` must be one of {', '.join(methods)}, but is {shown(method)}.")
    if file_ending(Path(name)) not in ENDINGS:
        raise HTTPException(415, f"A document must end in {', '.join(ENDINGS)}, but is called {shown(name)}.")
    if words and not (re.fullmatch("[0-9]{1,5}", words) and 0 < int(words) <= MOST_WORDS):
        raise HTTPException(422, f"`words` must be a number from 1 to {MOST_WORDS:,}, but is {shown(words)}.")
    return method, name, int(words) if words else None


async def _receive(request: Request, path: Path) -> None:
    """Write an upload to a file as it comes in."""
    most = min(MOST, LIMITS[file_ending(path)])
    size = 0
    with path.open("wb") as file:
        async for some in request.stream():
            size += len(some)
            if size > most * 2**20:
                raise HTTPException(413, f"A document must have at most {most} MiB.")
            file.write(some)


async def _summary(request: Request, worker: Worker[Asked, str], asked: Asked) -> str:
    """Return the page of a summary; the process at work ends when the client leaves."""
    if await request.is_disconnected():
        raise ClientDisconnect
    try:
        worker.give(asked)
        while not worker.has_result():
            if await request.is_disconnected():
                raise ClientDisconnect
            await asyncio.sleep(_INTERVAL)
    except BaseException:
        worker.close()
        raise
    return worker.result()


def _own(name: str) -> str:
    return files("pyramidions.serve").joinpath(name).read_text(encoding="utf-8")

"""`pyramidions serve`."""

from pathlib import Path

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.job_options import model_name
from pyramidions.cli.options import PATH, language_option, naming_options, precision_option, require, user_dir_option
from pyramidions.inference.precision import AUTO

# Connections beyond this number are refused.
_CONNECTIONS = 100


@click.command(short_help="Show a page on this machine that summarizes what is dropped on it.")
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="Port of the page.")
@click.option(
    "--model", type=PATH, help="A model that writes, as in `summarize`, offered beside the methods of extraction."
)
@click.option("--device", help="Device of the model, such as cpu or cuda:1.  [default: a GPU if there is one]")
@precision_option(None)
@user_dir_option
@language_option
def serve(port: int, model: Path | None, device: str | None, precision: str | None, language: str | None) -> None:
    """Show a page on this machine that summarizes the document that is dropped on it.

    Open the address in a browser, drop a document, and choose a method and a length. The summary stands beside the
    document, as on the page of --explain, and can be saved. Only this machine reaches the page, and nothing leaves it.
    Ctrl-C stops.

    The methods are those of `extract`: hiporank (the sentences that are central to their section and to the document),
    textrank (those most like the others), lead (the first ones), biomedical and meetings (learned from biomedical
    papers, and from meetings); and with --model, the model, which writes.

    \b
    Example:
      pyramidions serve
      pyramidions serve --model my-summarizer --port 8080
      pyramidions serve --language de
    """
    import socket
    from contextlib import closing, suppress

    from pyramidions.base.optional import optional_library

    require("--model", model, {"--device": device, "--precision": precision})
    uvicorn = optional_library("uvicorn", "`pyramidions serve`", extra="serve")
    optional_library("starlette", "`pyramidions serve`", extra="serve")
    from pyramidions.files.atomic import scratch_folder
    from pyramidions.serve.app import Asked, make_app
    from pyramidions.serve.summaries import methods, worker_of

    with naming_options("model", "device", "precision"):
        found = methods(model, "" if model is None else model_name(model), device, precision or AUTO, language)
    with scratch_folder() as folder, closing(worker_of(found, folder)) as worker, socket.socket() as listening:
        with naming_options("model", "device", "precision"):
            worker.give(Asked(next(iter(found))))
            worker.result()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            # A browser that comes before the server waits for it.
            listening.listen()
        except OSError as error:
            raise UserError(f"--port must be a free port, but {port} is not available: {error.strerror}.") from None
        click.echo(f"Open http://127.0.0.1:{port} in a browser. Ctrl-C stops.", err=True)
        app = make_app(list(found), worker, folder)
        # Connections that are open do not keep it from stopping; it would log each that it breaks off as an error.
        settings = uvicorn.Config(
            app, log_level="critical", limit_concurrency=_CONNECTIONS, timeout_graceful_shutdown=1, lifespan="off"
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(settings).run(sockets=[listening])

"""The group of commands: imports a command when it is called, and shows an error as one sentence."""

import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from pyramidions.base import __version__
from pyramidions.base.errors import UserError
from pyramidions.base.optional import what_brings

# Command -> module and name; a command imports its dependencies when it runs.
_COMMANDS = {
    **{
        name: f"pyramidions.cli.{name}:{name}"
        for name in (
            *("average", "check", "cost", "export", "extract", "loss", "models", "prepare", "score", "segments"),
            *("serve", "summarize", "train"),
        )
    },
    "import": "pyramidions.cli.import_model:import_command",
    "user-dir": "pyramidions.cli.commands:user_dir",
}
# Of the repository, not of the package.
_OF_THE_LAB = ("claims", "report", "reproduce", "time")

# Errors of reading or writing an open file, which carry no name: full and damaged disks.
_UNNAMED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Terminated(BaseException):
    """The process received SIGTERM."""


@contextmanager
def _clean_stop() -> Iterator[None]:
    """Turn SIGTERM into an error, so that a command cleans up as after an interrupt."""

    def stop(*_: object) -> None:
        # A second SIGTERM must not interrupt the cleaning up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Terminated

    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def swallowed(found: Any) -> None:
        # Python ignores what is raised in a callback, such as those of a fork: the signal is sent again a bit later.
        number = {_Terminated: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(found.exc_type)
        if number is None:
            usual_hook(found)
            return
        signal.signal(signal.SIGTERM, stop)
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()

    usual_hook, sys.unraisablehook = sys.unraisablehook, swallowed
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.unraisablehook = usual_hook


class Commands(click.Group):
    """A group that imports its commands lazily, by their ``places``, and shows a user's mistake without a traceback."""

    def __init__(self, *args: Any, places: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self._places:
            if cmd_name in _OF_THE_LAB and not ctx.resilient_parsing:
                raise UserError(f"`{cmd_name}` needs a checkout: in its folder, type python -m lab {cmd_name}.")
            return None
        module, name = self._places[cmd_name].split(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; the error for a mistyped one names the nearest."""
        known = args and args[0] in (*self._places, *_OF_THE_LAB)
        if args and not known and (near := get_close_matches(args[0], self._places, n=1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and exit: 0, 1 for an error, 2 for a wrong option, 130 or 143 when interrupted or stopped."""
        kwargs["standalone_mode"] = False
        # Threads that wait must not take the processor from others that work. libgomp reads it when torch is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        _open_closed()
        _escape_unprintable()
        given = args[0] if args else kwargs.get("args")
        debug = "--debug" in (sys.argv[1:] if given is None else given)
        try:
            with _clean_stop():
                code = super().main(*args, **kwargs)
        except _Terminated:
            _fail("Terminated.", 143)
        except click.exceptions.Abort:
            _fail("Interrupted.", 130)
        except click.ClickException as error:
            error.message = _with_nearest(error.message)  # type: ignore[misc]
            error.show()
            sys.exit(error.exit_code)
        except ModuleNotFoundError as error:
            if debug or (error.name or "pyramidions").startswith("pyramidions"):
                raise
            _fail(f"{error.name} is not installed: {_installed_by(error.name or '')}.", 1)
        except Exception as error:
            # A bug of ours keeps its traceback.
            sentence = _sentence(error)
            if debug or sentence is None:
                raise
            _fail(_with_nearest(sentence), 1)
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)


def _with_nearest(sentence: str) -> str:
    """Add to an error that lists choices the one that is nearest to what was given."""
    _, ours, rest = sentence.partition("must be one of ")
    names, _, given = rest.rpartition(", but is ") if ours else sentence.partition(" is not one of ")[::-1]
    quoted = given.split("'")[1:2]
    choices = names.strip(".").replace("'", "").split(", ")
    is_told = not names or "did you mean" in given
    near = get_close_matches(quoted[0], choices, n=1, cutoff=0.7) if quoted and not is_told else []
    return f"{sentence} Did you mean {near[0]!r}?" if near else sentence


def _installed_by(module: str) -> str:
    # fairseq compiles, and needs torch before it.
    of_fairseq = module in ("fairseq", "hydra", "omegaconf")
    if of_fairseq:
        return "scripts/setup.sh train brings what training needs"
    # What reads models on the hub comes along: it is missed next.
    return what_brings(module, "pretrained" if module == "torch" else module)


def _sentence(error: Exception) -> str | None:
    """Return the sentence for an error that a user can mend; None for a bug of ours."""
    if isinstance(error, UserError):
        return " ".join(str(error).split())
    if _memory_ran_out(error):
        return "Memory ran out."
    if isinstance(error, FileNotFoundError) and error.filename is None and _folder_is_gone():
        return "The folder that the command runs in does not exist any more."
    if isinstance(error, OSError) and error.strerror and (error.filename or error.errno in _UNNAMED):
        disk = f" {_disk(error.filename)}" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return f"{error.filename}: {error.strerror}{disk}." if error.filename else f"{error.strerror}."
    return None


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  (Path.cwd() reads it, too)
    except FileNotFoundError:
        return True
    return False


def _memory_ran_out(error: Exception) -> bool:
    if isinstance(error, MemoryError):
        return True
    # torch has a class for a GPU's memory only; it is not imported for this, since it may not have been used at all.
    of_gpu = getattr(sys.modules.get("torch"), "OutOfMemoryError", ())
    return isinstance(error, of_gpu) or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))


def _disk(path: str | bytes | int | None) -> str:
    """Return "(the disk at /mnt)" for the disk that a path lies on."""
    if not isinstance(path, str):
        return ""
    place = Path(path).absolute()
    return next((f"(the disk at {parent})" for parent in (place, *place.parents) if parent.is_mount()), "")


def _open_closed() -> None:
    """Open what a shell has closed, as with `>&-`, to nowhere."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w"))  # noqa: SIM115


def _escape_unprintable() -> None:
    """Write characters that the terminal cannot show with escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=Commands, places=_COMMANDS, invoke_without_command=True, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="pyramidions")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Summarize long documents.

    \b
    extract works at once, without training.
    summarize writes with a pretrained model of the hub, which models lists.
    train makes a model of your own documents, in one command.
    prepare and score go with fairseq-train and fairseq-generate, which find our
    models with --user-dir "$(pyramidions user-dir)".
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.command("user-dir")
def user_dir() -> None:
    """Print the folder to pass to fairseq as --user-dir.

    \b
    Example:
      fairseq-train data --user-dir "$(pyramidions user-dir)" --arch deep_pyramidion ...
    """
    from pyramidions.files.processes import USER_DIR

    click.echo(USER_DIR)

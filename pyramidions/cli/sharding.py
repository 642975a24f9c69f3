"""--shard: a run that reads a share of the inputs, and writes a file of a folder that `pyramidions join` joins."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions import __version__
from pyramidions.cli.naming import naming_options
from pyramidions.cli.outputs import holds_json
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.inference.share import Share, Turns

#: Lines of each block of inputs, without their ends.
LineBlocks = Iterable[tuple[int, Iterator[str]]]

shard_option = click.option(
    "--shard",
    metavar="I/N",
    help="Read share I of N of the documents, and write it in the folder --out, for `pyramidions join`. A run that was "
    "stopped goes on where it was.",
)


def find_share(shard: str | None, out: Path | None, page: Path | None, paths: list[Path]) -> "Share | None":
    """Return the share that --shard asks for.

    Args:
        shard: its value.
        out: the folder.
        page: of --explain.
        paths: of all inputs.

    Raises:
        UserError: there is no such share, or the other options do not fit it.
    """
    from pyramidions.inference.documents import STANDARD_INPUT
    from pyramidions.inference.share import Share

    if shard is None:
        return None
    with naming_options("shard"):
        share = Share.parse(shard)
    if out is None:
        raise UserError("--shard needs --out, the folder that its file is written in.")
    if page is not None:
        raise UserError("--shard and --explain exclude each other.")
    if STANDARD_INPUT in paths:
        raise UserError("--shard needs files, but standard input is read.")
    if out.exists() and not out.is_dir():
        raise UserError(f"With --shard, --out must be a folder, but {out} is a file.")
    if holds_json(out) and not out.exists():
        raise UserError(f"With --shard, --out must be a folder, but is {out}; `pyramidions join` writes such a file.")
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out must be a folder in a folder that exists, but is {out}.")
    needed = out if out.exists() else out.absolute().parent
    if not os.access(needed, os.W_OK):
        raise UserError(f"--out must be a folder that can be written, but {needed} is read-only.")
    return share


def write_shard(
    share: "Share",
    folder: Path,
    paths: list[Path],
    size: int,
    work: "Callable[[Turns], LineBlocks]",
    report: ReadingReport,
    *,
    command: str,
    settings: Mapping[str, Any],
) -> int:
    """Write a shard block by block, behind those that a stopped run left; return the exit status.

    Args:
        share: of the inputs.
        folder: of all shards.
        paths: of all inputs.
        size: inputs of a block.
        work: given which inputs are read, yields number and lines of each block.
        report: knows whether something could not be read.
        command, settings: what all shards must share; values that JSON holds.

    Raises:
        UserError: the folder holds shards of something else.
    """
    from pyramidions.files.block_file import BlockReader, block_writer, forget_partial
    from pyramidions.files.progress import counted
    from pyramidions.inference.fingerprints import input_fingerprint
    from pyramidions.inference.shard_files import check_folder, shard_paths
    from pyramidions.inference.share import Turns

    same = {"command": command, "of": share.of, "version": __version__, "input": input_fingerprint(paths)}
    # As JSON, so that lists and tuples are alike.
    about = json.loads(json.dumps({**same, "settings": settings, "shard": share.shard}))
    check_folder(folder, about)
    folder.mkdir(exist_ok=True)
    path, partial = shard_paths(folder, share)
    if path.exists():
        reader = BlockReader(path)
        lines = sum(len(block.lines) for block in reader)
        forget_partial(partial)
        report.note(f"{path} is already complete: it holds {counted(lines, 'summary')}.")
        return 1 if reader.end["failed"] else 0
    with block_writer(partial, path, about) as writer:
        if writer.last:
            report.note(f"{partial} already holds {counted(writer.lines, 'summary')}; the run continues after them.")
        turns = Turns(share, size, writer.last)
        for number, block in work(turns):
            # All lines of a block are on the disk before the next block is computed.
            writer.write(number, list(block), report.failed)
        writer.finish(turns.number, report.failed)
    report.note(f"{path} holds {counted(writer.lines, 'summary')}.")
    return 1 if writer.failed else 0

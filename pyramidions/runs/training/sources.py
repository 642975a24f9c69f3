"""Where the documents of a run are: its splits, and whether they have changed."""

from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.data.folder import SPLITS
from pyramidions.data.manifest import file_hash
from pyramidions.data.readers import check_config, find_splits
from pyramidions.documents.records import FILE_ENDINGS, hugging_face_splits

Stamps = dict[str, dict[str, Any]]


class Sources(NamedTuple):
    """The splits that were given.

    Attributes:
        given: the input of each; `train` among them.
        missing: what must be held out of `train`.
    """

    given: dict[str, str]
    missing: tuple[str, ...]


def near(name: str) -> str:
    """Return a path below the working folder as one that begins there, which users know; others as they are."""
    path, here = Path(name), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else name


def find_sources(documents: str, config: str | None) -> Sources:
    """Return the splits of a file, a folder or a Hugging Face dataset.

    Raises:
        UserError: there is no train split, or a configuration of files.
    """
    documents = near(documents)
    if documents.endswith(FILE_ENDINGS) or Path(documents).is_file():
        given = {"train": documents}
    else:
        given = find_splits(documents)
        if set(given.values()) == {documents}:
            given = dict.fromkeys(hugging_face_splits(documents, config), documents)
    check_config(config, given.values())
    if "train" not in given:
        raise UserError(f"{documents} must have documents to train on, but has no train split.")
    return Sources(given, tuple(split for split in SPLITS if split not in given))


def stamps(documents: str, before: Stamps | None = None) -> Stamps:
    """Return size, time and hash of the files that hold the documents; nothing for a dataset on the hub.

    Args:
        documents: a file, a folder, or the name of a dataset.
        before: what was returned before; a file of the same size and time is not hashed again.
    """
    if not Path(documents).exists():
        return {}
    found = [Path(name) for name in dict.fromkeys(find_sources(documents, None).given.values())]
    files = [file for path in found for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return {
        str(file.absolute()): _stamp(file, (before or {}).get(str(file.absolute()))) for file in files if file.is_file()
    }


def changed(before: Stamps, now: Stamps) -> str | None:
    """Return the first file that was changed, added or removed; None if there is none."""
    files = sorted({*before, *now})
    return next((file for file in files if _hash_of(before, file) != _hash_of(now, file)), None)


def _stamp(file: Path, before: dict[str, Any] | None) -> dict[str, Any]:
    stat = file.stat()
    about = {"size": stat.st_size, "microseconds": stat.st_mtime_ns // 1000}
    if before is not None and {**before, **about} == before:
        return before
    return {**about, "sha256": file_hash(file)}


def _hash_of(found: Stamps, file: str) -> str | None:
    return found[file]["sha256"] if file in found else None

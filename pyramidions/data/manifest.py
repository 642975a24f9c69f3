"""What a data folder says about itself: counts, lengths, hashes, sizes, settings and versions.

It holds neither times nor paths, so that the same input gives the same bytes anywhere. While a folder is being made, a
hidden file says so of each finished part, such as a split; the next run takes it over.
"""

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.folder import PreparedFolder, refuse_to_lose
from pyramidions.files.atomic import atomic_folder, sync, write_file
from pyramidions.files.bounded import file_hash
from pyramidions.text.headings import HeadedText
from pyramidions.text.normalization import SPLITTER

FORMAT = 1


class InputHash:
    """SHA-256 of documents, independent of their file format."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.documents = 0

    def add(self, document: Iterable[str | None]) -> None:
        """Add the texts of the next document."""
        for text in (each for each in document if each is not None):
            # JSON may hold lone surrogates, which plain UTF-8 refuses.
            marked = text.as_markdown if isinstance(text, HeadedText) else text
            data = marked.encode("utf-8", "surrogatepass")
            self._hash.update(len(data).to_bytes(8, "little") + data)
        self.documents += 1

    @property
    def sha256(self) -> str:
        """The hash over the documents so far."""
        return self._hash.hexdigest()

    def summary(self, skipped: int) -> dict[str, Any]:
        """The manifest's entry for these documents."""
        return {"documents": self.documents, "skipped": skipped, "sha256": self.sha256}


def distribution(counts: np.ndarray) -> dict[str, float]:
    """Total, minimum, mean, median, 5th and 95th percentile, and maximum of some lengths."""
    return {
        "total": int(counts.sum()),
        "min": int(counts.min()),
        "p5": round(float(np.percentile(counts, 5)), 2),
        "mean": round(float(counts.mean()), 2),
        "median": round(float(np.median(counts)), 2),
        "p95": round(float(np.percentile(counts, 95)), 2),
        "max": int(counts.max()),
    }


def write_manifest(
    folder: PreparedFolder,
    settings: dict[str, Any],
    inputs: dict[str, Any],
    splits: dict[str, Any],
    vocab_size: int,
    library: str = "sentencepiece",
) -> None:
    """Write `manifest.json` about the files in the folder, except those whose names begin with a dot.

    The library is the tokenizer's; the other arguments are entries of the manifest.
    """
    paths = [path for path in sorted(folder.path.iterdir()) if not path.name.startswith(".")]
    paths = [path for path in paths if path != folder.manifest_path]
    manifest = {
        "format": FORMAT,
        "settings": settings,
        "vocab_size": vocab_size,
        "inputs": inputs,
        "splits": splits,
        "files": {path.name: file_hash(path) for path in paths},
        "sizes": {path.name: path.stat().st_size for path in paths},
        "versions": _versions(library),
    }
    with folder.manifest_path.open("wb") as file:
        file.write((json.dumps(manifest, indent=2) + "\n").encode())
        sync(file)


def work_key(settings: dict[str, Any], inputs: dict[str, Any], library: str) -> str:
    """Return a hash of all that determines a folder's contents: with the same hash, work can be continued."""
    decisive = {"format": FORMAT, "settings": settings, "inputs": inputs, "versions": _versions(library)}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def holds(folder: PreparedFolder, settings: dict[str, Any], inputs: dict[str, Any]) -> bool:
    """Return whether a folder was made from these inputs with these settings, whatever named the inputs."""
    try:
        manifest = folder.manifest
    except UserError:
        return False
    return _decisive(manifest["settings"]) == _decisive(settings) and manifest.get("inputs") == inputs


def _decisive(settings: dict[str, Any]) -> dict[str, Any]:
    # The name of a corpus says where the documents come from, not what they are.
    return {name: value for name, value in settings.items() if name != "corpus"}


def matches_manifest(folder: PreparedFolder) -> bool:
    """Return whether every file in the manifest exists and is unchanged."""
    files = folder.manifest.get("files", {})
    paths = {name: folder.path / name for name in files}
    return all(path.is_file() and file_hash(path) == files[name] for name, path in paths.items())


def make_folder(
    folder: PreparedFolder,
    is_same: Callable[[], bool],
    what: str,
    overwrite: bool,
    key: str,
    fill: Callable[[Any], None],
) -> bool:
    """Make a folder, whole or not at all, unless it holds the same already, undamaged.

    With the same ``key``, the work of an interrupted run is continued. Returns whether the folder was made.
    """
    path = folder.path
    if path.exists() and any(path.iterdir()):
        if not is_same():
            if not overwrite:
                raise UserError(f"{path} holds other {what} or settings; give --overwrite to replace it.")
        elif matches_manifest(folder):
            return False
        refuse_to_lose(path)
    try:
        with atomic_folder(path, key) as partial:
            fill(type(folder)(partial))
    except OSError as error:
        kept = "; the old folder is unchanged" if path.exists() else ""
        raise UserError(f"Writing {path} failed ({error.strerror or error}){kept}.") from error
    return True


def part(
    folder: Path,
    name: str,
    what: str,
    make: Callable[[], dict[str, Any]],
    files: Callable[[], Iterable[Path]],
    made_with: str = "",
) -> dict[str, Any]:
    """Return the facts about a part of a partial folder, which is made unless an interrupted run made it.

    ``make`` writes and syncs the files, and returns facts about them that JSON holds; ``what`` is for a note ("the
    pieces that were trained"), and ``made_with`` is what else decides about the files, such as the hash of a
    vocabulary.
    """
    found = finished_part(folder, name, made_with)
    if found is not None:
        note(f"takes {what} before")
        return found
    found = make()
    finish_part(folder, name, files(), found, made_with)
    return found


def finish_part(folder: Path, name: str, files: Iterable[Path], facts: dict[str, Any], made_with: str = "") -> None:
    """Note that files of a partial folder are whole and synced."""
    about = {"made_with": made_with, "files": {path.name: file_hash(path) for path in files}, "facts": facts}
    write_file(_part(folder, name), json.dumps(about).encode())


def finished_part(folder: Path, name: str, made_with: str = "") -> dict[str, Any] | None:
    """Return the facts about a finished part; None if there is none, it is damaged, or was made with something else."""
    path = _part(folder, name)
    if not path.is_file():
        return None
    try:
        about = json.loads(path.read_bytes())
        files, facts = dict(about["files"]), dict(about["facts"])
        if all(file_hash(folder / file) == digest for file, digest in files.items()):
            return facts if about["made_with"] == made_with else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    note(f"{name} of the interrupted run is damaged: that part is done anew")
    return None


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.part"


def _versions(library: str) -> dict[str, str]:
    return {
        "pyramidions": _version("pyramidions"),
        library: _version(library),
        "splitter": SPLITTER,
        "unicode": unicodedata.unidata_version,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

"""What a data folder says about itself: counts, lengths, hashes, sizes, settings and versions.

It holds neither times nor paths, so that the same input gives the same bytes anywhere.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.folder import PreparedFolder
from pyramidions.files.atomic import sync
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
        for text in (each for each in document if each is not None):
            # JSON may hold lone surrogates, which plain UTF-8 refuses.
            marked = text.as_markdown if isinstance(text, HeadedText) else text
            data = marked.encode("utf-8", "surrogatepass")
            self._hash.update(len(data).to_bytes(8, "little") + data)
        self.documents += 1

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def summary(self, skipped: int) -> dict[str, Any]:
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


def _versions(library: str) -> dict[str, str]:
    return {
        "pyramidions": _version("pyramidions"),
        library: _version(library),
        "splitter": SPLITTER,
        "stop-words": _version("stop-words"),
        "unicode": unicodedata.unidata_version,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

"""Compares the files of a data folder with its manifest before they are opened."""

from collections.abc import Iterable

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder, PreparedFolder, Side
from pyramidions.data.indexed import IndexedReader
from pyramidions.files.bounded import file_hash


def verify_tokenizer(folder: DataFolder) -> None:
    """Compare the tokenizer's hash with the manifest's, if there is a manifest.

    Raises:
        UserError: it is damaged.
    """
    if folder.manifest_path.exists():
        compare_files(folder, [folder.tokenizer_path.name], hashes=True)


def verify_split(folder: DataFolder, split: str, *, hashes: bool = False) -> None:
    """Look at every file of a split.

    Sizes are compared with the manifest's, where it has them (0.1.0 wrote none), and each index with itself, with its
    tokens and with the number of documents.

    Args:
        folder: a folder made by `prepare`.
        split: such as `train`.
        hashes: read every byte, and compare with the manifest's hashes, too.

    Raises:
        UserError: a file is missing or damaged.
    """
    sides: list[Side] = ["source", "target"]
    if folder.has_labels(split):
        sides.append("labels")
    prefixes = [folder.indexed(split, side) for side in sides]
    known = folder.manifest["splits"].get(split)
    if known is not None:
        names = [f"{split}.{side}{ending}" for side in sides for ending in (".idx", ".bin")]
        compare_files(folder, [*names, folder.references_path(split).name], hashes)
    counts = [len(IndexedReader(prefix)) for prefix in prefixes]
    if "labels" in sides and counts.pop() != counts[0]:
        raise UserError(
            f"{folder.path} must hold labels for each of the {counts[0]} documents in {split!r}, but does not."
        )
    if len(set(counts)) > 1:
        raise UserError(f"{folder.path} holds {counts[0]} documents but {counts[1]} summaries in {split!r}.")
    expected = counts[0] if known is None else known["documents"]
    if counts[0] != expected:
        raise UserError(f"{folder.path} holds {counts[0]} documents in {split!r}, but its manifest says {expected}.")


def compare_files(folder: PreparedFolder, names: Iterable[str], hashes: bool) -> None:
    """Compare the sizes of files with the manifest, and perhaps their hashes.

    Raises:
        UserError: one is missing or damaged.
    """
    files, sizes = folder.manifest["files"], folder.manifest.get("sizes", {})
    for name in names:
        path = folder.path / name
        if not path.is_file():
            raise UserError(f"{folder.path} lacks {name}, which its manifest lists.")
        size = path.stat().st_size
        if name in sizes and size != sizes[name]:
            raise UserError(
                f"{path} is damaged: it must have {sizes[name]} bytes, as the manifest says, but has {size}."
            )
        if hashes and name not in files:
            raise UserError(f"{folder.manifest_path} must hold the SHA-256 of {name} under `files`, but does not.")
        if hashes and file_hash(path) != files[name]:
            raise UserError(f"{path} is damaged: its SHA-256 is not the one in the manifest.")

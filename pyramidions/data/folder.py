"""The layout of a data folder, in one place."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.data.indexed import IndexedReader
from pyramidions.files.bounded import file_hash, read_regular
from pyramidions.files.lines import read_lines
from pyramidions.text.tokenizer import JsonTokenizer, Numbering, SentencePieceTokenizer, Tokenizer

Side = Literal["source", "target", "labels"]
SPLITS = ("train", "valid", "test")
#: The setting that a folder of characters has, and one of documents has not.
CHARACTERS = "characters"
#: The setting with the ids of special tokens, where they are not those of the usual names.
SPECIAL_TOKENS = "special_tokens"
_LENGTHS = ("source_tokens", "target_tokens", "target_words")


class PreparedFolder(ABC):
    """A folder made by `pyramidions prepare`, of documents or of characters."""

    command = "`pyramidions prepare`"

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.dictionary_path = self.path / "dict.txt"
        self.manifest_path = self.path / "manifest.json"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Counts, lengths, hashes, sizes and settings of the folder."""
        path = self._require(self.manifest_path)
        try:
            manifest = parse_json(read_regular(path))
        except ValueError:
            manifest = None
        if not isinstance(manifest, dict):
            raise UserError(f"{path} must be a JSON object as written by `pyramidions prepare`.")
        self._check(manifest)
        return manifest

    @abstractmethod
    def _check(self, manifest: dict[str, Any]) -> None:
        """Raise a UserError if it is the manifest of another kind, or lacks something."""

    @property
    @abstractmethod
    def splits(self) -> list[str]:
        """The splits that the folder holds."""

    def compare(self, names: Iterable[str], hashes: bool) -> None:
        """Compare the sizes of files with the manifest's (0.1.0 wrote none), and perhaps their hashes."""
        files, sizes = self.manifest["files"], self.manifest.get("sizes", {})
        for name in names:
            path = self.path / name
            if not path.is_file():
                raise UserError(f"{self.path} lacks {name}, which its manifest lists.")
            size = path.stat().st_size
            if name in sizes and size != sizes[name]:
                raise UserError(
                    f"{path} is damaged: it must have {sizes[name]} bytes, as the manifest says, but has {size}."
                )
            if hashes and name not in files:
                raise UserError(f"{self.manifest_path} must hold the SHA-256 of {name} under `files`, but does not.")
            if hashes and file_hash(path) != files[name]:
                raise UserError(f"{path} is damaged: its SHA-256 is not the one in the manifest.")

    def _require(self, path: Path) -> Path:
        if not self.path.is_dir():
            found = "must be a folder, but is a file" if self.path.exists() else "does not exist"
            raise UserError(f"The data folder {self.path} {found}.")
        if not path.exists():
            raise UserError(
                f"{self.path} is not a folder made by {self.command}: it lacks {path.name}."
                if not self.manifest_path.exists()
                else f"{self.path} lacks {path.name}; its splits are {', '.join(self.splits) or 'none'}."
            )
        return path


class Reference(NamedTuple):
    """The summary that a document came with, as its author wrote it."""

    id: str
    summary: str


def parse_references(path: Path) -> list[Reference]:
    """References from a file of JSON lines."""
    references = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            record = parse_json(line)
            reference = Reference(str(record["id"]), record["summary"])
        except (ValueError, KeyError, TypeError):
            reference = None
        if reference is None or not isinstance(reference.summary, str):
            raise UserError(f'{path}, line {number}: each line must be {{"id": ..., "summary": ...}}.')
        references.append(reference)
    return references


class DataFolder(PreparedFolder):
    """A folder made by `pyramidions prepare`.

    Its files:

        sentencepiece.model         tokenizer; tokenizer.json where it is one of the library tokenizers
        dict.txt                    fairseq's dictionary: the pieces from id 4 on, where the first ids are
                                    those of `prepare`; our tasks read the tokenizer itself
        manifest.json               counts, lengths, hashes, sizes, settings; written last
        SPLIT.source.{bin,idx}      documents: ids in fairseq's memory-mapped format, each ends in </s>; with
                                    --query-field each begins with its query, which ends in </s>, too; with --tags
                                    each id is that of a token plus the number of pieces times its tag
        SPLIT.target.{bin,idx}      summaries, likewise
        SPLIT.labels.{bin,idx}      with --labels: a number for each heading (0) and sentence (1; 2 if chosen)
        SPLIT.references.jsonl      {"id", "summary"}: the raw summaries, in the order of the indices
    """

    @property
    def sentencepiece_path(self) -> Path:
        return self.path / SentencePieceTokenizer.file_name

    @property
    def tokenizer_path(self) -> Path:
        other = self.path / JsonTokenizer.file_name
        return other if other.exists() else self.sentencepiece_path

    def references_path(self, split: str) -> Path:
        return self.path / f"{split}.references.jsonl"

    def prefix(self, split: str, side: Side) -> Path:
        """Path of a split's token files without `.bin` and `.idx`, whether they exist or not."""
        return self.path / f"{split}.{side}"

    def tokens_path(self, split: str, side: Side) -> Path:
        return Path(f"{self.prefix(split, side)}.bin")

    def has_labels(self, split: str) -> bool:
        """Whether the sentences of a split are labelled; a label file that its manifest lists may be missing."""
        listed = self.manifest["files"] if self.manifest_path.exists() else {}
        name = self.tokens_path(split, "labels").name
        return name in listed or (self.path / name).exists()

    @property
    def has_queries(self) -> bool:
        """Whether its documents have queries; False without a manifest."""
        return self.manifest_path.exists() and bool(self.manifest["settings"].get("queries", False))

    @property
    def has_tags(self) -> bool:
        """Whether the words of its documents are tagged; False without a manifest."""
        return self.manifest_path.exists() and "tags" in self.manifest["settings"]

    def indexed(self, split: str, side: Side) -> str:
        """Path of a split's token files without `.bin` and `.idx`, as fairseq wants it."""
        prefix = self.prefix(split, side)
        for ending in (".bin", ".idx"):
            self._require(Path(f"{prefix}{ending}"))
        return str(prefix)

    def tokenizer(self) -> Tokenizer:
        path = self._require(self.tokenizer_path)
        said = self.manifest["settings"].get(SPECIAL_TOKENS) if self.manifest_path.exists() else None
        return Tokenizer.from_file(path, Numbering.recorded(said))

    def references(self, split: str) -> list[Reference]:
        """The raw summaries of a split; the position in the list is the index in the token files."""
        return parse_references(self.existing_references(split))

    def existing_references(self, split: str) -> Path:
        return self._require(self.references_path(split))

    def verify_tokenizer(self) -> None:
        """Compare the tokenizer's hash with the manifest's, if there is a manifest."""
        if self.manifest_path.exists():
            self.compare([self.tokenizer_path.name], hashes=True)

    def verify(self, split: str, *, hashes: bool = False) -> None:
        """Look at every file of a split: with the manifest, each index with its tokens, and the number of documents."""
        sides: list[Side] = ["source", "target"]
        if self.has_labels(split):
            sides.append("labels")
        prefixes = [self.indexed(split, side) for side in sides]
        known = self.manifest["splits"].get(split)
        if known is not None:
            names = [f"{split}.{side}{ending}" for side in sides for ending in (".idx", ".bin")]
            self.compare([*names, self.references_path(split).name], hashes)
        documents, summaries, *labels = (len(IndexedReader(prefix)) for prefix in prefixes)
        if labels and labels[0] != documents:
            raise UserError(
                f"{self.path} must hold labels for each of the {documents} documents in {split!r}, but does not."
            )
        if summaries != documents:
            raise UserError(f"{self.path} holds {documents} documents but {summaries} summaries in {split!r}.")
        if known is not None and documents != known["documents"]:
            raise UserError(
                f"{self.path} holds {documents} documents in {split!r}, but its manifest says {known['documents']}."
            )

    def _check(self, manifest: dict[str, Any]) -> None:
        settings = manifest.get("settings")
        if isinstance(settings, dict) and CHARACTERS in settings:
            raise UserError(f"{self.path} holds characters, which only --task character_language_modeling reads.")
        if lacking := _lacking(manifest):
            raise UserError(f"{self.manifest_path} must be as written by `pyramidions prepare`, but lacks {lacking}.")

    @property
    def splits(self) -> list[str]:
        return [split for split in SPLITS if self.references_path(split).exists()]


def refuse_foreign(path: Path) -> None:
    """Raise a UserError where no data folder can be made, or other files would be lost."""
    if file := next((parent for parent in path.absolute().parents if parent.is_file()), None):
        raise UserError(f"The data folder {path} must lie in a folder, but {file} is a file.")
    if path.exists() and not path.is_dir():
        raise UserError(f"The data folder {path} must be a folder, but is a file.")
    if path.is_dir() and any(path.iterdir()) and not DataFolder(path).manifest_path.exists():
        raise UserError(f"{path} holds files that `pyramidions prepare` did not make; give another folder.")


def refuse_to_lose(path: Path) -> None:
    """Raise a UserError where a folder that is to be replaced holds what `prepare` did not make."""
    manifest = DataFolder(path).manifest_path
    try:
        made = {*parse_json(manifest.read_bytes())["files"], manifest.name}
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{path} must be replaced, but its {manifest.name} is damaged or of another program; remove the folder, or "
            "give another."
        ) from None
    # Systems leave hidden files of their own.
    inside = (each for each in path.iterdir() if each.is_dir() or not each.name.startswith("."))
    if others := sorted(each.name for each in inside if each.name not in made):
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        raise UserError(
            f"{path} must be replaced, but holds {others[0]}{more}, which `pyramidions prepare` did not make; move "
            "that away, or give another folder."
        )


def _lacking(manifest: dict[str, Any]) -> str | None:
    """The first entry of a manifest that is missing or of another kind, such as `splits.train.documents`."""
    kinds: dict[tuple[str, ...], type | tuple[type, ...]] = {
        ("settings",): dict,
        ("vocab_size",): int,
        ("inputs",): dict,
        ("splits",): dict,
        ("files",): dict,
    }
    if "sizes" in manifest:  # 0.1.0 wrote none
        kinds["sizes",] = dict
    for entry, of_each in (("files", str), ("sizes", int)):
        listed = manifest.get(entry)
        kinds |= {(entry, file): of_each for file in (listed if isinstance(listed, dict) else ())}
    splits = manifest.get("splits")
    for split in splits if isinstance(splits, dict) else ():
        kinds["inputs", split, "skipped"] = int
        kinds["splits", split, "documents"] = int
        for lengths in _LENGTHS:
            kinds["splits", split, lengths, "mean"] = (int, float)
            kinds["splits", split, lengths, "max"] = int
    for names, kind in kinds.items():
        value: Any = manifest
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            return ".".join(names)
    return None

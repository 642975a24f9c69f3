"""Documents with their summaries, one at a time, from records of any known shape or of named fields."""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.optional import what_brings
from pyramidions.data.alignment import alignment
from pyramidions.data.folder import SPLITS
from pyramidions.data.ids import UniqueIds
from pyramidions.data.papers import paper_files
from pyramidions.documents.record_fields import (
    PLAIN,
    SECTION_FIELDS,
    FieldNames,
    id_field,
    id_of,
    joined,
    sectioned_text,
    shape,
    text_of,
)
from pyramidions.documents.records import (
    EXPECTED_FILES,
    FILE_ENDINGS,
    Record,
    Records,
    hugging_face_splits,
    known_ending,
    open_records,
)
from pyramidions.extract.fitness import without_back_matter
from pyramidions.files.progress import progress_bar
from pyramidions.text.language import Language
from pyramidions.text.normalization import normalize


class Document(NamedTuple):
    """A document, its summary, its query if the corpus has queries, and its language if that is known."""

    id: str
    source: str
    target: str
    query: str | None = None
    language: str | None = None


def known_fields(
    source: str | None, target: str | None, name: str | None, query: str | None = None
) -> FieldNames | None:
    """Return the fields that were named, and the plain names of the others; None if none was named."""
    if source is None and target is None and name is None and query is None:
        return None
    fields = FieldNames(source or PLAIN.source, target or PLAIN.target, name, query)
    if fields.source == fields.target:
        raise UserError(f"--source-field and --target-field must name two fields, but both are {fields.source!r}.")
    for option, other in (("--source-field", fields.source), ("--target-field", fields.target)):
        if query == other:
            raise UserError(f"--query-field and {option} must name two fields, but both are {query!r}.")
    return fields


def check_config(config: str | None, names: Iterable[str]) -> None:
    """Raise a UserError if a configuration is given and an input is a file."""
    if config is not None and (files := [name for name in names if Path(name).is_file()]):
        raise UserError(f"--config is for Hugging Face datasets, but {files[0]} is a file.")


@dataclass(eq=False)
class Corpus:
    """The documents of one split. Iterating reads them anew each time and checks every one.

    The name is a path ending in `.jsonl`, `.txt` (JSON lines too, as in the release), either with `.gz` or `.xz`
    behind, or in `.parquet`; otherwise that of a Hugging Face dataset or of a folder that holds one.
    """

    name: str
    split: str = "train"  # `train`, `valid` or `test`; read by Hugging Face datasets only
    _: KW_ONLY
    fields: FieldNames | None = None  # None to know them by their usual names
    config: str | None = None  # name of the dataset's configuration, where it has several
    skip_empty: bool = False  # leave out documents with an empty source, summary or query instead of refusing them
    number_repeated_ids: bool = False  # make repeated ids unique, as `a`, `a#2`, `a#3`, instead of refusing them
    sections: bool = False  # take a document from the `sections` of its record, if there are any (`sectioned_text`)
    language: str | None = None  # of the documents, an ISO 639-1 code; None to detect it
    trim_summaries: bool = False  # leave out what stands behind a summary, such as keywords (`without_back_matter`)
    # Opens what is read, where that is not what the name says; the name is then shown only.
    records: Callable[[], Records] | None = None

    def __post_init__(self) -> None:
        # Of the last iteration: empty documents that it left out, summaries that it cut, and documents that it left out
        # since they do not cover their summaries.
        self.skipped = self.trimmed = self.misaligned = 0
        self._aligned: float | None = None
        self._covers = bytearray()  # whether each document that is not empty does, as far as they were read
        self.language = None if self.language is None else Language(self.language).code

    def __iter__(self) -> Iterator[Document]:
        return (document for document, _ in self.with_records())

    def covering(self, more_than: float) -> "Corpus":
        """Return the same documents but those that cover no more than this share of their summaries (`alignment`)."""
        corpus = copy(self)
        corpus._aligned, corpus._covers = more_than, bytearray()
        return corpus

    def fields_read(self, document: Document, record: Record) -> dict[str, Any]:
        """Return the fields of a record from which the document is read again, with or without sections."""
        value = record.value
        fields = self.fields or shape(value)
        # A text that sections stand for may be missing, or be none.
        texts = (fields.source, fields.target, fields.query)
        names = [name for name in texts if name is not None and joined(value.get(name)) is not None]
        if sectioned_text(value, record.place) is not None:
            names += SECTION_FIELDS
        return {id_field(value, self.named_id): document.id} | {name: value[name] for name in names}

    @property
    def named_id(self) -> str | None:
        return self.fields.id if self.fields else None

    @property
    def has_queries(self) -> bool:
        return self.fields is not None and self.fields.query is not None

    def size(self) -> tuple[int, str]:
        """Size of the input and its unit: bytes on disk (`B`) or `rows`."""
        records = self._open()
        return records.size, records.unit

    def shown(self, work: str) -> Iterator[Document]:
        """Yield the documents under a progress bar that names the ``work``."""
        done = 0
        with progress_bar(f"{work} {Path(self.name).name}", *self.size()) as bar:
            for document, record in self.with_records():
                yield document
                bar.update(record.progress - done)
                done = record.progress
            bar.update(bar.total - done)

    def with_records(self) -> Iterator[tuple[Document, Record]]:
        """Yield the documents, each with the record that it was read from."""
        self.skipped = self.trimmed = self.misaligned = number = 0
        ids = UniqueIds(self.number_repeated_ids)
        for record in self._records():
            document = self._document(record)
            if document is None:
                self.skipped += 1
                continue
            number += 1
            if self._aligned is not None and not self._is_aligned(number, document, self._aligned):
                self.misaligned += 1
                continue
            yield document._replace(id=ids.add(document.id, record.place)), record
        if not ids:
            raise UserError(f"{self.name} has no documents{' that cover their summaries' if self.misaligned else ''}.")

    def _is_aligned(self, number: int, document: Document, threshold: float) -> bool:
        if number > len(self._covers):
            self._covers.append(alignment(document.source, document.target, document.language) > threshold)
        return bool(self._covers[number - 1])

    def _open(self) -> Records:
        return self.records() if self.records else open_records(self.name, self.split, self.config)

    def _records(self) -> Iterator[Record]:
        try:
            yield from self._open().read()
        except OSError as error:
            # The caller may be writing at the same time; this error is about the input.
            raise UserError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def _document(self, record: Record) -> Document | None:
        fields = self.fields or shape(record.value)
        of_sections = sectioned_text(record.value, record.place) if self.sections else None
        texts = [fields.target, fields.query, *([] if of_sections is not None else [fields.source])]
        if self.skip_empty and any(name in record.value and record.value[name] is None for name in texts):
            return None
        source = text_of(record, fields.source, "--source-field") if of_sections is None else of_sections
        target = text_of(record, fields.target, "--target-field")
        query = None if fields.query is None else text_of(record, fields.query, "--query-field")
        for field, text in ((fields.source, source), (fields.target, target), (fields.query, query)):
            # The first characters almost always suffice.
            if text is not None and not normalize(text[:200]) and not normalize(text):
                if self.skip_empty:
                    return None
                raise UserError(f"{record.place}: the field {field!r} is empty.")
        name = id_of(record, self.named_id)
        if self.trim_summaries:
            whole, target = target, without_back_matter(target)
            self.trimmed += target != whole
        return Document(str(record.number) if name is None else name, source, target, query, self.language)


# Of files that the library `datasets` reads from a folder without a split in its names.
_DATASET_ENDINGS = (".parquet", ".arrow", ".json", ".jsonl", ".csv", ".gz", ".xz", ".zst", ".zip", ".py")


def find_splits(name: str, config: str | None = None) -> dict[str, str]:
    """Return the input of each split in a folder of files or in a Hugging Face dataset.

    Files are named `train`, `valid` (or `validation`, or `val` as in the release) and `test`.
    """
    if Path(name).is_file():
        raise UserError(
            f"INPUT must be a folder or a dataset, but is the file {name}; give it with --train, --valid or --test."
        )
    if not Path(name).is_dir():
        return _of_dataset(name, config)
    if found := _split_files(Path(name)):
        return found
    papers = paper_files(Path(name))
    others = any(path.suffix in _DATASET_ENDINGS and path not in papers for path in Path(name).rglob("*"))
    # Whether an archive holds a paper is not known without unpacking it.
    if any(path.suffix != ".gz" for path in papers) or (papers and not others):
        return {}
    if not others:
        raise UserError(f"The folder {name} must hold {EXPECTED_FILES}, but holds no such file.")
    if find_spec("datasets") is None:
        raise UserError(
            f"The folder {name} must hold {EXPECTED_FILES}, but holds no such file; and the library datasets, which "
            f"reads other folders, is not installed: {what_brings('datasets', 'train')}."
        )
    return _of_dataset(name, config)


def _split_files(folder: Path) -> dict[str, str]:
    stems = {**{split: split for split in SPLITS}, "validation": "valid", "val": "valid"}
    found: dict[str, str] = {}
    # Paths that are not regular files are reported when opened, not skipped.
    for path in sorted(folder.iterdir()):
        ending = known_ending(path, FILE_ENDINGS)
        split = stems.get(path.name[: -len(ending)]) if ending else None
        if split in found:
            raise UserError(f"{folder} must hold one file a split, but holds {found[split]} and {path}.")
        if split is not None:
            found[split] = str(path)
    return {split: found[split] for split in SPLITS if split in found}


def _of_dataset(name: str, config: str | None) -> dict[str, str]:
    found = hugging_face_splits(name, config)
    if not found:
        raise UserError(f"The dataset {name} must have a split named train, validation or test, but has none.")
    return dict.fromkeys(found, name)

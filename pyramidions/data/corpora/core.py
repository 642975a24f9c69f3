"""What is known of a corpus: its shapes, where it comes from, its licence and its size."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyramidions.data.corpora.pairs import ReadPair
from pyramidions.documents.record_fields import FieldNames
from pyramidions.documents.records import Record

#: Documents of each split.
Sizes = Mapping[str, int]
#: How the names of tables end.
TABLES = (".parquet", ".csv")


@dataclass(frozen=True)
class Form:
    """A shape in which the documents of a corpus come.

    Attributes:
        fields: of a document.
        example: a file of it, for errors.
        files: pattern of the paths of its files, JSON lines or tables. `{split}` and `{config}` stand for names, `*`
            for any text, and an archive in a path is a folder.
        splits: `train`, `valid` and `test`, or some of them, by their names in the files.
        in_parts: a split may have several files.
        configs: configurations that come in this form; all if empty.
        fetched: names of the files to fetch from the hub; none if Hugging Face datasets reads what is there.
        documents: makes documents of a record, where a record is not one.
        columns: that a record must have; those of the fields if empty.
        summaries: pattern of the files of summaries, where those lie apart; they begin with the same name before a dot.
        pairs: reads a file of documents and that of their summaries.
    """

    fields: FieldNames
    example: str
    files: str
    splits: Mapping[str, str] = field(default_factory=lambda: {split: split for split in ("train", "valid", "test")})
    in_parts: bool = False
    configs: tuple[str, ...] = ()
    fetched: tuple[str, ...] = ()
    documents: Callable[[Record], Iterator[Record]] | None = None
    columns: tuple[str, ...] = ()
    summaries: str = ""
    pairs: ReadPair | None = None

    @property
    def is_tables(self) -> bool:
        """Whether the files are tables."""
        return self.example.endswith(TABLES)

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that a record must have."""
        return self.columns or tuple(name for name in self.fields if name is not None)

    def has(self, config: str) -> bool:
        """Return whether a configuration comes in this form."""
        return not self.configs or config in self.configs


@dataclass(frozen=True)
class KnownCorpus:
    """A corpus of the field.

    Attributes:
        name: as the user gives it.
        paper: authors and year.
        home: where people find it.
        licence: as its owners state it.
        sizes: documents of each split, by configuration; the first is the default, "" the name of an only one.
        forms: the first is that of the hub, if the corpus is there.
        hub: OWNER/NAME on the Hugging Face hub.
        download: bytes that are fetched from there, about.
        held_out: share of the train documents that become the valid split, where there is none.
        counted: what the sizes count.
    """

    name: str
    paper: str
    home: str
    licence: str
    sizes: Mapping[str, Sizes]
    forms: tuple[Form, ...]
    hub: str | None = None
    download: int = 0
    held_out: float = 0.0
    counted: str = "documents"

    @property
    def configs(self) -> list[str]:
        """The names of its configurations, the default first; none where there is only one without a name."""
        return [name for name in self.sizes if name]


def facts(corpus: KnownCorpus, config: str, release: Path | None) -> list[str]:
    """Return a line each for where a corpus comes from, its licence, its documents, and the size of the download."""
    named = f"{corpus.name}, configuration {config}" if len(corpus.configs) > 1 else corpus.name
    return [
        f"{named} ({corpus.paper}): from {_place(corpus, release)}",
        f"  licence: {corpus.licence}",
        f"  {corpus.counted}: {_documents(corpus, config, release)}",
        f"  download: {_download(corpus, release)}",
    ]


def data_size(size: int) -> str:
    """Return a number of bytes as people say it: `114 MB`, `3.6 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _place(corpus: KnownCorpus, release: Path | None) -> str:
    if release is not None:
        return str(release)
    return f"{corpus.hub} on the Hugging Face hub" if corpus.hub else corpus.home


def _documents(corpus: KnownCorpus, config: str, release: Path | None) -> str:
    sizes = corpus.sizes[config]
    here = corpus.forms[0].splits if corpus.hub and release is None else sizes
    counts = [f"{count:,} {split}" for split, count in sizes.items() if split in here]
    if corpus.held_out:
        counts[0] += f", {corpus.held_out:.0%} of which become valid by a hash of the text"
    elsewhere = [f"{count:,} {split}" for split, count in sizes.items() if split not in here]
    return "; ".join([*counts, *(f"{each} only with --release" for each in elsewhere)])


def _download(corpus: KnownCorpus, release: Path | None) -> str:
    if release is not None:
        return "none"
    if corpus.hub is None:
        return "none: --release is needed"
    return f"about {data_size(corpus.download)}, if it is not in the cache"

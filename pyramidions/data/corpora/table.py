"""The corpora that users name: what is known of each, read from `corpora.toml`."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.corpora import shapes
from pyramidions.data.folder import SPLITS, DataFolder
from pyramidions.documents.record_fields import FieldNames
from pyramidions.documents.records import Record

#: How the names of tables end.
TABLES = (".parquet", ".csv")
# The names of splits in files.
_SPLITS = {
    "short": {"train": "train", "valid": "val", "test": "test"},
    "dev": {"train": "train", "valid": "dev", "test": "test"},
    "hub": {"train": "train", "valid": "validation", "test": "test"},
}


@dataclass(frozen=True)
class Form:
    """A shape in which the documents of a corpus come."""

    fields: FieldNames  # of a document
    example: str  # a file of it, for errors
    # Patterns of the paths of its files, JSON lines or tables; the first that matches counts. `{split}` and `{config}`
    # stand for names, `*` for any text, and an archive in a path is a folder.
    files: tuple[str, ...]
    # `train`, `valid` and `test`, or some of them, by their names in the files.
    splits: Mapping[str, str] = field(default_factory=lambda: {split: split for split in SPLITS})
    in_parts: bool = False  # a split may have several files
    configs: tuple[str, ...] = ()  # configurations that come in this form; all if empty
    # Names of the files to fetch from the hub; none if Hugging Face datasets reads what is there.
    fetched: tuple[str, ...] = ()
    # Makes documents of a record, where a record is not one.
    documents: Callable[[Record], Iterator[Record]] | None = None
    columns: tuple[str, ...] = ()  # that a record must have; those of the fields if empty
    # Pattern of the files of summaries, where those lie apart; they begin with the same name before a dot.
    summaries: str = ""
    pairs: shapes.ReadPair | None = None  # reads a file of documents and that of their summaries

    @property
    def is_tables(self) -> bool:
        return self.example.endswith(TABLES)

    @property
    def required(self) -> tuple[str, ...]:
        return self.columns or tuple(name for name in self.fields if name is not None)

    def has(self, config: str) -> bool:
        return not self.configs or config in self.configs


@dataclass(frozen=True)
class KnownCorpus:
    """A corpus of the field."""

    name: str  # as the user gives it
    paper: str  # authors and year
    home: str  # where people find it
    licence: str  # as its owners state it
    # Documents of each split, by configuration; the first is the default, "" the name of an only one.
    sizes: Mapping[str, Mapping[str, int]]
    forms: tuple[Form, ...]  # the first is that of the hub, if the corpus is there
    hub: str | None = None  # OWNER/NAME on the Hugging Face hub
    download: int = 0  # bytes that are fetched from there, about
    held_out: float = 0.0  # share of the train documents that become the valid split, where there is none
    counted: str = "documents"  # what the sizes count

    @property
    def configs(self) -> list[str]:
        """The names of its configurations, the default first; none where there is only one without a name."""
        return [name for name in self.sizes if name]


def _form(values: dict[str, Any]) -> Form:
    found: dict[str, Any] = {name: tuple(of) if isinstance(of, list) else of for name, of in values.items()}
    found["fields"] = FieldNames(**{"id": None, **values["fields"]})
    found |= {name: getattr(shapes, values[name]) for name in ("documents", "pairs") if name in values}
    if isinstance(splits := values.get("splits"), str):
        found["splits"] = _SPLITS[splits]
    return Form(**found)


def _corpora() -> dict[str, KnownCorpus]:
    table = tomllib.loads(files("pyramidions.data.corpora").joinpath("corpora.toml").read_text(encoding="utf-8"))
    return {
        name: KnownCorpus(name, **{**values, "forms": tuple(map(_form, values["forms"]))})
        for name, values in table.items()
    }


#: All known corpora by name.
KNOWN = _corpora()


def find_corpus(name: str, config: str | None = None) -> KnownCorpus | None:
    """Return the corpus of a name, or of its name on the hub; None for what is no such name, or a path of documents."""
    corpus = KNOWN.get(name)
    # What `prepare NAME --out NAME` made is no input.
    if Path(name).exists() and not (corpus and DataFolder(name).manifest_path.exists()):
        if corpus is not None:
            note(f"{name} is taken for the path here, not for the corpus of this name")
        return None
    if corpus is None and "/" not in name:
        near = "".join(f"; did you mean {other}?" for other in get_close_matches(name.lower(), KNOWN, 1))
        raise UserError(
            f"{name} must be a file, a folder, OWNER/NAME on the hub or a known corpus ({', '.join(KNOWN)}), but is "
            f"none{near or '.'}"
        )
    return corpus or next((each for each in KNOWN.values() if each.hub == name and _is_alike(each, config)), None)


def _is_alike(corpus: KnownCorpus, config: str | None) -> bool:
    """Return whether the name on the hub stands for the corpus: files to fetch may be one of several corpora's."""
    return not corpus.forms[0].fetched and (config is None or config in corpus.configs)


def facts(corpus: KnownCorpus, config: str, release: Path | None) -> list[str]:
    """Return a line each for where a corpus comes from, its licence, its documents, and the size of the download."""
    named = f"{corpus.name}, configuration {config}" if len(corpus.configs) > 1 else corpus.name
    place = release or (f"{corpus.hub} on the Hugging Face hub" if corpus.hub else corpus.home)
    download = f"about {data_size(corpus.download)}, if it is not in the cache"
    if release is not None or corpus.hub is None:
        download = "none" if release is not None else "none: --release is needed"
    return [
        f"{named} ({corpus.paper}): from {place}",
        f"  licence: {corpus.licence}",
        f"  {corpus.counted}: {_documents(corpus, config, release)}",
        f"  download: {download}",
    ]


def data_size(size: int) -> str:
    """Return a number of bytes as people say it: `114 MB`, `3.6 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _documents(corpus: KnownCorpus, config: str, release: Path | None) -> str:
    sizes = corpus.sizes[config]
    here = corpus.forms[0].splits if corpus.hub and release is None else sizes
    counts = [f"{count:,} {split}" for split, count in sizes.items() if split in here]
    if corpus.held_out:
        counts[0] += f", {corpus.held_out:.0%} of which become valid by a hash of the text"
    elsewhere = [f"{count:,} {split}" for split, count in sizes.items() if split not in here]
    return "; ".join([*counts, *(f"{each} only with --release" for each in elsewhere)])

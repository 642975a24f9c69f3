"""The documents of a known corpus: from the hub, or from files on this machine."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.data.corpora.release import ARCHIVE, ReleaseFile, release_files
from pyramidions.data.corpora.shapes import Pair, open_pairs
from pyramidions.data.corpora.table import TABLES, Form, KnownCorpus
from pyramidions.data.folder import SPLITS
from pyramidions.data.ids import id_hash
from pyramidions.data.readers import Corpus
from pyramidions.documents.record_fields import FieldNames, joined
from pyramidions.documents.records import Record, Records, open_lines, open_records, open_tables
from pyramidions.files.hub import HubName, fetch

#: What opens the records of each split.
Openers = Mapping[str, Callable[[], Records]]


class Reading(NamedTuple):
    """How a corpus is read."""

    corpus: KnownCorpus  # what is read
    config: str  # its configuration
    form: Form  # the shape of its records
    splits: Openers  # what opens the records of each split

    def documents(self, split: str, **options: Any) -> Corpus:
        """Return the documents of a split, with further options of a `Corpus`.

        Empty ones, which all these corpora may have, are left out and counted.
        """
        known: dict[str, Any] = {"fields": self.form.fields, "skip_empty": True, "records": self.splits[split]}
        return Corpus(self.corpus.name, split, **known, **options)

    def about(self) -> dict[str, str | None]:
        """Return where the documents come from, for the manifest; a form of its own differs from the hub's files."""
        corpus = self.corpus
        hub = corpus.hub if self.form.example == corpus.forms[0].example else None
        return {"name": corpus.name, "config": self.config or None, "hub": hub, "licence": corpus.licence}


def configuration(corpus: KnownCorpus, asked: str | None) -> str:
    """Return the configuration that was asked for, or the default."""
    if asked is None or asked in corpus.configs:
        return asked or next(iter(corpus.sizes))
    if not corpus.configs:
        raise UserError(f"--config is not an option of {corpus.name}, which has no configurations, but is {asked}.")
    raise UserError(f"--config must be one of {', '.join(corpus.configs)} for {corpus.name}, but is {asked}.")


def read_corpus(corpus: KnownCorpus, config: str, release: Path | None) -> Reading:
    """Return how a corpus is read, without reading it."""
    reading = _from_hub(corpus, config) if release is None else _from_release(corpus, config, release)
    opened = {split: partial(_documents, corpus, reading.form, opens) for split, opens in reading.splits.items()}
    if corpus.held_out and "train" in opened:
        whole = opened["train"]
        parts = {name: partial(_held_out, whole, reading.form.fields, corpus.held_out, name) for name in SPLITS[:2]}
        opened = {**opened, **parts}
    return reading._replace(splits={split: opened[split] for split in SPLITS if split in opened})


def _from_hub(corpus: KnownCorpus, config: str) -> Reading:
    form = corpus.forms[0]
    if corpus.hub is None or not form.has(config):
        named = f"The configuration {config} of {corpus.name}" if corpus.configs else corpus.name
        raise UserError(
            f"{named} is not on the hub in a form that can be read: get it from {corpus.home}, and give the folder "
            "with --release."
        )
    if not form.fetched:
        splits = [split for split in form.splits if split in corpus.sizes[config]]
        of_hub = {split: partial(open_records, corpus.hub, split, config or None) for split in splits}
        return Reading(corpus, config, form, of_hub)
    name = HubName(corpus.hub)
    # All passes over the documents read the same commit.
    files = cache(lambda: release_files(fetch(name, form.fetched, kind="dataset")))
    opened = {split: partial(_fetched, name, files, form, config, split) for split in form.splits}
    return Reading(corpus, config, form, opened)


def _fetched(name: HubName, files: Callable[[], list[ReleaseFile]], form: Form, config: str, split: str) -> Records:
    found = _matching(files(), form, config, name)
    if split not in found:
        raise UserError(f"{name} on the hub must hold the {split} split in files such as {form.example}, but does not.")
    return found[split]()


def _from_release(corpus: KnownCorpus, config: str, release: Path) -> Reading:
    if not release.is_dir() and not (release.is_file() and release.suffix == ARCHIVE):
        raise UserError(f"--release must be a folder or a {ARCHIVE} file, but {release} is neither.")
    files = release_files(release)
    forms = [form for form in corpus.forms if form.has(config)]
    for form in forms:
        if found := _matching(files, form, config, release):
            return Reading(corpus, config, form, found)
    examples = " or ".join(dict.fromkeys(form.example for form in forms))
    raise UserError(f"--release must hold the files of {corpus.name}, such as {examples}, but {release} holds none.")


def _matching(files: list[ReleaseFile], form: Form, config: str, place: Path | HubName) -> Openers:
    return next((found for pattern in form.files if (found := _by(pattern, files, form, config, place))), {})


def _by(pattern: str, files: list[ReleaseFile], form: Form, config: str, place: Path | HubName) -> Openers:
    """Return what opens the files of a release whose paths have the pattern."""
    found: dict[str, Callable[[], Records]] = {}
    for split, name in form.splits.items():
        # Only BigPatent joins its configurations, each a letter.
        path = pattern.format(split=name, config="?" if config == "all" else config)
        of_split = [file for file in files if file.matches(path)]
        names = [file.lines.name for file in of_split]
        if len(names) > 1 and not form.in_parts:
            raise UserError(f"{place} must hold one {split} split, but holds {' and '.join(names[:2])}.")
        if names:
            summaries = [file for file in files if form.pairs and file.matches(form.summaries.format(split=name))]
            found[split] = _opener(form, of_split, summaries)
    return found


def _opener(form: Form, files: list[ReleaseFile], summaries: list[ReleaseFile]) -> Callable[[], Records]:
    if form.pairs:
        return partial(open_pairs, _paired(files, summaries), form.pairs)
    if not form.is_tables:
        return partial(open_lines, [file.lines for file in files])
    names = [file.lines.name for file in files]
    if packed := [each for each in names if not (each.endswith(TABLES) and Path(each).is_file())]:
        raise UserError(f"{packed[0]} must be unpacked: tables are read from files of their own.")
    return partial(open_tables, names)


def _paired(documents: list[ReleaseFile], summaries: list[ReleaseFile]) -> list[Pair]:
    by_stem = {summary.stem: summary.lines for summary in summaries}
    if missing := [document.lines.name for document in documents if document.stem not in by_stem]:
        raise UserError(f"The release must hold a summary of {missing[0]}, but holds none.")
    return [(document.lines, by_stem[document.stem]) for document in documents]


def _documents(corpus: KnownCorpus, form: Form, opens: Callable[[], Records]) -> Records:
    """Open records, look for their columns, and make documents of them."""
    records = opens()

    def read() -> Iterator[Record]:
        for record in records.read():
            # The reader of documents refuses what is no object.
            if not isinstance(record.value, dict):
                yield record
                continue
            if missing := [name for name in form.required if name not in record.value]:
                columns = ", ".join(map(repr, record.value)) or "none"
                raise UserError(
                    f"{record.place}: {corpus.name} must have the column {missing[0]!r}, but its columns are {columns}."
                )
            yield from form.documents(record) if form.documents else (_without_nulls(record, form.fields),)

    return records._replace(read=read)


def _without_nulls(record: Record, fields: FieldNames) -> Record:
    """Return a record with empty texts in place of nulls, which stand for them in tables."""
    nulls = [name for name in (fields.source, fields.target) if record.value[name] is None]
    return record._replace(value=record.value | dict.fromkeys(nulls, "")) if nulls else record


def _held_out(opens: Callable[[], Records], fields: FieldNames, share: float, split: str) -> Records:
    """Open the train records that are held out for `valid`, or for `train` the others.

    A hash of the text decides, so that the same text never is in both.
    """
    records = opens()

    def read() -> Iterator[Record]:
        for record in records.read():
            text = joined(record.value.get(fields.source)) if isinstance(record.value, dict) else None
            is_held = text is not None and id_hash(text) < share * 2**64
            if is_held is (split == "valid"):
                yield record

    return records._replace(read=read)

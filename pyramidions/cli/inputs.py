"""What `prepare` reads: files, a dataset, or a corpus by name."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.cli.options import option

if TYPE_CHECKING:
    from pyramidions.data.corpora.reading import Reading
    from pyramidions.data.corpora.table import KnownCorpus
    from pyramidions.data.readers import Corpus


class Inputs(NamedTuple):
    """The documents of `prepare`."""

    # Makes the documents of each split, given whether `sections` of records are read.
    corpora: dict[str, "Callable[..., Corpus]"]
    about: dict[str, Any] | None  # the known corpus that they come from, for the manifest; None for others


def find_inputs(
    name: str | None,
    files: Mapping[str, str],
    release: Path | None,
    *,
    config: str | None,
    skip_empty: bool,
    number_repeated_ids: bool,
    language: str | None = None,
    **fields: str | None,
) -> Inputs:
    """Return the documents of `prepare`; the facts about a known corpus are shown at once.

    The ``files`` of splits win over those of the input, ``name``; beside a corpus with queries, theirs are in `query`.
    The ``fields`` are options that name fields of records.
    """
    from pyramidions.data.folder import SPLITS
    from pyramidions.data.papers import open_papers
    from pyramidions.data.readers import Corpus, check_config, find_splits, known_fields

    corpus = _known(name, config, release, [each for each, value in fields.items() if value is not None])
    made: dict[str, Callable[..., Corpus]] = {}
    about = None
    papers = False
    if corpus is None:
        found = find_splits(name, config) if name else {}
        papers = name is not None and not found
        names = {**found, **files}
        if papers and config is not None:
            raise UserError(f"--config is for Hugging Face datasets, but {name} is a folder of papers.")
        check_config(config, (found or files).values())
    else:
        reading = _reading(corpus, config, release)
        made |= {
            split: partial(reading.documents, split, number_repeated_ids=number_repeated_ids, language=language)
            for split in reading.splits
        }
        about = reading.about() | {"splits": [split for split in made if split not in files]}
        names, config = dict(files), None
        if reading.form.fields.query is not None:
            # All splits must have queries, or none.
            fields = {**fields, "query_field": "query"}
    options: dict[str, Any] = {
        "config": config,
        "skip_empty": skip_empty,
        "number_repeated_ids": number_repeated_ids,
        "language": language,
    }
    # The order of the options is that of the command line.
    named = known_fields(*(fields[f"{each}_field"] for each in ("source", "target", "id", "query")))
    if papers:
        if named is not None:
            raise UserError("Options that name fields are for records, but INPUT is a folder of papers.")
        # Notices and corrections have no abstract.
        options["skip_empty"] = True
        opened = {split: partial(open_papers, Path(str(name)), split) for split in SPLITS}
        made |= {
            split: partial(Corpus, str(name), split, records=opens, **options)
            for split, opens in opened.items()
            if opens().size
        }
    made |= {split: partial(Corpus, each, split, fields=named, **options) for split, each in names.items()}
    return Inputs(made, about)


def _known(name: str | None, config: str | None, release: Path | None, fields: list[str]) -> "KnownCorpus | None":
    from pyramidions.data.corpora.table import KNOWN, find_corpus

    if release is not None and name not in KNOWN:
        given = "not given" if name is None else name
        raise UserError(f"With --release, INPUT must be one of {', '.join(KNOWN)}, but is {given}.")
    corpus = KNOWN[str(name)] if release is not None else find_corpus(name, config) if name else None
    if corpus is None or not fields:
        return corpus
    if corpus.name != name:
        # A user who names the fields of a dataset on the hub knows it, too.
        return None
    raise UserError(f"{option(fields[0])} is not an option of {corpus.name}, whose fields are known.")


def _reading(corpus: "KnownCorpus", config: str | None, release: Path | None) -> "Reading":
    from pyramidions.base.notes import note
    from pyramidions.data.corpora.reading import configuration, read_corpus
    from pyramidions.data.corpora.table import facts

    asked = configuration(corpus, config)
    for line in facts(corpus, asked, release):
        note(line)
    return read_corpus(corpus, asked, release)

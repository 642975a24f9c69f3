"""What a run was asked for: its arguments, the documents and their splits, and whether they have changed."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError
from pyramidions.data.readers import Corpus, check_config, find_splits, known_fields
from pyramidions.documents.records import FILE_ENDINGS
from pyramidions.files.bounded import file_hash

Stamps = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Arguments:
    """What a run was asked for; the names are those of the command's options, most of them as for `prepare`."""

    documents: str  # a folder or a file, absolute, or the name of a Hugging Face dataset
    kind: str = "auto"  # or a name in `KINDS`
    hours: float | None = None  # most hours of training; None for those of the recipe
    gpus: int | None = None  # that train; 0 for the CPU, None for all that there are
    source_field: str | None = None
    target_field: str | None = None
    id_field: str | None = None
    config: str | None = None
    skip_empty: bool = False
    number_repeated_ids: bool = False
    vocab_size: int | None = None  # number of pieces; None for one that suits the corpus
    seed: int = 1  # of the training
    query_field: str | None = None
    language: str | None = None

    def corpus(self, name: str, split: str, *, sections: bool) -> Corpus:
        """Return the documents of a split."""
        return Corpus(
            near(name),
            split,
            fields=known_fields(self.source_field, self.target_field, self.id_field, self.query_field),
            config=self.config,
            skip_empty=self.skip_empty,
            number_repeated_ids=self.number_repeated_ids,
            language=self.language,
            sections=sections,
            trim_summaries=split != "test",
        )

    def difference(self, recorded: dict[str, Any]) -> str | None:
        """Return in words the first argument in which a recorded run differs; None if there is none."""
        for field in fields(self):
            before, now = recorded.get(field.name), asdict(self)[field.name]
            if before != now:
                name = "DOCUMENTS" if field.name == "documents" else flag_of(field.name)
                return f"{name} was {_shown(before)}, and is {_shown(now)}"
        return None


def absolute(documents: str) -> str:
    """Return a path as an absolute one, and the name of a dataset as it is."""
    return str(Path(documents).absolute()) if Path(documents).exists() else documents


def _shown(value: object) -> str:
    return {"None": "not given", "False": "not given", "True": "given"}.get(str(value), str(value))


def near(name: str) -> str:
    """Return a path inside the working folder relative to it, as users know it; others unchanged."""
    path, here = Path(name), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else name


def find_sources(documents: str, config: str | None) -> dict[str, str]:
    """Return the input of each split of a file, a folder or a Hugging Face dataset; `train` is among them."""
    documents = near(documents)
    if documents.endswith(FILE_ENDINGS) or Path(documents).is_file():
        given = {"train": documents}
    else:
        given = find_splits(documents, config)
    check_config(config, given.values())
    if "train" not in given:
        raise UserError(f"{documents} must have documents to train on, but has no train split.")
    return given


def stamps(documents: str, before: Stamps | None = None) -> Stamps:
    """Return size, time and hash of the files that hold the documents; nothing for a dataset on the hub."""
    if not Path(documents).exists():
        return {}
    found = [Path(name) for name in dict.fromkeys(find_sources(documents, None).values())]
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

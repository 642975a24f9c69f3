"""The texts of the field for language models of characters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.characters import WHOLE
from pyramidions.data.text_streams import TextStream, fetched_text, open_text, streamed_dataset
from pyramidions.documents.records import HUGGING_FACE_SPLITS, hugging_face_splits
from pyramidions.text.alphabets import LETTERS

_MAHONEY = "http://mattmahoney.net/dc/{}.zip"
_CC100 = "https://data.statmt.org/cc-100"


@dataclass(frozen=True)
class KnownText:
    """A text of the field."""

    paper: str  # authors and year
    place: str  # where it comes from
    licence: str  # as its owners state it
    streams: Callable[[str], dict[str, TextStream]]  # returns the streams of a language, by split
    languages: tuple[str, ...]  # the alphabets that it is read in
    settings: Mapping[str, int] = field(default_factory=dict)  # of `CharacterSettings` that are usual for it

    def facts(self, name: str) -> list[str]:
        """Return the lines to print before anything is downloaded."""
        return [f"{name} ({self.paper}): from {self.place}", f"  licence: {self.licence}"]


def _of_mahoney(name: str, characters: str) -> KnownText:
    """Return a text of 100 million characters, of which the last ten million are tested on."""
    address = _MAHONEY.format(name)
    return KnownText(
        "Mahoney 2006",
        address,
        "that of Wikipedia, CC BY-SA",
        lambda _: {WHOLE: fetched_text(address, name)},
        languages=(characters,),
        settings={"valid_characters": 5_000_000},
    )


#: Texts by the names that users give.
TEXTS = {
    "text8": _of_mahoney("text8", "en"),
    "enwik8": _of_mahoney("enwik8", "bytes"),
    "wiki40b": KnownText(
        "Guo et al. 2020",
        "google/wiki40b on the Hugging Face hub, as far as it is needed",
        "that of Wikipedia, CC BY-SA",
        lambda language: {
            split: streamed_dataset("google/wiki40b", language, theirs) for split, theirs in HUGGING_FACE_SPLITS.items()
        },
        languages=tuple(LETTERS),
    ),
    "cc100": KnownText(
        "Conneau et al. 2020",
        f"{_CC100}, as far as it is needed",
        "none of its own; the terms of use of Common Crawl",
        lambda language: {WHOLE: streamed_dataset("text", None, "train", files=f"{_CC100}/{language}.txt.xz")},
        languages=tuple(LETTERS),
    ),
}


def find_text(name: str, language: str) -> KnownText | None:
    """Return the text of a name; None for what is no such name, or a path."""
    text = TEXTS.get(name)
    if text is None:
        return None
    # What `prepare NAME --out NAME` made is no input.
    if Path(name).exists() and not CharacterFolder(name).manifest_path.exists():
        note(f"{name} is taken for the path here, not for the corpus of this name")
        return None
    if language not in text.languages:
        raise UserError(f"`characters` must be {' or '.join(text.languages)} for {name}, but is {language!r}.")
    return text


def open_streams(
    name: str | None, files: Mapping[str, str], config: str | None, record_field: str | None
) -> dict[str, TextStream]:
    """Return the streams of a text that is no known one."""
    streams = _input_streams(name, bool(files), config, record_field)
    if WHOLE in streams and files:
        raise UserError(f"The file {name} becomes all splits, so that --{next(iter(files))} excludes it.")
    return streams | {split: open_text(Path(file), record_field) for split, file in files.items()}


def _input_streams(
    name: str | None, is_split: bool, config: str | None, record_field: str | None
) -> dict[str, TextStream]:
    path = Path(name or "")
    if name is not None and (path.is_dir() or ("/" in name and not path.exists())):
        found = hugging_face_splits(name, config)
        # A train split alone is cut, unless the others are given.
        splits = {"train" if is_split or len(found) > 1 else WHOLE: "train"} if "train" in found else {}
        splits |= {split: HUGGING_FACE_SPLITS[split] for split in found if split != "train"}
        return {split: streamed_dataset(name, config, theirs, record_field) for split, theirs in splits.items()}
    if config is not None:
        raise UserError("--config is for Hugging Face datasets, but INPUT is none.")
    if name is not None and not path.exists():
        raise UserError(
            f"{name} must be a file, a folder, OWNER/NAME on the hub or a known text ({', '.join(TEXTS)}), but is none."
        )
    return {} if name is None else {WHOLE: open_text(path, record_field)}

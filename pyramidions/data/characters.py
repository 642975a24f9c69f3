"""Streams of text to a folder of characters: clean, divide, write.

Memory is bounded by a few parts of the text; words are counted where pieces are trained. An interrupted run leaves the
streams that it cleaned, and its pieces, to the next one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from pyramidions.base.arguments import Range, check_fields
from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.clean_stream import clean_stream, ids_path, is_same
from pyramidions.data.folder import CHARACTERS, SPLITS, refuse_foreign
from pyramidions.data.indexed import IndexedWriter
from pyramidions.data.making import make_folder, part
from pyramidions.data.manifest import holds, work_key, write_manifest
from pyramidions.data.text_streams import TextStream
from pyramidions.data.unigram_pieces import count_words, piece_boundaries, train_pieces
from pyramidions.data.vocabulary import MOST_PIECES
from pyramidions.files.atomic import atomic_file, recover_folder, write_file
from pyramidions.files.progress import with_elapsed
from pyramidions.text.alphabets import Alphabet, Letters, alphabet_of

#: The name of a stream that is cut into all splits.
WHOLE = "whole"
#: Most characters of a split (Nawrot et al. 2023, section 4.1).
TRAIN_CHARACTERS, VALID_CHARACTERS = 400_000_000, 2_000_000
# A manifest holds no larger number.
_Characters = Annotated[int, Range(1, 2**40, below=True)]
_LIBRARY = "sentencepiece"
_BLOCK = 2**20  # characters in memory at a time
_ITEM = 2**16  # characters of an item; fairseq reads items whole


@dataclass(frozen=True)
class CharacterSettings:
    """What decides about a folder of characters, together with the text."""

    characters: str  # the language, whose letters are used, or `bytes`
    # Most characters of each split. None of the test split is all, or where one stream is cut, as many as valid has.
    train_characters: _Characters = TRAIN_CHARACTERS
    valid_characters: _Characters = VALID_CHARACTERS
    test_characters: _Characters | None = None
    pieces: Annotated[int, Range(2, MOST_PIECES)] | None = None  # size of the Unigram model; None for no such model

    def __post_init__(self) -> None:
        alphabet = alphabet_of(self.characters)
        check_fields(self)
        if self.pieces is not None and not isinstance(alphabet, Letters):
            raise UserError(f"`pieces` are of letters, but `characters` is {self.characters!r}.")

    def most(self, split: str) -> int | None:
        """Return the most characters of a split; None for all of them."""
        return getattr(self, f"{split}_characters")

    @property
    def cut(self) -> dict[str, int]:
        """The characters of valid and test where one stream is cut."""
        return {
            "valid": self.valid_characters,
            "test": self.valid_characters if self.test_characters is None else self.test_characters,
        }

    def recorded(self) -> dict[str, Any]:
        most = {split: self.most(split) for split in SPLITS}
        return {CHARACTERS: alphabet_of(self.characters).name, "most": most} | (
            {} if self.pieces is None else {"pieces": self.pieces}
        )


def prepare_characters(
    path: str | Path,
    streams: Mapping[str, TextStream],
    settings: CharacterSettings,
    *,
    workers: int = 1,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> bool:
    """Make a folder of characters, whole or not at all.

    The same text gives the same bytes with any number of workers and interruptions. A folder that already holds it is
    kept; what comes from elsewhere is known by its name then, and not fetched again.

    Args:
        path: the folder to make.
        streams: of splits; or one, named `WHOLE`, whose end becomes valid and test.
        settings: what becomes of the text.
        workers: number of processes that clean.
        overwrite: replace a folder that holds something else.
        about: the known corpus that the text comes from, for the manifest.

    Returns:
        True if the folder was made, False if it was there.
    """
    if not streams:
        raise UserError("At least one of train, valid and test must be given.")
    if settings.pieces is not None and not {"train", WHOLE} & streams.keys():
        raise UserError("Pieces are trained on the train split: give one.")
    path = Path(path)
    recover_folder(path)
    refuse_foreign(path)
    recorded = settings.recorded()
    if sources := {name: stream.source for name, stream in streams.items() if stream.source is not None}:
        recorded["sources"] = sources
    if about is not None:
        recorded["corpus"] = dict(about)
    folder, key = CharacterFolder(path), work_key(recorded, {}, _LIBRARY)

    def fill(folder: CharacterFolder) -> None:
        alphabet = alphabet_of(settings.characters)
        inputs: dict[str, Any] = {}
        texts: dict[str, np.ndarray] = {}
        for name, stream in streams.items():
            whole = settings.train_characters + sum(settings.cut.values())
            most = whole if name == WHOLE else settings.most(name)
            inputs[name] = clean_stream(folder.path, name, stream, alphabet, most, workers)
            _require_letters(stream, alphabet, inputs[name])
            ids = np.memmap(ids_path(folder.path, name), alphabet.dtype, mode="r")
            texts |= _cut(stream, ids, settings) if name == WHOLE else {name: ids}
        splits = {split: _write(folder, split, texts[split], alphabet) for split in SPLITS if split in texts}
        write_file(folder.dictionary_path, "".join(f"{symbol} 1\n" for symbol in alphabet.symbols).encode())
        if settings.pieces is not None:

            def text(split: str) -> Iterator[str]:
                # A list of all words would take 20 times the memory of the text.
                return map(alphabet.decode, _blocks(texts[split]))

            made_of = inputs["train" if "train" in inputs else WHOLE]["sha256"]
            pieces = _pieces(folder, made_of, text("train"), settings.pieces)
            for split in splits:
                splits[split]["pieces"] = _write_boundaries(folder, split, piece_boundaries(text(split), pieces))
        write_manifest(folder, recorded, inputs, splits, alphabet.vocab_size, _LIBRARY)

    return make_folder(folder, lambda: _is_of(folder, streams, recorded), "text", overwrite, key, fill)


def _is_of(folder: CharacterFolder, streams: Mapping[str, TextStream], recorded: dict[str, Any]) -> bool:
    """Return whether a folder was made from this text with these settings."""
    try:
        inputs = folder.manifest["inputs"]
    except UserError:
        return False
    if not holds(folder, recorded, inputs) or inputs.keys() != streams.keys():
        return False
    return all(stream.source is not None or is_same(stream, inputs[name]) for name, stream in streams.items())


def _blocks(ids: np.ndarray) -> Iterator[np.ndarray]:
    return (ids[at : at + _BLOCK] for at in range(0, len(ids), _BLOCK))


def _require_letters(stream: TextStream, alphabet: Alphabet, about: dict[str, Any]) -> None:
    """Raise a UserError where nothing is left of a text; say so where little is."""
    if about["characters"] < 2:
        raise UserError(f"{stream.name} must hold letters of the alphabet {alphabet.language!r}, but holds none.")
    if 2 * about["characters"] < about["read"] and about["is_last"]:
        share = about["characters"] / about["read"]
        note(f"only {share:.0%} of the characters of {stream.name} are left: is its language {alphabet.language!r}?")


def _cut(stream: TextStream, ids: np.ndarray, settings: CharacterSettings) -> dict[str, np.ndarray]:
    """Cut one stream into the splits: train, then valid, then test."""
    sizes = settings.cut
    train = len(ids) - sum(sizes.values())
    if train < 1:
        raise UserError(
            f"{stream.name} must have more than the {sum(sizes.values()):,} characters of valid and test, but has "
            f"{len(ids):,} after cleaning; --valid-characters and --test-characters say how many."
        )
    return dict(zip(SPLITS, np.split(ids, np.cumsum([train, sizes["valid"]])), strict=True))


def _write(folder: CharacterFolder, split: str, ids: np.ndarray, alphabet: Alphabet) -> dict[str, int]:
    """Write the files of a split; return the manifest's entry for it."""
    spaces, space = 0, alphabet.encode(" ")[0]
    with IndexedWriter(folder.prefix(split), alphabet.vocab_size) as writer:
        for some in _blocks(ids):
            writer.extend(some, [])
            spaces += int((some == space).sum())
        full, rest = divmod(len(ids), _ITEM)
        writer.extend([], [_ITEM] * full + ([rest] if rest else []))
    return {"characters": len(ids), "spaces": spaces}


def _write_boundaries(folder: CharacterFolder, split: str, some: Iterable[np.ndarray]) -> int:
    """Write where the pieces of a split end; return how many these are."""
    pieces = 0
    with atomic_file(folder.boundaries_path(split)) as file:
        for ends in some:
            file.write(ends.tobytes())
            pieces += int(ends.sum())
    return pieces


def _pieces(folder: CharacterFolder, made_of: str, texts: Iterable[str], size: int) -> bytes:
    """Train pieces on texts, unless an interrupted run did; `made_of` is the hash of the stream."""

    def make() -> dict[str, Any]:
        words = count_words(texts)
        model = with_elapsed(f"training {size:,} pieces on {len(words):,} words", lambda: train_pieces(words, size))
        write_file(folder.pieces_path, model)
        return {}

    part(folder.path, "pieces", "the pieces that were trained", make, lambda: [folder.pieces_path], made_of)
    return folder.pieces_path.read_bytes()

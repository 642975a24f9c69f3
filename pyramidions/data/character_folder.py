"""The layout of a folder of characters."""

from pathlib import Path
from typing import Any

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.folder import CHARACTERS, SPLITS, PreparedFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.text.alphabets import Alphabet, recorded_alphabet


class CharacterFolder(PreparedFolder):
    """A folder made by `pyramidions prepare --characters`.

    Its files:

        dict.txt            fairseq's dictionary: the space (▁), the letters and the line end (␤), from id 4 on
        manifest.json       counts, hashes, sizes, settings; written last
        SPLIT.{bin,idx}     the characters of a split as ids in fairseq's memory-mapped format, without </s>; items are
                            parts of one stream
        pieces.model        with --pieces: a Unigram model of words, whose pieces may supervise boundaries
        SPLIT.boundaries    with --pieces: a byte for each character, 1 where a piece ends
    """

    command = "`pyramidions prepare --characters`"

    @property
    def pieces_path(self) -> Path:
        return self.path / "pieces.model"

    def boundaries_path(self, split: str) -> Path:
        """Where the ends of a split's pieces lie, if there are any."""
        return self.path / f"{split}.boundaries"

    def prefix(self, split: str) -> Path:
        return self.path / split

    @property
    def splits(self) -> list[str]:
        return [split for split in SPLITS if split in self.manifest["splits"]]

    @property
    def alphabet(self) -> Alphabet:
        return recorded_alphabet(self.manifest["settings"][CHARACTERS])

    def _check(self, manifest: dict[str, Any]) -> None:
        kinds = {"settings": dict, "inputs": dict, "splits": dict, "files": dict, "sizes": dict, "vocab_size": int}
        if not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items()):
            raise UserError(f"{self.manifest_path} must be a JSON object as written by `pyramidions prepare`.")
        if CHARACTERS not in manifest["settings"]:
            raise UserError(f"{self.path} holds documents; make one of characters by {self.command}.")

    def tokens(self, split: str, *, check_hashes: bool = False) -> np.ndarray:
        """Return the ids of a split, (characters,), mapped into memory."""
        if split not in self.manifest["splits"]:
            raise UserError(f"{self.path} has no split {split!r}; its splits are {', '.join(self.splits)}.")
        self.compare([f"{split}.idx", f"{split}.bin", self.dictionary_path.name], check_hashes)
        return IndexedReader(self.prefix(split)).tokens

    def boundaries(self, split: str, *, check_hashes: bool = False) -> np.ndarray:
        """Return where the pieces of a split end, 1 at their last characters, (characters,), mapped into memory."""
        path = self.boundaries_path(split)
        if path.name not in self.manifest["files"]:
            raise UserError(f"{self.path} has no pieces: make them with `pyramidions prepare --characters --pieces`.")
        self.compare([path.name], check_hashes)
        return np.memmap(path, np.uint8, mode="r")

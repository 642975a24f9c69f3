"""Cleans a stream of text, shard by shard."""

from collections.abc import Iterator, Set
from itertools import islice, tee

import numpy as np

from pyramidions.data.clean_shards import CleanShard, CleanShards
from pyramidions.data.manifest import InputHash
from pyramidions.data.text_streams import TextStream
from pyramidions.files.parallel import ordered_map
from pyramidions.files.progress import note, progress_bar
from pyramidions.text.alphabets import Alphabet

_SHARD = 2**24  # characters: held in memory, and the most that an interruption costs


def clean_stream(
    name: str, stream: TextStream, alphabet: Alphabet, most: int | None, shards: CleanShards, workers: int
) -> None:
    """Clean a stream, to its end or until it has given so many characters; completed shards are not cleaned again.

    Args:
        name: of the stream, for progress.
        stream: the text.
        alphabet: says what becomes of it.
        most: characters that are wanted; None for all.
        shards: those of an interrupted run; get the others.
        workers: number of processes that clean.

    Raises:
        UserError: what is read is invalid.
    """
    digest, parts = _goes_on(name, stream, shards)
    if shards.last.is_last or shards.characters == most:
        return
    white = {alphabet.encode(each)[0] for each in alphabet.characters if each.isspace()}
    begun = _BegunShard(shards, digest, white, most)
    with progress_bar(f"cleaning {name}", most, "characters", shards.characters) as bar:
        # The text stays here and meets its ids again, so that no worker sends it back.
        given, waiting = tee(parts)
        cleaned = ordered_map(_clean_part, given, workers, initializer=_receive, initargs=(alphabet,))
        for part, ids in zip(waiting, cleaned, strict=True):
            bar.update(begun.add(part, ids))
            if begun.wanted == 0:
                begun.complete(is_last=False)
                return
            if begun.characters >= _SHARD:
                begun.complete(is_last=False)
        begun.complete(is_last=True)


class _BegunShard:
    """Gathers the ids of parts to a shard.

    Args:
        shards: get it.
        digest: over the parts before.
        white: the ids of the space and the line end, the greater of which is the line end's.
        most: characters of all shards; None for any number.
    """

    def __init__(self, shards: CleanShards, digest: InputHash, white: Set[int], most: int | None) -> None:
        self._shards = shards
        self._digest = digest
        self._white = white
        self._follows_white = shards.ends_in(white)
        self._read = shards.last.read
        self._ids: list[np.ndarray] = []
        self.characters = 0
        self.wanted = None if most is None else most - shards.characters

    def add(self, part: str, ids: np.ndarray) -> int:
        """Append a part; return how many characters it adds. Where white space meets, a line end wins over a space."""
        self._digest.add((part,))
        self._read += len(part)
        if self._follows_white and len(ids) and ids[0] in self._white:
            if self._ids:
                self._ids[-1][-1] = max(self._ids[-1][-1], ids[0])
            ids = ids[1:]
        ids = ids[: self.wanted]
        if len(ids):
            self._follows_white = ids[-1] in self._white
            self._ids.append(ids)
            self.characters += len(ids)
            self.wanted = None if self.wanted is None else self.wanted - len(ids)
        return len(ids)

    def complete(self, is_last: bool) -> None:
        """Save the shard, and begin the next one."""
        ids = np.concatenate([np.empty(0, np.uint8), *self._ids])
        self._shards.append(CleanShard(self._digest.sha256, self._digest.documents, self._read, is_last, ids))
        self._ids.clear()
        self.characters = 0


def _goes_on(name: str, stream: TextStream, shards: CleanShards) -> tuple[InputHash, Iterator[str]]:
    """Read past the text of the completed shards, which are discarded where it is another; return what follows."""
    digest, parts = InputHash(), stream.read()
    if not shards.last.parts:
        return digest, parts
    note(f"goes on after {shards.characters:,} characters of {name}")
    for part in islice(parts, shards.last.parts):
        digest.add((part,))
    if digest.sha256 == shards.last.sha256:
        return digest, parts
    note(f"{stream.name} is not what the interrupted run read: {name} is done anew")
    shards.discard()
    return InputHash(), stream.read()


_received: list[Alphabet] = []


def _receive(alphabet: Alphabet) -> None:
    _received[:] = [alphabet]


def _clean_part(part: str) -> np.ndarray:
    (alphabet,) = _received
    return alphabet.encode(alphabet.clean(part))

"""Cleans a stream of text into a file of ids."""

from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import Any

import numpy as np

from pyramidions.base.notes import note
from pyramidions.data.making import finish_part, finished_part
from pyramidions.data.manifest import InputHash
from pyramidions.data.text_streams import TextStream
from pyramidions.files.atomic import sync
from pyramidions.files.parallel import ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.text.alphabets import Alphabet


def clean_stream(
    folder: Path, name: str, stream: TextStream, alphabet: Alphabet, most: int | None, workers: int
) -> dict[str, Any]:
    """Clean a stream, to its end or until it has given so many characters, unless an interrupted run did."""
    if found := finished_part(folder, name):
        if stream.source is not None or is_same(stream, found):
            note(f"takes the text of {name} that was cleaned before")
            return found
        note(f"{stream.name} is not what the interrupted run read: {name} is done anew")
    white = {alphabet.encode(each)[0] for each in alphabet.met if each in alphabet.characters}
    digest, read, characters, is_last = InputHash(), 0, 0, True
    held = np.empty(0, alphabet.dtype)
    path = ids_path(folder, name)
    with path.open("wb") as file, progress_bar(f"cleaning {name}", most, "characters") as bar:
        # The text stays here and meets its ids again, so that no worker sends it back.
        given, waiting = tee(stream.read())
        cleaned = ordered_map(partial(_clean_part, alphabet), given, workers)
        for part, ids in zip(waiting, cleaned, strict=True):
            digest.add((part,))
            read += len(part)
            # Where white space meets, a line end, whose id is the greater one, wins over a space.
            if len(held) and len(ids) and held[-1] in white and ids[0] in white:
                held[-1] = max(held[-1], ids[0])
                ids = ids[1:]
            ids = ids[: None if most is None else most - characters]
            if len(ids):
                file.write(held.tobytes())
                held = ids
            characters += len(ids)
            bar.update(len(ids))
            if characters == most:
                is_last = False
                break
        file.write(held.tobytes())
        sync(file)
    about = digest.summary(0)
    found = {"parts": about["documents"], "sha256": about["sha256"], "is_last": is_last}
    found |= {"read": read, "characters": characters}
    finish_part(folder, name, [path], found)
    return found


def ids_path(folder: Path, name: str) -> Path:
    """Return where the ids of a stream lie, in the type of the alphabet."""
    return folder / f".{name}.ids"


def is_same(stream: TextStream, made_of: dict[str, Any]) -> bool:
    """Return whether a stream still begins with the parts that a folder was made of, and ends with them if it did."""
    digest, parts = InputHash(), iter(stream.read())
    for part in islice(parts, made_of["parts"]):
        digest.add((part,))
    is_last = next(parts, None) is None if made_of["is_last"] else False
    found = {"parts": digest.documents, "sha256": digest.sha256, "is_last": is_last}
    return found == {name: made_of[name] for name in found}


def _clean_part(alphabet: Alphabet, part: str) -> np.ndarray:
    return alphabet.encode(alphabet.clean(part))

"""A model of concepts on disk: a folder with a JSON card and arrays, which runs no code when it is read."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pyramidions.base.arguments import Count, CountOrZero, broken
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes, parse_json
from pyramidions.extract.concepts.features import Frequencies
from pyramidions.extract.concepts.model import FEATURES, ConceptModel
from pyramidions.extract.concepts.policy import FEATURE_NAMES
from pyramidions.extract.concepts.trees import Trees
from pyramidions.text.language import ENGLISH, LANGUAGES

#: The files of a model.
CARD, ARRAYS = "concepts.json", "concepts.safetensors"
#: Rises when the files change, and when the features of any trees do.
FORMAT = 2
_MOST_BYTES = 2**30
_ORDERS = ("words", "pairs")
#: How the card calls the length of a summary.
_LENGTH = "summary_words"
#: And its language, which older cards do not say: English.
_LANGUAGE = "language"
_KNOWN, _TREES = ("keys", "seen", "hits"), ("roots", "feature", "threshold")
_POLICY = "policy"


def is_concept_model(path: Path) -> bool:
    """Return whether a folder holds a model of concepts."""
    return (path / CARD).is_file()


def files_of(model: ConceptModel, about: dict[str, Any]) -> dict[str, bytes]:
    """Return the content of both files by name."""
    arrays: dict[str, np.ndarray] = {}
    card: dict[str, Any] = {
        "format": FORMAT,
        "kind": "concepts",
        **about,
        _LENGTH: model.words,
        _LANGUAGE: model.language,
    }
    for name, known, trees in zip(_ORDERS, model.known, model.trees, strict=True):
        card[name] = {"documents": known.documents, "least": known.least, "share": known.base, "base": trees.base}
        arrays |= _named(name, _KNOWN, _narrow(known)) | _named(name, _TREES, trees.arrays)
    if model.policy is not None:
        card[_POLICY] = {"base": model.policy.base}
        arrays |= _named(_POLICY, _TREES, model.policy.arrays)
    content = save(arrays)
    card["sha256"] = sha256(content).hexdigest()
    return {CARD: as_json_bytes(card), ARRAYS: content}


def hash_of(folder: Path) -> str:
    """Return a SHA-256 of all that a model knows; errors are those of files that cannot be read."""
    return sha256(_content(folder / CARD) + _content(folder / ARRAYS)).hexdigest()


def load_concepts(folder: Path) -> ConceptModel:
    """Read a model."""
    if not is_concept_model(folder):
        raise UserError(f"{folder} must be a folder with {CARD}, but is none.")
    try:
        card = parse_json(_content(folder / CARD))
    except ValueError as error:
        raise UserError(f"{folder / CARD} is damaged: {error}.") from None
    if not isinstance(card, dict) or card.get("kind") != "concepts":
        raise UserError(f"{folder / CARD} must be the card of a model of concepts, but is none.")
    if card.get("format") is True or card.get("format") != FORMAT:
        raise UserError(f"{folder / CARD} must be of format {FORMAT}, but is of another.")
    content = _content(folder / ARRAYS)
    if card.get("sha256") != sha256(content).hexdigest():
        raise UserError(f"{folder / ARRAYS} is damaged: its hash is not that of {CARD}.")
    try:
        arrays = load(content)
        parts = [
            _part(name, card.get(name), arrays, features) for name, features in zip(_ORDERS, FEATURES, strict=True)
        ]
        policy = _trees(_POLICY, card[_POLICY], arrays, len(FEATURE_NAMES)) if _POLICY in card else None
    except SafetensorError as error:
        raise UserError(f"{folder / ARRAYS} is damaged ({error}).") from None
    except UserError as error:
        raise UserError(f"{folder} is damaged: {str(error).removesuffix('.')}.") from None
    (words, word_trees), (pairs, pair_trees) = parts
    if found := broken(card.get(_LENGTH), Count | None):
        raise UserError(f"{folder / CARD} is damaged: `{_LENGTH}` {found.said}.")
    language = card.get(_LANGUAGE, ENGLISH)
    if language not in LANGUAGES:
        raise UserError(f"{folder / CARD} is damaged: `{_LANGUAGE}` must be a known language, but is {language!r}.")
    return ConceptModel((words, pairs), (word_trees, pair_trees), card.get(_LENGTH), policy, language)


def _named(part: str, names: tuple[str, ...], arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {f"{part}.{name}": array for name, array in zip(names, arrays, strict=True)}


def _narrow(known: Frequencies) -> tuple[np.ndarray, ...]:
    # In 16 bits where they fit: they are most of a model.
    narrow = np.uint16 if known.documents < 2**16 else np.int32
    return known.keys, known.seen.astype(narrow), known.hits.astype(narrow)


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path} must have at most {_MOST_BYTES:,} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


_NUMBERS = {"documents": CountOrZero, "least": Count, "share": float}


def _check_numbers(name: str, said: Any, hints: dict[str, Any]) -> None:
    if not isinstance(said, dict):
        raise UserError(f"`{name}` must be an object.")
    for key, hint in hints.items():
        if found := broken(said.get(key), hint):
            raise UserError(f"`{name}.{key}` {found.said}.")


def _of(name: str, arrays: dict[str, np.ndarray], keys: tuple[str, ...]) -> list[np.ndarray]:
    if missing := next((key for key in keys if f"{name}.{key}" not in arrays), None):
        raise UserError(f"{ARRAYS} must hold `{name}.{missing}`.")
    return [arrays[f"{name}.{key}"] for key in keys]


def _trees(name: str, said: Any, arrays: dict[str, np.ndarray], features: int) -> Trees:
    _check_numbers(name, said, {"base": float})
    roots, feature, threshold = _of(name, arrays, _TREES)
    return Trees(float(said["base"]), roots, feature, threshold, features)


def _part(name: str, said: Any, arrays: dict[str, np.ndarray], features: int) -> tuple[Frequencies, Trees]:
    _check_numbers(name, said, _NUMBERS)
    if not 0 < said["share"] < 1:
        raise UserError(f"`{name}.share` must be above 0 and below 1, but is {said['share']}.")
    keys, seen, hits = _of(name, arrays, _KNOWN)
    are_lists = keys.ndim == 1 and keys.shape == seen.shape == hits.shape and keys.dtype == np.uint32
    if not are_lists or seen.dtype != hits.dtype or hits.dtype not in (np.uint16, np.int32):
        raise UserError(f"The frequencies of {name} must be lists of one length: of uint32, twice of uint16 or int32.")
    seen, hits = seen.astype(np.int32), hits.astype(np.int32)
    if (keys[1:] <= keys[:-1]).any():
        raise UserError(f"The keys of the frequencies of {name} must rise.")
    if len(keys) and not (hits.min() >= 0 and (hits <= seen).all() and seen.max() <= said["documents"]):
        raise UserError(f"The frequencies of {name} must be from 0 to the number of documents.")
    known = Frequencies(said["documents"], said["least"], said["share"], keys, seen, hits)
    return known, _trees(name, said, arrays, features)

"""A model of concepts on disk: a folder with a JSON card and arrays, which runs no code when it is read."""

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pyramidions.base.arguments import Count, CountOrZero, Range, broken
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes, parse_json
from pyramidions.extract.concepts import context
from pyramidions.extract.concepts.context import Context
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
#: Arrays of a model that knows the context of concepts.
_AROUND = Context._fields


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
    for name, of_order in zip(_ORDERS, model.contexts or (), strict=False):
        arrays |= _named(name, _AROUND, of_order.in_bytes())
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
        contexts = _contexts(arrays)
        further = 0 if contexts is None else context.FEATURES
        parts = [
            _part(name, card[name], arrays, features + further)
            for name, features in zip(_ORDERS, FEATURES, strict=True)
        ]
        policy = _trees(_POLICY, card[_POLICY], arrays, len(FEATURE_NAMES)) if _POLICY in card else None
    except UserError as error:
        raise UserError(f"{folder} is damaged: {error}") from None
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        # The arrays are those that were written, so that little can be wrong with them.
        raise UserError(f"{folder} is damaged ({type(error).__name__}: {error}).") from None
    (words, word_trees), (pairs, pair_trees) = parts
    if broken_rule := broken(card.get(_LENGTH), Count | None):
        raise UserError(f"{folder / CARD} is damaged: `{_LENGTH}` {broken_rule.said}.")
    language = card.get(_LANGUAGE, ENGLISH)
    if language not in LANGUAGES:
        raise UserError(f"{folder / CARD} is damaged: `{_LANGUAGE}` must be a known language, but is {language!r}.")
    return ConceptModel((words, pairs), (word_trees, pair_trees), card.get(_LENGTH), policy, language, contexts)


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


def _number(name: str, said: Any, key: str, hint: Any) -> Any:
    """Return a number of the card; what it says of a part, ``name``, must be an object."""
    if broken_rule := broken(said[key], hint):
        raise UserError(f"`{name}.{key}` {broken_rule.said}.")
    return said[key]


def _trees(name: str, said: Any, arrays: dict[str, np.ndarray], features: int) -> Trees:
    roots, feature, threshold = (arrays[f"{name}.{key}"] for key in _TREES)
    trees = Trees(float(_number(name, said, "base", float)), roots, feature, threshold, features)
    trees.check()
    return trees


def _contexts(arrays: dict[str, np.ndarray]) -> tuple[Context, Context] | None:
    if f"{_ORDERS[0]}.{_AROUND[0]}" not in arrays:
        return None
    kept = [arrays[f"{name}.{key}"] for name in _ORDERS for key in _AROUND]
    if not all(each.shape == (context.SIZE,) and each.dtype == np.int8 for each in kept):
        raise UserError(f"Each table of context weights must have {context.SIZE:,} entries of a byte.")
    return Context.of(*kept[:2]), Context.of(*kept[2:])


def _part(name: str, said: Any, arrays: dict[str, np.ndarray], features: int) -> tuple[Frequencies, Trees]:
    keys, *counts = (arrays[f"{name}.{key}"] for key in _KNOWN)
    seen, hits = (each.astype(np.int64) for each in counts)
    documents, least = _number(name, said, "documents", CountOrZero), _number(name, said, "least", Count)
    share = _number(name, said, "share", Annotated[float, Range(0, 1, open=True, below=True)])
    are_lists = keys.ndim == 1 and keys.shape == seen.shape == hits.shape and keys.dtype == np.uint32
    if not (are_lists and (keys[1:] > keys[:-1]).all() and (hits >= 0).all() and (hits <= seen).all()):
        raise UserError(f"The frequencies of {name} must have rising keys, and no more hits than occurrences.")
    if (seen > documents).any():
        raise UserError(f"The frequencies of {name} must count at most {documents:,} documents.")
    seen, hits = seen.astype(np.int32), hits.astype(np.int32)
    return Frequencies(documents, least, share, keys, seen, hits), _trees(name, said, arrays, features)

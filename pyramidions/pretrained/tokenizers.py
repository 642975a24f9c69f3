"""Tokenizers of pretrained models, as they are."""

import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.strict_json import parse_json
from pyramidions.files.bounded import read_regular
from pyramidions.pretrained.places import TOKENIZER_CONFIG
from pyramidions.text.tokenizer import JsonTokenizer, Numbering, Tokenizer
from pyramidions.text.tokenizer.json_file import check_ids, checked_file, run, silent

JSON = JsonTokenizer.file_name
#: pieces that the tokenizer's own file may lack, with their ids
ADDED = "added_tokens.json"
#: What transformers makes a tokenizer.json of, and what it reads beside.
SLOW = ("spiece.model", "sentencepiece.bpe.model", "vocab.json", "merges.txt", "vocab.txt", "special_tokens_map.json")
_LONGEST = 2**20  # tokens of a text
# Arguments with which transformers adds no ids of pretraining alone: T5's and PEGASUS's unused ones, PEGASUS's masks.
_NO_UNUSED: dict[str, Any] = {"extra_ids": 0, "offset": 0}
_NO_MASKS: dict[str, Any] = {**_NO_UNUSED, "mask_token": None, "mask_token_sent": None}
_LONG_NUMBER = re.compile(rb"(\"model_max_length\"\s*:\s*)\d{19,}")


def read_tokenizer(folder: Path, numbering: Numbering, class_name: str) -> Tokenizer:
    """Read the tokenizer of a model's folder, as the hub has it, with its own ids.

    It is tokenizer.json. Where that is missing or lacks added tokens, transformers builds one: with the class of this
    name, unless the folder names one.
    """
    file = folder / JSON
    try:
        added, data = _added(folder), read_regular(file) if file.is_file() else None
        if data is None or (added and added.keys() - _tokens(data)):
            data = _made_by_transformers(folder, class_name, numbering.rows)
        tokenizer = Tokenizer.from_bytes(data, numbering)
        ids = {name: i for i, name in enumerate(tokenizer.pieces())}
        for name, i in added.items():
            if ids.get(name, i) != i:
                raise UserError(f"The token {name} must have one id, but has {ids[name]}, and in {ADDED} {i}.")
        return tokenizer
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None


def _made_by_transformers(folder: Path, class_name: str, rows: int | None) -> bytes:
    if not any((folder / name).is_file() for name in (JSON, *SLOW)):
        raise UserError(f"The folder must hold a tokenizer ({JSON}, or {', '.join(SLOW[:-1])}), but holds none.")
    # Looked at before a library takes memory for its ids.
    if (folder / JSON).is_file():
        checked_file(read_regular(folder / JSON))
    if isinstance(vocabulary := _json(folder / "vocab.json"), dict):
        check_ids(vocabulary.values(), len(vocabulary))
    transformers = optional_library("transformers", f"A tokenizer without a whole {JSON}", extra="hf")
    settings = _json(folder / TOKENIZER_CONFIG)
    names_class = isinstance(settings, dict) and "tokenizer_class" in settings
    reason = ""
    # What the files name may be no class that reads them, and that of the family is.
    for name in ("AutoTokenizer", class_name) if names_class else (class_name,):
        try:
            read = partial(
                getattr(transformers, name).from_pretrained, folder, local_files_only=True, trust_remote_code=False
            )
            with silent():
                found = run(read)
                # A vocabulary of one's own has no rows for the ids that transformers adds to those of T5 and PEGASUS.
                for without in (_NO_UNUSED, _NO_MASKS):
                    if rows is not None and len(found) > rows:
                        with suppress(Exception):
                            found = run(partial(read, **without))
            return str(found.backend_tokenizer.to_str()).encode()
        except Exception as error:  # transformers raises errors of any kind
            reason = reason or " ".join(str(error).split())[:200]
    raise UserError(f"The tokenizer must be one that transformers reads, but it says: {reason}")


def _added(folder: Path) -> dict[str, int]:
    """Return the tokens that were added to a tokenizer and their ids, as the files beside it say."""
    listed, settings = _json(folder / ADDED), _json(folder / TOKENIZER_CONFIG)
    by_id = settings.get("added_tokens_decoder", {}) if isinstance(settings, dict) else {}
    try:
        found = {str(token["content"]): int(i) for i, token in by_id.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UserError(f"{TOKENIZER_CONFIG} must have a token for each id of `added_tokens_decoder`.") from None
    if not isinstance(listed, dict) or not all(type(i) is int for i in listed.values()):
        raise UserError(f"{ADDED} must have an id for each token.")
    return {**found, **listed}


def _tokens(data: bytes) -> set[str]:
    """Return the names of all tokens of a tokenizer.json."""
    try:
        about = parse_json(data)
        vocabulary = about["model"]["vocab"]
        names = vocabulary if isinstance(vocabulary, dict) else [piece[0] for piece in vocabulary]
        return {*names, *(token["content"] for token in about.get("added_tokens") or ())}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise UserError(f"{JSON} is damaged ({error}).") from None


def tokenizer_length(folder: Path) -> int:
    """Return how many tokens a text may have, as tokenizer_config.json says; 0 where it does not."""
    found = _json(folder / TOKENIZER_CONFIG)
    most = found.get("model_max_length") if isinstance(found, dict) else None
    return most if isinstance(most, int) and 0 < most <= _LONGEST else 0


def _json(file: Path) -> Any:
    """Return what a file holds; an empty object if there is none."""
    try:
        # transformers writes 1e30 in digits for a length that nobody said.
        return parse_json(_LONG_NUMBER.sub(rb"\g<1>0", read_regular(file))) if file.exists() else {}
    except ValueError as error:
        raise UserError(f"{file.name} is damaged: {error}.") from None

"""Fingerprints of models and of inputs: equal where the same is computed from the same."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pyramidions.data.manifest import file_hash
from pyramidions.errors import UserError
from pyramidions.extract.methods import ORACLE, method_or_model
from pyramidions.files.bounded import printable, regular_size

if TYPE_CHECKING:
    from pyramidions.inference.saved_model import SavedExtractor, SavedModel


def model_fingerprint(model: "SavedModel | SavedExtractor") -> str:
    """Return a SHA-256 of a model's weights, tokenizer and settings, whatever file they came from.

    Args:
        model: as it was read, in float32.
    """
    digest = hashlib.sha256(model.tokenizer.model_bytes)
    digest.update(f"{model.config} {sorted(model.settings().items())}".encode())
    for name, weight in sorted(model.network.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode())
        digest.update(weight.cpu().contiguous().numpy().data)
    return digest.hexdigest()


def method_fingerprint(method: str | Path) -> str:
    """Return the name of a method that selects sentences, or the fingerprint of a trained extractor.

    Raises:
        UserError: there is neither, or the extractor is damaged.
    """
    found = method_or_model(method, "method", ORACLE)
    if isinstance(found, str):
        return found
    from pyramidions.inference.saved_model import load_extractor

    return model_fingerprint(load_extractor(found))


def input_fingerprint(paths: Iterable[Path]) -> str:
    """Return a SHA-256 of the names and the content of files, in their order.

    Raises:
        UserError: one of them does not exist, or is no regular file.
        OSError: one of them cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        try:
            regular_size(path)
        except FileNotFoundError:
            raise UserError(f"With --shard, all inputs must exist, but {printable(path)} does not.") from None
        digest.update(f"{printable(path)!r} {file_hash(path)} ".encode())
    return digest.hexdigest()

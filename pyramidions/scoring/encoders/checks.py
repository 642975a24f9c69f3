"""Checks what a folder says about a pretrained model, before and after it is loaded."""

import hashlib
from pathlib import Path
from typing import Any

from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.scoring.encoders.heads import Head

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"),
)


def check_folder(folder: Path, place: str, head: Head, library: Any) -> None:
    """Refuse a folder that lacks files of a model, or whose model needs code of its own.

    Args:
        folder: of the model.
        place: as the user gave it.
        head: what it is for.
        library: transformers.

    Raises:
        UserError: it is such a folder.
    """
    start = f"`{head.option}` must be a model"
    if not (folder / "config.json").is_file():
        raise UserError(f"{start}, but {place} has no config.json.")
    try:
        config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{start}, but the config.json of {place} cannot be read: {error}.") from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise UserError(f"{start}, but the config.json of {place} names no model_type.")
    kind = config["model_type"]
    if kind not in library.models.auto.configuration_auto.CONFIG_MAPPING_NAMES:
        code = " and brings code of its own, which is never run" if "auto_map" in config else ""
        raise UserError(f"`{head.option}` must be a model that transformers knows, but {place} is a {kind}{code}.")
    if not any((folder / name).is_file() for name in _WEIGHTS):
        pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt"))
        why = "; its pickled weights are not read, since they may run code" if pickled else ""
        raise UserError(f"{start} with weights in {_WEIGHTS[0]}, but {place} has none{why}.")
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise UserError(f"{start} with a tokenizer, but {place} has none (tokenizer.json, vocab.txt, ...).")


def check_kind(config: Any, place: str, head: Head, library: Any) -> None:
    """Refuse a model that is of another kind.

    Args:
        config: of the model, as the library reads it.
        place: as the user gave it.
        head: what the model must be able to do.
        library: transformers.

    Raises:
        UserError: it is.
    """
    architectures = config.architectures or []
    if not head.is_encoder:
        if not any(name.endswith(head.suffix) for name in architectures):
            says = f"is a {architectures[0]}" if architectures else f"names no architecture ({config.model_type})"
            raise UserError(f"`{head.option}` must be {head.meaning} (...{head.suffix}), but {place} {says}.")
        return
    auto = library.models.auto.modeling_auto
    # What predicts masked words reads in both directions; so does the encoder of an encoder-decoder.
    is_decoder = getattr(config, "is_decoder", False)
    reads_both_ways = config.model_type in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and not is_decoder
    has_encoder = config.is_encoder_decoder and config.model_type in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    if not (reads_both_ways or has_encoder or config.model_type == "xlnet"):
        raise UserError(
            f"`{head.option}` must be {head.meaning}, but {place} is a {config.model_type}, whose tokens do not see "
            "those to the right."
            if config.model_type in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
            else f"`{head.option}` must be {head.meaning}, but {place} is a {config.model_type}."
        )


def longest_input(model: nn.Module, config: Any) -> int | None:
    """Return for how many tokens a model has positions; None where they have no end."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa counts from behind the padding.
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - unused
    for name in ("max_encoder_position_embeddings", "max_position_embeddings"):
        if isinstance(found := getattr(config, name, None), int) and found > 0:
            return found
    return None


def fingerprint(folder: Path) -> str:
    """Return the first figures of the SHA-256 of a model's weights."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as weights:
            digest.update(hashlib.file_digest(weights, "sha256").digest())
    return f"sha256:{digest.hexdigest()[:10]}"

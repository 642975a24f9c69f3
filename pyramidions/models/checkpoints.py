"""Whether a checkpoint fits a model: its format, vocabulary and parts, and the names and shapes of its weights."""

import hashlib
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, lengths_in, parse_parts
from pyramidions.models.config import ExtractorConfig, LanguageModelConfig, PyramidionConfig
from pyramidions.models.fields import part_fields
from pyramidions.models.presets import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS
from pyramidions.nn.output import Pointer
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.stack import STACK

logger = logging.getLogger(__name__)

#: Under this name the fingerprint of the vocabulary travels among the weights.
VOCABULARY = "vocabulary"
#: Exports record it as `format`, checkpoints as `config_format`.
FORMAT = 3
#: Our kinds of models, as fairseq calls them, with their configs.
MODELS: dict[str, type[Any]] = {
    "pyramidion": PyramidionConfig,
    "pyramidion_extractor": ExtractorConfig,
    "pyramidion_lm": LanguageModelConfig,
}
#: Their architectures, which checkpoints name instead.
ARCHITECTURES: dict[str, type[Any]] = {
    **MODELS,
    **dict.fromkeys(PRESETS, PyramidionConfig),
    **dict.fromkeys(EXTRACTOR_PRESETS, ExtractorConfig),
    **dict.fromkeys(LANGUAGE_MODEL_PRESETS, LanguageModelConfig),
}
# What wrote the formats before; 0.1.0 and 0.2.0 recorded none in checkpoints.
_RELEASES = {None: "0.2.0 or before", 1: "0.1.0", 2: "0.2.0"}


def refuse_older(place: Path | str, written: Any) -> None:
    """Refuse a model of another format than today's, given the one that it records, or None.

    Raises:
        UserError: an older release wrote ``place``, or none that is known.
    """
    if written is None or (type(written) is int and written in _RELEASES):
        raise _older(place, _RELEASES[written])
    if type(written) is not int or written != FORMAT:
        raise UserError(f"{place} must be of format {FORMAT}, but is of {shown(written)}.")


def refuse_older_checkpoint(place: Path | str, config: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of a model of ours, with this config, that is of another format; as `refuse_older`."""
    kind = ARCHITECTURES.get(str(config.get("_name")))
    if kind is None:
        return
    refuse_older(place, config.get("config_format"))
    if any(config.get(f"{name}_args") is not None for name in part_fields(kind)):
        raise _older(place, "0.3 under development")


def _older(place: Path | str, release: str) -> UserError:
    return UserError(f"{place} was written by pyramidions {release}: `python scripts/upgrade.py OLD NEW` rewrites it.")


def fingerprint(symbols: Iterable[str]) -> int:
    """Return a number that two vocabularies share only if they have the same symbols in the same order."""
    digest = hashlib.sha256("\n".join(symbols).encode()).digest()
    return int.from_bytes(digest[:7], "big")


def refuse_vocabulary(given: dict[str, Tensor], expected: int) -> None:
    """Refuse weights of another vocabulary (ValueError); weights that do not name theirs are taken for the model's.

    fairseq compares no dictionaries when it resumes or fine-tunes; equal sizes would train on mixed-up words.
    """
    # Compared as integers: the model may be on a GPU, and the given weights on the CPU.
    if int(given.setdefault(VOCABULARY, torch.tensor(expected))) != expected:
        raise ValueError(
            "The checkpoint was trained with another vocabulary than that of the data: prepare the data with its "
            "tokenizer (pyramidions prepare --tokenizer)."
        )


def refuse_architecture(given: dict[str, Tensor], model: nn.Module, *, may_add_parts: bool = False) -> None:
    """Refuse weights whose names or shapes are not those of a model (ValueError).

    Where they may add parts, as where fine-tuning begins to pool or to copy, the model's own scorers and pointer stand
    in for those that the weights lack: these are added to ``given``.
    """
    own = model.state_dict()
    if may_add_parts and (new := new_parts(given, model)):
        given.update({name: own[name] for names in new.values() for name in names})
        logger.warning("The checkpoint lacks these parts, which begin at random: %s.", ", ".join(new))
    if problems := misfits(given, own):
        raise ValueError(f"The checkpoint is of another architecture: it {', and '.join(problems)}.")


def new_parts(given: Collection[str], model: nn.Module) -> dict[str, set[str]]:
    """Return the scorers and the pointer of a model of which ``given`` names no weight, each with its weights."""
    parts = {
        prefix: {f"{prefix}.{name}" for name in module.state_dict()}
        for prefix, module in model.named_modules()
        if isinstance(module, Scorer | Pointer)
    }
    return {prefix: names for prefix, names in parts.items() if names and names.isdisjoint(given)}


def misfits(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> list[str]:
    """Return in which ways the names or shapes of weights differ from a model's own; nothing if they fit."""
    problems = []
    for verb, keys in (("lacks", own.keys() - given.keys()), ("has unknown", given.keys() - own.keys())):
        if keys:
            problems.append(f"{verb} {len(keys)} weights (the first: {min(keys)})")
    other = [key for key in own if key in given and own[key].shape != given[key].shape]
    if other:
        key = other[0]
        problems.append(
            f"has {len(other)} weights of another shape (the first: {key}, "
            f"{tuple(given[key].shape)} instead of {tuple(own[key].shape)})"
        )
    return problems


_PARTS = (*part_fields(PyramidionConfig), "pooling_lengths", "memories")
#: Options, with their defaults, by which parts compute what 0.2.0 did. The same weights mean another model without.
_OF_0_2_0 = {"is_flat": False, "scaled": True}


def changed_part(before: Mapping[str, Any], now: Any) -> str | None:
    """Return the first field that names other kinds of parts than an earlier config did, or None.

    The layers of one model may be composed in another way, as memory allows, but not with another number of streams.
    The fields of before are by name, as far as they were known; now has fields as attributes, maybe an extractor's.
    """
    for name in _PARTS:
        if name in before and hasattr(now, name) and not _is_one_kind(name, before[name], getattr(now, name)):
            return name
    return None


def _is_one_kind(name: str, before: Any, now: Any) -> bool:
    if before is None or now is None or name == "memories":
        return bool(before == now)
    if name == "pooling_lengths":
        return lengths_in(before) == lengths_in(now)
    try:
        first, second = (_shortest([_shortest(memory) for memory in _compared(name, text)]) for text in (before, now))
    except UserError:
        return False  # one that cannot be read says so where it is read
    if name == "stack":
        streams = [STACK[each[0][0][0]].streams for each in (first, second) if each[0][0][0] in STACK]
        return len(streams) == 2 and streams[0] == streams[1]
    return first == second


def _compared(name: str, text: str) -> list[list[tuple[Any, ...]]]:
    """Return of each part what must stay, its kind first."""

    def compared(part: Part) -> tuple[Any, ...]:
        return (part.kind, *(part.options.get(option, default) for option, default in _OF_0_2_0.items()))

    return [[compared(part) for part in memory] for memory in parse_parts(name, text)]


def _shortest(entries: list[Any]) -> list[Any]:
    return entries[:1] if all(entry == entries[0] for entry in entries) else entries


_LAYER = r"^(encoder|decoder)\.layers\.(\d+)\."
_SUBLAYER = r"\1.core.layers.\2.sublayers."
_RENAMED = [
    (r"^(encoder|decoder)\.embed_tokens\.", r"\1.core.embedder.tokens."),
    (r"^(encoder|decoder)\.layernorm_embedding\.", r"\1.core.embedder.norm."),
    (r"^(encoder|decoder)\.layer_norm\.", r"\1.core.norm."),
    (rf"{_LAYER}self_attn\.", rf"{_SUBLAYER}self_attention.function.projections."),
    (rf"{_LAYER}encoder_attn\.", rf"{_SUBLAYER}cross_attention.function.projections."),
    (rf"{_LAYER}(fc[12])\.", rf"{_SUBLAYER}feed_forward.function.\3."),
    (rf"{_LAYER}self_attn_layer_norm\.", rf"{_SUBLAYER}self_attention.norm."),
    (rf"{_LAYER}encoder_attn_layer_norm\.", rf"{_SUBLAYER}cross_attention.norm."),
    (rf"{_LAYER}final_layer_norm\.", rf"{_SUBLAYER}feed_forward.norm."),
]
# What fairseq saves and we compute: the version mark, position tables, and the output layer that is the embedding.
_DROPPED = re.compile(
    r"^(encoder|decoder)\.(version|embed_positions\._float_tensor)$|^decoder\.output_projection\.weight$"
)


def from_fairseq_transformer(weights: dict[str, Tensor], untied: bool = False) -> None:
    """Rename, in place, the weights of a fairseq Transformer with sinusoidal positions and shared embeddings.

    Weights that already have our names stay as they are. An ``untied`` model's output layer has weights of its own, as
    the checkpoint's may.

    Raises:
        ValueError: embeddings or an output layer of their own, where our model has one matrix for all.
    """
    if untied and "decoder.output_projection.weight" in weights:
        weights["decoder.core.output.linear.weight"] = weights.pop("decoder.output_projection.weight")
    shared = weights.get("decoder.embed_tokens.weight")
    for key, part in (("decoder.output_projection.weight", "output layer"), ("encoder.embed_tokens.weight", "encoder")):
        own = weights.get(key)
        if own is not None and shared is not None and not (own.shape == shared.shape and own.equal(shared)):
            raise ValueError(
                f"The checkpoint must have one embedding for all (--share-all-embeddings), but its {part} has its own."
            )
    for key in list(weights):
        if _DROPPED.search(key):
            del weights[key]
            continue
        for pattern, ours in _RENAMED:
            new, count = re.subn(pattern, ours, key)
            if count:
                weights[new] = weights.pop(key)
                break

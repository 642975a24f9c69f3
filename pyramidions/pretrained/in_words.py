"""Describes a model and its decoding in words."""

from dataclasses import asdict

from pyramidions.models import PRESETS, PyramidionConfig, preset
from pyramidions.models.config import NO_SHAPE
from pyramidions.models.parse import spec_of
from pyramidions.nn import Writer
from pyramidions.nn.attention import CrossAttention
from pyramidions.pretrained.saved_model import SavedModel


def settings(model: SavedModel, writer: Writer, precision: str) -> dict[str, str]:
    """Return a description of a model, of the precision in which it computes, and of its decoding, by name."""
    config = model.config
    name, changes = _nearest(config)
    parameters = sum(p.numel() for p in model.transformer.parameters())
    changed = ", ".join(f"{field} {value}" for field, value in changes.items())
    repeats = f"none of {writer.no_repeat_ngram} tokens" if writer.no_repeat_ngram else "allowed"
    return {
        "architecture": f"{name} with {changed}" if changed else name,
        "parameters": f"{parameters:,}",
        "precision": precision,
        "attention": config.self_attention,
        **reading_of(config),
        **_not_followed(model),
        "pooling": _pooling(config),
        "reads at most": f"{model.max_source_positions:,} tokens",
        **writer.in_words,
        "length of a summary": f"{writer.min_len:,} to {writer.max_len:,} tokens",
        "length penalty": f"{writer.length_penalty:g}",
        "repeated n-grams": repeats,
    }


def reading_of(config: PyramidionConfig) -> dict[str, str]:
    """Say how the decoder attends, where that is not to all tokens before one and to all of the encoder's output."""
    found = {}
    if config.decoder_self_attention != "full":
        found["attention among summary positions"] = config.decoder_self_attention
    if config.decoder != PyramidionConfig.decoder:
        return {**found, "decoder": config.decoder}
    if (config.memories, config.cross_attention) == ("last", "full"):
        return found
    entries = [entry.strip() for entry in config.memories.split(",")]
    read = ["its output" if entry == "last" else f"layer {entry}" for entry in entries]
    return {**found, "cross-attention": config.cross_attention, "reads of the encoder": ", ".join(read)}


def _not_followed(model: SavedModel) -> dict[str, str]:
    """Say which attention an explanation leaves out, of a decoder that reads the memory by self-attention."""
    if any(isinstance(part, CrossAttention) for part in model.transformer.decoder.modules()):
        return {}
    return {"attention not followed": "the decoder's to the summary itself, and among the encoder's vectors"}


def _nearest(config: PyramidionConfig) -> tuple[str, dict[str, object]]:
    """Return the preset with the fewest different fields, and the differences."""
    differences = {name: _changes(config, preset(name)) for name in PRESETS}
    name = min(differences, key=lambda name: (len(differences[name]), _stages(config) != _stages(preset(name))))
    return name, differences[name]


def _changes(config: PyramidionConfig, other: PyramidionConfig) -> dict[str, object]:
    base = asdict(other)
    return {
        name: value
        for name, value in asdict(config).items()
        if value != base[name] and not any(part in name for part in NO_SHAPE)
    }


def _stages(config: PyramidionConfig) -> list[int]:
    """Return the layers that pool."""
    return list(spec_of(config).encoder.poolings)


def _pooling(config: PyramidionConfig) -> str:
    poolings = spec_of(config).encoder.poolings
    kept = ", ".join(f"{pooling.length:,} after layer {layer + 1}" for layer, pooling in poolings.items())
    return f"{config.pooling}, scorer {config.scorer}; vectors: {kept}" if kept else "none"

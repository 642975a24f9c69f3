"""Describes a model of ours as a config of transformers, where one of its classes holds it."""

from pathlib import Path
from typing import Any

from pyramidions.base import __version__
from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import NONE, Part, parse_part, parse_parts
from pyramidions.models import PyramidionConfig
from pyramidions.models.fields import part_fields, parts_with_defaults
from pyramidions.nn.stack import STACK
from pyramidions.pretrained.families import FAMILIES, Family, shape_of
from pyramidions.pretrained.for_transformers import searching
from pyramidions.pretrained.places import LONG, SOURCE, WRITTEN_BY
from pyramidions.pretrained.saved_model import SavedModel
from pyramidions.pretrained.source import Source
from pyramidions.text.tokenizer import JsonTokenizer

_NOT_COMPARED = (
    # What only training and decoding read, and lengths, which the config repeats.
    *("checkpoint_activations", "max_source_positions", "decoder_start"),
)
_MARKS = ("global_tokens", "global_markers", "global_query", "global_projections")
_OF_POOLING = ("pooling", "scorer", "upsampling")


def family_that_holds(model: SavedModel) -> Family:
    """Return the family whose class of transformers computes the same, or refuse the setting that is in the way."""
    if model.queries:
        raise UserError("A model that answers queries must stay in our format, which says how they are read.")
    if len(model.tokenizer.prefix) > 1:
        raise UserError("A model that begins each text with several tokens must stay in our format: others force one.")
    family = family_of(model.config)
    if model.source_prefix and not family.reads_prefix:
        raise UserError(
            f"A model that reads {shown(model.source_prefix)} before each document must stay in our format, which says "
            f"so."
        )
    if not isinstance(model.tokenizer, JsonTokenizer):
        raise UserError(
            f"The tokenizer must be a {JsonTokenizer.file_name} in a {family.class_name} of transformers, but is a "
            f"{model.tokenizer.file_name}."
        )
    # The import says what the class computes.
    config = {**_architecture(model, family), **_special(model)}
    read = shape_of(Source(Path("the export"), "", None, config, config | _writing(model), {}, None)).config
    left_out = {*_NOT_COMPARED, *(_MARKS if family.takes_marks else ())}
    for name in (field for field in vars(read) if field not in left_out and not field.startswith("decoding_")):
        mine, theirs = getattr(model.config, name), getattr(read, name)
        if _compared(name, read, model.config) and _plain(name, mine) != _plain(name, theirs):
            raise UserError(
                f"`{name}` must be {shown(theirs)} in a {family.class_name} of transformers, but is {shown(mine)}."
            )
    return family


def described(model: SavedModel, family: Family) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what config.json and generation_config.json say of a model in a family."""
    ids = _special(model)
    forced = {"forced_eos_token_id": ids["eos_token_id"]}
    if model.tokenizer.prefix:
        forced["forced_bos_token_id"] = model.tokenizer.prefix[0]
    config = {**_architecture(model, family), "vocab_size": model.tokenizer.vocab_size, **ids}
    if len(ends := model.tokenizer.ends) > 1:
        ids["eos_token_id"] = [*ends]
    return config, {**ids, **_writing(model), **forced}


def family_of(config: PyramidionConfig) -> Family:
    """Return the family that is nearest to a model."""
    attention = parse_parts("self_attention", config.self_attention)[0][0].kind
    if config.norm == "rms":
        return FAMILIES["longt5" if attention == "transient_global" else "t5"]
    if config.global_vectors or attention == "block_global":
        return FAMILIES["pegasus_x"]
    if config.normalize_before:
        learned = parse_parts("encoder_positions", config.encoder_positions)[0][0].kind == "learned"
        return FAMILIES["mbart" if learned else "pegasus"]
    return FAMILIES["led" if "sliding_window" in config.self_attention else "bart"]


def lengths_of(model: SavedModel) -> tuple[int, int]:
    """Return how many positions encoder and decoder have: the rows of learned tables, else the longest texts."""
    found = [model.max_source_positions, model.max_target_positions]
    coders: tuple[Any, ...] = (model.transformer.encoder, model.transformer.decoder)
    for number, coder in enumerate(coders):
        table = getattr(coder.embedder.positions, "weight", None)
        if table is not None:
            found[number] = len(table)
    return found[0], found[1]


def _architecture(model: SavedModel, family: Family) -> dict[str, Any]:
    """Return what config.json says, but for the vocabulary."""
    try:
        said = family.config_json(model.config, lengths_of(model))
    except UserError as error:
        raise UserError(f"{error}.") from None
    found = {
        "architectures": [f"{family.class_name}ForConditionalGeneration"],
        "model_type": family.name,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
        **said,
        "dtype": "float32",
        WRITTEN_BY: __version__,
        LONG: model.config.decoding_long,
    }
    if model.origin is not None:
        found[SOURCE] = model.origin.known()
    if model.source_prefix:
        found["task_specific_params"] = {"summarization": {"prefix": model.source_prefix}}
    return found


def _special(model: SavedModel) -> dict[str, Any]:
    """Return the ids of the special tokens."""
    tokenizer, start = model.tokenizer, model.transformer.decoder.start
    ids = {"pad_token_id": tokenizer.pad, "eos_token_id": tokenizer.eos}
    ids["decoder_start_token_id"] = tokenizer.eos if start is None else start
    return ids if tokenizer.bos is None else {**ids, "bos_token_id": tokenizer.bos}


def _writing(model: SavedModel) -> dict[str, Any]:
    """Return what generation_config.json says, but for tokens."""
    return searching(model.config, min(lengths_of(model)[1], model.max_target_positions))


def _compared(name: str, read: PyramidionConfig, config: PyramidionConfig) -> bool:
    if name in _OF_POOLING:
        return config.pooling_lengths is not None
    if name == "stack":
        # Other stacks of one stream compute the same, and differ in what they keep.
        return STACK[parse_part("stack", config.stack).kind].streams > 1
    return True


def _plain(name: str, value: Any) -> Any:
    """Return a field's value as it is compared: the parts of a field that describes parts, of equal ones the first."""
    if name == "pooling_lengths":
        entries = [entry.strip() for entry in (value or "None").split(",")]
        return [] if set(entries) == {"None"} else entries
    if name not in part_fields(PyramidionConfig):
        return value
    return [] if value in (None, NONE) and name == "upsampling" else _parts(name, value)


def _parts(name: str, text: str) -> list[Part]:
    memories = parts_with_defaults(PyramidionConfig, name, text)
    parts = [_compared_part(part) for memory in memories for part in memory]
    return parts[:1] if all(part == parts[0] for part in parts) else parts


def _compared_part(part: Part) -> Part:
    # The config says their lengths itself, and a LED's refuses dilation.
    if part.kind in ("sliding_window", "learned"):
        return Part(part.kind)
    # Computed in chunks or not, the values are the same.
    return Part(part.kind, {key: value for key, value in part.options.items() if key != "chunk_size"})

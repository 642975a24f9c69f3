"""Describes a model of ours as a config of transformers, where one of its classes holds it."""

from pathlib import Path
from typing import Any

from pyramidions.base import __version__
from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.inference.export_folder import WRITTEN_BY
from pyramidions.inference.saved_model import SavedModel
from pyramidions.models import PyramidionConfig
from pyramidions.models.declared import part_fields
from pyramidions.models.notation import parse_part, parse_parts
from pyramidions.models.older_fields import NONE
from pyramidions.models.spec import Part
from pyramidions.nn.attention.sliding_window import SlidingWindowAttention
from pyramidions.nn.stack import STACK
from pyramidions.pretrained.families import ACTIVATIONS, LIKE_BART, Bart, shape_of
from pyramidions.pretrained.source import Source
from pyramidions.text.tokenizer import BOS, EOS, PAD

_CLASSES = {"bart": "Bart", "led": "LED", "pegasus": "Pegasus"}
_OURS = "--to pyramidions, the default, holds such a model"
_NOT_COMPARED = (
    # What only training and decoding read, and lengths, which the config repeats.
    *("checkpoint_activations", "max_source_positions", "decoder_start"),
    # Marks are given with each document.
    *("global_tokens", "global_markers", "global_query", "global_projections"),
)
_OF_POOLING = ("pooling", "scorer", "upsampling")
# Options that are left out.
_DEFAULTS: dict[str, dict[str, Any]] = {"feed_forward": {"activation": "relu"}}


def family_that_holds(model: SavedModel) -> Bart:
    """Return the family whose class of transformers computes what a model computes.

    Raises:
        UserError: there is none; it says which setting is in the way.
    """
    if model.queries:
        raise UserError(f"A model that answers queries must stay in our format, which says how they are read; {_OURS}.")
    if model.source_prefix:
        raise UserError(
            f"A model that reads {shown(model.source_prefix)} before each document must stay in our format, which says "
            f"so; {_OURS}."
        )
    family = family_of(model.config)
    # The import says what the class computes; whose ids these are makes no difference to it.
    config = {**_architecture(model, family), "pad_token_id": PAD, **_special(model, family)}
    read = shape_of(Source(Path("the export"), "", None, config, config | _writing(model, family), {}, None)).config
    for name in (field for field in vars(read) if field not in _NOT_COMPARED and not field.startswith("decoding_")):
        mine, theirs = getattr(model.config, name), getattr(read, name)
        if _compared(name, read, model.config) and _plain(name, mine) != _plain(name, theirs):
            raise UserError(
                f"`{name}` must be {shown(theirs)} in a {_CLASSES[family.name]} of transformers, but is {shown(mine)}; "
                f"{_OURS}."
            )
    return family


def described(model: SavedModel, family: Bart, order: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what config.json and generation_config.json say.

    Args:
        model: of ours.
        family: that holds it.
        order: our id of each of theirs.
    """
    ids = {name: order.index(i) for name, i in _special(model, family).items()}
    # PEGASUS pads with its first, which it may start from.
    ids.setdefault("pad_token_id", 0)
    forced = {"forced_eos_token_id": ids["eos_token_id"]}
    if model.tokenizer.prefix:
        forced["forced_bos_token_id"] = order.index(model.tokenizer.prefix[0])
    config = {**_architecture(model, family), "vocab_size": len(order), **ids}
    return config, {**ids, **_writing(model, family), **forced}


def family_of(config: PyramidionConfig) -> Bart:
    """Return the family that is nearest to a model."""
    name = "pegasus" if config.normalize_before else "led" if "sliding_window" in config.self_attention else "bart"
    return LIKE_BART[name]


def lengths_of(model: SavedModel, family: Bart) -> tuple[int, int]:
    """Return how many positions encoder and decoder have: the rows of learned tables, else the longest texts."""
    found = [model.max_source_positions, model.max_target_positions]
    coders: tuple[Any, ...] = (model.transformer.encoder, model.transformer.decoder)
    for number, coder in enumerate(coders):
        table = getattr(coder.embedder.positions, "weight", None)
        if table is not None:
            found[number] = len(table)
    source, target = found if family.windowed else [max(found)] * 2
    return source, target


def _architecture(model: SavedModel, family: Bart) -> dict[str, Any]:
    """Return what config.json says, but for the vocabulary."""
    config = model.config
    source, target = lengths_of(model, family)
    lengths = {"max_encoder_position_embeddings": source, "max_decoder_position_embeddings": target}
    activation = _parts("feed_forward", config.feed_forward)[0].options["activation"]
    own = {theirs for theirs, ours in ACTIVATIONS.items() if ours == activation}
    found = {
        "architectures": [f"{_CLASSES[family.name]}ForConditionalGeneration"],
        "model_type": family.name,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
        "d_model": config.embed_dim,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        **{f"{coder}_attention_heads": config.num_heads for coder in ("encoder", "decoder")},
        **{f"{coder}_ffn_dim": config.ffn_embed_dim for coder in ("encoder", "decoder")},
        **{name: getattr(config, name) for name in ("dropout", "attention_dropout", "activation_dropout")},
        # The last name is that of torch's own function.
        "activation_function": max(own, key=list(ACTIVATIONS).index) if own else "gelu",
        **(lengths if family.windowed else {"max_position_embeddings": source}),
        "dtype": "float32",
        WRITTEN_BY: __version__,
    }
    if family.windowed:
        # LED's encoder never scales embeddings.
        found["attention_window"] = [_window(model, layer) for layer in range(config.encoder_layers)]
    else:
        found["scale_embedding"] = not config.no_scale_embedding
    return found


def _window(model: SavedModel, layer: int) -> int:
    attention: Any = model.transformer.encoder.layers[layer]
    kind = attention.sublayers["self_attention"].function.attention
    if not isinstance(kind, SlidingWindowAttention) or kind.dilated_heads:
        raise UserError(
            "`self_attention` must be sliding_window in all layers, without `dilation`, in a LED of transformers, but "
            f"is {model.config.self_attention}; {_OURS}."
        )
    return 2 * kind.side


def _special(model: SavedModel, family: Bart) -> dict[str, int]:
    """Return our ids of the special tokens that ours and theirs have in common."""
    start = BOS if model.config.decoder_start == "<s>" else EOS
    ours = {"eos_token_id": EOS, "decoder_start_token_id": start}
    return {"pad_token_id": PAD, **ours, "bos_token_id": BOS} if family.learns_positions else ours


def _writing(model: SavedModel, family: Bart) -> dict[str, Any]:
    """Return what generation_config.json says, but for tokens."""
    config = model.config
    longest = min(lengths_of(model, family)[1], model.max_target_positions)
    return {
        "num_beams": config.decoding_beam,
        "length_penalty": config.decoding_length_penalty,
        # Theirs count the first input of the decoder, and the longest the end as well.
        "max_length": min(config.decoding_max_length + 2, longest),
        "min_length": config.decoding_min_length + 1,
        "no_repeat_ngram_size": config.decoding_no_repeat_ngram,
        "early_stopping": config.decoding_beam > 1,
    }


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
    parts = [_compared_part(name, part) for memory in parse_parts(name, text) for part in memory]
    return parts[:1] if all(part == parts[0] for part in parts) else parts


def _compared_part(name: str, part: Part) -> Part:
    # The config says their lengths itself, and `_window` refuses dilation.
    if part.kind in ("sliding_window", "learned"):
        return Part(part.kind)
    options = {**_DEFAULTS.get(name, {}), **part.options}
    # Computed in chunks or not, the values are the same.
    return Part(part.kind, {key: value for key, value in options.items() if key != "chunk_size"})

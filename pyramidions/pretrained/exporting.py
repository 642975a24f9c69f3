"""Writes a model as an export: in the format of a family of transformers that holds it, else in ours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyramidions.base import __version__
from pyramidions.base.arguments import checked, shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, parse_part, parse_parts
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.models import PyramidionConfig
from pyramidions.models.fields import part_fields, same_parts
from pyramidions.nn.stack import STACK
from pyramidions.pretrained.export_folder import write_export
from pyramidions.pretrained.families import FAMILIES, Family, shape_of
from pyramidions.pretrained.names import TIED
from pyramidions.pretrained.own_files import files, searching
from pyramidions.pretrained.places import CARD, GENERATION_CONFIG, LONG, SOURCE, TOKENIZER_CONFIG, WRITTEN_BY
from pyramidions.pretrained.saved_model import (
    OWN_EMBEDDING,
    SHARED_EMBEDDING,
    SavedExtractor,
    SavedLanguageModel,
    SavedModel,
    description,
)
from pyramidions.pretrained.source import Source
from pyramidions.text.tokenizer import JsonTokenizer

_NOT_COMPARED = (
    # What only training and decoding read, and lengths, which the config repeats.
    *("checkpoint_activations", "kernels", "max_source_positions", "decoder_start"),
    # Without pooling lengths they mean nothing.
    *("pooling", "scorer", "upsampling"),
)
_MARKS = ("global_tokens", "global_markers", "global_query", "global_projections")


class Export(NamedTuple):
    """A model as it is exported."""

    weights: Mapping[str, Tensor]  # by name
    files: Mapping[str, bytes]  # by name, but for config.json and the card
    config: Mapping[str, Any]  # what config.json says, but for hashes
    family: Family | None = None  # of transformers, whose class holds the model; None for an export of ours
    reason: str = ""  # why no family holds a summarizer; else empty

    def write(self, folder: str | Path, card: str) -> None:
        """Write the folder; arguments and errors are those of `export_model`."""
        write_export(folder, self.weights, {CARD: card.encode(), **self.files}, self.config)


@checked
def export_model(model: SavedModel | SavedExtractor | SavedLanguageModel, folder: str | Path, card: str) -> None:
    """Write a model as a folder of files that need no pickle; it appears whole or not at all.

    A summarizer that a class of transformers holds is written in the format of its family.

    Args:
        model: the model.
        folder: to be made, or replaced where it is an older export.
        card: what its README.md says.

    Raises:
        UserError: the folder holds something else.
        OSError: it cannot be written; `filename` is the folder.
    """
    export_of(model).write(folder, card)


def export_of(model: SavedModel | SavedExtractor | SavedLanguageModel) -> Export:
    """Return a model as it is exported."""
    if not isinstance(model, SavedModel):
        return _ours(model, "")
    try:
        family = _family_that_holds(model)
    except UserError as error:
        return _ours(model, str(error))
    return _of_family(model, family)


def _of_family(model: SavedModel, family: Family) -> Export:
    own = {name: value.float() for name, value in model.transformer.state_dict().items() if name != TIED}
    with torch.no_grad():
        weights = family.state_dict(own, model.config, _lengths_of(model))
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, JsonTokenizer)  # no family holds another
    ids = {"bos": tokenizer.bos, "pad": tokenizer.pad, "eos": tokenizer.eos, "unk": tokenizer.unk}
    special = _special(model)
    config = {**_architecture(model, family), "vocab_size": tokenizer.vocab_size, **special}
    generation = {**special, **_writing(model)}
    if len(tokenizer.ends) > 1:
        generation["eos_token_id"] = [*tokenizer.ends]
    reading = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": token for name, i in ids.items() if i is not None and (token := tokenizer.token(i))},
        "model_max_length": model.max_source_positions,
    }
    said = {GENERATION_CONFIG: as_json_bytes(generation), TOKENIZER_CONFIG: as_json_bytes(reading)}
    return Export(
        {name: value.contiguous() for name, value in weights.items()},
        {tokenizer.file_name: tokenizer.model_bytes, **said},
        config,
        family,
    )


def _ours(model: SavedModel | SavedExtractor | SavedLanguageModel, reason: str) -> Export:
    # Of a model that extracts, no decoder owns the embeddings.
    weights = {name: value.contiguous() for name, value in model.network.state_dict().items()}
    if OWN_EMBEDDING in weights:
        del weights[SHARED_EMBEDDING]
    # Of the names of one weight, as all layers share one of relative attention, the last stays.
    names = {weight.data_ptr() or name: name for name, weight in weights.items()}
    written: dict[str, bytes] = {}
    if not isinstance(model, SavedLanguageModel):
        written[model.tokenizer.file_name] = model.tokenizer.model_bytes
    if isinstance(model, SavedModel):
        written |= files(model)
    return Export({name: weights[name] for name in names.values()}, written, description(model), None, reason)


def _family_that_holds(model: SavedModel) -> Family:
    """Return the family whose class of transformers computes the same, or refuse the setting that is in the way."""
    if model.queries:
        raise UserError("A model that answers queries must stay in our format, which says how they are read.")
    if len(model.tokenizer.prefix) > 1:
        raise UserError("A model that begins each text with several tokens must stay in our format: others force one.")
    family = _family_of(model.config)
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
        if not _is_same(name, read, model.config):
            raise UserError(
                f"`{name}` must be {shown(getattr(read, name))} in a {family.class_name} of transformers, but is "
                f"{shown(getattr(model.config, name))}."
            )
    return family


def _family_of(config: PyramidionConfig) -> Family:
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


def _lengths_of(model: SavedModel) -> tuple[int, int]:
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
        said = family.config_json(model.config, _lengths_of(model))
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
    """Return what generation_config.json says, but for the tokens that each model has."""
    longest = min(_lengths_of(model)[1], model.max_target_positions)
    return searching(model.config, longest, model.tokenizer.prefix, model.tokenizer.eos)


def _is_same(name: str, read: PyramidionConfig, config: PyramidionConfig) -> bool:
    """Return whether a field of two configs makes a model compute the same."""
    theirs, mine = getattr(read, name), getattr(config, name)
    if name == "stack":
        # Other stacks of one stream compute the same, and differ in what they keep.
        return STACK[parse_part("stack", mine).kind].streams == 1 or mine == theirs
    if name == "pooling_lengths":
        return {entry.strip() for entry in (mine or "None").split(",")} == {"None"} or mine == theirs
    if name not in part_fields(PyramidionConfig) or None in (mine, theirs):
        return bool(mine == theirs)
    return same_parts(PyramidionConfig, name, mine, theirs, _what_computes)


def _what_computes(part: Part) -> Part:
    # The config says their lengths itself, and a LED's refuses dilation.
    if part.kind in ("sliding_window", "learned"):
        return Part(part.kind)
    # Computed in chunks or not, the values are the same.
    return Part(part.kind, {key: value for key, value in part.options.items() if key != "chunk_size"})

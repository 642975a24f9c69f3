"""Writes a model as an export: in the format of a family of transformers that holds it, else in ours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.pretrained.configs import described, family_that_holds, lengths_of
from pyramidions.pretrained.export_folder import CARD, OF_TRANSFORMERS, write_export
from pyramidions.pretrained.families import Family
from pyramidions.pretrained.for_transformers import files
from pyramidions.pretrained.names import TIED
from pyramidions.pretrained.saved_model import (
    OWN_EMBEDDING,
    SHARED_EMBEDDING,
    SavedExtractor,
    SavedLanguageModel,
    SavedModel,
    description,
)
from pyramidions.text.tokenizer import JsonTokenizer

_GENERATION, _TOKENIZER = OF_TRANSFORMERS


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
        family = family_that_holds(model)
    except UserError as error:
        return _ours(model, str(error))
    return _of_family(model, family)


def _of_family(model: SavedModel, family: Family) -> Export:
    own = {name: value.float() for name, value in model.transformer.state_dict().items() if name != TIED}
    with torch.no_grad():
        weights = family.state_dict(own, model.config, lengths_of(model))
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, JsonTokenizer)  # no family holds another
    ids = {"bos": tokenizer.bos, "pad": tokenizer.pad, "eos": tokenizer.eos, "unk": tokenizer.unk}
    config, generation = described(model, family)
    reading = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": token for name, i in ids.items() if i is not None and (token := tokenizer.token(i))},
        "model_max_length": model.max_source_positions,
    }
    said = {_GENERATION: as_json_bytes(generation), _TOKENIZER: as_json_bytes(reading)}
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

"""Writes a model and its tokenizer as transformers reads them: the import, backwards."""

from hashlib import sha256
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.conversion.configs import described, family_that_holds, lengths_of
from pyramidions.inference.saved_model import SavedModel
from pyramidions.pretrained.families import Family
from pyramidions.pretrained.known_families import HASHES
from pyramidions.pretrained.names import TIED
from pyramidions.pretrained.places import CONFIG
from pyramidions.pretrained.source import GENERATION, WEIGHTS
from pyramidions.pretrained.tokenizers import JSON, SETTINGS
from pyramidions.text.tokenizer import JsonTokenizer


def hugging_face_files(model: SavedModel) -> dict[str, bytes]:
    """Return the files of a model of transformers that computes what ours computes, but for its card.

    Raises:
        UserError: no class of transformers holds the model; it says which setting is in the way.
    """
    # The config goes first: what it says of attention and pooling matters more than a tokenizer.
    family = family_that_holds(model)
    if not isinstance(model.tokenizer, JsonTokenizer):
        raise UserError(
            f"The tokenizer must be a {JSON} in a {family.class_name} of transformers, but is a "
            f"{model.tokenizer.file_name}."
        )
    config, generation = described(model, family)
    # Some versions of transformers refuse a file that does not say what wrote its tensors.
    weights = save(_weights(model, family), metadata={"format": "pt"})
    files = {WEIGHTS[0]: weights, JSON: model.tokenizer.model_bytes}
    hashes = {name: sha256(content).hexdigest() for name, content in files.items()}
    about = {CONFIG: {**config, HASHES: hashes}, GENERATION: generation, SETTINGS: _settings(model)}
    return {**files, **{name: as_json_bytes(values) for name, values in about.items()}}


def _settings(model: SavedModel) -> dict[str, Any]:
    """Return what tokenizer_config.json says."""
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, JsonTokenizer)  # the caller has looked
    ids = {"bos": tokenizer.bos, "pad": tokenizer.pad, "eos": tokenizer.eos, "unk": tokenizer.unk}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": token for name, i in ids.items() if i is not None and (token := tokenizer.token(i))},
        "model_max_length": model.max_source_positions,
    }


@torch.no_grad()
def _weights(model: SavedModel, family: Family) -> dict[str, Tensor]:
    """Return weights by their names, in float32."""
    own = {name: value.float() for name, value in model.transformer.state_dict().items() if name != TIED}
    found = family.state_dict(own, model.config, lengths_of(model))
    return {name: value.contiguous() for name, value in found.items()}

"""Writes a model and its tokenizer as transformers reads them: the import, backwards."""

from hashlib import sha256

import torch
from safetensors.torch import save
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.conversion.configs import described, family_that_holds, lengths_of
from pyramidions.conversion.written_tokenizer import written_tokenizer
from pyramidions.inference.export_folder import HASHES
from pyramidions.inference.saved_model import SavedExtractor, SavedLanguageModel, SavedModel
from pyramidions.pretrained.families import Family
from pyramidions.pretrained.names import EMBEDDING, TIED, UNTIED
from pyramidions.pretrained.source import CONFIG, GENERATION, WEIGHTS
from pyramidions.pretrained.tokenizers import SETTINGS


def hugging_face_files(model: SavedModel | SavedExtractor | SavedLanguageModel) -> dict[str, bytes]:
    """Return the files of a model of transformers that computes what ours computes, but for its card.

    Raises:
        UserError: no class of transformers holds the model; it says which setting is in the way.
    """
    if not isinstance(model, SavedModel):
        raise UserError(
            f"The model must write summaries for --to hf, but {model.kind.purpose.partition(':')[0]}; "
            "--to pyramidions, the default, holds it."
        )
    # The config goes first: what it says of attention and pooling matters more than a tokenizer.
    family = family_that_holds(model)
    tokenizer = written_tokenizer(model.tokenizer, family, model.config.decoder_start, model.max_source_positions)
    config, generation = described(model, family, tokenizer.order)
    weights = _weights(model, family, tokenizer.order)
    # Some versions of transformers refuse a file that does not say what wrote its tensors.
    files = {WEIGHTS[0]: save(weights, metadata={"format": "pt"}), **tokenizer.files}
    hashes = {name: sha256(content).hexdigest() for name, content in files.items() if name != SETTINGS}
    about = {CONFIG: {**config, HASHES: hashes}, GENERATION: generation}
    return {**files, **{name: as_json_bytes(values) for name, values in about.items()}}


@torch.no_grad()
def _weights(model: SavedModel, family: Family, order: list[int]) -> dict[str, Tensor]:
    """Return weights by their names, in float32."""
    own = {name: value.float() for name, value in model.transformer.state_dict().items() if name != TIED}
    for name in (EMBEDDING, UNTIED):
        if name in own:
            own[name] = own[name][torch.tensor(order)]
    found = family.state_dict(own, model.config, lengths_of(model))
    return {name: value.contiguous() for name, value in found.items()}

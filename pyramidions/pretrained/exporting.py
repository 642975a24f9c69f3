"""Writes a model as transformers reads it: the import, backwards."""

import json
from hashlib import sha256

import torch
from safetensors.torch import save
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.inference.export_folder import HASHES
from pyramidions.inference.saved_language_model import SavedLanguageModel
from pyramidions.inference.saved_model import SavedExtractor, SavedModel
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.pretrained.configs import described, family_that_holds, lengths_of
from pyramidions.pretrained.families import Family
from pyramidions.pretrained.names import EMBEDDING, LOGITS_BIAS, SHARED, names_of
from pyramidions.pretrained.source import CONFIG, GENERATION, WEIGHTS
from pyramidions.pretrained.tokenizers import SETTINGS
from pyramidions.pretrained.transfer import POSITIONS, TIED, extended
from pyramidions.pretrained.written_tokenizers import written_tokenizer


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
    tokenizer = written_tokenizer(model, family)
    found = described(model, family, tokenizer.order)
    weights = _weights(model, family, tokenizer.order)
    # Some versions of transformers refuse a file that does not say what wrote its tensors.
    files = {WEIGHTS[0]: save(weights, metadata={"format": "pt"}), **tokenizer.files}
    hashes = {name: sha256(content).hexdigest() for name, content in files.items() if name != SETTINGS}
    about = {CONFIG: {**found.config, HASHES: hashes}, GENERATION: found.generation}
    return {**files, **{name: (json.dumps(values, indent=1) + "\n").encode() for name, values in about.items()}}


@torch.no_grad()
def _weights(model: SavedModel, family: Family, order: list[int]) -> dict[str, Tensor]:
    """Return weights by their names, in float32."""
    config = model.config
    own = {name: value.float() for name, value in model.transformer.state_dict().items() if name != TIED}
    own[EMBEDDING] = own[EMBEDDING][torch.tensor(order)]
    theirs = names_of(config.encoder_layers, config.decoder_layers, family.windowed)
    for name in theirs:
        # Without second projections, global positions have those of all others.
        if ".global_rows." in name and name not in own:
            own[name] = own[name.replace(".global_rows.", ".")].clone()
    own |= _positions(model, own, family)
    head = "led" if family.windowed else "model"
    weights = {f"{head}.{SHARED[0]}": own.pop(EMBEDDING)}
    weights |= {f"{head}.{theirs[name]}": value for name, value in own.items()}
    weights[LOGITS_BIAS] = torch.zeros(1, len(order))
    return {name: value.contiguous() for name, value in weights.items()}


def _positions(model: SavedModel, own: dict[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Return the tables of positions, which transformers has for sinusoids, too."""
    found = {}
    for name, length in zip(POSITIONS, lengths_of(model, family), strict=True):
        if family.learns_positions:
            table = extended(own[name], length)
            found[name] = torch.cat([table.new_zeros(family.unused_positions, table.size(1)), table])
        else:
            sinusoids = SinusoidalPositions(model.config.embed_dim, 0, "published")
            found[name] = sinusoids(torch.arange(length), length)
    return found

"""Writes a model and its tokenizer as transformers reads them: the import, backwards."""

import json
from hashlib import sha256
from typing import Any, NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.conversion.configs import described, family_that_holds, lengths_of
from pyramidions.inference.export_folder import HASHES
from pyramidions.inference.saved_model import SavedExtractor, SavedLanguageModel, SavedModel
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.pretrained.families import Bart
from pyramidions.pretrained.names import EMBEDDING, LOGITS_BIAS, POSITIONS, SHARED, TIED, names_of
from pyramidions.pretrained.source import CONFIG, GENERATION, WEIGHTS
from pyramidions.pretrained.tokenizers import (
    OFFSET,
    SENTENCEPIECE,
    SETTINGS,
    read_sentencepiece,
    reserved,
    written_sentencepiece,
)
from pyramidions.pretrained.transfer import extended
from pyramidions.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, ByteLevelTokenizer, Tokenizer

_MASK = "<mask>"
_SPECIAL_TOKENS = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), SPECIALS, strict=True))


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
    config, generation = described(model, family, tokenizer.order)
    weights = _weights(model, family, tokenizer.order)
    # Some versions of transformers refuse a file that does not say what wrote its tensors.
    files = {WEIGHTS[0]: save(weights, metadata={"format": "pt"}), **tokenizer.files}
    hashes = {name: sha256(content).hexdigest() for name, content in files.items() if name != SETTINGS}
    about = {CONFIG: {**config, HASHES: hashes}, GENERATION: generation}
    return {**files, **{name: _json(values) for name, values in about.items()}}


@torch.no_grad()
def _weights(model: SavedModel, family: Bart, order: list[int]) -> dict[str, Tensor]:
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


def _positions(model: SavedModel, own: dict[str, Tensor], family: Bart) -> dict[str, Tensor]:
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


class WrittenTokenizer(NamedTuple):
    """A tokenizer as transformers reads it.

    Attributes:
        files: by name.
        order: our id of each of its ids.
    """

    files: dict[str, bytes]
    order: list[int]


def written_tokenizer(model: SavedModel, family: Bart) -> WrittenTokenizer:
    """Write the tokenizer of a model of a family.

    Raises:
        UserError: the family has tokenizers of another kind.
    """
    tokenizer = model.tokenizer
    byte_level = isinstance(tokenizer, ByteLevelTokenizer)
    if byte_level != family.learns_positions:
        kinds = ("a byte-level BPE", "a sentencepiece model with the reserved pieces of PEGASUS")
        wanted, found = kinds if family.learns_positions else kinds[::-1]
        raise _refusal(f"{wanted} in {family.name} of transformers, but is {found.split(' with')[0]}")
    written = _byte_level(tokenizer) if byte_level else _pegasus(tokenizer, model.config.decoder_start == SPECIALS[BOS])
    settings = parse_json(written.files[SETTINGS]) | {"model_max_length": model.max_source_positions}
    return written._replace(files={**written.files, SETTINGS: _json(settings)})


def _byte_level(tokenizer: Tokenizer) -> WrittenTokenizer:
    # The file says all, its ids and what stands around a text among it.
    settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", **_SPECIAL_TOKENS}
    settings |= {"cls_token": SPECIALS[BOS], "sep_token": SPECIALS[EOS], "clean_up_tokenization_spaces": False}
    if _MASK in tokenizer.pieces():
        settings["mask_token"] = _MASK
    files = {tokenizer.file_name: tokenizer.model_bytes, SETTINGS: _json(settings)}
    return WrittenTokenizer(files, list(range(tokenizer.vocab_size)))


def _pegasus(tokenizer: Tokenizer, from_padding: bool) -> WrittenTokenizer:
    """Take back what `import_tokenizer` does to a model of PEGASUS.

    Args:
        tokenizer: of ours.
        from_padding: their decoder starts from their padding, which is our `<s>` then.
    """
    model = read_sentencepiece(tokenizer.model_bytes, "The tokenizer")
    names = reserved(OFFSET)
    start = len(SPECIALS)
    if [piece.piece for piece in model.pieces[start : start + len(names) - 1]] != names[:-1]:
        raise _refusal("a sentencepiece model with the reserved pieces of PEGASUS, but has none of them")
    rest = range(start + len(names) - 1, len(model.pieces))
    # The last of the reserved pieces is the other of the two.
    first, last = (BOS, PAD) if from_padding else (PAD, BOS)
    order = [first, EOS, *range(start, rest.start), last, UNK, *rest]
    pieces = [model.pieces[i] for i in (first, EOS, UNK, *rest)]
    # What the import put in place of missing pieces is left out.
    while pieces[-1].piece.startswith("<unused_"):
        pieces.pop()
    pieces[0].piece = SPECIALS[PAD]
    data = written_sentencepiece(model, pieces, (-1, 0, 1, 2))
    settings = {"tokenizer_class": "PegasusTokenizer", "offset": OFFSET, **_SPECIAL_TOKENS}
    del settings["bos_token"]
    return WrittenTokenizer({SENTENCEPIECE: data, SETTINGS: _json(settings)}, order)


def _refusal(rule: str) -> UserError:
    return UserError(f"The tokenizer must be {rule}; --to pyramidions, the default, holds it.")


def _json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=1) + "\n").encode()

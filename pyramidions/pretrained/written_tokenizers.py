"""Writes our tokenizers as transformers reads them, with the ids that it expects."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.inference.saved_model import SavedModel
from pyramidions.pretrained.families import Family
from pyramidions.pretrained.sentencepiece_file import UNKNOWN, ModelPiece, read_model, write_model
from pyramidions.pretrained.tokenizers import OFFSET, SENTENCEPIECE, SETTINGS, reserved
from pyramidions.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, ByteLevelTokenizer, Tokenizer

_MASK = "<mask>"
_SPECIAL_TOKENS = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), SPECIALS, strict=True))


class WrittenTokenizer(NamedTuple):
    """A tokenizer as transformers reads it.

    Attributes:
        files: by name.
        order: our id of each of its ids.
    """

    files: dict[str, bytes]
    order: list[int]


def written_tokenizer(model: SavedModel, family: Family) -> WrittenTokenizer:
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
    found = read_model(tokenizer.model_bytes, "The tokenizer")
    names = reserved(OFFSET)
    start = len(SPECIALS)
    if [piece.text for piece in found.pieces[start : start + len(names) - 1]] != names[:-1]:
        raise _refusal("a sentencepiece model with the reserved pieces of PEGASUS, but has none of them")
    rest = range(start + len(names) - 1, len(found.pieces))
    # The last of the reserved pieces is the other of the two.
    first, last = (BOS, PAD) if from_padding else (PAD, BOS)
    order = [first, EOS, *range(start, rest.start), last, UNK, *rest]
    pieces = [
        found.pieces[first]._replace(text=SPECIALS[PAD]),
        found.pieces[EOS],
        ModelPiece(SPECIALS[UNK], UNKNOWN, found.pieces[UNK].score),
        *_used(found.pieces[rest.start :]),
    ]
    data = write_model(pieces, found.others, (-1, 0, 1, 2))
    settings = {"tokenizer_class": "PegasusTokenizer", "offset": OFFSET, **_SPECIAL_TOKENS}
    del settings["bos_token"]
    return WrittenTokenizer({SENTENCEPIECE: data, SETTINGS: _json(settings)}, order)


def _used(pieces: Sequence[ModelPiece]) -> Sequence[ModelPiece]:
    """Leave out what the import put in place of missing pieces."""
    last = next((i for i in reversed(range(len(pieces))) if not pieces[i].text.startswith("<unused_")), -1)
    return pieces[: last + 1]


def _refusal(rule: str) -> UserError:
    return UserError(f"The tokenizer must be {rule}; --to pyramidions, the default, holds it.")


def _json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=1) + "\n").encode()

"""What an export of a summarizer holds for transformers, which reads it with the classes of `pyramidions.hf`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyramidions.base.strict_json import as_json_bytes
from pyramidions.models import PyramidionConfig
from pyramidions.pretrained.export_folder import CODE
from pyramidions.pretrained.places import GENERATION_CONFIG, MODEL_TYPE, TOKENIZER_CONFIG
from pyramidions.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pyramidions.pretrained.saved_model import SavedModel

MODEL, CONFIG, TOKENIZER = "PyramidionsForConditionalGeneration", "PyramidionsConfig", "PyramidionsTokenizer"
#: Where `trust_remote_code` finds the classes.
_MODULE = CODE.removesuffix(".py")
AUTO_MAP = {"AutoConfig": f"{_MODULE}.{CONFIG}", "AutoModelForSeq2SeqLM": f"{_MODULE}.{MODEL}"}
TOKENIZER_MAP = {"AutoTokenizer": [f"{_MODULE}.{TOKENIZER}", None]}
#: What that file says.
CODE_TEXT = f'''\
"""Tells transformers, with `trust_remote_code=True`, where the classes of this model are."""

try:
    from pyramidions.hf import {CONFIG}, {MODEL}, {TOKENIZER}
except ModuleNotFoundError as error:
    if error.name not in ("pyramidions", "pyramidions.hf"):
        raise
    raise ImportError("The model needs pyramidions: install it from its repository, with the extra hf.") from None
'''


def config_fields(model: "SavedModel") -> dict[str, Any]:
    """Return the fields that transformers needs in config.json beside ours."""
    tokenizer = model.tokenizer
    return {
        "model_type": MODEL_TYPE,
        "architectures": [MODEL],
        "auto_map": AUTO_MAP,
        "vocab_size": tokenizer.vocab_size,
        "prefix": list(tokenizer.prefix),
        "marker_id": tokenizer.marker_id,
        "name_end_id": tokenizer.name_end_id,
        "document_separator_id": tokenizer.document_separator_id,
        **_ends(tokenizer),
    }


def tokenizer_fields(model: "SavedModel") -> dict[str, Any]:
    """Return how the tokenizer of transformers reads a text, beside what the tokenizer's own file says."""
    return {
        "model_max_length": model.max_source_positions,
        "max_target_positions": model.max_target_positions,
        "source_prefix": model.source_prefix,
        "queries": model.queries,
        **({"special_token_ids": model.tokenizer.special_tokens} if model.tokenizer.special_tokens else {}),
    }


#: ids that texts begin with, end in, are padded with, and that `generate` begins with
ENDS = ("bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id")


def _ends(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the ids that texts begin with, end in, and are padded with."""
    return {
        "bos_token_id": tokenizer.bos,
        "pad_token_id": tokenizer.pad,
        "eos_token_id": tokenizer.eos,
        # The decoder itself puts another token in its place, where the model begins with one.
        "decoder_start_token_id": tokenizer.eos,
    }


def generation_fields(
    config: PyramidionConfig, target: int, prefix: Sequence[int], ends: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the decoding settings of a model as those of `generate`; padding is never written.

    ``target`` are most tokens of a summary with its end, ``ends`` special ids by their names there. Of the tokens that
    each summary begins with, only one can be forced.
    """
    return {
        **ends,
        **searching(config, target + 1, prefix, ends["eos_token_id"]),
        "suppress_tokens": [ends["pad_token_id"]],
    }


def searching(config: PyramidionConfig, longest: int, prefix: Sequence[int], end: int) -> dict[str, Any]:
    """Return how `generate` searches by default; `longest` counts the first input of the decoder, and the end."""
    forced = {"forced_eos_token_id": end} if config.decoding_forced_end != "no" else {}
    if config.decoding_forced_start == "yes" and len(prefix) == 1:
        forced["forced_bos_token_id"] = prefix[0]
    # Theirs count the first input of the decoder, and the longest the end as well.
    most = min(config.decoding_max_length + 2, longest)
    return {
        "num_beams": config.decoding_beam,
        "length_penalty": config.decoding_length_penalty,
        "max_length": most,
        "min_length": min(config.decoding_min_length + 1, most - 1),
        "no_repeat_ngram_size": config.decoding_no_repeat_ngram,
        "early_stopping": config.decoding_beam > 1 and config.decoding_early_stopping == "yes",
        **forced,
    }


def files(model: "SavedModel") -> dict[str, bytes]:
    """Return the files for transformers beside config.json, weights and tokenizer, by their names."""
    reading = {"tokenizer_class": TOKENIZER, "auto_map": TOKENIZER_MAP, **tokenizer_fields(model)}
    tokenizer = model.tokenizer
    writing = generation_fields(model.config, model.max_target_positions, tokenizer.prefix, _ends(tokenizer))
    if len(tokenizer.ends) > 1:
        writing["eos_token_id"] = [*tokenizer.ends]
    said = {GENERATION_CONFIG: writing, TOKENIZER_CONFIG: reading}
    return {CODE: CODE_TEXT.encode(), **{name: as_json_bytes(fields) for name, fields in said.items()}}

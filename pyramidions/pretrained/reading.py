"""Reads a pretrained model: what it is made of in our terms, and its weights under our names."""

from dataclasses import asdict, replace
from typing import Any, NamedTuple

from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.builder import shapes_alone
from pyramidions.models.config import config_as
from pyramidions.models.fitting import check_fits
from pyramidions.pretrained.families import Settings, Shape, ends_of, shape_of
from pyramidions.pretrained.names import EMBEDDING, TIED, UNTIED
from pyramidions.pretrained.origin import Origin, origin_of
from pyramidions.pretrained.places import LONG, SOURCE, Place
from pyramidions.pretrained.source import Source, read_source
from pyramidions.pretrained.tokenizers import read_tokenizer
from pyramidions.text.tokenizer import Numbering, Tokenizer

# What ours heeds of transformers' generation, and what has no effect on what it writes.
_APPLIED = frozenset(
    """
    num_beams length_penalty max_length min_length max_new_tokens min_new_tokens no_repeat_ngram_size early_stopping
    forced_eos_token_id pad_token_id eos_token_id bos_token_id decoder_start_token_id prefix use_cache return_dict
    transformers_version output_attentions output_hidden_states output_scores output_logits return_dict_in_generate
    """.split()  # noqa: SIM905, a list has a line for each word
)
# Other settings that transformers used to keep in config.json, with the values that change nothing; None never does.
_NEUTRAL: dict[str, Any] = {
    **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty", "temperature", "top_p", "typical_p"), 1.0),
    **dict.fromkeys(("encoder_no_repeat_ngram_size", "diversity_penalty", "epsilon_cutoff", "eta_cutoff"), 0.0),
    **dict.fromkeys(("num_beam_groups", "num_return_sequences"), 1),
    **dict.fromkeys(("bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "sequence_bias")),
    **dict.fromkeys(("exponential_decay_length_penalty", "forced_bos_token_id")),
    "do_sample": False,
    "top_k": 50,
}


class Pretrained(NamedTuple):
    """A pretrained model as it was trained."""

    shape: Shape  # of the model
    config: PyramidionConfig  # of ours, which says all of it
    tokenizer: Tokenizer  # with its own ids
    weights: dict[str, Tensor]  # by our names, in float32
    origin: Origin  # of the weights
    not_applied: dict[str, Any]  # settings of its generation that ours does not have, with their values


def read_pretrained(place: Place) -> Pretrained:
    """Read a pretrained model, or refuse what it is made of and ours cannot be."""
    source = read_source(place, shape_of)
    path = source.path
    shape = shape_of(source)
    vocab_size = source.config.get("vocab_size")
    if not isinstance(vocab_size, int):
        raise UserError(f"The config of {path} must say `vocab_size`, but does not.")
    ids = shape.ids
    _, *others = ends_of(Settings(source, source.generation))
    numbering = Numbering(ids.get("bos"), ids["pad"], ids["eos"], unk=None, rows=vocab_size, ends=tuple(others))
    if source.vocabulary is None:
        tokenizer = read_tokenizer(path, numbering, shape.family.tokenizer_class)
    else:
        tokenizer = Tokenizer.from_bytes(source.vocabulary, numbering)
    forced, prefix = ids.get("forced"), tokenizer.prefix
    if prefix and forced not in (None, prefix[0]):
        raise UserError(
            f"`forced_bos_token_id` in the config of {path} must be {prefix[0]} ({tokenizer.names(prefix)[0]}), with "
            f"which the tokenizer begins each text, but is {forced}."
        )
    start = {ids["eos"]: "</s>", ids["pad"]: "<pad>"}.get(ids["start"], str(ids["start"]))
    # PRIMERA is a LED that says nothing of this in its config (Xiao et al. 2022, section 2.1).
    separates = shape.family.takes_marks and tokenizer.document_separator is not None
    config = replace(shape.config, decoder_start=start, global_markers=separates)
    if LONG in source.config:
        config = config_as(PyramidionConfig, asdict(config) | {"decoding_long": source.config[LONG]})
    weights = pretrained_weights(source, shape, tokenizer)
    origin = origin_of(source.config.get(SOURCE))
    origin = origin or Origin(source.name, shape.family.name, source.commit, source.licence)
    return Pretrained(shape, config, tokenizer, weights, origin, _not_applied(source, bool(prefix)))


def _not_applied(source: Source, begins: bool) -> dict[str, Any]:
    """Return the settings of generation that ours lacks; ``begins`` says that the first token of a summary is forced.

    Any name in generation_config.json is a setting; in config.json, those that transformers used to keep there.
    """
    applied = _APPLIED | {"forced_bos_token_id"} if begins else _APPLIED
    given = source.generation
    if given.get("early_stopping") == "never":
        applied = applied - {"early_stopping"}
    if not given.get("do_sample"):
        applied = applied | {"temperature", "top_k", "top_p", "typical_p", "epsilon_cutoff", "eta_cutoff"}
    return {
        name: given[name]
        for name in sorted(source.said | (_NEUTRAL.keys() & given.keys()))
        if name not in applied
        and not name.startswith("_")
        and given[name] not in (None, False, [], {})
        and given[name] != _NEUTRAL.get(name)
    }


def pretrained_weights(source: Source, shape: Shape, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Return the weights of a pretrained model by our names, in float32, or refuse those that do not fit its config."""
    found, rows = shape.family.weights(source, shape), tokenizer.vocab_size
    if found[EMBEDDING].dim() != 2 or len(found[EMBEDDING]) < rows:
        raise UserError(
            f"The embedding of {source.path} must have {rows:,} rows, the `vocab_size` of its config, but its shape is "
            f"{tuple(found[EMBEDDING].shape)}."
        )
    # Some files hold more rows than their config tells of.
    for name in found.keys() & {EMBEDDING, UNTIED}:
        found[name] = found[name][:rows]
    found[TIED] = found[EMBEDDING]
    with shapes_alone():
        lengths = {"max_target_positions": shape.max_target_positions}
        expected = build(shape.config, rows, tokenizer.pad, **lengths).state_dict()
    check_fits(f"The weights of {source.path} do not fit its config", found, expected)
    return found

"""Reads a pretrained model: what it is made of in our terms, and its weights under our names."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.builder import shapes_alone
from pyramidions.pretrained.families import Shape, shape_of
from pyramidions.pretrained.names import EMBEDDING, TIED, UNTIED
from pyramidions.pretrained.origin import Origin
from pyramidions.pretrained.source import Source, read_source
from pyramidions.pretrained.tokenizers import ImportedTokenizer, SpecialIds, from_vocabulary, import_tokenizer
from pyramidions.text.tokenizer import BOS, EOS, PAD

# Settings of transformers' generation, with the values that change nothing.
_NOT_APPLIED: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "do_sample": False,
}
_STARTS = {EOS: "</s>", BOS: "<s>"}


class Pretrained(NamedTuple):
    """A pretrained model as it was trained.

    Attributes:
        shape: of the model.
        config: of ours, which says all of it.
        tokenizer: with our ids.
        weights: by our names, in float32.
        origin: of the weights.
        not_applied: settings of its generation that ours does not have, with their values.
    """

    shape: Shape
    config: PyramidionConfig
    tokenizer: ImportedTokenizer
    weights: dict[str, Tensor]
    origin: Origin
    not_applied: dict[str, Any]

    def settings(self) -> dict[str, Any]:
        """Return what a checkpoint of such a model says beside its config and its weights, the tokenizer as it is."""
        return {
            "max_source_positions": self.shape.max_source_positions,
            "max_target_positions": self.shape.max_target_positions,
            "source_prefix": self.shape.source_prefix,
            "source": self.origin.known(),
            "tokenizer": self.tokenizer.tokenizer,
        }


def read_pretrained(path: str | Path) -> Pretrained:
    """Read a pretrained model.

    Args:
        path: a folder as the Hugging Face hub has it: config, weights, tokenizer; or what is no path here,
            OWNER/NAME or OWNER/NAME@REVISION on the hub.

    Raises:
        UserError: a file is missing or damaged; the model is of another family, or what it is made of ours cannot be.
    """
    source = read_source(path, shape_of)
    path = source.path
    shape = shape_of(source)
    vocab_size = source.config.get("vocab_size")
    if not isinstance(vocab_size, int):
        raise UserError(f"The config of {path} must say `vocab_size`, but does not.")
    said = SpecialIds(**{name: shape.ids.get(name) for name in ("bos", "pad", "eos", "start", "forced")})
    if source.vocabulary is None:
        found = import_tokenizer(path, vocab_size, said, shape.family.tokenizer)
    else:
        found = from_vocabulary(source.vocabulary, vocab_size, said)
    start = _start(source, found.id_of(shape.ids["start"]))
    # PRIMERA is a LED that says nothing of this in its config (Xiao et al. 2022, section 2.1).
    separates = shape.family.takes_marks and found.tokenizer.document_separator is not None
    config = replace(shape.config, decoder_start=start, global_markers=separates)
    weights = pretrained_weights(source, shape, torch.tensor(found.rows))
    origin = Origin(source.name, shape.family.name, source.commit, source.licence)
    given = {name: source.generation.get(name, usual) for name, usual in _NOT_APPLIED.items()}
    not_applied = {name: value for name, value in given.items() if value not in (None, _NOT_APPLIED[name])}
    return Pretrained(shape, config, found, weights, origin, not_applied)


def _start(source: Source, start: int) -> str:
    if start not in _STARTS:
        raise UserError(
            f"The decoder of {source.path} must start from {' or '.join(_STARTS.values())}, but its config says "
            f"`decoder_start_token_id` {source.generation.get('decoder_start_token_id')}."
        )
    return _STARTS[start]


def pretrained_weights(source: Source, shape: Shape, order: Tensor) -> dict[str, Tensor]:
    """Return the weights of a pretrained model by our names, in float32.

    Args:
        source: the model.
        shape: its architecture.
        order: (V,), the row of its embedding that each of our ids has.

    Raises:
        UserError: a weight is missing, or has no place, or another shape; or sinusoids are not those of the family.
    """
    found = shape.family.weights(source, shape)
    embedding = found[EMBEDDING]
    if embedding.dim() != 2 or not 0 <= int(order.min()) <= int(order.max()) < len(embedding):
        raise UserError(
            f"The tokenizer must fit the embedding of {source.path}, but has {len(order):,} pieces for "
            f"{len(embedding):,} rows."
        )
    found[EMBEDDING] = found[TIED] = embedding[order]
    if (output := found.get(UNTIED)) is not None and len(output) == len(embedding):
        found[UNTIED] = output[order]
    with shapes_alone():
        expected = build(shape.config, len(order), PAD, max_target_positions=shape.max_target_positions).state_dict()
    head = f"The weights of {source.path} do not fit its config:"
    for name in sorted(expected.keys() ^ found.keys()):
        raise UserError(f"{head} {name} {'is missing' if name in expected else 'has no place in the model'}.")
    for name, value in expected.items():
        if value.shape != found[name].shape:
            raise UserError(f"{head} {name} must be {tuple(value.shape)}, but is {tuple(found[name].shape)}.")
    return found

"""From a config to a model with freshly initialised weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyramidions.base.errors import UserError
from pyramidions.models.assembly import Assembly
from pyramidions.models.config import (
    MAX_TARGET_POSITIONS,
    STARTS,
    EncoderConfig,
    ExtractorConfig,
    LanguageModelConfig,
    PyramidionConfig,
)
from pyramidions.models.parse import extractor_spec_of, hourglass_spec_of, spec_of
from pyramidions.models.rules import NEEDS_MARKERS, marker_of_units
from pyramidions.models.spec import EncoderSpec
from pyramidions.nn import LanguageModel, SentenceRanker, Transformer
from pyramidions.nn.functional.kernels import use_kernels
from pyramidions.nn.selector import SELECTOR
from pyramidions.nn.structure import StructureOf

Built = TypeVar("Built", bound=nn.Module)


def build(
    config: PyramidionConfig,
    vocab_size: int,
    padding_idx: int = 1,
    marker_idx: int | None = None,
    max_target_positions: int = MAX_TARGET_POSITIONS,
    separator_idx: int | None = 2,
    name_end_idx: int | None = None,
    document_separator_idx: int | None = None,
) -> Transformer:
    """Build a model with freshly initialised weights.

    Args:
        config: its shape.
        vocab_size: V, specials included.
        padding_idx: the token that is padding.
        marker_idx: the token before sentences or turns, or None if the vocabulary has none.
        max_target_positions: tokens of the longest summary; of documents the config says it.
        separator_idx: the token between a query and its document; None for documents without queries.
        name_end_idx: the token behind the name that a turn begins with, or None if the vocabulary has none.
        document_separator_idx: the token behind each of several documents, or None if the vocabulary has none;
            `global_markers` makes it global where there are no other markers.

    Raises:
        UserError: a field, or an option of a part, breaks a rule.
    """
    spec = spec_of(config)
    start = _start(config.decoder_start, vocab_size, padding_idx)
    # What a decoder starts from is trained like any other token.
    embedding = _embedding(config.embed_dim, vocab_size, padding_idx, trained=start == padding_idx)
    builder = Assembly(config, vocab_size)
    with _rules_of_parts():
        tokens = StructureOf(marker_of_units(spec, marker_idx), separator_idx, name_end_idx)
        structure_of = _completed(
            tokens, config, spec.encoder, document_separator_idx if marker_idx is None else marker_idx
        )
        encoder = builder.encoder(spec.encoder, embedding, structure_of, merges=not spec.reads_streams)
        decoder = builder.decoder(spec, embedding, max_target_positions, start)
        encoder.tells_origins = decoder.output.points
        return _computing(Transformer(encoder, decoder, padding_idx), config)


def build_extractor(
    config: ExtractorConfig, vocab_size: int, marker_idx: int | None, padding_idx: int = 1
) -> SentenceRanker:
    """Build a model that rates sentences, as `build` does; the vocabulary must have a sentence marker."""
    if marker_idx is None:
        raise UserError(
            "An extractor needs a vocabulary with sentence markers: prepare the data with --sentence-markers."
        )
    spec = extractor_spec_of(config)
    embedding = _embedding(config.embed_dim, vocab_size, padding_idx)
    with _rules_of_parts():
        structure_of = _completed(StructureOf(marker_idx), config, spec.encoder, marker_idx)
        assembly = Assembly(config, vocab_size)
        encoder = assembly.encoder(spec.encoder, embedding, structure_of)
        return _computing(SentenceRanker(encoder, assembly.made(SELECTOR, spec.selector), padding_idx), config)


def build_language_model(
    config: LanguageModelConfig, vocab_size: int, padding_idx: int = 1, space_idx: int | None = None
) -> LanguageModel:
    """Build a language model, as `build` does; ``space_idx`` is the token that is the space, or None without one."""
    spec = hourglass_spec_of(config)
    embedding = _embedding(config.embed_dim, vocab_size, padding_idx)
    with _rules_of_parts():
        return Assembly(config, vocab_size).language_model(spec, embedding, padding_idx, space_idx)


def _completed(
    tokens: StructureOf, config: PyramidionConfig | ExtractorConfig, spec: EncoderSpec, marker_idx: int | None
) -> StructureOf:
    """Add what a config says of global tokens, and whether a part reads the query."""
    if config.global_markers and marker_idx is None:
        raise UserError(f"`global_markers` {NEEDS_MARKERS}")
    return tokens._replace(
        global_tokens=config.global_tokens,
        global_marker=marker_idx if config.global_markers else None,
        global_query=config.global_query,
        reads_query=spec.reads_query,
    )


def _computing(model: Built, config: EncoderConfig) -> Built:
    """Return a model whose windows are computed as its config says."""
    use_kernels(model, config.kernels)
    return model


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Build models without memory and without values, on the meta device.

    No value is drawn either: for a normal one on that device, torch imports 800 modules, which takes over a second.
    """
    with torch.device("meta"), _NoDraws():
        yield


class _NoDraws(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _start(text: str, vocab_size: int, padding_idx: int) -> int | None:
    """Return the id that a decoder starts from; None for the one that it is given, which is the end of a text."""
    named = {"</s>": None, "<pad>": padding_idx, "<s>": 0}
    if text in named:
        return named[text]
    if not text.isdecimal() or not text.isascii() or int(text) >= vocab_size:
        raise UserError(
            f"`decoder_start` must be {', '.join(STARTS)} or an id below {vocab_size}, the vocabulary, but is {text!r}."
        )
    return int(text)


def _embedding(embed_dim: int, vocab_size: int, padding_idx: int, trained: bool = False) -> nn.Embedding:
    if vocab_size <= padding_idx:
        raise UserError(f"`vocab_size` must be above {padding_idx}, the padding, but is {vocab_size}.")
    embedding = nn.Embedding(vocab_size, embed_dim, None if trained else padding_idx)
    nn.init.normal_(embedding.weight, std=embed_dim**-0.5)
    nn.init.zeros_(embedding.weight[padding_idx])
    return embedding


@contextmanager
def _rules_of_parts() -> Iterator[None]:
    """Turn a rule that a config broke into a `UserError`: parts know their rules, but not who broke one."""
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        raise UserError(str(error)) from error

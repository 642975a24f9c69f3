"""Turns a pretrained model into one of ours, with another architecture if asked for, and into a checkpoint."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, parse_part, parse_parts, written
from pyramidions.models import PyramidionConfig
from pyramidions.models.config import check_lengths, config_as
from pyramidions.models.formats import FORMAT, VOCABULARY, fingerprint
from pyramidions.nn import Transformer
from pyramidions.nn.pooling import POOLING
from pyramidions.pretrained.calibration import spread_scores
from pyramidions.pretrained.checkpoint_file import save_checkpoint
from pyramidions.pretrained.families import Shape
from pyramidions.pretrained.names import POSITIONS, extended
from pyramidions.pretrained.origin import Origin
from pyramidions.pretrained.places import place_of
from pyramidions.pretrained.reading import read_pretrained
from pyramidions.pretrained.saved_model import SavedModel, load_model, summarizer_of
from pyramidions.text.tokenizer import Tokenizer

# Attention that tells near from far, for families without positions.
_KNOW_ORDER = {"bucketed", "transient_global"}
# As fairseq registers them.
_MODEL, _TASK = "pyramidion", "long_document_summarization"
_POSITIONS = ("encoder_positions", "decoder_positions")


@dataclass
class Transfer:
    """What became of the weights, by our names."""

    taken: list[str] = field(default_factory=list)  # as they were
    # Tables of positions that were copied to be longer, each with its old and its new length.
    extended: dict[str, tuple[int, int]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)  # initialised here
    dropped: list[str] = field(default_factory=list)  # that the model has no place for


class Imported(NamedTuple):
    """A pretrained model as one of ours."""

    model: SavedModel  #: with the architecture that was asked for
    original: SavedModel  #: with the architecture that it was trained with; the same if nothing else was asked for
    transfer: Transfer  #: what became of the weights
    spread: list[str]  #: scorers that were scaled to begin with scores that spread
    origin: Origin  #: of the weights
    not_applied: dict[str, Any]  #: settings of its generation that ours does not have


def import_model(
    path: str | Path,
    *,
    max_source_positions: int | None = None,
    max_target_positions: int | None = None,
    changes: Mapping[str, Any] | None = None,
    seed: int = 1,
) -> Imported:
    """Read a pretrained model.

    Args:
        path: a folder as the Hugging Face hub has it: config, weights, tokenizer; or what is no path here,
            OWNER/NAME or OWNER/NAME@REVISION on the hub.
        max_source_positions: tokens of the longest document; as pretrained if None.
        max_target_positions: tokens of the longest summary; likewise.
        changes: fields of the config that shall differ.
        seed: of what is initialised.

    Raises:
        UserError: a file is missing or damaged; the model is of another family, or what it is made of ours cannot be;
            or what is asked for breaks a rule.
    """
    place = place_of(path)
    if place.kind == "export":
        return _of_export(path, changes or {}, max_source_positions, max_target_positions)
    pretrained = read_pretrained(place)
    shape, tokenizer, weights, origin = pretrained.shape, pretrained.tokenizer, pretrained.weights, pretrained.origin
    base = asdict(pretrained.config)
    lengths = (
        shape.max_source_positions if max_source_positions is None else max_source_positions,
        shape.max_target_positions if max_target_positions is None else max_target_positions,
    )
    check_lengths(*lengths)

    def of(config: PyramidionConfig, source_length: int, target_length: int) -> tuple[SavedModel, Transfer]:
        transformer, transfer = transferred(weights, config, target_length, tokenizer, seed)
        about = origin, False, shape.source_prefix
        return SavedModel(transformer, config, tokenizer, source_length, target_length, *about), transfer

    own = config_as(PyramidionConfig, base)
    asked = config_as(PyramidionConfig, _longer({**base, **(changes or {})}, shape, lengths))
    output = parse_part("output", asked.output)
    if own.output == "untied" and output.kind == "pointer":
        # Its vocabulary is scored as before.
        asked = asked.replace(output=Part("pointer", {**output.options, "tied": False}))
    _check_asked(asked, own, shape.family.name)
    original, _ = of(own, shape.max_source_positions, shape.max_target_positions)
    model, transfer = of(asked, *lengths)
    if any(re.match(r"decoder\.output\.(?!pointer\.)", name) for name in transfer.new):
        raise UserError(
            f"`output` must score the vocabulary as the pretrained {shape.family.name} does ({own.output}, pointer), "
            f"but is {asked.output}."
        )
    new = {name.removeprefix("encoder.") for name in transfer.new if name.startswith("encoder.")}
    spread = spread_scores(model.transformer.encoder, new)
    return Imported(model, original, transfer, spread, origin, pretrained.not_applied)


def transferred(
    weights: dict[str, Tensor], config: PyramidionConfig, max_target_positions: int, tokenizer: Tokenizer, seed: int = 1
) -> tuple[Transformer, Transfer]:
    """Build a model, and give it the weights of `pretrained_weights` that it has a place for.

    Positions are copied to a longer table, as LED's are from BART's (Beltagy et al. 2020, section 7.1). Second
    projections, of global positions, start as copies of the first. What is initialised has a seed. A weight of another
    shape is refused, and so is a table of positions that would have to shrink.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = summarizer_of(config, tokenizer, max_target_positions).eval()
    done, given = Transfer(), dict(weights)
    for name, own in model.state_dict().items():
        # An output that points has the vocabulary's inside.
        value = given.pop(name if name in given else name.replace("output.vocabulary.", "output."), None)
        if value is None:
            value = weights.get(name.replace(".global_rows.", "."))
            done.new.append(name)
        elif name in POSITIONS and len(own) != len(value):
            done.extended[name] = (len(value), len(own))
            value = extended(value, len(own))
        else:
            done.taken.append(name)
        if value is None:
            continue
        if value.shape != own.shape:
            raise UserError(f"{name} must be {tuple(own.shape)} in the model asked for, but is {tuple(value.shape)}.")
        own.copy_(value)
    done.dropped = list(given)
    return model, done


def _check_asked(asked: PyramidionConfig, own: PyramidionConfig, family: str) -> None:
    """Refuse an architecture that would forget what a model of a family learned."""
    kinds = {part.kind for layers in parse_parts("self_attention", asked.self_attention) for part in layers}
    if own.encoder_positions == "none" and not kinds <= _KNOW_ORDER:
        raise UserError(
            f"`self_attention` must be of kinds with biases of distances ({', '.join(sorted(_KNOW_ORDER))}), since the "
            f"pretrained {family} has no other positions, but is {asked.self_attention}."
        )
    for part in chain(*(parse_parts("pooling", asked.pooling) if asked.pooling_lengths else ())):
        if POOLING[part.kind].takes_layer:
            raise UserError(f"`pooling` must not be {part.kind}, which replaces a layer of the pretrained {family}.")
    for name in ("embed_dim", "ffn_embed_dim", "num_heads"):
        if getattr(asked, name) != getattr(own, name):
            raise UserError(
                f"`{name}` must be {getattr(own, name)}, as in the pretrained {family}, but is {getattr(asked, name)}."
            )


def _of_export(path: str | Path, changes: Mapping[str, Any], *lengths: int | None) -> Imported:
    """Read an export of ours, which keeps its architecture."""
    if changes or lengths != (None, None):
        raise UserError(f"{path} is an export of ours, which keeps its architecture and lengths: ask for no others.")
    model = load_model(path)
    origin = model.origin or Origin(Path(path).resolve().name, "pyramidions")
    return Imported(model, model, Transfer(taken=list(model.transformer.state_dict())), [], origin, {})


def write_checkpoint(path: Path, model: SavedModel) -> None:
    """Write a model that no update has changed yet as a checkpoint of fairseq, which appears whole or not at all."""
    weights = {
        name.replace(".", ".core.", 1): value.contiguous() for name, value in model.transformer.state_dict().items()
    }
    weights[VOCABULARY] = torch.tensor(fingerprint(model.tokenizer.pieces()))
    lengths = {"max_source_positions": model.max_source_positions, "max_target_positions": model.max_target_positions}
    state: dict[str, Any] = {
        "args": None,
        "cfg": {
            "model": {"_name": _MODEL, "config_format": FORMAT, **asdict(model.config)},
            "task": {"_name": _TASK, "data": "", **lengths, "source_prefix": model.source_prefix},
        },
        "model": weights,
        "criterion": None,
        "optimizer_history": [
            {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {"best": None}, "num_updates": 0}
        ],
        "task_state": {**lengths, "source_prefix": model.source_prefix, **model.tokenizer.as_recorded()},
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
        "source": None if model.origin is None else model.origin.known(),
    }
    save_checkpoint(path, state)


def _longer(values: dict[str, Any], shape: Shape, lengths: tuple[int, int]) -> dict[str, Any]:
    """Return the fields of a model for texts of these lengths."""
    values["max_source_positions"] = lengths[0]
    # A table is as long as what was pretrained, or longer.
    pretrained = (shape.max_source_positions, shape.max_target_positions)
    for name, length, known in zip(_POSITIONS, lengths, pretrained, strict=True):
        if parse_part("positions", values[name]).kind == "learned":
            values[name] = written(Part("learned", {"length": max(length, known)}))
    values["decoding_max_length"] = min(values["decoding_max_length"], lengths[1] - 2)
    values["decoding_min_length"] = min(values["decoding_min_length"], values["decoding_max_length"])
    return values

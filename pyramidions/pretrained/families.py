"""The families of pretrained models that can be imported, and what their configs mean for ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyramidions.base.arguments import fits, rule_of, shown
from pyramidions.base.errors import UserError
from pyramidions.inference.export_folder import foreign
from pyramidions.models import PyramidionConfig
from pyramidions.models.config import config_as
from pyramidions.models.notation import written, written_parts
from pyramidions.models.spec import Part
from pyramidions.pretrained.source import Source

#: Transformers' names of activations, and ours.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_PUBLISHED_SINUSOIDS = {"first": 0, "frequencies": "published"}


@dataclass(frozen=True)
class Family:
    """How the models of a family differ beyond what their configs say.

    Attributes:
        name: what their configs call it.
        normalize_before: pre-norm, with a norm of the last layer's output.
        normalizes_embeddings: a norm follows the embeddings.
        learns_positions: positions are a table; else sinusoids, as Vaswani et al. (2017) publish them.
        unused_positions: rows of the tables of positions in front, which no token has.
        windowed: the encoder's attention is Longformer's.
        in_blocks: the encoder's attention is BigBird's, and projections have no biases unless the config says so.
        final_norm: what the norm of the last layer's output is called.
    """

    name: str
    normalize_before: bool = False
    normalizes_embeddings: bool = True
    learns_positions: bool = True
    unused_positions: int = 0
    windowed: bool = False
    in_blocks: bool = False
    final_norm: str = "layer_norm"


FAMILIES = {
    family.name: family
    for family in (
        Family("bart", unused_positions=2),
        Family("led", windowed=True),
        Family("pegasus", normalize_before=True, normalizes_embeddings=False, learns_positions=False),
        Family(
            "bigbird_pegasus",
            normalize_before=True,
            normalizes_embeddings=False,
            in_blocks=True,
            # It stands behind the last layer, whatever its name says.
            final_norm="layernorm_embedding",
        ),
    )
}


@dataclass(frozen=True)
class Shape:
    """A pretrained model's architecture in our terms.

    Attributes:
        family: it belongs to.
        config: of ours.
        max_source_positions: most tokens of a document.
        max_target_positions: most tokens of a summary.
        ids: of the special tokens: "pad", "eos", "start" of the decoder's input, and "bos" and "forced", the first
            token of each summary, where there are any.
    """

    family: Family
    config: PyramidionConfig
    max_source_positions: int
    max_target_positions: int
    ids: dict[str, int]


def shape_of(source: Source) -> Shape:
    """Return the architecture of a pretrained model.

    Raises:
        UserError: a model of another family, or one whose config says what ours cannot be.
    """
    read = _Settings(source)
    family = FAMILIES.get(name := read.one("model_type", str))
    if family is None:
        raise foreign(source.path, name)
    for name, expected in _ALWAYS.items():
        read.must_be(name, expected)
    for name, expected in (
        ("normalize_before", family.normalize_before),
        ("add_final_layer_norm", family.normalize_before),
        ("normalize_embedding", family.normalizes_embeddings),
        ("static_position_embeddings", not family.learns_positions),
    ):
        read.must_be(name, expected)
    lengths = _lengths(read, family)
    positions = [
        Part("learned", {"length": n}) if family.learns_positions else Part("sinusoidal", _PUBLISHED_SINUSOIDS)
        for n in lengths
    ]
    values = {
        "embed_dim": read.one("d_model", int),
        "ffn_embed_dim": read.same("encoder_ffn_dim", "decoder_ffn_dim"),
        "num_heads": read.same("encoder_attention_heads", "decoder_attention_heads"),
        "encoder_layers": read.one("encoder_layers", int),
        "decoder_layers": read.one("decoder_layers", int),
        "feed_forward": written(Part("dense", {"activation": read.activation()})),
        "normalize_before": family.normalize_before,
        "layernorm_embedding": family.normalizes_embeddings,
        "no_scale_embedding": not read.one("scale_embedding", bool, False),
        "encoder_positions": written(positions[0]),
        "decoder_positions": written(positions[1]),
        "max_source_positions": lengths[0],
        **{name: read.one(name, float, 0.0) for name in ("dropout", "attention_dropout", "activation_dropout")},
        **_decoding(_Settings(source, source.generation), lengths[1]),
    }
    if family.windowed:
        values |= _windows(read, values["encoder_layers"])
    if family.in_blocks:
        values |= _blocks(read)
    return Shape(family, config_as(PyramidionConfig, values), *lengths, _ids(_Settings(source, source.generation)))


# What all of our models are.
_ALWAYS: Mapping[str, Any] = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "add_bias_logits": False,
    "add_cross_attention": False,
}


class _Settings:
    """Reads the settings of a config from outside.

    Args:
        source: of the model, for errors.
        values: by name; those of config.json if None.
    """

    def __init__(self, source: Source, values: dict[str, Any] | None = None) -> None:
        self.path = source.path
        self.values = source.config if values is None else values

    def one(self, name: str, kind: Any, default: Any = None) -> Any:
        """Return a setting of a type; it must be there unless there is a default."""
        found = self.values.get(name)
        if found is None:
            if default is None:
                raise UserError(f"The config of {self.path} must say `{name}`, but does not.")
            return default
        if not fits(found, kind):
            raise UserError(f"`{name}` in the config of {self.path} must be {rule_of(kind)}, but is {shown(found)}.")
        return found

    def same(self, name: str, other: str) -> int:
        """Return a number that has two names."""
        first, second = self.one(name, int), self.one(other, int)
        if first != second:
            raise UserError(
                f"`{name}` and `{other}` in the config of {self.path} must be equal, but are {first} and {second}."
            )
        return int(first)

    def must_be(self, name: str, expected: Any) -> None:
        """Refuse another value than this one, if the config has any."""
        found = self.values.get(name)
        if found is not None and found != expected:
            raise UserError(f"`{name}` in the config of {self.path} must be {expected}, but is {shown(found)}.")

    def activation(self) -> str:
        name = self.one("activation_function", str)
        if name not in ACTIVATIONS:
            raise UserError(
                f"`activation_function` in the config of {self.path} must be one of {', '.join(ACTIVATIONS)}, "
                f"but is {shown(name)}."
            )
        return ACTIVATIONS[name]


def _lengths(read: _Settings, family: Family) -> tuple[int, int]:
    if family.windowed:
        return read.one("max_encoder_position_embeddings", int), read.one("max_decoder_position_embeddings", int)
    both = read.one("max_position_embeddings", int)
    return both, both


def _windows(read: _Settings, layers: int) -> dict[str, Any]:
    """Return the encoder's attention: windows, of one size or one per layer, and a first token that all can see."""
    given = read.one("attention_window", int | list[int])
    sizes = given if isinstance(given, list) else [given] * layers
    if len(sizes) != layers:
        raise UserError(
            f"`attention_window` in the config of {read.path} must have one entry per layer, {layers}, but has "
            f"{len(sizes)}."
        )
    windows = [Part("sliding_window", {"window": size}) for size in sizes]
    return {
        "self_attention": written_parts([windows[:1] if len(set(sizes)) == 1 else windows]),
        # As its authors do in summarization (section 7.1).
        "global_tokens": 1,
        "global_projections": "dense",
    }


def _blocks(read: _Settings) -> dict[str, Any]:
    """Return the encoder's attention: that of BigBird, unless the config says that it is full."""
    kinds = ("block_sparse", "original_full")
    if (kind := read.one("attention_type", str, kinds[0])) not in kinds:
        raise UserError(
            f"`attention_type` in the config of {read.path} must be {' or '.join(kinds)}, but is {shown(kind)}."
        )
    if kind == kinds[1]:
        return {}
    options = {"block_size": read.one("block_size", int), "random_blocks": read.one("num_random_blocks", int)}
    return {"self_attention": written(Part("bigbird", options))}


def _decoding(read: _Settings, longest: int) -> dict[str, Any]:
    """Return how the model is meant to write; lengths of transformers' count the first input of the decoder."""
    most = min(read.one("max_length", int, longest), longest) - 2
    return {
        "decoding_beam": read.one("num_beams", int, 4),
        "decoding_length_penalty": read.one("length_penalty", float, 1.0),
        "decoding_max_length": most,
        "decoding_min_length": min(max(read.one("min_length", int, 0) - 1, 0), most),
        "decoding_no_repeat_ngram": read.one("no_repeat_ngram_size", int, 0),
    }


def _ids(read: _Settings) -> dict[str, int]:
    names = {
        "pad": "pad_token_id",
        "eos": "eos_token_id",
        "start": "decoder_start_token_id",
        "bos": "bos_token_id",
        "forced": "forced_bos_token_id",
    }
    found = {ours: read.one(theirs, int, -1) for ours, theirs in names.items()}
    for ours in ("pad", "eos", "start"):
        if found[ours] < 0:
            raise UserError(f"The config of {read.path} must say `{names[ours]}`, but does not.")
    return {name: value for name, value in found.items() if value >= 0}

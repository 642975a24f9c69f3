"""BART and its like: LED, PEGASUS, BigBird-PEGASUS and mBART-50."""

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, written, written_parts
from pyramidions.models import PyramidionConfig
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.pretrained.families.family import (
    FAMILIES,
    Family,
    Settings,
    Shape,
    activation_of,
    name_of_activation,
    parts_of,
    shaped,
)
from pyramidions.pretrained.names import EMBEDDING, LOGITS_BIAS, POSITIONS, SHARED, extended, names_of, renamed
from pyramidions.pretrained.source import Source

_PUBLISHED_SINUSOIDS = {"first": 0, "frequencies": "published"}


@dataclass(frozen=True)
class Bart(Family):
    """How a family differs from the others that are like BART, beyond what configs say."""

    name: str  # what their configs call it
    class_name: str  # what transformers calls their class
    tokenizer_class: str = "BartTokenizer"  # as in `Family`
    normalize_before: bool = False  # pre-norm, with a norm of the last layer's output
    normalizes_embeddings: bool = True  # a norm follows the embeddings
    learns_positions: bool = True  # positions are a table; else sinusoids, as Vaswani et al. (2017) publish them.
    unused_positions: int = 0  # rows of the tables of positions in front, which no token has
    windowed: bool = False  # the encoder's attention is Longformer's
    # The encoder's attention is BigBird's, and projections have no biases unless the config says so.
    in_blocks: bool = False
    final_norm: str = "layer_norm"  # what the norm of the last layer's output is called

    def shape(self, source: Source) -> Shape:
        read = Settings(source)
        own = {
            "normalize_before": self.normalize_before,
            "add_final_layer_norm": self.normalize_before,
            "normalize_embedding": self.normalizes_embeddings,
            "static_position_embeddings": not self.learns_positions,
        }
        for name, expected in (_ALWAYS | own).items():
            read.must_be(name, expected)
        lengths = _lengths(read)
        positions = [
            Part("learned", {"length": n}) if self.learns_positions else Part("sinusoidal", _PUBLISHED_SINUSOIDS)
            for n in lengths
        ]
        activation = activation_of(read, "activation_function", read.one("activation_function", str))
        values = {
            "embed_dim": read.one("d_model", int),
            "ffn_embed_dim": read.same("encoder_ffn_dim", "decoder_ffn_dim"),
            "num_heads": read.same("encoder_attention_heads", "decoder_attention_heads"),
            "encoder_layers": read.one("encoder_layers", int),
            "decoder_layers": read.one("decoder_layers", int),
            "feed_forward": written(Part("dense", {"activation": activation})),
            "normalize_before": self.normalize_before,
            "layernorm_embedding": self.normalizes_embeddings,
            # LED never scales embeddings, whatever its config says.
            "no_scale_embedding": self.windowed or not read.one("scale_embedding", bool, False),
            "encoder_positions": written(positions[0]),
            "decoder_positions": written(positions[1]),
            "max_source_positions": lengths[0],
            **{name: read.one(name, float, 0.0) for name in ("dropout", "attention_dropout", "activation_dropout")},
        }
        if self.windowed:
            values |= _windows(read, values["encoder_layers"])
        if self.in_blocks:
            values |= _blocks(read)
        return shaped(self, source, values, lengths)

    def weights(self, source: Source, shape: Shape) -> dict[str, Tensor]:
        found = renamed(source.weights, self.final_norm)
        for name, length in zip(POSITIONS, (shape.max_source_positions, shape.max_target_positions), strict=True):
            if name not in found:
                continue
            if (dimensions := found[name].dim()) != 2:
                raise UserError(f"{name} of {source.path} must have two dimensions, but has {dimensions}.")
            if self.learns_positions:
                found[name] = found[name][self.unused_positions :].contiguous()
            else:
                _check_sinusoids(found.pop(name), length, name)
        if self.in_blocks and not source.config.get("use_bias"):
            # Ours have biases, and start without an effect.
            projections = [name for name in found if re.search(r"\.projections\.\w+\.weight$", name)]
            found |= {name.removesuffix("weight") + "bias": torch.zeros(len(found[name])) for name in projections}
        return {name: value.float() for name, value in found.items()}

    def config_json(self, config: PyramidionConfig, lengths: tuple[int, int]) -> dict[str, Any]:
        activation = parts_of(config, "feed_forward")[0].options.get("activation", "relu")
        found = {
            "d_model": config.embed_dim,
            "encoder_layers": config.encoder_layers,
            "decoder_layers": config.decoder_layers,
            **{f"{coder}_attention_heads": config.num_heads for coder in ("encoder", "decoder")},
            **{f"{coder}_ffn_dim": config.ffn_embed_dim for coder in ("encoder", "decoder")},
            **{name: getattr(config, name) for name in ("dropout", "attention_dropout", "activation_dropout")},
            "activation_function": name_of_activation(activation),
        }
        if self.windowed:
            names = ("max_encoder_position_embeddings", "max_decoder_position_embeddings")
            return {**found, **dict(zip(names, lengths, strict=True)), "attention_window": _sizes(config)}
        # Those of the hub say the last two, which CTranslate2 reads.
        return {
            **found,
            "max_position_embeddings": max(lengths),
            "scale_embedding": not config.no_scale_embedding,
            "normalize_before": self.normalize_before,
            "normalize_embedding": self.normalizes_embeddings,
        }

    @property
    def takes_marks(self) -> bool:
        return self.windowed

    def state_dict(
        self, own: dict[str, Tensor], config: PyramidionConfig, lengths: tuple[int, int]
    ) -> dict[str, Tensor]:
        own, theirs = dict(own), names_of(config.encoder_layers, config.decoder_layers, self.windowed)
        for name in theirs:
            # Without second projections, global positions have those of all others.
            if ".global_rows." in name and name not in own:
                own[name] = own[name.replace(".global_rows.", ".")].clone()
        own |= self._tables(own, lengths if self.windowed else (max(lengths),) * 2)
        head, embedding = "led" if self.windowed else "model", own.pop(EMBEDDING)
        weights = {f"{head}.{SHARED[0]}": embedding, LOGITS_BIAS: torch.zeros(1, len(embedding))}
        return weights | {f"{head}.{theirs[name]}": value for name, value in own.items()}

    def _tables(self, own: dict[str, Tensor], lengths: tuple[int, int]) -> dict[str, Tensor]:
        """Return the tables of positions, which transformers has for sinusoids, too."""
        found = {}
        for name, length in zip(POSITIONS, lengths, strict=True):
            if self.learns_positions:
                table = extended(own[name], length)
                found[name] = torch.cat([table.new_zeros(self.unused_positions, table.size(1)), table])
            else:
                sinusoids = SinusoidalPositions(own[EMBEDDING].size(1), 0, "published")
                found[name] = sinusoids(torch.arange(length), length)
        return found


# What all of our models are.
_ALWAYS: dict[str, Any] = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "add_bias_logits": False,
    "add_cross_attention": False,
}


def _lengths(read: Settings) -> tuple[int, int]:
    if "max_encoder_position_embeddings" in read.values:
        return read.one("max_encoder_position_embeddings", int), read.one("max_decoder_position_embeddings", int)
    both = read.one("max_position_embeddings", int)
    return both, both


def _windows(read: Settings, layers: int) -> dict[str, Any]:
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


def _sizes(config: PyramidionConfig) -> list[int]:
    """Return the window of each layer."""
    parts = parts_of(config, "self_attention")
    for part in parts:
        if part.kind != "sliding_window" or part.options["dilated_heads"]:
            raise UserError(
                "`self_attention` must be sliding_window in all layers, without `dilation`, in a LED of transformers, "
                f"but is {config.self_attention}"
            )
    sizes = [part.options["window"] for part in parts]
    return sizes * config.encoder_layers if len(sizes) == 1 else sizes


def _blocks(read: Settings) -> dict[str, Any]:
    """Return the encoder's attention: that of BigBird, unless the config says that it is full."""
    if read.choice("attention_type", "block_sparse", "original_full") == "original_full":
        return {}
    options = {"block_size": read.one("block_size", int), "random_blocks": read.one("num_random_blocks", int)}
    return {"self_attention": written(Part("bigbird", options))}


def _check_sinusoids(table: Tensor, length: int, name: str) -> None:
    expected = SinusoidalPositions(table.size(1), 0, "published")(torch.arange(length), length)
    # Those of a model in half precision are rounded.
    near = 1e-4 if table.element_size() > 2 else 4e-3
    if table.shape != expected.shape or not table.float().allclose(expected, rtol=0, atol=near):
        raise UserError(f"{name} must be the sinusoids of Vaswani et al. (2017), but is not.")


_OF_PEGASUS: dict[str, Any] = {
    "tokenizer_class": "PegasusTokenizer",
    "normalize_before": True,
    "normalizes_embeddings": False,
}
FAMILIES.update(
    bart=Bart("bart", "Bart", unused_positions=2),
    led=Bart("led", "LED", windowed=True),
    # mBART-50 (Tang et al. 2020).
    mbart=Bart("mbart", "MBart", "MBart50Tokenizer", normalize_before=True, unused_positions=2),
    pegasus=Bart("pegasus", "Pegasus", learns_positions=False, **_OF_PEGASUS),
    # The norm of its last layer's output stands behind that layer, whatever its name says.
    bigbird_pegasus=Bart(
        "bigbird_pegasus", "BigBirdPegasus", in_blocks=True, final_norm="layernorm_embedding", **_OF_PEGASUS
    ),
)

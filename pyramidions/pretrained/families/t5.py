"""T5 and its like: T5 1.1, Flan-T5, mT5 and LongT5."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, written
from pyramidions.models import PyramidionConfig
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
from pyramidions.pretrained.names import EMBEDDING, SHARED, UNTIED, pop_embedding
from pyramidions.pretrained.source import Source
from pyramidions.pretrained.tokenizers import tokenizer_length

_LENGTH = 512  # of T5's training; its biases of distances allow any
_SUBLAYERS = {
    "encoder": {"SelfAttention": "self_attention", "DenseReluDense": "feed_forward"},
    "decoder": {
        "SelfAttention": "self_attention",
        "EncDecAttention": "cross_attention",
        "DenseReluDense": "feed_forward",
    },
}
_UNREAD = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
_PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
_DENSE, _GATED = {"wi": "fc1", "wo": "fc2"}, {"wi_0": "gate", "wi_1": "fc1", "wo": "fc2"}
# Tables that all layers share, and a norm of LongT5.
_TABLES = {"relative_attention_bias": "biases", "global_relative_attention_bias": "block_biases"}


@dataclass(frozen=True)
class T5(Family):
    """T5 (Raffel et al. 2020), in either version, and mT5 (Xue et al. 2021).

    Ours divides scores by the root of a head's width, and T5 does not: queries are multiplied by it. Where T5 divides
    the output by the root of the width, the last norm does.
    """

    name: str
    class_name: str
    scales_output: bool = True  # a model with tied embeddings divides its output
    tokenizer_class: str = "T5Tokenizer"

    def shape(self, source: Source) -> Shape:
        read = Settings(source)
        read.must_be("is_encoder_decoder", True)
        read.must_be("layer_norm_epsilon", 1e-6)
        width, heads, layers = (read.one(name, int) for name in ("d_model", "num_heads", "num_layers"))
        of_head = read.one("d_kv", int)
        inner = {} if heads * of_head == width else {"inner_dim": heads * of_head}
        projections = written(Part("dense", {"bias": False, **inner}))
        distances = {
            "buckets": read.one("relative_attention_num_buckets", int, 32),
            "furthest": read.one("relative_attention_max_distance", int, 128),
        }
        # No table of positions ends: a tokenizer may say that the model was trained on longer texts.
        length = max(read.one("n_positions", int, _LENGTH), tokenizer_length(source.path))
        values = {
            "embed_dim": width,
            "ffn_embed_dim": read.one("d_ff", int),
            "num_heads": heads,
            "encoder_layers": layers,
            "decoder_layers": read.one("num_decoder_layers", int, layers),
            "self_attention": written(self._attention(read, distances)),
            "decoder_self_attention": written(Part("bucketed", distances)),
            **{f"{name}_projections": projections for name in ("encoder", "decoder", "cross")},
            "feed_forward": written(_feed_forward(read)),
            "normalize_before": True,
            "norm": "rms",
            "no_scale_embedding": True,
            "encoder_positions": "none",
            "decoder_positions": "none",
            "output": "untied" if _is_untied(source) else "tied",
            "max_source_positions": length,
            **dict.fromkeys(
                ("dropout", "attention_dropout", "activation_dropout"), read.one("dropout_rate", float, 0.1)
            ),
        }
        return shaped(self, source, values, (length, length))

    def _attention(self, read: Settings, distances: dict[str, Any]) -> Part:
        """Return that of the encoder."""
        return Part("bucketed", distances)

    def config_json(self, config: PyramidionConfig, lengths: tuple[int, int]) -> dict[str, Any]:
        decoder, function = parts_of(config, "decoder_self_attention")[0], parts_of(config, "feed_forward")[0]
        if decoder.kind != "bucketed":
            raise UserError(
                f"`decoder_self_attention` must be bucketed in a {self.class_name} of transformers, but is "
                f"{config.decoder_self_attention}"
            )
        activation = function.options.get("activation", "relu")
        gate = "gated-" if function.kind == "gated" else ""
        # What T5 calls gelu in a gate is its approximation.
        activation = "gelu" if gate and activation == "gelu_tanh" else name_of_activation(activation)
        return {
            "tie_word_embeddings": config.output == "tied",
            "d_model": config.embed_dim,
            "d_kv": _inner_dim(config) // config.num_heads,
            "d_ff": config.ffn_embed_dim,
            "num_heads": config.num_heads,
            "num_layers": config.encoder_layers,
            "num_decoder_layers": config.decoder_layers,
            "relative_attention_num_buckets": decoder.options["buckets"],
            "relative_attention_max_distance": decoder.options["furthest"],
            "feed_forward_proj": f"{gate}{activation}",
            "dropout_rate": config.dropout,
            "layer_norm_epsilon": 1e-6,
            "n_positions": lengths[0],
        }

    def state_dict(
        self, own: dict[str, Tensor], config: PyramidionConfig, lengths: tuple[int, int]
    ) -> dict[str, Tensor]:
        own, root = dict(own), (_inner_dim(config) // config.num_heads) ** 0.5
        for name in own:
            if name.endswith("q_proj.weight"):
                own[name] = own[name] / root
        found = {SHARED[0]: own.pop(EMBEDDING)}
        if UNTIED in own:
            found[SHARED[-1]] = own.pop(UNTIED)
        else:
            own["decoder.norm.weight"] = own["decoder.norm.weight"] * config.embed_dim**0.5
        names = {f"{ours}.weight": f"{theirs}.weight" for theirs, ours in self._names(config)}
        return found | {names[ours]: value for ours, value in own.items()}

    def _names(self, config: PyramidionConfig) -> Iterator[tuple[str, str]]:
        """Yield their names of weights with ours; a model need not have all of them."""
        inner = _GATED if parts_of(config, "feed_forward")[0].kind == "gated" else _DENSE
        for coder, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
            yield f"{coder}.final_layer_norm", f"{coder}.norm"
            for layer, (place, (part, sublayer)) in product(range(layers), enumerate(_SUBLAYERS[coder].items())):
                theirs, ours = f"{coder}.block.{layer}.layer.{place}", f"{coder}.layers.{layer}.sublayers.{sublayer}"
                yield f"{theirs}.layer_norm", f"{ours}.norm"
                theirs = f"{theirs}.{self._called(config, part) if coder == 'encoder' else part}"
                if part == "DenseReluDense":
                    yield from ((f"{theirs}.{name}", f"{ours}.function.{own}") for name, own in inner.items())
                    continue
                for name, own in _PROJECTIONS.items():
                    yield f"{theirs}.{name}", f"{ours}.function.projections.{own}"
                if part == "SelfAttention":
                    yield f"{theirs}.global_input_layer_norm", f"{ours}.function.attention.norm"
                    # A table of distances is in their first layer, and in all of ours.
                    for name, own in _TABLES.items() if layer == 0 else ():
                        for n in range(layers):
                            at = f"{coder}.layers.{n}.sublayers.{sublayer}.function.attention.{own}.table"
                            yield f"{theirs}.{name}", at

    def _called(self, config: PyramidionConfig, part: str) -> str:
        """Return the name of a part of the encoder."""
        return part

    def weights(self, source: Source, shape: Shape) -> dict[str, Tensor]:
        # The released T5 has a table that nothing reads.
        given = {name: value for name, value in source.weights.items() if name != _UNREAD}
        config = shape.config
        output = _output(given)
        found = {EMBEDDING: pop_embedding(given, SHARED[-1]).float()}
        if output is not None:
            found[UNTIED] = output.float()
        names = list(self._names(config))
        for theirs, ours in names:
            if (value := given.get(f"{theirs}.weight")) is not None:
                found[f"{ours}.weight"] = value.float()
        # What has no place is refused under its own name.
        found |= {name: given[name] for name in given.keys() - {f"{theirs}.weight" for theirs, _ in names}}
        read = Settings(source)
        root = read.one("d_kv", int) ** 0.5
        for name in found:
            if name.endswith("q_proj.weight"):
                found[name] = found[name] * root
        # As transformers 5 has it; before, the config said so by tied embeddings.
        tied = read.one("tie_word_embeddings", bool, True)
        if self.scales_output and read.one("scale_decoder_outputs", bool, tied):
            found["decoder.norm.weight"] = found["decoder.norm.weight"] * config.embed_dim**-0.5
        return found


@dataclass(frozen=True)
class LongT5(T5):
    """LongT5 (Guo et al. 2022), with local or transient-global attention in the encoder."""

    def _attention(self, read: Settings, distances: dict[str, Any]) -> Part:
        kind = read.choice("encoder_attention_type", "local", "transient-global")
        window = 2 * read.one("local_radius", int, 127)
        block_size = read.one("global_block_size", int, 16) if kind == "transient-global" else 0
        return Part("transient_global", {"window": window, "block_size": block_size, **distances})

    def config_json(self, config: PyramidionConfig, lengths: tuple[int, int]) -> dict[str, Any]:
        options = parts_of(config, "self_attention")[0].options
        size = options["block_size"]
        kind = {"encoder_attention_type": "transient-global", "global_block_size": size}
        return {
            **super().config_json(config, lengths),
            **(kind if size else {"encoder_attention_type": "local"}),
            "local_radius": options["window"] // 2,
        }

    def _called(self, config: PyramidionConfig, part: str) -> str:
        kind = "TransientGlobal" if parts_of(config, "self_attention")[0].options["block_size"] else "Local"
        return part.replace("SelfAttention", f"{kind}SelfAttention")


def _is_untied(source: Source) -> bool:
    """Return whether the output layer is not the embedding; before the weights are there, what the config says."""
    if not source.weights:
        return not Settings(source).one("tie_word_embeddings", bool, True)
    return _output(source.weights) is not None


def _inner_dim(config: PyramidionConfig) -> int:
    """Return the width of all heads together."""
    return int(parts_of(config, "decoder_projections")[0].options.get("inner_dim") or config.embed_dim)


def _output(weights: dict[str, Tensor]) -> Tensor | None:
    """Return the output layer, unless it is the embedding."""
    output, embedding = weights.get(SHARED[-1]), next((weights[name] for name in SHARED[:-1] if name in weights), None)
    return None if output is None or embedding is None or output.equal(embedding) else output


def _feed_forward(read: Settings) -> Part:
    said = read.one("feed_forward_proj", str, "relu")
    name = said.removeprefix("gated-")
    # What T5 calls gelu in a gate is its approximation.
    activation = activation_of(read, "feed_forward_proj", "gelu_new" if said == "gated-gelu" else name)
    options = {"activation": activation}
    return Part("gated", options) if name != said else Part("dense", {**options, "bias": False})


FAMILIES.update(t5=T5("t5", "T5"), mt5=T5("mt5", "MT5", scales_output=False), longt5=LongT5("longt5", "LongT5"))

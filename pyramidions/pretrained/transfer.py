"""Gives a model of ours the weights of a pretrained one, whose architecture may differ."""

import re
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.models import PyramidionConfig, build
from pyramidions.nn import Transformer
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.pretrained.families import Shape
from pyramidions.pretrained.source import Source
from pyramidions.text.tokenizer import PAD

#: One matrix for all, under each of these names.
SHARED = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
EMBEDDING = "encoder.embedder.tokens.weight"
#: Added to the logits by these models; ours have none.
LOGITS_BIAS = "final_logits_bias"
POSITIONS = tuple(f"{coder}.embedder.positions.weight" for coder in ("encoder", "decoder"))
TIED = "decoder.embedder.tokens.weight"

# What BART, LED, PEGASUS and BigBird-PEGASUS call parts with weights, and what we call them: of an encoder or a
# decoder, of its layers, and of their self-attention.
_OF_CODERS = {"embed_positions": "embedder.positions", "layernorm_embedding": "embedder.norm", "layer_norm": "norm"}
_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
_OURS = "self_attention.function.projections"
_OF_LAYERS = {
    "self_attn_layer_norm": "self_attention.norm",
    "encoder_attn_layer_norm": "cross_attention.norm",
    "final_layer_norm": "feed_forward.norm",
    **{f"encoder_attn.{name}_proj": f"cross_attention.function.projections.{name}_proj" for name in ("q", "k", "v")},
    "encoder_attn.out_proj": "cross_attention.function.projections.out_proj",
    "fc1": "feed_forward.function.fc1",
    "fc2": "feed_forward.function.fc2",
}
_FULL = {f"self_attn.{name}": f"{_OURS}.{name}" for name in (*_PROJECTIONS.values(), "out_proj")}
_OUT = {"self_attn.output": f"{_OURS}.out_proj"}
_LONGFORMER = _OUT | {
    f"self_attn.longformer_self_attn.{theirs}{of}": f"{ours}.{name}"
    for theirs, name in _PROJECTIONS.items()
    for of, ours in (("", _OURS), ("_global", "self_attention.function.global_rows.projections"))
}
_BIGBIRD = _OUT | {f"self_attn.self.{theirs}": f"{_OURS}.{name}" for theirs, name in _PROJECTIONS.items()}


@dataclass
class Transfer:
    """What became of the weights, by our names.

    Attributes:
        taken: as they were.
        extended: tables of positions that were copied to be longer, each with its old and its new length.
        new: initialised here.
        dropped: that the model has no place for.
    """

    taken: list[str] = field(default_factory=list)
    extended: dict[str, tuple[int, int]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def pretrained_weights(source: Source, shape: Shape, order: Tensor) -> dict[str, Tensor]:
    """Return the weights of a pretrained model by our names, in float32.

    Args:
        source: the model.
        shape: its architecture.
        order: (V,), the row of its embedding that each of our ids has.

    Raises:
        UserError: a weight is missing, or has no place, or another shape; or sinusoids are not those of the family.
    """
    found = {name: value.float() for name, value in renamed(source.weights, shape.family.final_norm).items()}
    for name, length in zip(POSITIONS, (shape.max_source_positions, shape.max_target_positions), strict=True):
        if name not in found:
            continue
        if (dimensions := found[name].dim()) != 2:
            raise UserError(f"{name} of {source.path} must have two dimensions, but has {dimensions}.")
        if shape.family.learns_positions:
            found[name] = found[name][shape.family.unused_positions :].contiguous()
        else:
            _check_sinusoids(found.pop(name), length, name)
    embedding = found[EMBEDDING]
    if embedding.dim() != 2 or not 0 <= int(order.min()) <= int(order.max()) < len(embedding):
        raise UserError(
            f"The tokenizer must fit the embedding of {source.path}, but has {len(order):,} pieces for "
            f"{len(embedding):,} rows."
        )
    found[EMBEDDING] = found[TIED] = embedding[order]
    with torch.device("meta"):
        expected = build(shape.config, len(order), PAD, max_target_positions=shape.max_target_positions).state_dict()
    if shape.family.in_blocks and not source.config.get("use_bias"):
        # Ours have biases, and start without an effect.
        absent = [name for name in expected.keys() - found.keys() if re.search(r"\.projections\.\w+\.bias$", name)]
        found |= {name: torch.zeros(expected[name].shape) for name in absent}
    head = f"The weights of {source.path} do not fit its config:"
    for name in sorted(expected.keys() ^ found.keys()):
        raise UserError(f"{head} {name} {'is missing' if name in expected else 'has no place in the model'}.")
    for name, value in expected.items():
        if value.shape != found[name].shape:
            raise UserError(f"{head} {name} must be {tuple(value.shape)}, but is {tuple(found[name].shape)}.")
    return found


def transferred(
    weights: dict[str, Tensor], config: PyramidionConfig, max_target_positions: int, seed: int = 1
) -> tuple[Transformer, Transfer]:
    """Build a model, and give it the weights that it has a place for.

    Positions are copied to a longer table, as LED's are from BART's (Beltagy et al. 2020, section 7.1). Second
    projections, of global positions, start as copies of the first.

    Args:
        weights: of `pretrained_weights`.
        config: of the model; `max_source_positions` may be longer than the table.
        max_target_positions: tokens of the longest summary.
        seed: of what is initialised.

    Raises:
        UserError: a weight has another shape than the model's, a table of positions would have to shrink, or the
            config breaks a rule.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build(config, len(weights[EMBEDDING]), PAD, max_target_positions=max_target_positions).eval()
    done, given = Transfer(), dict(weights)
    for name, own in model.state_dict().items():
        value = given.pop(name, None)
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


def extended(table: Tensor, rows: int) -> Tensor:
    """Return a table of positions with more rows, which are copies of its own.

    Raises:
        UserError: it would have to shrink.
    """
    if rows < len(table):
        raise UserError(f"The pretrained model has {len(table)} positions, and they cannot shrink to {rows}.")
    return table.repeat(-(-rows // len(table)), 1)[:rows]


def _check_sinusoids(table: Tensor, length: int, name: str) -> None:
    expected = SinusoidalPositions(table.size(1), 0, "published")(torch.arange(length), length)
    if table.shape != expected.shape or not table.allclose(expected, rtol=0, atol=1e-4):
        raise UserError(f"{name} must be the sinusoids of Vaswani et al. (2017), but is not.")


def renamed(weights: dict[str, Tensor], final_norm: str = "layer_norm") -> dict[str, Tensor]:
    """Return weights under our names; the one embedding is `EMBEDDING`.

    Names that are not known stay as they are.

    Args:
        weights: under their names.
        final_norm: what the norm of the last layer's output is called.

    Raises:
        UserError: embeddings or an output layer of their own, or a bias of the logits.
    """
    plain = {re.sub(r"^(model|led)\.", "", name): value for name, value in weights.items()}
    plain = {re.sub(rf"^(\w+\.){final_norm}\.", r"\1layer_norm.", name): value for name, value in plain.items()}
    bias = plain.pop(LOGITS_BIAS, None)
    if bias is not None and bias.count_nonzero():
        raise UserError(f"The model must have no bias of its logits, but `{LOGITS_BIAS}` is not zero.")
    shared = {name: plain.pop(name) for name in SHARED if name in plain}
    if not shared:
        raise UserError(f"The weights must hold the embedding ({SHARED[0]}), but lack it.")
    (first, embedding), *others = shared.items()
    for name, other in others:
        if not other.equal(embedding):
            raise UserError(f"The model must have one embedding for all, but {name} differs from {first}.")
    return {EMBEDDING: embedding} | {_our_name(name): value for name, value in plain.items()}


def names_of(encoder_layers: int, decoder_layers: int, windowed: bool) -> dict[str, str]:
    """Map our names to theirs, except the embedding; a model need not have all of them.

    Args:
        encoder_layers, decoder_layers: of the model.
        windowed: the encoder's attention is Longformer's.
    """
    parts = [f"{coder}.{part}" for coder in ("encoder", "decoder") for part in _OF_CODERS]
    for coder, layers, attention in (
        ("encoder", encoder_layers, _LONGFORMER if windowed else _FULL),
        ("decoder", decoder_layers, _FULL),
    ):
        parts += [f"{coder}.layers.{layer}.{part}" for layer in range(layers) for part in _OF_LAYERS | attention]
    theirs = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    return {_our_name(name): name for name in theirs}


def _our_name(name: str) -> str:
    found = re.fullmatch(r"((?:en|de)coder)\.(layers\.\d+\.)?(.+)\.(weight|bias)", name)
    if found is None:
        return name
    coder, layer, part, kind = found.groups()
    if layer is None:
        return f"{coder}.{_OF_CODERS.get(part, part)}.{kind}"
    own = (_OF_LAYERS | _FULL | _LONGFORMER | _BIGBIRD).get(part)
    return name if own is None else f"{coder}.{layer}sublayers.{own}.{kind}"

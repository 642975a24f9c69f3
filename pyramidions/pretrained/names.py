"""Our names of weights, and those of BART, LED, PEGASUS, BigBird-PEGASUS and PEGASUS-X."""

import re

from torch import Tensor

from pyramidions.base.errors import UserError

#: One matrix for all, under each of these names.
SHARED = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
EMBEDDING = "encoder.embedder.tokens.weight"
#: Added to the logits by these models; ours have none.
LOGITS_BIAS = "final_logits_bias"
POSITIONS = tuple(f"{coder}.embedder.positions.weight" for coder in ("encoder", "decoder"))
TIED = "decoder.embedder.tokens.weight"
UNTIED = "decoder.output.linear.weight"

# Parts with weights, by their names there: of an encoder or a decoder, of its layers, and of their self-attention.
_OF_CODERS = {
    "embed_positions": "embedder.positions",
    "embed_global": "global_vectors",
    "layernorm_embedding": "embedder.norm",
    "layer_norm": "norm",
}
_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
_OURS = "self_attention.function.projections"
_OF_LAYERS = {
    "self_attn_layer_norm": "self_attention.norm",
    "global_self_attn_layer_norm": "self_attention.global_norm",
    "encoder_attn_layer_norm": "cross_attention.norm",
    "final_layer_norm": "feed_forward.norm",
    **{f"encoder_attn.{name}_proj": f"cross_attention.function.projections.{name}_proj" for name in ("q", "k", "v")},
    "encoder_attn.out_proj": "cross_attention.function.projections.out_proj",
    "fc1": "feed_forward.function.fc1",
    "fc2": "feed_forward.function.fc2",
}
_FULL = {f"self_attn.{name}": f"{_OURS}.{name}" for name in (*_PROJECTIONS.values(), "out_proj")}
_POOLED = {
    name.replace("self_attn", "pool_attn"): own.replace("function", "function.attention") for name, own in _FULL.items()
}
_OUT = {"self_attn.output": f"{_OURS}.out_proj"}
_LONGFORMER = _OUT | {
    f"self_attn.longformer_self_attn.{theirs}{of}": f"{ours}.{name}"
    for theirs, name in _PROJECTIONS.items()
    for of, ours in (("", _OURS), ("_global", "self_attention.function.global_rows.projections"))
}
_BIGBIRD = _OUT | {f"self_attn.self.{theirs}": f"{_OURS}.{name}" for theirs, name in _PROJECTIONS.items()}


def renamed(weights: dict[str, Tensor], final_norm: str = "layer_norm") -> dict[str, Tensor]:
    """Return weights under our names; unknown names stay. ``final_norm`` names the norm of the last layer's output."""
    plain = {re.sub(r"^(model|led)\.", "", name): value for name, value in weights.items()}
    plain = {re.sub(rf"^(\w+\.){final_norm}\.", r"\1layer_norm.", name): value for name, value in plain.items()}
    bias = plain.pop(LOGITS_BIAS, None)
    if bias is not None and bias.count_nonzero():
        raise UserError(f"The model must have no bias of its logits, but `{LOGITS_BIAS}` is not zero.")
    embedding = pop_embedding(plain)
    return {EMBEDDING: embedding} | {_our_name(name): value for name, value in plain.items()}


def pop_embedding(weights: dict[str, Tensor], output: str | None = None) -> Tensor:
    """Take the one embedding out of weights, under all of its names; the matrix named ``output`` may be another."""
    shared = {name: weights.pop(name) for name in SHARED if name in weights}
    if not shared:
        raise UserError(f"The weights must hold the embedding ({SHARED[0]}), but lack it.")
    (first, embedding), *others = shared.items()
    for name, other in others:
        if name != output and not other.equal(embedding):
            raise UserError(f"The model must have one embedding for all, but {name} differs from {first}.")
    return embedding


def names_of(encoder_layers: int, decoder_layers: int, windowed: bool) -> dict[str, str]:
    """Map our names to theirs, except the embedding; ``windowed`` attention is Longformer's."""
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
    own = (_OF_LAYERS | _FULL | _POOLED | _LONGFORMER | _BIGBIRD).get(part)
    return name if own is None else f"{coder}.{layer}sublayers.{own}.{kind}"


def extended(table: Tensor, rows: int) -> Tensor:
    """Return a table of positions with more rows, which are copies of its own; it cannot shrink."""
    if rows < len(table):
        raise UserError(f"The pretrained model has {len(table)} positions, and they cannot shrink to {rows}.")
    return table.repeat(-(-rows // len(table)), 1)[:rows]

"""What Hugging Face's BART, LED, PEGASUS and BigBird-PEGASUS call their weights, and what we call the same weights."""

import re
from itertools import product

from torch import Tensor

from pyramidions.base.errors import UserError

_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
_ATTENTION = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}
_NORMS = {**_ATTENTION, "final": "feed_forward"}
_LONGFORMER, _BIGBIRD = "self_attn.longformer_self_attn", "self_attn.self"
_FINAL_NORM = "layer_norm"
#: One matrix for all, under each of these names.
SHARED = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
EMBEDDING = "encoder.embedder.tokens.weight"
#: Added to the logits by these models; ours have none.
LOGITS_BIAS = "final_logits_bias"
# All parts with weights: of an encoder or a decoder, of its layers, and of their self-attention.
_OF_CODERS = ("embed_positions", "layernorm_embedding", "layer_norm")
_OF_LAYERS = (
    *(f"{name}_layer_norm" for name in _NORMS),
    *(f"encoder_attn.{name}" for name in (*_PROJECTIONS.values(), "out_proj")),
    *("fc1", "fc2"),
)
_FULL = tuple(f"self_attn.{name}" for name in (*_PROJECTIONS.values(), "out_proj"))
_WINDOWED = ("self_attn.output", *(f"{_LONGFORMER}.{name}{of}" for name in _PROJECTIONS for of in ("", "_global")))


def renamed(weights: dict[str, Tensor], final_norm: str = _FINAL_NORM) -> dict[str, Tensor]:
    """Return weights under our names; the one embedding is `EMBEDDING`.

    Names that are not known stay as they are.

    Args:
        weights: under their names.
        final_norm: what the norm of the last layer's output is called.

    Raises:
        UserError: embeddings or an output layer of their own, or a bias of the logits.
    """
    plain = {re.sub(r"^(model|led)\.", "", name): value for name, value in weights.items()}
    plain = {re.sub(rf"^(\w+\.){final_norm}\.", rf"\1{_FINAL_NORM}.", name): value for name, value in plain.items()}
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
    return {EMBEDDING: embedding} | {_ours(name): value for name, value in plain.items()}


def names_of(encoder_layers: int, decoder_layers: int, windowed: bool) -> dict[str, str]:
    """Return their names by ours, but for the embedding; a model need not have all of them.

    Args:
        encoder_layers, decoder_layers: of the model.
        windowed: the encoder's attention is Longformer's.
    """
    theirs = list(map(".".join, product(("encoder", "decoder"), _OF_CODERS, ("weight", "bias"))))
    for coder, layers, attention in (
        ("encoder", encoder_layers, _WINDOWED if windowed else _FULL),
        ("decoder", decoder_layers, _FULL),
    ):
        parts = product(range(layers), (*_OF_LAYERS, *attention), ("weight", "bias"))
        theirs += [f"{coder}.layers.{layer}.{part}.{kind}" for layer, part, kind in parts]
    return {_ours(name): name for name in theirs}


def _ours(name: str) -> str:
    layer = re.fullmatch(r"((?:en|de)coder\.layers\.\d+)\.(.+)\.(weight|bias)", name)
    if layer is None:
        name = re.sub(r"^(encoder|decoder)\.embed_positions\.weight$", r"\1.embedder.positions.weight", name)
        name = re.sub(r"^(encoder|decoder)\.layernorm_embedding\.", r"\1.embedder.norm.", name)
        return re.sub(r"^(encoder|decoder)\.layer_norm\.", r"\1.norm.", name)
    head, part, kind = layer.groups()
    return f"{head}.sublayers.{_part(part)}.{kind}"


def _part(part: str) -> str:
    if norm := re.fullmatch(r"(self_attn|encoder_attn|final)_layer_norm", part):
        return f"{_NORMS[norm[1]]}.norm"
    if projection := re.fullmatch(r"(self_attn|encoder_attn)\.([qkv]_proj|out_proj)", part):
        return f"{_ATTENTION[projection[1]]}.function.projections.{projection[2]}"
    if windowed := re.fullmatch(rf"(?:{_LONGFORMER}|{_BIGBIRD})\.(query|key|value)(_global)?", part):
        which = "global_rows.projections" if windowed[2] else "projections"
        return f"self_attention.function.{which}.{_PROJECTIONS[windowed[1]]}"
    if part == "self_attn.output":
        return "self_attention.function.projections.out_proj"
    return f"feed_forward.function.{part}"

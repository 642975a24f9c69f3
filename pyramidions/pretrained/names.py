"""What Hugging Face's BART, LED and PEGASUS call their weights, and what we call the same weights."""

import re

from torch import Tensor

from pyramidions.errors import UserError

_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
_ATTENTION = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}
_NORMS = {**_ATTENTION, "final": "feed_forward"}
_LONGFORMER = "self_attn.longformer_self_attn"
#: One matrix for all, under each of these names.
SHARED = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
EMBEDDING = "encoder.embedder.tokens.weight"
#: Added to the logits by these models; ours have none.
_LOGITS_BIAS = "final_logits_bias"


def renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights under our names; the one embedding is `EMBEDDING`.

    Names that are not known stay as they are.

    Raises:
        UserError: embeddings or an output layer of their own, or a bias of the logits.
    """
    plain = {re.sub(r"^(model|led)\.", "", name): value for name, value in weights.items()}
    bias = plain.pop(_LOGITS_BIAS, None)
    if bias is not None and bias.count_nonzero():
        raise UserError(f"The model must have no bias of its logits, but `{_LOGITS_BIAS}` is not zero.")
    shared = {name: plain.pop(name) for name in SHARED if name in plain}
    if not shared:
        raise UserError(f"The weights must hold the embedding ({SHARED[0]}), but lack it.")
    (first, embedding), *others = shared.items()
    for name, other in others:
        if not other.equal(embedding):
            raise UserError(f"The model must have one embedding for all, but {name} differs from {first}.")
    return {EMBEDDING: embedding} | {_ours(name): value for name, value in plain.items()}


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
    if windowed := re.fullmatch(rf"{_LONGFORMER}\.(query|key|value)(_global)?", part):
        which = "global_rows.projections" if windowed[2] else "projections"
        return f"self_attention.function.{which}.{_PROJECTIONS[windowed[1]]}"
    if part == "self_attn.output":
        return "self_attention.function.projections.out_proj"
    return f"feed_forward.function.{part}"

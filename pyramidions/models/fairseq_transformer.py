"""The names that fairseq's own Transformer gives its weights, and ours for the same weights."""

import re

from torch import Tensor

_LAYER = r"^(encoder|decoder)\.layers\.(\d+)\."
_SUBLAYER = r"\1.core.layers.\2.sublayers."
_RENAMED = [
    (r"^(encoder|decoder)\.embed_tokens\.", r"\1.core.embedder.tokens."),
    (r"^(encoder|decoder)\.layernorm_embedding\.", r"\1.core.embedder.norm."),
    (r"^(encoder|decoder)\.layer_norm\.", r"\1.core.norm."),
    (rf"{_LAYER}self_attn\.", rf"{_SUBLAYER}self_attention.function.projections."),
    (rf"{_LAYER}encoder_attn\.", rf"{_SUBLAYER}cross_attention.function.projections."),
    (rf"{_LAYER}(fc[12])\.", rf"{_SUBLAYER}feed_forward.function.\3."),
    (rf"{_LAYER}self_attn_layer_norm\.", rf"{_SUBLAYER}self_attention.norm."),
    (rf"{_LAYER}encoder_attn_layer_norm\.", rf"{_SUBLAYER}cross_attention.norm."),
    (rf"{_LAYER}final_layer_norm\.", rf"{_SUBLAYER}feed_forward.norm."),
]
# What fairseq saves and we compute: the version mark, position tables, and the output layer that is the embedding.
_DROPPED = re.compile(
    r"^(encoder|decoder)\.(version|embed_positions\._float_tensor)$|^decoder\.output_projection\.weight$"
)


def from_fairseq_transformer(weights: dict[str, Tensor], untied: bool = False) -> None:
    """Rename, in place, the weights of a fairseq Transformer with sinusoidal positions and shared embeddings.

    Weights that already have our names stay as they are.

    Args:
        weights: by name.
        untied: the model's output layer has weights of its own, as the checkpoint's may.

    Raises:
        ValueError: embeddings or an output layer of their own, where our model has one matrix for all.
    """
    if untied and "decoder.output_projection.weight" in weights:
        weights["decoder.core.output.linear.weight"] = weights.pop("decoder.output_projection.weight")
    shared = weights.get("decoder.embed_tokens.weight")
    for key, part in (("decoder.output_projection.weight", "output layer"), ("encoder.embed_tokens.weight", "encoder")):
        own = weights.get(key)
        if own is not None and shared is not None and not (own.shape == shared.shape and own.equal(shared)):
            raise ValueError(
                f"The checkpoint must have one embedding for all (--share-all-embeddings), but its {part} has its own."
            )
    for key in list(weights):
        if _DROPPED.search(key):
            del weights[key]
            continue
        for pattern, ours in _RENAMED:
            new, count = re.subn(pattern, ours, key)
            if count:
                weights[new] = weights.pop(key)
                break

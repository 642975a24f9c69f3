"""The names that fairseq's own Transformer gives its weights, and ours for the same weights."""

import re

from torch import Tensor

_RENAMED = [
    (r"^(encoder|decoder)\.embed_tokens\.", r"\1.core.embedding."),
    (r"^(encoder|decoder)\.layernorm_embedding\.", r"\1.core.embedder.norm."),
    (r"^(encoder|decoder)\.layer_norm\.", r"\1.core.norm."),
    (r"^(encoder|decoder)\.layers\.(\d+)\.self_attn\.", r"\1.core.layers.\2.self_attention."),
    (r"^decoder\.layers\.(\d+)\.encoder_attn\.", r"decoder.core.layers.\1.cross_attention."),
    (r"^(encoder|decoder)\.layers\.(\d+)\.(fc[12])\.", r"\1.core.layers.\2.feed_forward.\3."),
    (r"^encoder\.layers\.(\d+)\.self_attn_layer_norm\.", r"encoder.core.layers.\1.around_attention.norm."),
    (
        r"^decoder\.layers\.(\d+)\.self_attn_layer_norm\.",
        r"decoder.core.layers.\1.around_self_attention.norm.",
    ),
    (
        r"^decoder\.layers\.(\d+)\.encoder_attn_layer_norm\.",
        r"decoder.core.layers.\1.around_cross_attention.norm.",
    ),
    (
        r"^(encoder|decoder)\.layers\.(\d+)\.final_layer_norm\.",
        r"\1.core.layers.\2.around_feed_forward.norm.",
    ),
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

"""The names of 0.1.0's weights, and what they are called today."""

import torch

from pyramidions.models import build, preset
from pyramidions.models.names_0_1 import rename_from_0_1

# Those with "core." are of checkpoints, the others of exports.
NAMES = {
    "encoder.core.embedding.weight": "encoder.core.embedder.tokens.weight",
    "decoder.core.embedding.weight": "decoder.core.embedder.tokens.weight",
    "encoder.embedding.weight": "encoder.embedder.tokens.weight",
    "encoder.core.layers.0.self_attention.q_proj.weight": (
        "encoder.core.layers.0.sublayers.self_attention.function.projections.q_proj.weight"
    ),
    "encoder.core.layers.0.around_attention.norm.bias": "encoder.core.layers.0.sublayers.self_attention.norm.bias",
    "encoder.core.layers.11.feed_forward.fc1.weight": (
        "encoder.core.layers.11.sublayers.feed_forward.function.fc1.weight"
    ),
    "encoder.core.layers.11.around_feed_forward.norm.weight": (
        "encoder.core.layers.11.sublayers.feed_forward.norm.weight"
    ),
    "decoder.layers.1.self_attention.out_proj.bias": (
        "decoder.layers.1.sublayers.self_attention.function.projections.out_proj.bias"
    ),
    "decoder.layers.1.cross_attention.k_proj.weight": (
        "decoder.layers.1.sublayers.cross_attention.function.projections.k_proj.weight"
    ),
    "decoder.layers.1.around_cross_attention.norm.weight": "decoder.layers.1.sublayers.cross_attention.norm.weight",
    "decoder.layers.1.around_self_attention.norm.weight": "decoder.layers.1.sublayers.self_attention.norm.weight",
    # Funnel pooling's own layer attends from pooled to unpooled positions.
    "encoder.core.poolers.0.layer.self_attention.v_proj.weight": (
        "encoder.core.poolers.0.layer.sublayers.cross_attention.function.projections.v_proj.weight"
    ),
    "encoder.poolers.0.layer.around_attention.norm.weight": (
        "encoder.poolers.0.layer.sublayers.cross_attention.norm.weight"
    ),
    "encoder.poolers.0.layer.feed_forward.fc2.bias": (
        "encoder.poolers.0.layer.sublayers.feed_forward.function.fc2.bias"
    ),
    "encoder.poolers.0.layer.around_feed_forward.norm.bias": (
        "encoder.poolers.0.layer.sublayers.feed_forward.norm.bias"
    ),
    # These stay.
    "encoder.core.poolers.1.scorer.linear.weight": "encoder.core.poolers.1.scorer.linear.weight",
    "encoder.poolers.0.scorer.dense.bias": "encoder.poolers.0.scorer.dense.bias",
    "encoder.norm.weight": "encoder.norm.weight",
    "decoder.core.norm.bias": "decoder.core.norm.bias",
    "vocabulary": "vocabulary",
}


def test_weights_are_renamed_in_their_order() -> None:
    weights = {name: torch.tensor(float(number)) for number, name in enumerate(NAMES)}
    held = weights
    rename_from_0_1(weights)
    assert weights is held
    assert list(weights) == list(NAMES.values())
    assert [weight.item() for weight in weights.values()] == list(range(len(NAMES)))


def test_todays_names_stay() -> None:
    for name in ("funnel", "deep_pyramidion"):
        small = {"embed_dim": 8, "ffn_embed_dim": 8, "num_heads": 2}
        weights = build(preset(name, **small), vocab_size=10).state_dict()
        before = list(weights)
        rename_from_0_1(weights)
        assert list(weights) == before

"""Architectures: each the fields in which it differs from the defaults of its config."""

from typing import Any

_BLOCKS: dict[str, Any] = {"self_attention": "blockwise", "self_attention_args": '{"block_size": 512}'}

# Pietruszka et al. 2022, table 6 and appendix D.1
_DEEP: dict[str, Any] = {
    "embed_dim": 768,
    "ffn_embed_dim": 3072,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "decoding_beam": 2,
}

# Table 4: a Transpooler that selects by other means.
_TRANSPOOLER: dict[str, Any] = {**_BLOCKS, "pooling_lengths": "None,512"}

# Beltagy et al. 2020, section 7: the base size, which is BART's, with its post-norm and embeddings.
_LED: dict[str, Any] = {
    "embed_dim": 768,
    "ffn_embed_dim": 3072,
    "num_heads": 12,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "self_attention": "sliding_window",
    "self_attention_args": '{"window": 1024}',
    "global_tokens": 1,
    "global_projections": "dense",
    "feed_forward_args": '{"activation": "gelu"}',
    "encoder_positions": "learned",
    "encoder_positions_args": '{"length": 16384}',
    "decoder_positions": "learned",
    "decoder_positions_args": '{"length": 1024}',
    "layernorm_embedding": True,
    "no_scale_embedding": True,
    "decoding_beam": 4,
}

#: The architectures of the paper, and LED: name to the fields that differ from `PyramidionConfig`'s defaults.
PRESETS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "blockwise": _BLOCKS,
    "transpooler": _TRANSPOOLER,
    "pyramidion": {**_BLOCKS, "pooling_lengths": "2048,512"},
    "lsh": {"self_attention": "lsh"},
    "efficient": {"self_attention": "efficient"},
    "power": {**_BLOCKS, "pooling": "hard_topk", "scorer": "attention", "pooling_lengths": "2048,512"},
    "funnel": {**_BLOCKS, "pooling": "funnel", "pooling_lengths": "512,None"},
    "transpooler_nonlinear": {**_TRANSPOOLER, "scorer": "nonlinear"},
    "transpooler_attention": {**_TRANSPOOLER, "pooling": "hard_topk", "scorer": "attention"},
    "transpooler_embedding": {**_TRANSPOOLER, "scorer": "embedding"},
    "transpooler_index": {**_TRANSPOOLER, "scorer": "index"},
    "transpooler_random": {**_TRANSPOOLER, "scorer": "random"},
    "transpooler_mean": {**_TRANSPOOLER, "pooling": "mean"},
    "transpooler_max": {**_TRANSPOOLER, "pooling": "max"},
    "deep_blockwise": {**_BLOCKS, **_DEEP},
    "deep_pyramidion": {**_BLOCKS, **_DEEP, "pooling_lengths": "None,2048,512,None,None,None"},
    "led": _LED,
    # Pooled from the middle on: the lower layers of a trained LED expect a vector's neighbours beside it.
    "led_pyramidion": {**_LED, "pooling_lengths": "None,None,2048,512,None,None"},
}

# Small enough to learn in minutes on a CPU: one layer reads tokens, three read sentences. All heads of the first are
# local: a sentence's first token sees its own sentence wherever it stands, which the border of a block would cut off.
_EXTRACTOR: dict[str, Any] = {
    "embed_dim": 64,
    "ffn_embed_dim": 256,
    "num_heads": 4,
    "encoder_layers": 4,
    "self_attention": "efficient,full,full,full",
    "self_attention_args": '[{"local_heads": 4, "window": 48}, {}, {}, {}]',
    "pooling": "markers",
    "pooling_lengths": "1024,None,None,None",
    # On a CPU these two take a third of the time.
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}

#: Architectures that extract sentences: name to the fields that differ from `ExtractorConfig`'s defaults.
EXTRACTOR_PRESETS: dict[str, dict[str, Any]] = {
    "extractor": _EXTRACTOR,
    "extractor_pyramidion": {
        **_EXTRACTOR,
        "encoder_layers": 5,
        "self_attention": "efficient,blockwise,full,full,full",
        "self_attention_args": '[{"local_heads": 4, "window": 48}, {"block_size": 256}, {}, {}, {}]',
        "pooling": "soft_topk,markers",
        "pooling_lengths": "2048,1024,None,None,None",
    },
}

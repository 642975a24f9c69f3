"""The architectures of the paper: each the fields in which it differs from `PyramidionConfig`'s defaults."""

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

#: Architecture name to the fields that it sets.
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
}

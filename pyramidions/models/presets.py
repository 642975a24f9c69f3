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

#: Architecture name to the fields that it sets.
PRESETS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "blockwise": _BLOCKS,
    "transpooler": {**_BLOCKS, "pooling_lengths": "None,512"},
    "pyramidion": {**_BLOCKS, "pooling_lengths": "2048,512"},
    "deep_blockwise": {**_BLOCKS, **_DEEP},
    "deep_pyramidion": {**_BLOCKS, **_DEEP, "pooling_lengths": "None,2048,512,None,None,None"},
}

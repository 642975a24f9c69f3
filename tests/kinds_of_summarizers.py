"""Small summarizers of many kinds, none of them trained, which write more than one word over and over."""

from functools import cache
from typing import Any

import torch
from small_tokenizers import SENTENCES, bart_bytes

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import SavedModel
from pyramidions.models import build, preset
from pyramidions.text.tokenizer import PAD, Tokenizer

TEXTS = ["bees fly fast over roses", "a quick brown fox and the lazy dog jumps over many long documents", "a bee"]
SIZE = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 2}
SIZE |= {"decoder_positions": "sinusoidal"}
_BLOCKS = {"self_attention": "blockwise(block_size=16)", "pooling_lengths": "None,16,4"}
_T5 = {
    "norm": "rms",
    "normalize_before": True,
    "feed_forward": "gated",
    "no_scale_embedding": True,
    "encoder_positions": "none",
    "self_attention": "bucketed",
    "decoder_self_attention": "bucketed",
    "encoder_projections": "dense(bias=False, inner_dim=8)",
    "decoder_projections": "dense(bias=False, inner_dim=8)",
}
_LED = {
    "self_attention": "sliding_window(window=8)",
    "global_tokens": 1,
    "global_projections": "dense",
    "encoder_positions": "learned(length=64)",
    "decoder_positions": "learned(length=24)",
}
#: The fields that kinds of models change.
KINDS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "blockwise": {"self_attention": "blockwise(block_size=16)"},
    "sliding window": _LED,
    "buckets": _T5,
    "pooled": _BLOCKS,
    "pooled pointer": {**_BLOCKS, "output": "pointer"},
    "global vectors": {
        "self_attention": "block_global(block_size=8)",
        "global_vectors": 3,
        "normalize_before": True,  # as in PEGASUS-X; behind the last layer, nothing reads what a norm makes of them
        "pooling_lengths": "None,16,4",
        "output": "pointer",
    },
    "deleted": {**_BLOCKS, "pooling": "delete_gate"},
    "learned segments": {**_BLOCKS, "pooling": "segments"},
    "hard top-k": {**_BLOCKS, "pooling": "hard_topk", "scorer": "attention"},
    "discourse": {"self_attention": "segments(segment_length=16)", "cross_attention": "discourse", "output": "pointer"},
    "two memories": {**_BLOCKS, "memories": "last,2", "cross_attention": "full; hepos(stride=2)"},
    "concatenated": {"decoder": "concatenated", "recurrence": "sru", "output": "untied"},
    "reversible": {"self_attention": "lsh(bucket_size=8)", "stack": "reversible", "normalize_before": True},
}


@cache
def model_of(kind: str, byte_level: bool = False, queries: bool = False, prefix: str = "") -> SavedModel:
    """Return a model that reads 64 tokens and writes 24."""
    settings = Settings(90, sentence_markers=kind in ("pooled", "discourse"))
    tokenizer = Tokenizer.from_bytes(bart_bytes()) if byte_level else train_tokenizer(SENTENCES, settings)
    config = preset("vanilla", **{**SIZE, **KINDS[kind]}, max_source_positions=64)
    torch.manual_seed(1)
    transformer = build(config, tokenizer.vocab_size, PAD, tokenizer.marker_id, 24, name_end_idx=tokenizer.name_end_id)
    for name, weight in transformer.named_parameters():
        weight.data += 0.4 * torch.randn_like(weight)
        if "cross_attention" in name and "out_proj" in name:
            # What is written depends on the document.
            weight.data *= 5
    return SavedModel(transformer.eval(), config, tokenizer, 64, 24, queries=queries, source_prefix=prefix)

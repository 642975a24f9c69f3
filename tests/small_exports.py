"""Tiny models that were never trained, exported; they read so many tokens at once."""

from pathlib import Path

import torch

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import SavedExtractor, SavedModel, export_model
from pyramidions.models import build, build_extractor, extractor_preset, preset
from pyramidions.text.tokenizer import PAD

TEXTS = ["bees fly fast", "a bee with a ruler"]
SIZE = {"embed_dim": 8, "num_heads": 2}


def extractor(folder: Path, length: int = 64) -> Path:
    """Export an extractor; return the folder."""
    tokenizer = train_tokenizer(TEXTS, Settings(21, sentence_markers=True))
    config = extractor_preset("extractor", **SIZE, ffn_embed_dim=8, max_source_positions=length)
    torch.manual_seed(0)
    ranker = build_extractor(config, tokenizer.vocab_size, tokenizer.marker_id, PAD)
    export_model(SavedExtractor(ranker, config, tokenizer, length), folder, "# A model\n")
    return folder


def summarizer(folder: Path, length: int = 64, queries: bool = False, fold_case: bool = False) -> Path:
    """Export a summarizer, which answers queries or reads no capitals if asked to; return the folder."""
    tokenizer = train_tokenizer(TEXTS, Settings(20, fold_case=fold_case))
    size = {**SIZE, "ffn_embed_dim": 16, "decoder_layers": 1, "max_source_positions": length}
    config = preset("pyramidion", **size, self_attention="blockwise(block_size=16)", pooling_lengths="16,4")
    torch.manual_seed(0)
    transformer = build(config, tokenizer.vocab_size, PAD)
    export_model(SavedModel(transformer, config, tokenizer, length, 16, queries=queries), folder, "# A model\n")
    return folder

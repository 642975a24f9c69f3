"""A tiny summarizer that was never trained, exported."""

from pathlib import Path

import torch

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import SavedModel, export_model
from pyramidions.models import build, preset
from pyramidions.text.tokenizer import PAD


def exported(folder: Path, length: int = 64, queries: bool = False, fold_case: bool = False) -> Path:
    """Export one that reads so many tokens at once, answers queries or reads no capitals if asked to."""
    tokenizer = train_tokenizer(["bees fly fast", "a bee with a ruler"], Settings(20, fold_case=fold_case))
    size = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "decoder_layers": 1, "max_source_positions": length}
    config = preset("pyramidion", **size, self_attention="blockwise(block_size=16)", pooling_lengths="16,4")
    torch.manual_seed(0)
    transformer = build(config, tokenizer.vocab_size, PAD)
    export_model(SavedModel(transformer, config, tokenizer, length, 16, queries=queries), folder, "# A model\n")
    return folder

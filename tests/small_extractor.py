"""A tiny extractor that was never trained, exported."""

from pathlib import Path

import torch

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import SavedExtractor, export_model
from pyramidions.models import build_extractor, extractor_preset
from pyramidions.text.tokenizer import PAD


def exported(folder: Path, length: int = 64) -> Path:
    """Export one that reads so many tokens at once; return the folder."""
    tokenizer = train_tokenizer(["bees fly fast", "a bee with a ruler"], Settings(21, sentence_markers=True))
    config = extractor_preset("extractor", embed_dim=8, ffn_embed_dim=8, num_heads=2, max_source_positions=length)
    torch.manual_seed(0)
    ranker = build_extractor(config, tokenizer.vocab_size, tokenizer.marker_id, PAD)
    export_model(SavedExtractor(ranker, config, tokenizer, length), folder, "# A model\n")
    return folder

"""What we are compared with: LED, fairseq's own Transformer, and our model with that one's weights.

Each package is needed only where its models are asked for:

    pip install "transformers>=5,<6"
    scripts/setup.sh                      # fairseq
"""

import sys
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from pyramidions.models import PyramidionConfig


def led(
    size: PyramidionConfig, vocab_size: int, dropout: float, source_length: int, target_length: int, window: int
) -> Any:
    """Build LED (Beltagy et al. 2020) with random weights: an encoder of windowed attention and a full decoder.

    Width, heads and layers are those of `size`. Lengths and the window are in tokens; `dropout` is everywhere.

    Raises:
        ImportError: transformers is not installed.
    """
    try:
        # Nothing is heard here, and a torchaudio that was built for another torch would end the import.
        sys.modules.setdefault("torchaudio", None)  # type: ignore[arg-type]
        from transformers import LEDConfig, LEDForConditionalGeneration
    except ImportError as error:
        raise ImportError('LED needs transformers, which is missing: pip install "transformers>=5,<6".') from error
    sizes: dict[str, Any] = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("attention_heads", size.num_heads), ("ffn_dim", size.ffn_embed_dim))
    }
    return LEDForConditionalGeneration(
        LEDConfig(
            vocab_size=vocab_size,
            d_model=size.embed_dim,
            encoder_layers=size.encoder_layers,
            decoder_layers=size.decoder_layers,
            **sizes,
            attention_window=window,
            attention_dropout=dropout,
            dropout=dropout,
            activation_dropout=dropout,
            # It pads documents to a multiple of its window.
            max_encoder_position_embeddings=-(-source_length // window) * window,
            max_decoder_position_embeddings=target_length,
        )
    )


def fairseq_task(vocab_size: int, source_length: int = 8192, target_length: int = 1024) -> SimpleNamespace:
    """Return what fairseq's models ask of a task: a dictionary of ``vocab_size`` made-up words, and lengths.

    Raises:
        ImportError: fairseq is not installed.
    """
    try:
        from fairseq.data import Dictionary
    except ImportError as error:
        raise ImportError("fairseq is missing: scripts/setup.sh installs it.") from error
    words = Dictionary()
    for number in range(vocab_size - len(words)):
        words.add_symbol(f"w{number}")
    return SimpleNamespace(
        source_dictionary=words, target_dictionary=words, max_positions=lambda: (source_length, target_length)
    )


def fairseq_transformer(config: PyramidionConfig, task: SimpleNamespace) -> Any:
    """Build fairseq's own Transformer at the sizes of ``config``; attention among source positions is full.

    Its weights load into our model of that config, pooling aside.
    """
    from fairseq.models.transformer import TransformerModel, base_architecture

    sizes = {
        "embed_dim": config.embed_dim,
        "ffn_embed_dim": config.ffn_embed_dim,
        "attention_heads": config.num_heads,
        "normalize_before": config.normalize_before,
    }
    source_length, target_length = task.max_positions()
    settings = Namespace(
        **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sizes.items()},
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
        share_all_embeddings=True,
        max_source_positions=source_length,
        max_target_positions=target_length,
    )
    base_architecture(settings)
    model = TransformerModel.build_model(settings, task)
    # fairseq knows positions on both sides or on none.
    for part, kind in ((model.encoder, config.encoder_positions), (model.decoder, config.decoder_positions)):
        if kind == "none":
            part.embed_positions = None
    return model


def ours_in_fairseq(config: PyramidionConfig, task: SimpleNamespace, weights: dict[str, Tensor]) -> Any:
    """Build our model as fairseq sees it, a `PyramidionModel`, with the weights of a `fairseq_transformer`."""
    from omegaconf import OmegaConf

    from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig

    model = PyramidionModel.build_model(OmegaConf.structured(PyramidionModelConfig(**vars(config))), task)
    model.load_state_dict(dict(weights))
    return model

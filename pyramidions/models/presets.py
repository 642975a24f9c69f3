"""Architectures: each the fields in which it differs from the defaults of its config."""

from collections.abc import Mapping
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, written_parts
from pyramidions.models.config import Config, ExtractorConfig, LanguageModelConfig, PyramidionConfig, config_as

_BLOCKS: dict[str, Any] = {"self_attention": "blockwise(block_size=512)"}

# The base size of all but the shallow models
_SIX: dict[str, Any] = {"embed_dim": 768, "ffn_embed_dim": 3072, "encoder_layers": 6, "decoder_layers": 6}

# Pietruszka et al. 2022, table 6 and appendix D.1
_DEEP: dict[str, Any] = {**_BLOCKS, **_SIX, "decoding_beam": 2}

# Table 4 of the paper: a Transpooler that selects by other means.
_TRANSPOOLER: dict[str, Any] = {**_BLOCKS, "pooling_lengths": "None,512"}

# A pointer chooses among tokens itself, so that means lose nothing.
_COPIES: dict[str, Any] = {"pooling": "mean", "output": "pointer"}

# Lewis et al. 2020 (BART), the base size, with positions for 16,384 tokens
_BART: dict[str, Any] = {
    **_SIX,
    "num_heads": 12,
    "feed_forward": "dense(activation='gelu')",
    "encoder_positions": "learned(length=16384)",
    "decoder_positions": "learned(length=1024)",
    "layernorm_embedding": True,
    "no_scale_embedding": True,
    "decoding_beam": 4,
}

# Beltagy et al. 2020, section 7
_LED: dict[str, Any] = {
    **_BART,
    "self_attention": "sliding_window(window=1024)",
    "global_tokens": 1,
    "global_projections": "dense",
}


# Lewis et al. 2020 (BART), the large size
_BART_LARGE: dict[str, Any] = {
    **_BART,
    "embed_dim": 1024,
    "ffn_embed_dim": 4096,
    "num_heads": 16,
    "encoder_layers": 12,
    "decoder_layers": 12,
}

# Xiong et al. 2022: the last four layers read the whole document.
_BART_LS: dict[str, Any] = {
    **_BART_LARGE,
    "self_attention": " | ".join(["blockwise(block_size=1024)"] * 8 + ["pooled_blockwise(block_size=1024)"] * 4),
}

# Pang et al. 2023: eight layers over tokens, two over segments of 32 tokens, a new one at every 24th (of 8,192), and
# four over tokens that read the segments.
_TOP_DOWN: dict[str, Any] = {
    **_BART_LARGE,
    "encoder_layers": 14,
    "self_attention": " | ".join(
        ["sliding_window(window=1024)"] * 8 + ["full"] * 2 + ["sliding_window(window=1024)"] * 4
    ),
    "pooling": "adaptive_mean(overlap=8)",
    "pooling_lengths": ",".join(["None"] * 7 + ["342"] + ["None"] * 6),
    "upsampling": "top_down(layers=4)",
}


def _hybrid(kind: str, **options: Any) -> dict[str, Any]:
    """Return windows of 128 tokens in either direction alternating with another kind, as in the code of HEPOS."""
    return {
        **_BART,
        "self_attention": written_parts([[Part("sliding_window", {"window": 256}), Part(kind, options)] * 3]),
    }


# Huang et al. 2021, section 3: heads of the cross-attention take turns with the positions.
_HEPOS: dict[str, Any] = {"cross_attention": "hepos(stride=4)"}

# What Huang et al. 2021 compare in table 4, with the options of their code
_STRIDE: dict[str, Any] = {**_BART, "self_attention": "strided(stride=32, window=256)"}
_LINFORMER: dict[str, Any] = {**_BART, "self_attention": "linformer(compressed=256)"}
_LSH_WINDOW = _hybrid("lsh", bucket_size=64, num_hashes=4, local_heads=0)
_SINKHORN = _hybrid("sinkhorn", bucket_size=64, iterations=7, temperature=0.7)

# Zaheer et al. 2020, table 8 (ITC, base size)
_BIGBIRD: dict[str, Any] = {
    **_BART,
    "self_attention": "bigbird(block_size=64, window_blocks=3, global_blocks=1, random_blocks=3)",
}

# Ours: the decoder reads what was pooled, and with each head a quarter of what was there before.
_LOOK_BACK: dict[str, Any] = {
    **_BART,
    **_BLOCKS,
    "pooling_lengths": "None,None,2048,512,None,None",
    "memories": "last,3",
    "cross_attention": "full; hepos(stride=4)",
}

# Kitaev et al. 2020: all heads hash, in a model of base size. Two tables of 128 hold positions for 16,384 tokens.
_REFORMER: dict[str, Any] = {
    **_SIX,
    "num_heads": 12,
    "self_attention": "lsh(bucket_size=64, num_hashes=4, local_heads=0)",
    "stack": "reversible",
    "normalize_before": True,
    "feed_forward": "dense(chunk_size=1024)",
    "encoder_positions": "axial(shape=[128, 128])",
    "decoder_positions": "axial(shape=[32, 32])",
    "no_scale_embedding": True,
    "decoding_beam": 4,
}

# Rohde et al. 2021: a layer over the sentences' first vectors. Documents are longer than BART reads, so that tokens see
# windows, as in LED, and not each other.
_HAT: dict[str, Any] = {
    **_BART,
    "encoder_layers": 7,
    "self_attention": " | ".join(["sliding_window(window=1024)"] * 6 + ["full"]),
    "pooling": "markers",
    "pooling_lengths": "None,None,None,None,None,1024,None",
    "memories": "6,last",
}

# Zhu et al. 2020: layers inside turns, then over turns with who speaks, all of the Transformer's base size.
_HMNET: dict[str, Any] = {
    **_BART,
    "encoder_layers": 12,
    "self_attention": " | ".join(["segments"] * 6 + ["full"] * 6),
    "pooling": "markers(role_tokens=4, numbers=True)",
    "pooling_lengths": ",".join(["None"] * 5 + ["1024"] + ["None"] * 6),
    "memories": "6,last",
}

# Jaszczur et al. 2021, section 3, as their code has it: the encoder's projections and the cross-attention stay dense.
# Feed-forward parts are wider, so that the model is as large as a dense one.
_SCALING: dict[str, Any] = {
    "ffn_embed_dim": 2560,
    "normalize_before": True,
    "feed_forward": "sparse(block_size=64)",
    "decoder_projections": "multiplicative_conv",
    "decoder_positions": "sinusoidal",
    "decoding_beam": 4,
}

_SCALING_SIX: dict[str, Any] = {**_SCALING, **_SIX, "ffn_embed_dim": 3584, "num_heads": 12}

# Jaszczur et al. 2021, section 4, in base size: no cross-attention, but two causal self-attentions over memory and
# target, a recurrence, and the sparse loss. They write greedily.
_TERRAFORMER: dict[str, Any] = {
    **_SCALING_SIX,
    "ffn_embed_dim": 4608,
    "stack": "reversible",
    "decoder": "concatenated(reads_streams=True)",
    "recurrence": "sru",
    "output": "multiplicative",
    "decoding_beam": 1,
}

# Jaszczur et al. 2021, section 1, and their code: equivalent to T5's large size, and what it is scaled up to
_800M: dict[str, Any] = {
    "embed_dim": 1024,
    "ffn_embed_dim": 6144,
    "num_heads": 16,
    "encoder_layers": 24,
    "decoder_layers": 24,
}
_17B: dict[str, Any] = {
    "embed_dim": 9216,
    "ffn_embed_dim": 65536,
    "num_heads": 96,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "feed_forward": "sparse(block_size=256, rank=32)",
    "decoder_projections": "multiplicative_conv(modules=64)",
}

_HASHES = "bucket_size=128, num_hashes=2, local_heads=0, chunk_buckets=1"
_LONG_MEMORY = "concatenated(longest_memory=16384, reads_streams=True)"

# Jaszczur et al. 2021, table 4, in the size of their code
_TOY: dict[str, Any] = {
    "embed_dim": 256,
    "ffn_embed_dim": 512,
    "num_heads": 4,
    "encoder_layers": 12,
    "decoder_layers": 4,
    "normalize_before": True,
    "decoder_positions": "sinusoidal",
    "decoding_beam": 1,
    "decoding_min_length": 1,
}

#: The architectures of the paper and of others: name to the fields that differ from `PyramidionConfig`'s defaults.
PRESETS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "blockwise": _BLOCKS,
    "transpooler": _TRANSPOOLER,
    "pyramidion": {**_BLOCKS, "pooling_lengths": "2048,512"},
    # Ours: the decoder copies through the pooling.
    "pyramidion_pointer": {**_BLOCKS, **_COPIES, "pooling_lengths": "2048,512"},
    "pointer_generator": {"output": "pointer"},
    "blockwise_pointer": {**_BLOCKS, "output": "pointer"},
    # Cohan et al. 2018: words read their own section, and the decoder weighs sections. Theirs is recurrent.
    "discourse_pointer": {
        "self_attention": "segments(segment_length=512)",
        "cross_attention": "discourse",
        "output": "pointer",
    },
    "transpooler_pointer": {**_TRANSPOOLER, "output": "pointer"},
    "deep_pyramidion_pointer": {**_DEEP, **_COPIES, "pooling_lengths": "None,2048,512,None,None,None"},
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
    "transpooler_segments": {**_TRANSPOOLER, "pooling": "segments"},
    "pyramidion_segments": {**_BLOCKS, "pooling": "segments", "pooling_lengths": "2048,512"},
    "deep_blockwise": _DEEP,
    "deep_pyramidion": {**_DEEP, "pooling_lengths": "None,2048,512,None,None,None"},
    "led": _LED,
    # Pooled from the middle on: the lower layers of a trained LED expect a vector's neighbours beside it.
    "led_pyramidion": {**_LED, "pooling_lengths": "None,None,2048,512,None,None"},
    "stride": _STRIDE,
    "bigbird": _BIGBIRD,
    "linformer": _LINFORMER,
    "sinkhorn": _SINKHORN,
    "lsh_window": _LSH_WINDOW,
    "lsh_hepos": {**_LSH_WINDOW, **_HEPOS},
    "sinkhorn_hepos": {**_SINKHORN, **_HEPOS},
    "look_back": _LOOK_BACK,
    "reformer": _REFORMER,
    "hat": _HAT,
    "hmnet": _HMNET,
    "bart_ls": _BART_LS,
    "top_down": _TOP_DOWN,
    # Ours: a soft top-k in place of windows.
    "top_down_pyramidion": {**_TOP_DOWN, "pooling": "soft_topk"},
    "scaling": _SCALING,
    "deep_scaling": _SCALING_SIX,
    # Jaszczur et al. 2021, tables 1 and 2, to count and to time. The second has more heads than modules.
    "scaling_800m": {**_SCALING, **_800M},
    "scaling_17b": {
        **_SCALING,
        **_17B,
        "cross_projections": "multiplicative_conv(modules=64)",
    },
    "terraformer": {
        **_TERRAFORMER,
        # With 15,360 tokens of a document and 1,024 of a summary the decoder has 128 buckets, as in their run.
        "self_attention": f"lsh({_HASHES}, chunks_after=1)",
        "decoder_self_attention": f"lsh({_HASHES})",
        "decoder": _LONG_MEMORY,
    },
    # Jaszczur et al. 2021, tables 8 and 6: the pretrained model, which hashes nowhere, and the one to count
    "terraformer_800m": {**_TERRAFORMER, **_800M, "decoder": _LONG_MEMORY},
    "terraformer_17b": {**_TERRAFORMER, **_17B, "decoder": _LONG_MEMORY},
    # Ours: the decoder reads few vectors in front of the target, so all of them may see each other.
    "terraformer_pyramidion": {
        **_TERRAFORMER,
        **_BLOCKS,
        "pooling_lengths": "None,2048,512,None,None,None",
    },
    "toy_vanilla": _TOY,
    "toy_terraformer": {
        **_TOY,
        "stack": "reversible",
        "feed_forward": "sparse(block_size=16)",
        "decoder_projections": "multiplicative_conv",
        "decoder": "concatenated(longest_memory=8192)",
        "recurrence": "sru",
    },
}

# Small enough to learn in minutes on a CPU: one layer reads tokens, three read sentences. All heads of the first are
# local: a sentence's first token sees its own sentence wherever it stands, which the border of a block would cut off.
_SENTENCES = "efficient(local_heads=4, local_window=96)"
_EXTRACTOR: dict[str, Any] = {
    "embed_dim": 64,
    "ffn_embed_dim": 256,
    "num_heads": 4,
    "encoder_layers": 4,
    "self_attention": f"{_SENTENCES} | full | full | full",
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
        "self_attention": f"{_SENTENCES} | blockwise(block_size=256) | full | full | full",
        "pooling": "soft_topk | markers",
        "pooling_lengths": "2048,1024,None,None,None",
    },
    "extractor_pointer": {**_EXTRACTOR, "selector": "pointer"},
}


# Beltagy et al. 2020, table 12, first phase: the windows of the lowest and of the highest layer are theirs, and each
# layer's is twice that of the one below. On two heads, dilation grows in the upper half.
_GROWING_WINDOWS = " | ".join(
    [f"relative_window(window={32 * 2**layer})" for layer in range(6)]
    + [
        f"relative_window(window={min(32 * 2**layer, 8192)}, dilation={layer // 2 - 1}, dilated_heads=2)"
        for layer in range(6, 12)
    ]
)

#: Nawrot et al. 2023, table 1, with the segments of Hwang et al. 2025, and Longformer's small model: name to the fields
#: that differ from `LanguageModelConfig`'s defaults.
LANGUAGE_MODEL_PRESETS: dict[str, dict[str, Any]] = {
    "hourglass_vanilla": {},
    "hourglass_fixed_2": {"boundaries": "fixed(factor=2)"},
    "hourglass_fixed_3": {"boundaries": "fixed(factor=3)"},
    "hourglass_fixed_4": {"boundaries": "fixed(factor=4)"},
    "hourglass_whitespace": {"boundaries": "whitespace"},
    "hourglass_gumbel": {"boundaries": "gumbel"},
    "hourglass_unigram": {"boundaries": "unigram"},
    "hourglass_entropy": {"boundaries": "entropy"},
    "hourglass_routing": {"boundaries": "routing", "segments": "last", "upsampling": "smoothing"},
    "longformer_lm": {
        "layers": "12",
        "self_attention": _GROWING_WINDOWS,
        "normalize_before": True,
        "dropout": 0.2,
    },
}


def preset(name: str, **overrides: Any) -> PyramidionConfig:
    """Return the config of an architecture by name, e.g. ``preset("deep_pyramidion", dropout=0.0)``.

    Raises:
        UserError: an unknown architecture or field.
    """
    return preset_of(name, PRESETS, PyramidionConfig, overrides)


def extractor_preset(name: str, **overrides: Any) -> ExtractorConfig:
    """Return the config of an architecture that extracts, e.g. ``extractor_preset("extractor", embed_dim=64)``."""
    return preset_of(name, EXTRACTOR_PRESETS, ExtractorConfig, overrides)


def language_model_preset(name: str, **overrides: Any) -> LanguageModelConfig:
    """Return the config of a language model, e.g. ``language_model_preset("hourglass_gumbel", dropout=0.0)``."""
    return preset_of(name, LANGUAGE_MODEL_PRESETS, LanguageModelConfig, overrides)


def preset_of(
    name: str, presets: Mapping[str, dict[str, Any]], kind: type[Config], overrides: dict[str, Any]
) -> Config:
    """Return the config of a kind that is one of the ``presets``, changed by ``overrides``."""
    if name not in presets:
        raise UserError(f"The architecture must be one of {', '.join(presets)}, but is {name!r}.")
    return config_as(kind, {**presets[name], **overrides})

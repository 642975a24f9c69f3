"""Tiny pretrained models with random weights, as the Hugging Face hub keeps them."""

from pathlib import Path
from typing import Any

import torch
import transformers
from small_tokenizers import bart, mbart, pegasus, save_vocabulary
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pyramidions.text.tokenizer import Tokenizer

SHAPE = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}
PIECES = {
    "bart": 340,
    "led": 340,
    "pegasus": 80 + 103,
    "bigbird_pegasus": 80 + 103,
    "pegasus_x": 80 + 103,
    "mbart": 80 + 1 + 52 + 1,
    "t5": 184,
    "mt5": 184,
    "longt5": 184,
}
#: of T5 and mT5, which call a shape otherwise; heads are narrower together than the model
T5_SHAPE = {
    "d_model": 16,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 3,
    "d_kv": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "decoder_start_token_id": 0,
}


def model_of(family: str, **changes: Any) -> Any:
    """Return a model of a family, all of its weights random: by itself it has norms of 1 and biases of 0."""
    shape = {**(T5_SHAPE if family in ("t5", "mt5", "longt5") else SHAPE), "vocab_size": PIECES[family], **changes}
    if family == "t5":
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**shape))
    elif family == "mt5":
        model = transformers.MT5ForConditionalGeneration(transformers.MT5Config(**shape))
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    elif family == "longt5":
        attention = {"encoder_attention_type": "transient-global", "local_radius": 3, "global_block_size": 4}
        model = transformers.LongT5ForConditionalGeneration(transformers.LongT5Config(**attention, **shape))
    elif family == "bart":
        config = transformers.BartConfig(**{"max_position_embeddings": 40, **shape})
        model = transformers.BartForConditionalGeneration(config)
    elif family == "mbart":
        config = transformers.MBartConfig(**{"max_position_embeddings": 40, "decoder_start_token_id": 2, **shape})
        model = transformers.MBartForConditionalGeneration(config)
    elif family == "led":
        lengths = {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 40}
        model = transformers.LEDForConditionalGeneration(
            transformers.LEDConfig(**{**lengths, "attention_window": [8, 4], **shape})
        )
    elif family == "pegasus_x":
        settings = {"max_position_embeddings": 64, "block_size": 8, "num_global_tokens": 3}
        model = transformers.PegasusXForConditionalGeneration(transformers.PegasusXConfig(**{**settings, **shape}))
    elif family == "bigbird_pegasus":
        settings = {"max_position_embeddings": 64, "block_size": 4}
        # 44 tokens are seen whole.
        model = transformers.BigBirdPegasusForConditionalGeneration(
            transformers.BigBirdPegasusConfig(**{**settings, **shape})
        )
    else:
        settings = {"max_position_embeddings": 40, "activation_function": "relu", "scale_embedding": True}
        model = transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(**{**settings, **shape}))
    torch.manual_seed(7)
    for name, weight in model.named_parameters():
        if family != "pegasus" or "embed_positions" not in name:
            center = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            weight.data = center + (0.1 if name == "lm_head.weight" else 0.3) * torch.randn_like(weight)
    return model.eval()


def save(model: Any, folder: Path) -> Path:
    """Write a model with a tokenizer; return the folder."""
    model.save_pretrained(folder)
    if model.config.model_type in ("pegasus", "bigbird_pegasus", "pegasus_x", "t5", "mt5", "longt5"):
        (folder / "spiece.model").write_bytes(pegasus())
    elif model.config.model_type == "mbart":
        (folder / "sentencepiece.bpe.model").write_bytes(mbart())
        (folder / "tokenizer_config.json").write_text('{"src_lang": "de_DE", "tgt_lang": null}')
    else:
        save_vocabulary(bart(), folder)
    return folder


#: A file of configs/pretrained for the BART of `model_of`, with blocks and pooling.
RECIPE = """# @package _global_
task: {max_source_positions: 120, max_target_positions: 40}
model:
  embed_dim: 16
  ffn_embed_dim: 32
  num_heads: 2
  feed_forward: dense(activation='gelu')
  self_attention: blockwise(block_size=40)
  pooling_lengths: None,8
  layernorm_embedding: true
  no_scale_embedding: true
  encoder_positions: learned(length=120)
  decoder_positions: learned(length=40)
"""


def token_ids(tokenizer: Tokenizer, *lengths: int) -> Tensor:
    """Return random texts of these lengths, padded on the right: (B, L)."""
    generator = torch.Generator().manual_seed(3)
    texts = [torch.randint(4, tokenizer.vocab_size, (length,), generator=generator) for length in lengths]
    return pad_sequence(texts, batch_first=True, padding_value=tokenizer.pad)


def started(tokenizer: Tokenizer, target: Tensor, start: int | None = None) -> Tensor:
    """Return summaries behind what a decoder starts from, the end of a text if None: (B, T) -> (B, 1 + T)."""
    return torch.cat([torch.full_like(target[:, :1], tokenizer.eos if start is None else start), target], dim=1)


def given_to(theirs: Any, source: Tensor, marked: bool = True) -> dict[str, Tensor]:
    """Return what a model of transformers reads of ids; the first token of LED is global where ``marked``."""
    given = {"input_ids": source, "attention_mask": source.ne(theirs.config.pad_token_id).long()}
    if theirs.config.model_type == "led" and marked:
        given["global_attention_mask"] = torch.zeros_like(source).index_fill(1, torch.tensor(0), 1)
    return given

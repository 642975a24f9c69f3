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
    **dict.fromkeys(("bart", "led"), 340),
    **dict.fromkeys(("pegasus", "bigbird_pegasus", "pegasus_x"), 80 + 103),
    "mbart": 80 + 1 + 52 + 1,
    **dict.fromkeys(("t5", "mt5", "longt5"), 184),
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


#: The classes of families, and what is small about them beside their shape.
_OF_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("Bart", {"max_position_embeddings": 40}),
    "led": (
        "LED",
        {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 40, "attention_window": [8, 4]},
    ),
    "pegasus": ("Pegasus", {"max_position_embeddings": 40, "activation_function": "relu", "scale_embedding": True}),
    # 44 tokens are seen whole.
    "bigbird_pegasus": ("BigBirdPegasus", {"max_position_embeddings": 64, "block_size": 4}),
    "pegasus_x": ("PegasusX", {"max_position_embeddings": 64, "block_size": 8, "num_global_tokens": 3}),
    "mbart": ("MBart", {"max_position_embeddings": 40, "decoder_start_token_id": 2}),
    "t5": ("T5", {}),
    "mt5": ("MT5", {}),
    "longt5": ("LongT5", {"encoder_attention_type": "transient-global", "local_radius": 3, "global_block_size": 4}),
}
FAMILIES = list(_OF_FAMILIES)


def model_of(family: str, **changes: Any) -> Any:
    """Return a model of a family, all of its weights random: by itself it has norms of 1 and biases of 0."""
    name, own = _OF_FAMILIES[family]
    shape = {**(T5_SHAPE if "t5" in family else SHAPE), "vocab_size": PIECES[family], **own, **changes}
    config = getattr(transformers, f"{name}Config")(**shape)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config)
    if family == "mt5":
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    torch.manual_seed(7)
    for name, weight in model.named_parameters():
        if family != "pegasus" or "embed_positions" not in name:
            center = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            weight.data = center + (0.1 if name == "lm_head.weight" else 0.3) * torch.randn_like(weight)
    return model.eval()


def end_soon(model: Any) -> None:
    """Make the end of a text about as probable as one token in eight, so that the limit ends few texts."""
    ids, end = torch.randint(5, 75, (4, 40), generator=torch.Generator().manual_seed(1)), model.config.eos_token_id
    weight = model.get_output_embeddings().weight.data
    with torch.no_grad():
        features = model(input_ids=ids, decoder_input_ids=ids, output_hidden_states=True).decoder_hidden_states[-1]
        mean, before = features.mean(dim=(0, 1)), weight[end].clone()
        for step in range(200):
            weight[end] = before + step * 0.1 * mean / mean.norm()
            if model(input_ids=ids, decoder_input_ids=ids).logits.softmax(dim=-1)[..., end].mean() > 0.12:
                break


def save(model: Any, folder: Path) -> Path:
    """Write a model with a tokenizer; return the folder."""
    model.save_pretrained(folder)
    return save_tokenizer(model.config.model_type, folder)


def save_tokenizer(family: str, folder: Path) -> Path:
    """Write the tokenizer of a family as the hub has it, without tokenizer.json; return the folder."""
    if family in ("bart", "led"):
        save_vocabulary(bart(), folder)
    elif family == "mbart":
        (folder / "sentencepiece.bpe.model").write_bytes(mbart())
        (folder / "tokenizer_config.json").write_text('{"src_lang": "de_DE", "tgt_lang": null}')
    else:
        (folder / "spiece.model").write_bytes(pegasus())
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

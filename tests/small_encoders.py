"""Tiny encoders with random weights and their tokenizers, as the Hugging Face hub keeps them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from small_pretrained import model_of
from small_tokenizers import SENTENCES, bart
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SHAPE = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
# How much encoder-decoders read, by the names of their families.
ENCODER_DECODERS: dict[str, dict[str, int]] = {
    "bart": {"max_position_embeddings": 64},
    "t5": {},
    "led": {"max_decoder_position_embeddings": 16},
}
# Other words are cut into letters.
WHOLE = ["the", "of", "a", "by", "pool", "models", "documents", "read", "fast"]
TEXTS = ["The quick fox reads documents.", "Longer documents are read by models.", "Bees fly fast, the fox jumps."]


def wordpiece() -> Tokenizer:
    """Return WordPiece in lower case as BERT has it; a text stands between `[CLS]` and `[SEP]`."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted({letter for text in SENTENCES for letter in text.lower() if not letter.isspace()} - set("éïü"))
    # Training would settle ties otherwise each time.
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters), *WHOLE, "##ing"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ends = [(name, vocabulary[name]) for name in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return tokenizer


def randomized(model: Any) -> Any:
    """Return a model, all of its weights random: by itself it has norms of 1 and biases of 0."""
    torch.manual_seed(7)
    for name, weight in model.named_parameters():
        center = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
        weight.data = center + 0.3 * torch.randn_like(weight)
    return model.eval()


def save_bert(folder: Path, kind: str = "BertModel", length: int = 40, **settings: Any) -> Path:
    """Write a BERT of some kind that reads a number of tokens; return the folder."""
    tokenizer = wordpiece()
    shape = {**SHAPE, "vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": length}
    config = transformers.BertConfig(**{**shape, **settings})
    randomized(getattr(transformers, kind)(config)).save_pretrained(folder)
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.BertTokenizer(
        tokenizer_object=tokenizer, mask_token="[MASK]", model_max_length=length, **names
    ).save_pretrained(folder)
    return folder


def save_roberta(folder: Path, kind: str = "RobertaModel", length: int = 40, **settings: Any) -> Path:
    """Write a RoBERTa of some kind that reads a number of tokens; return the folder."""
    tokenizer = bart()
    config = transformers.RobertaConfig(
        **SHAPE,
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=length + 2,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **settings,
    )
    randomized(getattr(transformers, kind)(config)).save_pretrained(folder)
    save_byte_level(folder, tokenizer)
    return folder


def classifier(
    folder: Path, labels: Sequence[str], length: int = 60, of: str = "Sequence", save: Callable[..., Path] = save_bert
) -> Path:
    """Write a classifier of texts or tokens with these labels; return the folder."""
    kind, names = {save_bert: "Bert", save_roberta: "Roberta"}[save], dict(enumerate(labels))
    numbers = {label: number for number, label in names.items()}
    return save(folder, f"{kind}For{of}Classification", length, id2label=names, label2id=numbers)


def save_encoder_decoder(folder: Path, family: str = "bart") -> str:
    """Write a sequence-to-sequence model of one of `ENCODER_DECODERS`; return the folder."""
    tokenizer = bart()
    ends = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    size = {"vocab_size": tokenizer.get_vocab_size(), **ENCODER_DECODERS[family]}
    model_of(family, **ends, **size).save_pretrained(folder)
    save_byte_level(folder, tokenizer)
    return str(folder)


def save_byte_level(folder: Path, tokenizer: Tokenizer) -> None:
    """Write byte-level BPE as RoBERTa and BART have it."""
    names = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    made = transformers.RobertaTokenizer(
        tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", mask_token="<mask>", **names
    )
    made.save_pretrained(folder)


def ids_and_vectors(folder: Path, text: str, layer: int) -> tuple[list[int], list[torch.Tensor]]:
    """Return the pieces of a text and the vectors of a layer, counted from 1, of the whole model."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    ids = tokenizer.encode(text)
    with torch.no_grad():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    return ids, list(states[layer][0].double())

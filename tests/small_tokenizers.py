"""Tokenizers as BART and PEGASUS have them, trained on a few sentences."""

import io
import json
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "It's café time, isn't it? Bees fly fast over 1,024 roses.",
    "A naïve résumé 😀 of “quoted” words – and more.",
    "We summarize long documents, and the summaries of documents are short.",
    "Longer documents are read by models that pool: a pooling model reads more.",
    "The models were trained on the documents of the training corpus for 1,000 steps.",
] * 4


def bart(special: tuple[str, ...] = ("<s>", "<pad>", "</s>", "<unk>", "<mask>"), size: int = 340) -> Tokenizer:
    """Return byte-level BPE with special pieces in front; a text stands between `<s>` and `</s>`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ends)
    return tokenizer


def bart_bytes() -> bytes:
    """Return a tokenizer.json."""
    return str(bart().to_str()).encode()


def save_vocabulary(tokenizer: Tokenizer, folder: Path) -> None:
    """Write vocab.json and merges.txt."""
    about = json.loads(tokenizer.to_str())["model"]
    (folder / "vocab.json").write_text(json.dumps(about["vocab"]))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{' '.join(pair)}\n" for pair in about["merges"]))


def pegasus(size: int = 80, bos: int = -1, unk: int = 2, eos: int = 1, pad: int = 0) -> bytes:
    """Return a spiece.model with `<pad>`, `</s>`, `<unk>` at 0, 1, 2, no `<s>`, and sentencepiece's normalisation."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        vocab_size=size,
        pad_id=pad,
        eos_id=eos,
        unk_id=unk,
        bos_id=bos,
        character_coverage=1.0,
        minloglevel=2,
    )
    return model.getvalue()


def mbart(size: int = 80) -> bytes:
    """Return a sentencepiece.bpe.model with `<unk>`, `<s>`, `</s>` at 0, 1, 2, and no `<pad>`."""
    return pegasus(size, bos=1, unk=0, eos=2, pad=-1)


def wordpiece(size: int = 120) -> bytes:
    """Return a tokenizer.json of small letters and WordPiece, with [PAD], [UNK], [CLS], [SEP], [MASK] in front."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.decoder = normalizers.BertNormalizer(), decoders.WordPiece()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return str(tokenizer.to_str()).encode()


def byte_fallback() -> bytes:
    """Return a tokenizer.json of Unigram: `<pad>`, `</s>`, `<unk>`, all bytes, some letters, and no `<s>`."""
    scores = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    scores += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    scores += [(piece, -2.0 - len(piece) ** -1.0) for piece in ("▁", "▁the", "▁fox", *"Tefhox.,'s 0124")]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2, byte_fallback=True))
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return str(tokenizer.to_str()).encode()

"""Pretrains a small BART on documents, as a stand-in for the hub's where there is no network.

    python lab/benchmarks/pretraining.py sumpubmed --work work/pretrained --minutes 60

Byte-level BPE is trained on some of the documents. Then random passages of them are corrupted by BART's text infilling
(Lewis et al. 2020, section 2.2): spans of about 3 tokens, 30% of all tokens, each become one `<mask>`, and the decoder
writes the *whole* passage. Writing only the spans, as T5 does, costs half as much; but it teaches neither to write
connected text nor to copy, and summaries need both. Summaries are not read.

Progress is kept every few minutes, and the same command goes on from there: the passages of an update follow from the
seed and its number. The result is a folder as the Hugging Face hub has it.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from pyramidions.base.notes import note
from pyramidions.data.readers import Corpus, find_splits
from pyramidions.files.atomic import atomic_file
from pyramidions.text.normalization import one_line

# Nothing is heard here, and a torchaudio that was built for another torch would end the import.
sys.modules.setdefault("torchaudio", None)  # type: ignore[arg-type]
from transformers import BartConfig, BartForConditionalGeneration  # noqa: E402

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
BOS, PAD, EOS, _, MASK = range(len(SPECIALS))
_MASKED, _SPAN = 0.3, 3.0
_VALIDATION = 32  # passages
_PEAK, _WARMUP = 1e-3, 300
_CHARACTERS = 8  # more than a token has on average, so that a passage is full


def tokenizer_of(texts: list[str], vocab_size: int) -> Tokenizer:
    """Return BART's kind of tokenizer: byte-level BPE, a text between `<s>` and `</s>`."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIALS), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.RobertaProcessing((SPECIALS[EOS], EOS), (SPECIALS[BOS], BOS))
    return made


def infilled(ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a text in which spans of tokens are one `<mask>` each; spans that touch are one, and none is empty."""
    hidden = np.zeros(len(ids), dtype=bool)
    while hidden.mean() < _MASKED:
        start = rng.integers(len(ids))
        hidden[start : start + rng.poisson(_SPAN)] = True
    first = hidden & ~np.concatenate(([False], hidden[:-1]))
    return np.where(first, MASK, ids)[first | ~hidden]


class Passages:
    """Random passages of texts and what hides parts of them.

    Args:
        texts: to draw from.
        tokenizer: of them.
        length: of a passage in tokens, its ends included.
        seed: of what is drawn.
    """

    def __init__(self, texts: list[str], tokenizer: Tokenizer, length: int, seed: int) -> None:
        self.texts, self.tokenizer, self.length, self.seed = texts, tokenizer, length, seed

    def batch(self, number: int, size: int) -> dict[str, torch.Tensor]:
        """Return the inputs and labels of the `number`-th batch, which follow from the seed alone: (size, length)."""
        rng = np.random.default_rng([self.seed, number])
        passages = [self._passage(rng) for _ in range(size)]
        corrupted = padded([[BOS, *infilled(ids, rng), EOS] for ids in passages], PAD)
        labels = padded([[BOS, *ids, EOS] for ids in passages], -100)
        return {"input_ids": corrupted, "attention_mask": (corrupted != PAD).long(), "labels": labels}

    def _passage(self, rng: np.random.Generator) -> np.ndarray:
        text = self.texts[rng.integers(len(self.texts))]
        characters = _CHARACTERS * self.length
        begin = rng.integers(max(1, len(text) - characters // 2))
        # Words stay whole.
        begin = max(0, text.rfind(" ", 0, begin + 1))
        ids = self.tokenizer.encode(text[begin : begin + characters], add_special_tokens=False).ids
        return np.array(ids[: self.length - 2])


def padded(rows: list[list[int]], value: int) -> torch.Tensor:
    """Return rows of ids as one tensor: (rows, longest)."""
    made = torch.full((len(rows), max(map(len, rows))), value)
    for number, row in enumerate(rows):
        made[number, : len(row)] = torch.tensor(row)
    return made


class Pretraining:
    """A small BART, its optimizer and how far they are.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.folder = args, args.work
        splits = find_splits(str(args.documents))
        # On one line, as models of ours read them.
        texts = {name: [one_line(each.source) for each in Corpus(splits[name])] for name in ("train", "valid")}
        tokenizer = self._tokenizer(texts["train"][: args.tokenizer_documents])
        self.train, self.valid = (Passages(texts[name], tokenizer, args.length, args.seed) for name in texts)
        torch.manual_seed(args.seed)
        width, sides = args.width, ("encoder", "decoder")
        sizes = {f"{side}_layers": args.layers for side in sides} | {f"{side}_ffn_dim": 4 * width for side in sides}
        heads = {f"{side}_attention_heads": args.heads for side in sides}
        # No document is read twice, so that nothing is dropped.
        self.config = BartConfig(
            vocab_size=tokenizer.get_vocab_size(),
            d_model=width,
            max_position_embeddings=args.length,
            dropout=0.0,
            forced_bos_token_id=BOS,
            **sizes,
            **heads,
        )
        self.model = BartForConditionalGeneration(self.config)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        self.updates, self.seconds = 0, 0.0
        self.history: list[dict[str, float]] = []

    def _tokenizer(self, texts: list[str]) -> Tokenizer:
        path = self.folder / "tokenizer.json"
        if not path.exists():
            note(f"training the tokenizer on {len(texts):,} documents")
            with atomic_file(path) as file:
                file.write(tokenizer_of(texts, self.args.vocab_size).to_str(pretty=True).encode())
        return Tokenizer.from_file(str(path))

    def run(self) -> None:
        """Train until the time is over, and write the folder."""
        self._load()
        limit, every = 60 * self.args.minutes, 60 * self.args.save_minutes
        while self.seconds < limit:
            before, losses = self.seconds, []
            while self.seconds < min(limit, before + every):
                begin = time.monotonic()
                losses.append(self._update(self.seconds / limit))
                self.seconds += time.monotonic() - begin
            self._tell(float(np.mean(losses)))
            self._save()
        self.model.save_pretrained(self.folder)
        about = {"updates": self.updates, "seconds": self.seconds, "batch": self.args.batch, "history": self.history}
        (self.folder / "pretraining.json").write_text(json.dumps(about, indent=1) + "\n")

    def _update(self, done: float) -> float:
        for group in self.optimizer.param_groups:
            # Down to nothing when the time is over
            group["lr"] = _PEAK * min((self.updates + 1) / _WARMUP, 1 - done)
        loss = self.model(**self.train.batch(self.updates, self.args.batch)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.updates += 1
        return float(loss.detach())

    @torch.no_grad()
    def _tell(self, loss: float) -> None:
        self.model.eval()
        valid = float(self.model(**self.valid.batch(0, _VALIDATION)).loss)
        self.model.train()
        found = {"minutes": self.seconds / 60, "updates": self.updates, "loss": loss, "valid_loss": valid}
        self.history.append({name: round(value, 4) for name, value in found.items()})
        note(", ".join(f"{name} {value:.2f}" for name, value in found.items()))

    def _save(self) -> None:
        names = ("updates", "seconds", "history")
        parts = {name: getattr(self, name).state_dict() for name in ("model", "optimizer")}
        with atomic_file(self.folder / "state.pt") as file:
            torch.save({**parts, **{name: getattr(self, name) for name in names}}, file)

    def _load(self) -> None:
        path = self.folder / "state.pt"
        if path.exists():
            state: dict[str, Any] = torch.load(path, weights_only=True)
            for name in ("model", "optimizer"):
                getattr(self, name).load_state_dict(state.pop(name))
            vars(self).update(state)
            note(f"going on after {self.updates:,} updates, {self.seconds / 60:.1f} minutes")


def main() -> None:
    """Pretrain a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, help="folder with train and valid files")
    parser.add_argument("--work", type=Path, required=True, help="folder of the model")
    parser.add_argument("--minutes", type=float, default=60, help="of training, validation aside (default: 60)")
    parser.add_argument("--save-minutes", type=float, default=5, help="between checkpoints (default: 5)")
    parser.add_argument("--width", type=int, default=128, help="of the model (default: 128)")
    parser.add_argument("--layers", type=int, default=3, help="of encoder and of decoder (default: 3)")
    parser.add_argument("--heads", type=int, default=4, help="of attention (default: 4)")
    parser.add_argument("--vocab-size", type=int, default=8000, help="pieces (default: 8000)")
    parser.add_argument("--tokenizer-documents", type=int, default=1000, help="to train it on (default: 1000)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a passage (default: 512)")
    parser.add_argument("--batch", type=int, default=4, help="passages an update (default: 4)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    Pretraining(args).run()


if __name__ == "__main__":
    main()

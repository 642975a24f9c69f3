"""The task: passages of documents with missing spans in, the spans out."""

import logging
from collections.abc import Sequence
from itertools import count, takewhile
from typing import Any, NamedTuple

import numpy as np
from fairseq.tasks import register_task

from pyramidions.base.errors import UserError
from pyramidions.plugin.hooks import seed_of
from pyramidions.plugin.tasks.config import SpanDenoisingConfig
from pyramidions.plugin.tasks.datasets import DrawnPairs
from pyramidions.plugin.tasks.document_task import WritingTask
from pyramidions.plugin.tasks.preprocessing import Preprocessing
from pyramidions.plugin.tasks.splits import indexed, is_shuffled
from pyramidions.text.tokenizer import EOS, UNK, Tokenizer

logger = logging.getLogger(__name__)
_NAME = "span_denoising"


class SpanNoise(NamedTuple):
    """How much of a text is corrupted (Raffel et al. 2020, section 3.3.4)."""

    share: float  # of its tokens
    mean: float  # tokens of a span
    # Whether a span stays in the text, between two sentinels, so that it can be copied. Not in the paper.
    copies: bool = False
    # The tokens that stand for the first span, the second, and so on; the last one for all that follow.
    sentinels: Sequence[int] = (UNK,)

    def sentinel(self, number: int) -> int:
        return self.sentinels[min(number, len(self.sentinels) - 1)]

    def counts(self, length: int) -> tuple[int, int]:
        """Return how many of ``length`` tokens, at least 2, are corrupted, and in how many spans."""
        corrupted = min(max(round(length * self.share), 1), length - 1)
        spans = min(max(round(corrupted / self.mean), 1), corrupted, length - corrupted)
        return corrupted, spans

    def sizes(self, length: int) -> tuple[int, int]:
        """Return the tokens of source and target of ``length`` tokens, without what ends them."""
        corrupted, spans = self.counts(length)
        return (length + 2 * spans if self.copies else length - corrupted + spans), corrupted + spans

    def longest(self, source: int, target: int) -> int:
        """Return the most tokens whose source and target fit; 0 if not even those of 2 do."""
        # The source grows or stays with each further token, and so does the target.
        low, high = 1, 2 * (source + target)
        while high - low > 1:
            middle = (low + high) // 2
            sizes = self.sizes(middle)
            low, high = (middle, high) if sizes[0] <= source and sizes[1] <= target else (low, middle)
        return low if low > 1 else 0

    def corrupt(self, tokens: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Replace random spans by sentinels, or put one before and one behind each.

        All ways to cut the corrupted tokens into spans, and the others into what lies between, are equally likely. The
        text, of at least two tokens (L,), begins with a token that is not corrupted.
        """
        corrupted, spans = self.counts(len(tokens))
        kept_parts = _partition(len(tokens) - corrupted, spans, random)
        lost_parts = _partition(corrupted, spans, random)
        source: list[np.ndarray] = []
        target: list[np.ndarray] = []
        place = 0
        for number, (kept, lost) in enumerate(zip(kept_parts, lost_parts, strict=True)):
            sentinel = np.array([self.sentinel(number)], dtype=tokens.dtype)
            span = tokens[place + kept : place + kept + lost]
            source += [tokens[place : place + kept], sentinel, *((span, sentinel) if self.copies else ())]
            target += [sentinel, span]
            place += kept + lost
        return np.concatenate(source), np.concatenate(target)


def _partition(total: int, parts: int, random: np.random.Generator) -> list[int]:
    """Cut ``total`` into so many parts of at least 1, all ways equally likely."""
    cuts = np.sort(random.choice(total - 1, parts - 1, replace=False)) + 1
    return np.diff([0, *cuts, total]).tolist()


class Corruption:
    """Passages of texts without some spans, and the spans that are missing.

    Both follow from the seed, the epoch and the number of the text, so that a run that goes on trains on the same ones.
    """

    def __init__(
        self, texts: Any, noise: SpanNoise, longest: int, seed: int, prefix: Sequence[int] = (), eos: int = EOS
    ) -> None:
        self.texts = texts
        self.noise = noise
        self.longest = longest
        self.seed = seed
        self.prefix = prefix
        self.eos = eos
        self.epoch = 1
        passages = np.minimum(np.asarray(texts.sizes) - 1, longest)
        different, places = np.unique(passages, return_inverse=True)
        # Of a single token nothing is left to tell what is missing.
        sizes = np.array([noise.sizes(passage) if passage > 1 else (passage, 0) for passage in different.tolist()])
        source, target = (sizes.reshape(-1, 2)[places] + len(prefix) + 1).T
        self.sizes = source, target

    def __len__(self) -> int:
        return len(self.texts)

    def pair(self, index: int) -> tuple[list[int], list[int]]:
        """Return the rest of a passage, and its missing spans, with the prefix and the end."""
        random = np.random.default_rng([self.seed, self.epoch, index])
        text: np.ndarray = self.texts[index][:-1].numpy()
        length = min(len(text), self.longest)
        start = int(random.integers(len(text) - length + 1))
        passage = text[start : start + length]
        both = self.noise.corrupt(passage, random) if length > 1 else (passage, passage[:0])
        source, target = ([*self.prefix, *side.tolist(), self.eos] for side in both)
        return source, target


@register_task(_NAME, dataclass=SpanDenoisingConfig)
class SpanDenoisingTask(WritingTask):
    """Pretraining on the documents of a folder made by `pyramidions prepare` (Raffel et al. 2020, section 3.1.4).

    Each epoch reads a random passage of each document. Random spans of it are replaced by one sentinel each, the
    token for unknown characters, and the decoder writes them, each behind a sentinel. Their order says which is which.
    With `numbered_sentinels` each span of a passage has its own, as in T5: <extra_id_0> and those that follow, or the
    last pieces of a vocabulary without them, from the last one on: the rarest ones of texts, as in the code of Jaszczur
    et al. 2021. With `copy_spans` the spans stay, marked, and the decoder copies them. Summaries are
    not read.
    """

    cfg: SpanDenoisingConfig

    def __init__(self, cfg: SpanDenoisingConfig) -> None:
        super().__init__(cfg, _NAME)
        self.noise = SpanNoise(cfg.corrupted_share, cfg.mean_span, cfg.copy_spans)

    def loader(self, preprocessing: Preprocessing, split: str, *, check_hashes: bool, warn: bool) -> DrawnPairs:
        """Load the documents of a split."""
        folder, tokenizer = preprocessing.folder, preprocessing.need_tokenizer()
        prefix, noise = tokenizer.prefix, self.noise._replace(sentinels=[tokenizer.unk])
        folder.verify(split, hashes=check_hashes)
        if folder.has_tags:
            raise UserError(f"--task {_NAME} reads documents without tags, but those of {folder.path} have some.")
        if folder.has_queries:
            raise UserError(
                f"--task {_NAME} reads documents without queries, but those of {folder.path} have some: prepare them "
                "without --query-field."
            )
        room = [length - len(prefix) - 1 for length in self.max_positions()]
        longest = noise.longest(*room)
        if not longest:
            raise UserError(
                "`max_source_positions` and `max_target_positions` must hold a passage of at least 2 tokens with a "
                f"missing span, but are {' and '.join(map(str, self.max_positions()))}."
            )
        if self.cfg.numbered_sentinels:
            sentinels, (_, spans) = _numbered(tokenizer), noise.counts(longest)
            if spans > len(sentinels):
                raise UserError(
                    f"`numbered_sentinels` needs a vocabulary of at least {spans} sentinels, one for each span of a "
                    f"passage, but it has {len(sentinels)}."
                )
            noise = noise._replace(sentinels=sentinels)
        texts = indexed(preprocessing, split, "source")
        sizes = " and ".join(map(str, noise.sizes(longest)))
        logger.info("%s: passages of up to %d tokens: %s in source and target", split, longest, sizes)
        corruption = Corruption(texts, noise, longest, seed_of(self.cfg), prefix, tokenizer.eos)
        return DrawnPairs(corruption, preprocessing.dictionary, is_shuffled(split))


def _numbered(tokenizer: Tokenizer) -> list[int]:
    """Return the sentinels of a vocabulary, that of the first span first."""
    names = {name: i for i, name in enumerate(tokenizer.pieces())}
    own = list(takewhile(lambda i: i is not None, (names.get(f"<extra_id_{number}>") for number in count())))
    special = {tokenizer.bos, tokenizer.pad, tokenizer.eos, tokenizer.unk}
    return [i for i in own if i is not None] or [i for i in reversed(range(tokenizer.vocab_size)) if i not in special]

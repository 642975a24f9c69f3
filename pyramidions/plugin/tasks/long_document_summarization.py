"""The task: long documents in, summaries out."""

from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.tasks import register_task

from pyramidions.base.notation import parse_options
from pyramidions.plugin.hooks import seed_of
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.document_task import WritingTask
from pyramidions.plugin.tasks.preprocessing import QUERIES, SOURCE_PREFIX, TAGS, Setting
from pyramidions.plugin.tasks.splits import load_split

_NAME = "long_document_summarization"
_SPAN = 32  # tokens, about a sentence


def spans_to_copy(length: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Draw spans of a document, in reading order and without overlap, and return the positions of their tokens."""
    cuts = np.arange(random.integers(_SPAN), length, _SPAN)
    spans = [span for span in np.split(np.arange(length), cuts) if len(span)]
    order = random.permutation(len(spans))
    enough = np.searchsorted(np.cumsum([len(spans[place]) for place in order]), most) + 1
    chosen = np.sort(order[:enough])
    return np.concatenate([np.arange(0), *(spans[place] for place in chosen)])[:most]


def copying_batch(sample: dict[str, Any], seed: list[int], dictionary: Dictionary) -> dict[str, Any]:
    """Return a batch whose targets are spans of the documents without their queries, as long as its longest summary.

    The seed and the number of each document decide which spans these are. Tokens with tags have numbers above those of
    the dictionary.
    """
    pieces, pad, eos = len(dictionary), dictionary.pad(), dictionary.eos()
    source, summaries = sample["net_input"]["src_tokens"], sample["target"]
    lengths = sample["net_input"]["lengths"]
    most = summaries.size(1) - 1
    # A query stands in front of a document, and ends as a text does.
    ends = [torch.nonzero(row[: length - 1] == eos) for row, length in zip(source, lengths, strict=True)]
    begins = [int(places[-1]) + 1 if len(places) else 0 for places in ends]
    drawn = [
        begin + spans_to_copy(length - 1 - begin, most, np.random.default_rng([*seed, document]))
        for begin, length, document in zip(begins, lengths, sample["id"].tolist(), strict=True)
    ]
    # Spans end as a summary would, and padding follows.
    places = torch.zeros(len(drawn), max(map(len, drawn)) + 1, dtype=torch.long)
    fill = torch.full_like(places, pad)
    for row, positions in enumerate(drawn):
        places[row, : len(positions)] = torch.from_numpy(positions)
        fill[row, : len(positions)] = -1
        fill[row, len(positions)] = eos
    places, fill = places.to(source.device), fill.to(source.device)
    # (B, L) -> (B, T')
    target = torch.where(fill < 0, source.gather(1, places) % pieces, fill)
    first = sample["net_input"]["prev_output_tokens"][:, :1]
    before = torch.cat([first, target[:, :-1].masked_fill(target[:, :-1] == eos, pad)], dim=1)
    return {
        **sample,
        "target": target,
        "ntokens": sum(map(len, drawn)) + len(drawn),
        "net_input": {**sample["net_input"], "prev_output_tokens": before},
    }


@register_task(_NAME, dataclass=LongDocumentSummarizationConfig)
class LongDocumentSummarizationTask(WritingTask):
    """Summarization of documents in a folder made by `pyramidions prepare`."""

    cfg: LongDocumentSummarizationConfig
    loader = staticmethod(load_split)

    def __init__(self, cfg: LongDocumentSummarizationConfig) -> None:
        super().__init__(
            cfg,
            _NAME,
            {QUERIES: Setting(None, False), TAGS: Setting(None, False), SOURCE_PREFIX: Setting(cfg.source_prefix, "")},
        )

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch and its gradients; in the first updates, that of copying its documents."""
        if update_num < self.cfg.copying_updates and "net_input" in sample:
            sample = copying_batch(sample, [seed_of(self.cfg), update_num], self.dictionary)
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def validation_generator(self, model: Any) -> Any:
        """Return beam search with the settings of --eval-rouge-args, else the model's own."""
        args = decoding.from_options(parse_options("eval_rouge_args", self.cfg.eval_rouge_args))
        return self.build_generator([model], args)

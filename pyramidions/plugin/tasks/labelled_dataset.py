"""Documents whose sentences are labelled."""

from typing import Any

import torch
from fairseq.data import BaseWrapperDataset, data_utils

from pyramidions.base.errors import UserError
from pyramidions.plugin.tasks.pair_dataset import PairDataset
from pyramidions.text.tokenizer import PAD


class LabelledDataset(BaseWrapperDataset):
    """A dataset of documents whose batches hold the labels of their headings and sentences, as ``labels`` (B, U).

    U is the largest number of units of a document; there is a 0, the label of a heading, where a document has fewer.
    ``target`` has the whole summaries, (B, T), which no model reads: neither does a batch hold fewer documents for
    them.

    Args:
        documents: perhaps truncated.
        labels: of all units of the whole documents, by index.
        summaries: token ids by index.
        marker: the id at which units behind the first begin.
    """

    def __init__(self, documents: PairDataset, labels: Any, summaries: Any, marker: int) -> None:
        super().__init__(documents)
        self.labels = labels
        self.summaries = summaries
        self.marker = marker

    def __getitem__(self, index: int) -> dict[str, Any]:
        item: dict[str, Any] = self.dataset[index]
        labels, units = self.labels[index], 1 + int((item["source"][1:] == self.marker).sum())
        whole = self.dataset.src.num_tokens(index) < self.dataset.src.max_length
        if len(labels) < units or (whole and len(labels) > units):
            raise UserError(
                f"The labels of document {index} are damaged: there must be one for each of its {units} headings and "
                f"sentences, but there are {len(labels)}."
            )
        # The summary waits under another name, as the dataset would count its tokens.
        return {**item, "labels": labels[:units], "summary": self.summaries[index]}

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Make a batch."""
        batch: dict[str, Any] = self.dataset.collater(samples, **kwargs)
        if batch:
            of = {sample["id"]: sample for sample in samples}
            ordered = [of[index] for index in batch["id"].tolist()]
            batch["labels"] = torch.nn.utils.rnn.pad_sequence([each["labels"] for each in ordered], batch_first=True)
            batch["target"] = data_utils.collate_tokens([each["summary"] for each in ordered], PAD)
        return batch

"""Texts and pairs of texts, whose lengths are known without reading them."""

from collections.abc import Callable, Sequence
from typing import Any, Optional, Protocol

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary, LanguagePairDataset, data_utils
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.text.tokenizer import PAD

#: Where more than this share of all tokens is cut off, the log warns.
MUCH = 0.25


class SizedTexts(BaseWrapperDataset):
    """One side of pairs."""

    def __init__(self, dataset: Any, sizes: np.ndarray) -> None:
        super().__init__(dataset)
        self._sizes = sizes

    @property
    def sizes(self) -> np.ndarray:
        return self._sizes

    def num_tokens(self, index: int) -> int:
        return int(self._sizes[index])

    size = num_tokens


class HeadDataset(SizedTexts):
    """Texts that begin with a prefix and end in ``eos``, cut to ``max_length`` tokens so that they still do.

    ``head`` returns at most N ids of a text behind its query; None stands for the first N.
    """

    def __init__(
        self,
        dataset: Any,
        sizes: np.ndarray,
        max_length: int,
        eos: int,
        prefix: Sequence[int] = (),
        head: Optional[Callable[[list[int], int], list[int]]] = None,
    ) -> None:
        self.max_length = max_length
        self._head = head
        self.eos = eos
        self.prefix = prefix
        self._full = np.asarray(sizes) + len(prefix)
        super().__init__(dataset, np.minimum(self._full, max_length))

    def __getitem__(self, index: int) -> Tensor:
        text: Tensor = self.dataset[index]
        if self._head is not None:
            *ids, _ = text.tolist()
            begin = len(ids) - ids[::-1].index(self.eos) if self.eos in ids else 0
            kept = self._head(ids[begin:], self.max_length - len(self.prefix) - begin - 1)
            text = text.new_tensor([*ids[:begin], *kept, self.eos])
        if self.prefix:
            text = torch.cat([text.new_tensor(self.prefix), text])
        if len(text) <= self.max_length:
            return text
        return torch.cat([text[: self.max_length - 1], text.new_tensor([self.eos])])

    @property
    def longest(self) -> int:
        return int(self._full.max(initial=0))

    @property
    def lost_tokens(self) -> int:
        return int(self._full.sum() - self._sizes.sum())

    @property
    def lost_share(self) -> float:
        return self.lost_tokens / max(int(self._full.sum()), 1)

    @property
    def report(self) -> str:
        """How many texts were cut, and what share of all tokens was lost."""
        cut = int((self._full > self.max_length).sum())
        # How long the documents of a text are is unknown before it is read.
        least = "" if self._head is None else "at least "
        return (
            f"{least}{cut} of {len(self._full)} cut at {self.max_length} tokens "
            f"({least}{self.lost_tokens} tokens lost, {100 * self.lost_share:.1f}%)"
        )


class PairDataset(LanguagePairDataset):
    """fairseq's pairs of source and target, padded on the right, whose batches hold the documents' lengths twice.

    ``reads_end`` keeps the end of the text that documents have.
    """

    def __init__(
        self,
        documents: SizedTexts,
        summaries: Optional[SizedTexts],
        dictionary: Dictionary,
        shuffle: bool = False,
        reads_end: bool = True,
    ) -> None:
        target_sizes = None if summaries is None else summaries.sizes
        super().__init__(
            *(documents, documents.sizes, dictionary, summaries, target_sizes, dictionary),
            left_pad_source=False,
            left_pad_target=False,
            shuffle=shuffle,
            remove_eos_from_source=not reads_end,
        )

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Make a batch.

        ``lengths`` says what ``src_lengths`` does, in numbers that stay on the host where tensors go to a GPU, so that
        no model waits to learn them. A batch that has them is padded on the right.
        """
        batch: dict[str, Any] = super().collater(samples, **kwargs)
        if batch:
            batch["net_input"]["lengths"] = batch["net_input"]["src_lengths"].tolist()
        return batch


class Drawing(Protocol):
    """What draws pairs anew in each epoch."""

    epoch: int  # the one being read
    sizes: tuple[np.ndarray, np.ndarray]  # most tokens of each source and of each target

    def __len__(self) -> int:
        """Return the number of pairs."""

    def pair(self, index: int) -> tuple[list[int], list[int]]:
        """Return the token ids of a source and its target."""


class _DrawnTexts(SizedTexts):
    """The sources (side 0) or the targets (side 1) that are drawn."""

    def __init__(self, drawing: Drawing, side: int) -> None:
        super().__init__(drawing, drawing.sizes[side])
        self._side = side

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(self.dataset.pair(index)[self._side])


class DrawnPairs(PairDataset):
    """Pairs that training draws anew in each epoch; validation always has the same."""

    def __init__(self, drawing: Drawing, dictionary: Dictionary, is_training: bool) -> None:
        super().__init__(_DrawnTexts(drawing, 0), _DrawnTexts(drawing, 1), dictionary, shuffle=is_training)
        self._drawing = drawing
        self._is_training = is_training

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        if self._is_training:
            self._drawing.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """False: fairseq's workers of an earlier epoch would draw as they did then."""
        return False


class LabelledDataset(BaseWrapperDataset):
    """A dataset of documents whose batches hold the labels of their headings and sentences, as ``labels`` (B, U).

    U is the largest number of units of a document; there is a 0, the label of a heading, where a document has fewer.
    ``target`` has the whole summaries, (B, T), which no model reads: neither does a batch hold fewer documents for
    them.
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
        batch: dict[str, Any] = self.dataset.collater(samples, **kwargs)
        if batch:
            of = {sample["id"]: sample for sample in samples}
            ordered = [of[index] for index in batch["id"].tolist()]
            batch["labels"] = torch.nn.utils.rnn.pad_sequence([each["labels"] for each in ordered], batch_first=True)
            batch["target"] = data_utils.collate_tokens([each["summary"] for each in ordered], PAD)
        return batch

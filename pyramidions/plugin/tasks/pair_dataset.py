"""Documents and their summaries."""

from typing import Any, Optional

from fairseq.data import Dictionary, LanguagePairDataset

from pyramidions.plugin.tasks.sized_texts import SizedTexts


class PairDataset(LanguagePairDataset):
    """fairseq's pairs of source and target, padded on the right, whose batches hold the documents' lengths twice.

    Args:
        documents: the sources.
        summaries: the targets; None where they are to be written.
        dictionary: of both.
        shuffle: shuffle documents of equal length.
        reads_end: keep the end of the text that documents have.
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

"""Documents and their summaries."""

from typing import Any

from fairseq.data import LanguagePairDataset


class PairDataset(LanguagePairDataset):
    """fairseq's pairs of source and target, whose batches tell the documents' lengths to the host too."""

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Make a batch; ``lengths`` stay numbers where tensors go to a GPU, so that no model waits to learn them."""
        batch: dict[str, Any] = super().collater(samples, **kwargs)
        if batch:
            batch["net_input"]["lengths"] = batch["net_input"]["src_lengths"].tolist()
        return batch

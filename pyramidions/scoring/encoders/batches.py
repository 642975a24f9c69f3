"""Puts texts of about the same length together, so that little of a batch is padding."""

from collections.abc import Iterator, Sequence

_TOKENS = 8192  # of a batch, padding included


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of texts in batches, the longest first.

    Args:
        lengths: tokens of each text.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        # The first of a batch is its longest.
        if batch and (len(batch) + 1) * lengths[batch[0]] > _TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch

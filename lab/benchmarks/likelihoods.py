"""How probable models find the summaries of documents, with intervals over documents and seeds."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from pyramidions.data.readers import Corpus, Document, find_splits
from pyramidions.inference.document_losses import token_losses
from pyramidions.inference.saved_model import SavedModel

_SAMPLES = 1000


def documents_of(folder: Path, split: str, count: int) -> list[Document]:
    """Return the first documents of a split of a folder as `prepare` takes it."""
    return list(islice(Corpus(find_splits(str(folder))[split]), count))


def likelihoods(model: SavedModel, documents: Sequence[Document]) -> np.ndarray:
    """Return the mean log-probability of a token of each document's summary, in nats: (documents,)."""
    model.transformer.eval()
    return likelihoods_as_set(model, documents)


def likelihoods_as_set(model: SavedModel, documents: Sequence[Document]) -> np.ndarray:
    """Return the same of a model whose parts stay in training or evaluation mode: (documents,)."""
    return np.array([-float(token_losses(model, each).mean()) for each in documents])


def interval(values: np.ndarray) -> dict[str, float]:
    """Return mean and 95% bootstrap interval: (documents,), or (seeds, documents), where both are drawn anew."""
    values = np.atleast_2d(values)
    rng, (seeds, documents) = np.random.default_rng(1), values.shape
    means = [
        values[rng.integers(seeds, size=seeds)][:, rng.integers(documents, size=documents)].mean()
        for _ in range(_SAMPLES)
    ]
    low, high = np.percentile(means, [2.5, 97.5])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}


def shown(found: dict[str, float], digits: int = 3) -> str:
    """Return a mean with its interval, as tables have it."""
    return f"{found['mean']:.{digits}f} [{found['low']:.{digits}f}, {found['high']:.{digits}f}]".replace("-", "−")

"""MoverScore (Zhao, Peyrard, Liu, Gao, Meyer and Eger, 2019)."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from string import punctuation
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.files.parallel import chunks
from pyramidions.scoring.embedding_metric import EmbeddingMetric
from pyramidions.scoring.encoders.rarity import Rarity
from pyramidions.scoring.metric import METRICS, Example, Figure

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from pyramidions.scoring.encoders.embedder import Embedded, Embedder

_PUNCTUATION = frozenset(punctuation)
_LENGTHS = (1, 2)  # of n-grams
# The network simplex ends by itself; this is far above what texts of thousands of tokens take.
_MOST_STEPS = 10**8


class MoverScore(EmbeddingMetric):
    """1 minus the earth mover's distance between the n-grams of two texts, for n = 1 and 2; 100 is best.

    Only the first piece of each word counts; punctuation and stop words do not. CLS and SEP stay, but their idf is 0.
    An n-gram is a run of n tokens of what is left. It weighs as much as its tokens, whose weights are their idf: of
    the summary's among all summaries, of the reference's among all references. Its vector is the weighted mean of its
    tokens' vectors (of unit length), again of unit length; distances are Euclidean. Of several references the mean
    counts, as in the authors' example. The score is negative where the mean distance is above 1, an angle of 60
    degrees.

    Args:
        embedder: of all texts.
        stop_words: in lower case.
    """

    name: ClassVar = "moverscore"
    figures: ClassVar = {f"mover{n}": Figure(f"MoverScore-{n}") for n in _LENGTHS}

    def __init__(self, embedder: "Embedder", stop_words: frozenset[str] = frozenset()) -> None:
        super().__init__(embedder)
        self._transport = optional_library("ot", "The metric moverscore", extra="metrics")
        self._dropped = _PUNCTUATION | stop_words
        self._stop_words = stop_words
        self._of_summaries = self._of_references = Rarity(embedder.vocab_size)

    def fit(self, examples: Iterable[Example]) -> None:
        """Learn how rare the pieces are, on either side."""
        super().fit(examples)
        self._of_summaries, self._of_references = (Rarity(self.embedder.vocab_size) for _ in range(2))
        for some in chunks(examples, self.batch_size):
            self._of_summaries.learn(self.embedder.tokens([example.prediction for example in some]))
            self._of_references.learn(
                self.embedder.tokens([reference for example in some for reference in example.references])
            )

    def compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        """Return both scores: (2,)."""
        left = self._kept(summary, self._of_summaries)
        right = self._kept(reference, self._of_references)
        if left is None or right is None:
            return np.zeros(len(_LENGTHS))
        return np.array([1 - self._distance(_ngrams(*left, n), _ngrams(*right, n)) for n in _LENGTHS])

    def _kept(self, text: "Embedded", rarity: Rarity) -> tuple[np.ndarray, np.ndarray] | None:
        """Return vectors of unit length and weights of the tokens that count; None where no word does."""
        tokens = text.tokens
        kept = ~tokens.continues & [piece.lower() not in self._dropped for piece in tokens.pieces]
        is_own = tokens.is_own[kept]
        if not is_own.any():
            return None
        # Distances of nearly equal vectors are lost in single precision.
        vectors = text.vectors.cpu().double().numpy()[kept]
        return _unit(vectors), self.weighed(rarity.weights(tokens)[kept], is_own)

    def _distance(self, left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]) -> float:
        """Return the earth mover's distance of two lots of vectors of unit length with weights."""
        (x, x_weights), (y, y_weights) = left, right
        distances = np.sqrt(np.maximum(2 - 2 * x @ y.T, 0))
        cost, about = self._transport.emd2(x_weights, y_weights, distances, numItermax=_MOST_STEPS, log=True)
        if about["warning"]:
            raise RuntimeError(f"The transport of MoverScore was not found: {about['warning']}")
        return float(cost)

    def combine(self, of_references: np.ndarray) -> np.ndarray:
        """Return the mean of each figure."""
        mean: np.ndarray = of_references.mean(axis=0)
        return mean

    def signature(self) -> str:
        """Name the model, its layer and the settings."""
        listed = " ".join(sorted(self._stop_words))
        digest = sha256(listed.encode()).hexdigest()[:10]
        stop_words = f"{len(self._stop_words)} stop words sha256:{digest}" if listed else "no stop words"
        return f"MoverScore | {self.embedder.signature()} | idf | {stop_words} | Euclidean | mean of references"


def _ngrams(vectors: np.ndarray, weights: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors, of unit length, and the weights of n-grams; those without a weight are left out.

    Args:
        vectors: (tokens, embed_dim).
        weights: (tokens,).
        n: tokens of an n-gram; fewer tokens are one n-gram.
    """
    n = min(n, len(weights))
    # (tokens, ...) -> (n-grams, ..., n) -> (n-grams, ...)
    summed = sliding_window_view(vectors * weights[:, None], n, axis=0).sum(axis=-1)
    totals = sliding_window_view(weights, n).sum(axis=-1)
    counts = totals > 0
    return _unit(summed[counts]), totals[counts] / totals.sum()


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@METRICS.register("moverscore")
def moverscore(
    embedding_model: str | None = None,
    embedding_layer: int | None = None,
    device: str = "cpu",
    stop_words: str | None = None,
) -> MoverScore:
    """Load the model; without a layer, its last."""
    from pyramidions.scoring.encoders.embedder import embedder

    words = frozenset() if stop_words is None else _words_of(Path(stop_words))
    return MoverScore(embedder(embedding_model, embedding_layer, device), words)


def _words_of(path: Path) -> frozenset[str]:
    """Read words between white space, in lower case."""
    try:
        return frozenset(path.read_text(encoding="utf-8").lower().split())
    except (OSError, UnicodeDecodeError) as error:
        reason: Any = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"`stop_words` must be a file of words, but {path} cannot be read: {reason}.") from None

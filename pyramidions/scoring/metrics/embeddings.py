"""BERTScore and MoverScore, which compare the vectors of two texts' tokens."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from string import punctuation
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.files.parallel import chunks
from pyramidions.scoring.metric import METRICS, CountingMetric, Example, Figure

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from torch import Tensor

    from pyramidions.scoring.encoders.embedder import Embedded, Tokens

_PUNCTUATION = frozenset(punctuation)
_LENGTHS = (1, 2)  # of n-grams
# The network simplex ends by itself; this is far above what texts of thousands of tokens take.
_MOST_STEPS = 10**8


class EmbeddingMetric(CountingMetric):
    """Compares a summary with each reference."""

    #: As users call it, and how the figures of several references become one.
    name: ClassVar[str]
    combine: ClassVar[Callable[..., Any]]
    batch_size: ClassVar[int] = 32

    def __init__(self, model: str | None, layer: int | None, device: str) -> None:
        from pyramidions.scoring.encoders.embedder import embedder

        super().__init__()
        self.embedder = embedder(model, layer, device)

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        texts = list(dict.fromkeys(text for example in examples for text in (example.prediction, *example.references)))
        embedded = dict(zip(texts, self.embedder.embed(texts), strict=True))
        rows = []
        for example in examples:
            summary = embedded[example.prediction]
            references = [embedded[reference] for reference in example.references]
            self.counts["summaries"] += 1
            self.counts["cut summaries"] += summary.tokens.is_cut
            self.counts["references"] += len(references)
            self.counts["cut references"] += sum(reference.tokens.is_cut for reference in references)
            rows.append(self.combine([self._compare(summary, reference) for reference in references], axis=0))
        return 100 * np.array(rows)

    def _compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        if summary.tokens.is_empty or reference.tokens.is_empty:
            return np.zeros(len(self.figures))
        return self.compare(summary, reference)

    @abstractmethod
    def compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        """Return the figures of a summary and one reference, neither of them empty: (figures,), 1 is best."""

    def weighed(self, weights: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return weights with the sum 1, (tokens,); ``free`` tokens weigh the same if none has a weight.

        Idf knows no rare word where each is in all texts, as in a corpus of one document.
        """
        if weights.sum() <= 0:
            self.counts["unweighed"] += 1
            weights = free.astype(np.float64)
        return weights / (weights.sum() or 1)

    def remarks(self) -> list[str]:
        counts, found = self.counts, []
        if counts["cut summaries"] or counts["cut references"]:
            cut = [f"{counts[f'cut {texts}']:,} of {counts[texts]:,} {texts}" for texts in ("summaries", "references")]
            shares = [f"{counts[f'cut {texts}'] / counts[texts]:.1%}" for texts in ("summaries", "references")]
            found.append(
                f"{self.name}: {' and '.join(cut)} are longer than the model's {self.embedder.length} tokens and were "
                f"truncated ({' and '.join(shares)})."
            )
        if counts["unweighed"]:
            found.append(
                f"{self.name}: {counts['unweighed']:,} times a text had no word that is rarer than others, so all of "
                "its words weighed the same."
            )
        return found

    def _rarity(self, texts: Iterable[str] = ()) -> np.ndarray:
        """Return the inverse document frequency log((N + 1) / (n + 1)) of each piece, in n of N texts: (vocabulary,).

        Memory grows by the vocabulary, not by texts.
        """
        read, with_piece = 0, np.zeros(self.embedder.vocab_size, dtype=np.int64)
        for some in chunks(texts, self.batch_size):
            for tokens in self.embedder.tokens(some):
                read += 1
                with_piece[np.unique(tokens.ids)] += 1
        return np.log((read + 1) / (with_piece + 1))


@METRICS.register("bertscore")
class BertScore(EmbeddingMetric):
    """Precision, recall and F1 of tokens, each matched with the most similar one of the other text; 0 to 100.

    BERTScore (Zhang, Kishore, Wu, Weinberger and Artzi, 2020). Similar is the cosine of vectors in context. CLS and SEP
    may be matched, but weigh nothing, as in the authors' package; torchmetrics leaves them out, so its figures
    differ. Of several references the best counts, by each figure. Figures are not rescaled by a
    baseline. Tokens weigh the same or, by idf, as rare as they are among the references of all documents (section 3,
    "importance weighting"). Without a layer, the one counts that is recommended for the model, else its last.
    """

    name: ClassVar = "bertscore"
    combine: ClassVar = staticmethod(np.max)
    figures: ClassVar = {
        "bertscore_precision": Figure("BERTScore precision"),
        "bertscore_recall": Figure("BERTScore recall"),
        "bertscore_f1": Figure("BERTScore F1"),
    }

    def __init__(
        self,
        embedding_model: str | None = None,
        embedding_layer: int | None = None,
        device: str = "cpu",
        bertscore_idf: bool = False,
    ) -> None:
        from pyramidions.scoring.encoders.embedder import best_layer

        if embedding_layer is None and embedding_model is not None:
            embedding_layer = best_layer(embedding_model)
        super().__init__(embedding_model, embedding_layer, device)
        self._idf = bertscore_idf
        self._is_recommended = embedding_layer is not None
        self._of_references = self._rarity()

    def fit(self, examples: Iterable[Example]) -> None:
        super().fit(examples)
        if self._idf:
            self._of_references = self._rarity(reference for example in examples for reference in example.references)

    def compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        left, right = (of.vectors / of.vectors.norm(dim=-1, keepdim=True) for of in (summary, reference))
        # (tokens of the summary, tokens of the reference)
        similarity = left @ right.T
        precision = self._mean(similarity.amax(dim=1), summary.tokens)
        recall = self._mean(similarity.amax(dim=0), reference.tokens)
        total = precision + recall
        return np.array([precision, recall, 2 * precision * recall / total if total else 0.0])

    def _mean(self, best: "Tensor", tokens: "Tokens") -> float:
        weights = self._of_references[tokens.ids] if self._idf else np.ones(len(tokens.ids))
        return float(best.double().cpu().numpy() @ self.weighed(weights * ~tokens.delimits, ~tokens.delimits))

    def signature(self) -> str:
        weights = "idf of references" if self._idf else "no idf"
        return f"BERTScore | {self.embedder.signature()} | {weights} | best of references | not rescaled"

    def remarks(self) -> list[str]:
        layer = self.embedder.layer
        unknown = f"{self.name}: no layer of this model is known to be best, so its last ({layer}) is used."
        return super().remarks() + [unknown] * (not self._is_recommended)


@METRICS.register("moverscore")
class MoverScore(EmbeddingMetric):
    """1 minus the earth mover's distance between the n-grams of two texts, for n = 1 and 2; 100 is best.

    MoverScore (Zhao, Peyrard, Liu, Gao, Meyer and Eger, 2019). Only the first piece of each word counts; punctuation
    and stop words do not. CLS and SEP stay, but their idf is 0. An n-gram is a run of n tokens of what is left. It
    weighs as much as its tokens, whose weights are their idf: of the summary's among all summaries, of the reference's
    among all references. Its vector is the weighted mean of its tokens' vectors (of unit length), again of unit length;
    distances are Euclidean. Of several references the mean counts, as in the authors' example. The score is negative
    where the mean distance is above 1, an angle of 60 degrees.
    """

    name: ClassVar = "moverscore"
    combine: ClassVar = staticmethod(np.mean)
    figures: ClassVar = {f"mover{n}": Figure(f"MoverScore-{n}") for n in _LENGTHS}

    def __init__(
        self,
        embedding_model: str | None = None,
        embedding_layer: int | None = None,
        device: str = "cpu",
        stop_words: str | None = None,
    ) -> None:
        self._transport = optional_library("ot", "The metric moverscore", extra="metrics")
        self._stop_words = frozenset() if stop_words is None else _words_of(Path(stop_words))
        super().__init__(embedding_model, embedding_layer, device)
        self._of_summaries = self._of_references = self._rarity()

    def fit(self, examples: Iterable[Example]) -> None:
        super().fit(examples)
        self._of_summaries = self._rarity(example.prediction for example in examples)
        self._of_references = self._rarity(reference for example in examples for reference in example.references)

    def compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        left = self._kept(summary, self._of_summaries)
        right = self._kept(reference, self._of_references)
        if left is None or right is None:
            return np.zeros(len(_LENGTHS))
        return np.array([1 - self._distance(_ngrams(*left, n), _ngrams(*right, n)) for n in _LENGTHS])

    def _kept(self, text: "Embedded", rarity: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return vectors of unit length and weights of the tokens that count; None where no word does."""
        tokens, dropped = text.tokens, _PUNCTUATION | self._stop_words
        kept = ~tokens.continues & [piece.lower() not in dropped for piece in tokens.pieces]
        is_own = tokens.is_own[kept]
        if not is_own.any():
            return None
        # Distances of nearly equal vectors are lost in single precision.
        vectors = text.vectors.cpu().double().numpy()[kept]
        return _unit(vectors), self.weighed(rarity[tokens.ids[kept]], is_own)

    def _distance(self, left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]) -> float:
        """Return the earth mover's distance of two lots of vectors of unit length with weights."""
        (x, x_weights), (y, y_weights) = left, right
        distances = np.sqrt(np.maximum(2 - 2 * x @ y.T, 0))
        cost, about = self._transport.emd2(x_weights, y_weights, distances, numItermax=_MOST_STEPS, log=True)
        if about["warning"]:
            raise RuntimeError(f"The transport of MoverScore was not found: {about['warning']}")
        return float(cost)

    def signature(self) -> str:
        listed = " ".join(sorted(self._stop_words))
        digest = sha256(listed.encode()).hexdigest()[:10]
        stop_words = f"{len(self._stop_words)} stop words sha256:{digest}" if listed else "no stop words"
        return f"MoverScore | {self.embedder.signature()} | idf | {stop_words} | Euclidean | mean of references"


def _ngrams(vectors: np.ndarray, weights: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors, of unit length, and the weights of n-grams; those without a weight are left out.

    Vectors are (tokens, embed_dim). Fewer than n tokens are one n-gram.
    """
    n = min(n, len(weights))
    # (tokens, ...) -> (n-grams, ..., n) -> (n-grams, ...)
    summed = sliding_window_view(vectors * weights[:, None], n, axis=0).sum(axis=-1)
    totals = sliding_window_view(weights, n).sum(axis=-1)
    counts = totals > 0
    return _unit(summed[counts]), totals[counts] / totals.sum()


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _words_of(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text(encoding="utf-8").lower().split())
    except (OSError, UnicodeDecodeError) as error:
        reason: Any = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"`stop_words` must be a file of words, but {path} cannot be read: {reason}.") from None

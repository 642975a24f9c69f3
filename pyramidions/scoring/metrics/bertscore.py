"""BERTScore (Zhang, Kishore, Wu, Weinberger and Artzi, 2020)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pyramidions.files.parallel import chunks
from pyramidions.scoring.embedding_metric import EmbeddingMetric
from pyramidions.scoring.encoders.layers import best_layer
from pyramidions.scoring.encoders.rarity import Rarity
from pyramidions.scoring.metric import METRICS, Example, Figure

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from torch import Tensor

    from pyramidions.scoring.encoders.embedder import Embedded, Embedder, Tokens


class BertScore(EmbeddingMetric):
    """Precision, recall and F1 of tokens, each matched with the most similar one of the other text; 0 to 100.

    Similar is the cosine of vectors in context. CLS and SEP may be matched, but weigh nothing. Of several references
    the best counts, by each figure. Figures are not rescaled by a baseline.

    Args:
        embedder: of all texts.
        idf: weigh tokens by how rare they are among the references of all documents (section 3, "importance
            weighting"); otherwise all weigh the same.
        is_recommended: the embedder's layer is the one that is recommended for its model, or was asked for.
    """

    name: ClassVar = "bertscore"
    figures: ClassVar = {
        "bertscore_precision": Figure("BERTScore precision"),
        "bertscore_recall": Figure("BERTScore recall"),
        "bertscore_f1": Figure("BERTScore F1"),
    }

    def __init__(self, embedder: "Embedder", *, idf: bool = False, is_recommended: bool = True) -> None:
        super().__init__(embedder)
        self._idf = idf
        self._is_recommended = is_recommended
        self._rarity = Rarity(embedder.vocab_size)

    def fit(self, examples: Iterable[Example]) -> None:
        """Learn how rare the pieces are."""
        super().fit(examples)
        if self._idf:
            self._rarity = Rarity(self.embedder.vocab_size)
            references = (reference for example in examples for reference in example.references)
            for some in chunks(references, self.batch_size):
                self._rarity.learn(self.embedder.tokens(some))

    def compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        """Return precision, recall and F1: (3,)."""
        # (tokens of the summary, tokens of the reference)
        similarity = _unit(summary.vectors) @ _unit(reference.vectors).T
        precision = self._mean(similarity.amax(dim=1), summary.tokens)
        recall = self._mean(similarity.amax(dim=0), reference.tokens)
        total = precision + recall
        return np.array([precision, recall, 2 * precision * recall / total if total else 0.0])

    def _mean(self, best: "Tensor", tokens: "Tokens") -> float:
        weights = (self._rarity.weights(tokens) if self._idf else np.ones(len(tokens.ids))) * ~tokens.delimits
        return float(best.double().cpu().numpy() @ self.weighed(weights, ~tokens.delimits))

    def combine(self, of_references: np.ndarray) -> np.ndarray:
        """Return the best of each figure."""
        best: np.ndarray = of_references.max(axis=0)
        return best

    def signature(self) -> str:
        """Name the model, its layer and the settings."""
        weights = "idf of references" if self._idf else "no idf"
        return f"BERTScore | {self.embedder.signature()} | {weights} | best of references | not rescaled"

    def remarks(self) -> list[str]:
        """Say what was truncated, and where no layer is recommended."""
        found = super().remarks()
        if not self._is_recommended:
            found.append(
                f"{self.name}: no layer of this model is known to be best, so its last ({self.embedder.layer}) is used."
            )
        return found


def _unit(vectors: "Tensor") -> "Tensor":
    return vectors / vectors.norm(dim=-1, keepdim=True)


@METRICS.register("bertscore")
def bertscore(
    embedding_model: str | None = None,
    embedding_layer: int | None = None,
    device: str = "cpu",
    bertscore_idf: bool = False,
) -> BertScore:
    """Load the model; without a layer, the one that is recommended for it, else its last."""
    from pyramidions.scoring.encoders.embedder import embedder

    best = None if embedding_model is None else best_layer(embedding_model)
    layer = best if embedding_layer is None else embedding_layer
    return BertScore(embedder(embedding_model, layer, device), idf=bertscore_idf, is_recommended=layer is not None)

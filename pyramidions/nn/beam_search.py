"""Beam search over a `Transformer`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pyramidions.nn.transformer import Transformer
from pyramidions.nn.writer import Choose, ForcedEnd, Hypothesis, Writer


class BeamSearch(Writer):
    """Writes each document's most probable summaries, token by token.

    The semantics are those of fairseq's `SequenceGenerator` (Ott et al. 2019), but for the prefix: a step looks at the
    ``2 * beam`` best continuations; those among the first ``beam`` that end are finished, and the best ``beam`` that do
    not end go on. A document leaves the batch with ``beam`` finished hypotheses; without ``early_stopping``, when the
    best that goes on scores no higher than the worst of these (as in transformers, which divides its sum by its present
    length). Padding is never written; any other token, the unknown one too, may be. To write exactly N tokens in
    exactly N steps, the end included, set both lengths to N - 1.

    Args:
        beam: hypotheses of a document, at least 1.
        min_len, max_len, length_penalty, no_repeat_ngram, eos, prefix, forced_end: as in `Writer`.
        best: how many finished hypotheses of a document are returned at most; None returns all.
        early_stopping: leave a document with its first ``beam`` finished hypotheses.
    """

    def __init__(
        self,
        beam: int,
        min_len: int,
        max_len: int,
        length_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
        eos: int | Sequence[int] = 2,
        best: int | None = None,
        prefix: Sequence[int] = (),
        forced_end: ForcedEnd = "counted",
        *,
        early_stopping: bool = True,
    ) -> None:
        if beam < 1:
            raise ValueError(f"`beam` must be at least 1, but is {beam}.")
        super().__init__(min_len, max_len, length_penalty, no_repeat_ngram, eos, prefix, forced_end)
        if best is not None and not 1 <= best <= beam:
            raise ValueError(f"`best` must be at least 1 and at most `beam`, {beam}, but is {best}.")
        self.beam = beam
        self.best = best
        self.early_stopping = early_stopping or beam == 1

    @property
    def in_words(self) -> dict[str, str]:
        return {"beam": f"{self.beam}"}

    def _check(self, transformer: Transformer) -> None:
        super()._check(transformer)
        vocabulary = transformer.decoder.embedder.tokens.num_embeddings
        if self.beam > vocabulary - 2:
            raise ValueError(
                f"`beam` must be at most {vocabulary - 2}, the vocabulary without padding and end, but is {self.beam}."
            )

    def _choosing(self, documents: int, device: torch.device) -> Choose:
        return self._candidates

    def _goes_on(self, hypotheses: list[Hypothesis], running: float, length: int) -> bool:
        is_open = super()._goes_on(hypotheses, running, length)
        if is_open or self.early_stopping:
            return is_open
        return running / length**self.length_penalty > min(each.score for each in hypotheses)

    def _keep(self, hypothesis: Hypothesis, others: list[Hypothesis]) -> None:
        if not self.early_stopping and len(others) == self.beam:
            worst = min(range(self.beam), key=lambda place: others[place].score)
            if others[worst].score >= hypothesis.score:
                return
            del others[worst]
        super()._keep(hypothesis, others)

    def _candidates(
        self, log_probs: Tensor, totals: Tensor, numbers: Tensor, step: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        documents, width = totals.shape
        vocabulary = log_probs.size(1)
        # (BW, V) -> (B, WV)
        sums = (log_probs + totals.reshape(-1, 1)).reshape(documents, -1)
        best, index = sums.topk(min((1 + len(self.ends)) * self.beam, sums.size(1) - 1), dim=1)
        first = torch.arange(0, documents * width, width, device=totals.device)
        return first[:, None] + index // vocabulary, index % vocabulary, best

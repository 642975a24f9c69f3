"""Beam search over a `Transformer`."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.nn.functional.kernels import on_device, without_cudnn_attention
from pyramidions.nn.sublayer import Memories, Memory
from pyramidions.nn.transformer import Transformer
from pyramidions.nn.writer import Hypothesis, Writer, given_scores


class _Rows(NamedTuple):
    """The hypotheses so far, one row each; each document that is still in the batch has W of them."""

    tokens: Tensor  # (BW, 1 + T), the start included
    token_scores: Tensor  # (BW, T)
    totals: Tensor  # (B, W), sums of token_scores behind the prefix

    def extend(self, rows: Tensor, tokens: Tensor, scores: Tensor, totals: Tensor) -> "_Rows":
        """Continue ``rows`` (B, W'), each any number of times, by ``tokens`` of ``scores``; ``totals`` are the sums."""
        rows = rows.flatten()
        return _Rows(
            torch.cat([self.tokens[rows], tokens.reshape(-1, 1)], dim=1),
            torch.cat([self.token_scores[rows], scores.reshape(-1, 1)], dim=1),
            totals,
        )


class BeamSearch(Writer):
    """Writes each document's most probable summaries, token by token.

    The semantics are those of fairseq's `SequenceGenerator` (Ott et al. 2019), but for the prefix: a step looks at the
    ``2 * beam`` best continuations; those among the first ``beam`` that end are finished, and the best ``beam`` that do
    not end go on. A document leaves the batch with ``beam`` finished hypotheses. Padding is never written; any other
    token, the unknown one too, may be. To write exactly N tokens in exactly N steps, the end included, set both lengths
    to N - 1.

    Args:
        beam: hypotheses of a document, at least 1.
        min_len, max_len, length_penalty, no_repeat_ngram, eos, prefix: as in `Writer`.
        best: how many finished hypotheses of a document are returned at most; None returns all.

    Raises:
        ValueError: an argument that breaks a rule.
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
    ) -> None:
        if beam < 1:
            raise ValueError(f"`beam` must be at least 1, but is {beam}.")
        super().__init__(min_len, max_len, length_penalty, no_repeat_ngram, eos, prefix)
        if best is not None and not 1 <= best <= beam:
            raise ValueError(f"`best` must be at least 1 and at most `beam`, {beam}, but is {best}.")
        self.beam = beam
        self.best = best

    @property
    def in_words(self) -> dict[str, str]:
        return {"beam": f"{self.beam}"}

    @torch.no_grad()
    @without_cudnn_attention()
    def write(self, transformer: Transformer, memories: tuple[Memory, ...]) -> list[list[Hypothesis]]:
        self._check(transformer)
        read, pad, device = Memories(memories), transformer.padding_idx, memories[0].x.device
        documents = list(range(len(memories[0].x)))
        finished: list[list[Hypothesis]] = [[] for _ in documents]
        cache = transformer.decoder.new_cache()
        # Until a token is chosen, a document has one hypothesis only.
        live = _Rows(
            torch.tensor([self.eos, *self.prefix], device=device).repeat(len(documents), 1),
            torch.zeros(len(documents), len(self.prefix), device=device),
            torch.zeros(len(documents), 1, device=device),
        )
        unread = live.tokens.size(1)
        for step in range(len(self.prefix), self.max_len + 1):
            logits = transformer.decoder(live.tokens[:, -unread:], read.each, cache)
            unread = 1
            if logits.size(1) > 1:
                live = live._replace(token_scores=given_scores(live.tokens[:, 1:], logits[:, :-1]))
            log_probs = self._rule_out(logits[:, -1].float().log_softmax(dim=-1), live.tokens[:, 1:], pad)
            rows, token, totals = self._candidates(log_probs, live.totals)
            scores = log_probs[rows, token]
            ends = self._is_end(token)
            if step >= self.min_len:
                over = self._over(totals, ends)
                if over:
                    self._finish(live.extend(rows, token, scores, totals), over, documents, finished)
                left = [index for index, document in enumerate(documents) if len(finished[document]) < self.beam]
                if step == self.max_len or not left:
                    break
                if len(left) < len(documents):
                    documents = [documents[index] for index in left]
                    staying = on_device(left, device)
                    rows, token, scores, totals, ends = (
                        x.index_select(0, staying) for x in (rows, token, scores, totals, ends)
                    )
            # (B, 2W) -> (B, W): the best that do not end, in their order
            going_on = ends.byte().argsort(dim=1, stable=True)[:, : self.beam]
            rows, token, scores, totals = (x.gather(1, going_on) for x in (rows, token, scores, totals))
            live = live.extend(rows, token, scores, totals)
            read = read.reorder(rows.flatten(), self.beam)
            cache.reorder(rows.flatten(), self.beam)
        return [self._ranked(hypotheses) for hypotheses in finished]

    def _check(self, transformer: Transformer) -> None:
        super()._check(transformer)
        vocabulary = transformer.decoder.embedder.tokens.num_embeddings
        if self.beam > vocabulary - 2:
            raise ValueError(
                f"`beam` must be at most {vocabulary - 2}, the vocabulary without padding and end, but is {self.beam}."
            )

    def _candidates(self, log_probs: Tensor, totals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows, tokens and sums of each document's best continuations: (BW, V), (B, W) -> 3 x (B, C)."""
        documents, width = totals.shape
        vocabulary = log_probs.size(1)
        # (BW, V) -> (B, WV)
        sums = (log_probs + totals.reshape(-1, 1)).reshape(documents, -1)
        best, index = sums.topk(min((1 + len(self.ends)) * self.beam, sums.size(1) - 1), dim=1)
        first = torch.arange(0, documents * width, width, device=totals.device)
        return first[:, None] + index // vocabulary, index % vocabulary, best

    def _over(self, totals: Tensor, ends: Tensor) -> list[tuple[int, int, float]]:
        """Return of the best candidates, ``totals`` (B, C), which have come to their end: (document, column, total).

        The host waits for a GPU here, once.
        """
        sums, ending = torch.stack([totals, ends.to(totals.dtype)]).tolist()
        # NaN counts as the highest score, so that it stays once it is there.
        if any(total != total for row in sums for total in row):
            raise self._nan()
        return [
            (document, column, sums[document][column])
            for document, row in enumerate(ending)
            for column, ends_here in enumerate(row[: self.beam])
            if ends_here and sums[document][column] != -math.inf
        ]

    def _finish(
        self,
        candidates: _Rows,
        over: list[tuple[int, int, float]],
        documents: list[int],
        finished: list[list[Hypothesis]],
    ) -> None:
        """Add to ``finished`` the best candidates that are ``over``, rows (BC) of C a document."""
        columns = candidates.totals.size(1)
        for document, column, total in over:
            hypotheses = finished[documents[document]]
            if len(hypotheses) < self.beam:
                row = document * columns + column
                tokens, scores = candidates.tokens[row, 1:].clone(), candidates.token_scores[row].clone()
                hypotheses.append(Hypothesis(tokens, total / len(tokens) ** self.length_penalty, scores))

    def _ranked(self, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        if not hypotheses:
            raise self._impossible()
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[: self.best]

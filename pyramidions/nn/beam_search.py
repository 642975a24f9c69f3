"""Beam search over a `Transformer`."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.nn.functional.kernels import on_device, without_cudnn_attention
from pyramidions.nn.ngram import block_repeated_ngrams
from pyramidions.nn.transformer import Transformer


class Hypothesis(NamedTuple):
    """One summary of a document.

    Attributes:
        tokens: (T,), with the end, without the start.
        score: sum of ``token_scores`` / T ** length penalty.
        token_scores: (T,), log-probability of each token.
    """

    tokens: Tensor
    score: float
    token_scores: Tensor


class NoSummaryError(ValueError):
    """No summary is possible: scores are NaN, or n-gram blocking forbids every token."""


class _Rows(NamedTuple):
    """What is written so far, a row per hypothesis; W of them belong to each document that is still in the batch."""

    tokens: Tensor  # (BW, 1 + T), the start included
    token_scores: Tensor  # (BW, T)
    totals: Tensor  # (B, W), sums of token_scores

    def extend(self, rows: Tensor, tokens: Tensor, scores: Tensor, totals: Tensor) -> "_Rows":
        """Continue ``rows`` (B, W') with one of ``tokens`` each, which scores ``scores``; ``totals`` are the new sums.

        One row may be continued several times, or not at all.
        """
        rows = rows.flatten()
        return _Rows(
            torch.cat([self.tokens[rows], tokens.reshape(-1, 1)], dim=1),
            torch.cat([self.token_scores[rows], scores.reshape(-1, 1)], dim=1),
            totals,
        )


def _with_scores(prefix: _Rows, logits: Tensor) -> _Rows:
    """Score the tokens that summaries begin with, by the ``logits`` (B, T, V) of each."""
    log_probs = logits.float().log_softmax(dim=-1)
    scores = log_probs.gather(2, prefix.tokens[:, 1:, None]).squeeze(2)
    return prefix._replace(token_scores=scores, totals=scores.sum(dim=1, keepdim=True))


class BeamSearch:
    """Writes each document's most probable summaries, token by token.

    The semantics are those of fairseq's `SequenceGenerator` (Ott et al. 2019): a step looks at the ``2 * beam`` best
    continuations; those among the first ``beam`` that end are finished, and the best ``beam`` that do not end go on.
    A document leaves the batch with ``beam`` finished hypotheses. Padding is never written; any other token, the
    unknown one too, may be. To write exactly N tokens in exactly N steps, the end included, set both lengths to N - 1.

    Args:
        beam: hypotheses of a document, at least 1.
        min_len: fewest tokens of a summary, without its end.
        max_len: most tokens of a summary, without its end; there the end is forced.
        length_penalty: power of the length, the end included, that divides a hypothesis's sum of log-probabilities;
            above 1 favours long summaries.
        no_repeat_ngram: n of the n-grams that a summary holds once at most, its end not counted; 0 allows all.
        eos: the token that ends a summary, and starts it for the decoder.
        best: how many finished hypotheses of a document are returned at most; None returns all.
        prefix: tokens that every summary begins with. They count like any others, with their log-probabilities.

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
        eos: int = 2,
        best: int | None = None,
        prefix: Sequence[int] = (),
    ) -> None:
        if beam < 1:
            raise ValueError(f"`beam` must be at least 1, but is {beam}.")
        if not 0 <= min_len <= max_len:
            raise ValueError(
                f"`min_len` must be at least 0 and at most `max_len`, but is {min_len}, and `max_len` is {max_len}."
            )
        if not math.isfinite(length_penalty):
            raise ValueError(f"`length_penalty` must be finite, but is {length_penalty}.")
        if no_repeat_ngram < 0:
            raise ValueError(f"`no_repeat_ngram` must be at least 0, but is {no_repeat_ngram}.")
        if len(prefix) > max_len:
            raise ValueError(
                f"`max_len` must be at least {len(prefix)}, the tokens that every summary begins with, "
                f"but is {max_len}."
            )
        if best is not None and not 1 <= best <= beam:
            raise ValueError(f"`best` must be at least 1 and at most `beam`, {beam}, but is {best}.")
        self.beam = beam
        self.min_len = min_len
        self.max_len = max_len
        self.length_penalty = length_penalty
        self.no_repeat_ngram = no_repeat_ngram
        self.eos = eos
        self.best = best
        self.prefix = tuple(prefix)

    @torch.no_grad()
    @without_cudnn_attention()
    def __call__(
        self, transformer: Transformer, tokens: Tensor, padding_mask: Tensor | None = None
    ) -> list[list[Hypothesis]]:
        """Summarize a batch.

        Args:
            transformer: in evaluation mode.
            tokens: (B, L), the documents.
            padding_mask: (B, L), True at padding; None where that is just where the padding token stands.

        Returns:
            Of each document its finished hypotheses, the best first: at least one, at most ``beam``; their tensors
            are on the model's device.

        Raises:
            ValueError: the model is in training mode; or its vocabulary lacks the end, or is too small for the beam;
                or n-gram blocking leaves no summary of a document; or scores are not numbers.
        """
        self._check(transformer)
        pad = transformer.padding_idx
        encoded = transformer.encoder(tokens, tokens.eq(pad) if padding_mask is None else padding_mask)
        memory, mask = encoded.memory, encoded.attention_mask
        finished: list[list[Hypothesis]] = [[] for _ in range(len(tokens))]
        documents = list(range(len(tokens)))
        cache = transformer.decoder.new_cache()
        # Until a token is chosen, a document has one hypothesis only.
        live = _Rows(
            tokens.new_tensor([self.eos, *self.prefix]).repeat(len(tokens), 1),
            torch.zeros(len(tokens), len(self.prefix), device=tokens.device),
            torch.zeros(len(tokens), 1, device=tokens.device),
        )
        unread = live.tokens.size(1)
        for step in range(len(self.prefix), self.max_len + 1):
            staying: Tensor | None = None
            logits = transformer.decoder(live.tokens[:, -unread:], memory, mask, cache)
            unread = 1
            if logits.size(1) > 1:
                live = _with_scores(live, logits[:, :-1])
            log_probs = self._rule_out(logits[:, -1].float().log_softmax(dim=-1), live.tokens[:, 1:], pad)
            rows, token, totals = self._candidates(log_probs, live.totals)
            scores = log_probs[rows, token]
            ends = token.eq(self.eos)
            if step >= self.min_len:
                over = self._over(totals, ends)
                if over:
                    self._finish(live.extend(rows, token, scores, totals), over, documents, finished)
                left = [index for index, document in enumerate(documents) if len(finished[document]) < self.beam]
                if step == self.max_len or not left:
                    break
                if len(left) < len(documents):
                    documents = [documents[index] for index in left]
                    staying = on_device(left, tokens.device)
                    mask = None if mask is None else mask.index_select(0, staying)
                    memory, rows, token, scores, totals, ends = (
                        x.index_select(0, staying) for x in (memory, rows, token, scores, totals, ends)
                    )
            # (B, 2W) -> (B, W): the best that do not end, in their order
            going_on = ends.byte().argsort(dim=1, stable=True)[:, : self.beam]
            rows, token, scores, totals = (x.gather(1, going_on) for x in (rows, token, scores, totals))
            live = live.extend(rows, token, scores, totals)
            cache.reorder(rows.flatten(), staying)
        return [self._ranked(hypotheses) for hypotheses in finished]

    def _check(self, transformer: Transformer) -> None:
        vocabulary, pad = transformer.decoder.embedder.tokens.num_embeddings, transformer.padding_idx
        if transformer.training:
            raise ValueError("The model must be in evaluation mode to search, but is in training mode.")
        if self.beam > vocabulary - 2:
            raise ValueError(
                f"`beam` must be at most {vocabulary - 2}, the vocabulary without padding and end, but is {self.beam}."
            )
        for name, token in (("eos", self.eos), *(("prefix", token) for token in self.prefix)):
            if not 0 <= token < vocabulary or token == pad:
                raise ValueError(
                    f"`{name}` must be below {vocabulary}, the vocabulary, and not {pad}, the padding, but is {token}."
                )

    def _rule_out(self, log_probs: Tensor, written: Tensor, pad: int) -> Tensor:
        """Forbid, in place where possible, tokens that may not follow ``written`` (BW, T): (BW, V) -> (BW, V)."""
        log_probs[:, pad] = -math.inf
        length = written.size(1)
        if length == self.max_len:
            end = log_probs[:, self.eos].clone()
            log_probs.fill_(-math.inf)[:, self.eos] = end
        elif length < self.min_len:
            log_probs[:, self.eos] = -math.inf
        return block_repeated_ngrams(log_probs, written, self.no_repeat_ngram) if self.no_repeat_ngram else log_probs

    def _candidates(self, log_probs: Tensor, totals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows, tokens and sums of each document's best continuations: (BW, V), (B, W) -> 3 x (B, C)."""
        documents, width = totals.shape
        vocabulary = log_probs.size(1)
        # (BW, V) -> (B, WV)
        sums = (log_probs + totals.reshape(-1, 1)).reshape(documents, -1)
        best, index = sums.topk(min(2 * self.beam, sums.size(1) - 1), dim=1)
        first = torch.arange(0, documents * width, width, device=totals.device)
        return first[:, None] + index // vocabulary, index % vocabulary, best

    def _over(self, totals: Tensor, ends: Tensor) -> list[tuple[int, int, float]]:
        """Return of the best candidates, ``totals`` (B, C), which have come to their end: (document, column, total).

        The host waits for a GPU here, once.
        """
        sums, ending = torch.stack([totals, ends.to(totals.dtype)]).tolist()
        # NaN counts as the highest score, so that it stays once it is there.
        if any(total != total for row in sums for total in row):
            raise NoSummaryError("The model's scores must be numbers, but are NaN.")
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
        """Add to ``finished`` what is ``over`` of the best candidates, rows (BC) of C a document."""
        columns = candidates.totals.size(1)
        for document, column, total in over:
            hypotheses = finished[documents[document]]
            if len(hypotheses) < self.beam:
                row = document * columns + column
                tokens, scores = candidates.tokens[row, 1:].clone(), candidates.token_scores[row].clone()
                hypotheses.append(Hypothesis(tokens, total / len(tokens) ** self.length_penalty, scores))

    def _ranked(self, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        if not hypotheses:
            raise NoSummaryError(
                f"No summary of {self.min_len} to {self.max_len} tokens was found that holds every "
                f"{self.no_repeat_ngram}-gram once at most (`no_repeat_ngram`)."
            )
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[: self.best]

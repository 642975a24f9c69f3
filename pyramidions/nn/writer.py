"""The role of a writer of summaries with a `Transformer`, and the rules that all kinds keep."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from pyramidions.nn.functional.kernels import on_device, without_cudnn_attention
from pyramidions.nn.ngram import block_repeated_ngrams
from pyramidions.nn.sublayer import Memories, Memory
from pyramidions.nn.transformer import Transformer

#: What becomes of a summary of the most tokens.
ForcedEnd = Literal["counted", "uncounted", "no"]


class Hypothesis(NamedTuple):
    """One summary of a document."""

    tokens: Tensor  # (T,), with the end, without the start
    score: float  # sum of ``token_scores`` behind the prefix / T ** length penalty
    token_scores: Tensor  # (T,), log-probability of each token


class NoSummaryError(ValueError):
    """No summary is possible: scores are NaN, or n-gram blocking forbids every token."""


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


#: Finds continuations in a step: of log-probabilities (BW, V), sums of the hypotheses so far (B, W), the numbers of the
#: documents (B,) and the place of the token, the rows, tokens and sums of C candidates a document, best first: (B, C).
Choose = Callable[[Tensor, Tensor, Tensor, int], tuple[Tensor, Tensor, Tensor]]


class Writer(ABC):
    """Writes summaries token by token. Padding is never written; any other token, the unknown one too, may be.

    Args:
        min_len: fewest tokens of a summary, without its end.
        max_len: most tokens of a summary, without its end; there the end is forced, or any token may stand in its place
            (``forced_end``).
        length_penalty: power of the length, the end included, that divides a summary's sum of log-probabilities; above
            1 favours long summaries.
        no_repeat_ngram: n of the n-grams that a summary holds once at most, its end not counted; 0 allows all.
        eos: the token that ends a summary, and starts it for the decoder; of several, any ends it and the first starts.
        prefix: tokens that every summary begins with. They count towards the length but not the score, like forced
            tokens in transformers; fairseq adds their log-probabilities.
        forced_end: whether a summary of ``max_len`` tokens must end: "counted", and the end's log-probability counts,
            as in fairseq; "uncounted", as in transformers; "no".
    """

    #: hypotheses of a document, and how many of the finished ones are returned at most; None returns all
    beam: int = 1
    best: int | None = None

    def __init__(
        self,
        min_len: int,
        max_len: int,
        length_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
        eos: int | Sequence[int] = 2,
        prefix: Sequence[int] = (),
        forced_end: ForcedEnd = "counted",
    ) -> None:
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
        if forced_end not in get_args(ForcedEnd):
            raise ValueError(f"`forced_end` must be one of {', '.join(get_args(ForcedEnd))}, but is {forced_end!r}.")
        self.min_len = min_len
        self.max_len = max_len
        self.length_penalty = length_penalty
        self.no_repeat_ngram = no_repeat_ngram
        self.ends = (eos,) if isinstance(eos, int) else tuple(eos)
        self.eos = self.ends[0]
        self.prefix = tuple(prefix)
        self.forced_end = forced_end

    @property
    @abstractmethod
    def in_words(self) -> dict[str, str]:
        """What is special about the kind and its options, by name."""

    def __call__(
        self, transformer: Transformer, tokens: Tensor, padding_mask: Tensor | None = None
    ) -> list[list[Hypothesis]]:
        """Read a batch of documents, and summarize it; arguments as in `read`, results and errors as in `write`."""
        return self.write(transformer, self.read(transformer, tokens, padding_mask))

    @torch.no_grad()
    @without_cudnn_attention()
    def read(self, transformer: Transformer, tokens: Tensor, padding_mask: Tensor | None = None) -> tuple[Memory, ...]:
        """Read documents (B, L); the mask is True at padding, and None where the tokens tell it."""
        mask = tokens.eq(transformer.padding_idx) if padding_mask is None else padding_mask
        return transformer.encoder(tokens, mask).memories

    @torch.no_grad()
    @without_cudnn_attention()
    def write(self, transformer: Transformer, memories: tuple[Memory, ...]) -> list[list[Hypothesis]]:
        """Summarize B documents that the encoder has read, by a model in evaluation mode.

        Returns of each document its finished hypotheses, at least one, the best first, on the model's device. Raises
        ValueError if the vocabulary lacks the end or is too small for the kind, if n-gram blocking leaves no summary of
        a document, or if scores are not numbers.
        """
        self._check(transformer)
        read, pad, device = Memories(memories), transformer.padding_idx, memories[0].x.device
        documents = list(range(len(memories[0].x)))
        numbers, choose = torch.arange(len(documents), device=device), self._choosing(len(documents), device)
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
            rows, token, totals = choose(log_probs, live.totals, numbers, step)
            scores, ends, before = log_probs[rows, token], self._is_end(token), len(documents)
            if step >= self.min_len:
                over, running = self._over(totals, ends, is_last=step == self.max_len)
                if over:
                    self._finish(live.extend(rows, token, scores, totals), over, documents, finished)
                left = [
                    index
                    for index, document in enumerate(documents)
                    if self._goes_on(finished[document], running[index], step + 1)
                ]
                if step == self.max_len or not left:
                    break
                if len(left) < before:
                    documents, staying = [documents[index] for index in left], on_device(left, device)
                    numbers, rows, token, scores, totals, ends = (
                        x.index_select(0, staying) for x in (numbers, rows, token, scores, totals, ends)
                    )
            # (B, C) -> (B, W): the best that do not end, in their order
            going_on = ends.byte().argsort(dim=1, stable=True)[:, : self.beam]
            rows, token, scores, totals = (x.gather(1, going_on) for x in (rows, token, scores, totals))
            live = live.extend(rows, token, scores, totals)
            if self.beam > 1 or len(documents) < before:
                read = read.reorder(rows.flatten(), self.beam)
                cache.reorder(rows.flatten(), self.beam)
        return [self._ranked(hypotheses) for hypotheses in finished]

    @abstractmethod
    def _choosing(self, documents: int, device: torch.device) -> Choose:
        """Return what finds continuations of so many documents."""

    def _check(self, transformer: Transformer) -> None:
        vocabulary, pad = transformer.decoder.embedder.tokens.num_embeddings, transformer.padding_idx
        if transformer.training:
            raise ValueError("The model must be in evaluation mode to search, but is in training mode.")
        for name, token in [*(("eos", end) for end in self.ends), *(("prefix", token) for token in self.prefix)]:
            if not 0 <= token < vocabulary or token == pad:
                raise ValueError(
                    f"`{name}` must be below {vocabulary}, the vocabulary, and not {pad}, the padding, but is {token}."
                )

    def _rule_out(self, log_probs: Tensor, written: Tensor, pad: int) -> Tensor:
        """Forbid, in place where possible, tokens that may not follow ``written`` (BW, T): (BW, V) -> (BW, V)."""
        log_probs[:, pad] = -math.inf
        length = written.size(1)
        if length == self.max_len and self.forced_end != "no":
            end = log_probs[:, self.ends].clone() if self.forced_end == "counted" else 0.0
            log_probs.fill_(-math.inf)[:, self.ends] = end
        elif length < self.min_len:
            log_probs[:, self.ends] = -math.inf
        return block_repeated_ngrams(log_probs, written, self.no_repeat_ngram) if self.no_repeat_ngram else log_probs

    def _is_end(self, tokens: Tensor) -> Tensor:
        """Return which tokens end a summary, in the shape of ``tokens``."""
        is_end = tokens.eq(self.eos)
        for other in self.ends[1:]:
            is_end |= tokens.eq(other)
        return is_end

    def _over(self, totals: Tensor, ends: Tensor, *, is_last: bool) -> tuple[list[tuple[int, int, float]], list[float]]:
        """Return of the best candidates, ``totals`` (B, C), which have come to their end: (document, column, total).

        Also return the best total of each document's others, and take all candidates of the last step as ended. The
        host waits for a GPU here, once.
        """
        sums, ending = torch.stack([totals, ends.to(totals.dtype)]).tolist()
        # NaN counts as the highest score, so that it stays once it is there.
        if any(total != total for row in sums for total in row):
            raise self._nan()
        over = [
            (document, column, sums[document][column])
            for document, row in enumerate(ending)
            for column, ends_here in enumerate(row[: self.beam])
            if (ends_here or is_last) and sums[document][column] != -math.inf
        ]
        running = [
            max((total for total, ends_here in zip(*each, strict=True) if not ends_here), default=-math.inf)
            for each in zip(sums, ending, strict=True)
        ]
        return over, running

    def _goes_on(self, hypotheses: list[Hypothesis], running: float, length: int) -> bool:
        """Return whether a document needs more steps; ``running`` is the best sum of what goes on, of a length."""
        return len(hypotheses) < self.beam

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
            row = document * columns + column
            tokens, scores = candidates.tokens[row, 1:].clone(), candidates.token_scores[row].clone()
            score = total / len(tokens) ** self.length_penalty
            self._keep(Hypothesis(tokens, score, scores), finished[documents[document]])

    def _keep(self, hypothesis: Hypothesis, others: list[Hypothesis]) -> None:
        """Add a finished hypothesis to the others of its document, or drop it."""
        if len(others) < self.beam:
            others.append(hypothesis)

    def _ranked(self, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        if not hypotheses:
            raise self._impossible()
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[: self.best]

    def _nan(self) -> NoSummaryError:
        return NoSummaryError("The model's scores must be numbers, but are NaN.")

    def _impossible(self) -> NoSummaryError:
        return NoSummaryError(
            f"No summary of {self.min_len} to {self.max_len} tokens was found that holds every "
            f"{self.no_repeat_ngram}-gram once at most (`no_repeat_ngram`)."
        )


def given_scores(tokens: Tensor, logits: Tensor) -> Tensor:
    """Return the log-probabilities of tokens that were given, not chosen: (B, T), (B, T, V) -> (B, T)."""
    return logits.float().log_softmax(dim=-1).gather(2, tokens[..., None]).squeeze(2)

"""The losses of a pointer network over sentences: of labels, and of rewards for what it selects."""

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from rouge_score.rouge_scorer import RougeScorer
from torch import Tensor

from pyramidions.nn.selector import Pick, Steps

#: Weights rewards to come (the setting of Chen and Bansal 2018).
DISCOUNT = 0.95


def follow_labels(labelled: Tensor) -> Pick:
    """Return what picks the labelled units (B, U), the most probable next, and then the end."""
    end = labelled.size(1)

    def pick(log_probs: Tensor, chosen: Tensor) -> Tensor:
        left = log_probs[:, :-1].masked_fill(~labelled | chosen[:, :-1], -torch.inf)
        # A pooling may have dropped a labelled unit.
        return torch.where(left.isfinite().any(dim=1), left.argmax(dim=1) if end else end, end)

    return pick


def set_cross_entropy(steps: Steps, labelled: Tensor) -> Tensor:
    """Return the cross entropy of choosing all labelled units and then the end, a step on average.

    Labels have no order: at each step, all labelled units that are left have the same weight, as on average over
    episodes in random order (Gu et al. 2022). A loss that asks for any one of them teaches most to the most probable.
    """
    number = steps.log_probs.size(2)
    here = F.one_hot(steps.chosen, number).bool() & steps.real[..., None]
    before = (here.cumsum(dim=1) - here.long()) > 0
    wanted = F.pad(labelled, (0, 1))[:, None] & ~before & steps.log_probs.isfinite()
    wanted[..., -1] = ~wanted.any(dim=2)
    losses = -steps.log_probs.masked_fill(~wanted, 0).sum(dim=2) / wanted.sum(dim=2)
    return losses.masked_fill(~steps.real, 0).sum(dim=1) / steps.real.sum(dim=1)


def returns(rewards: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return for each step of each document its reward and the discounted ones after it."""
    found = []
    for of_document in rewards:
        total, back = 0.0, []
        for reward in reversed(of_document):
            total = reward + DISCOUNT * total
            back.append(total)
        found.append(back[::-1])
    return found


def actor_critic(steps: Steps, rewards: Sequence[Sequence[float]]) -> Tensor:
    """Return the loss of sampled selections, a step on average (Chen and Bansal 2018, section 3.2).

    It is that of an advantage actor-critic. The sum over all documents, divided by their number, is the mean over all
    steps of the batch. Returns are brought to mean 0 and variance 1, as the authors' program does. The critic learns
    them by squared errors; theirs is a network of its own.
    """
    given = torch.zeros_like(steps.values)
    for row, of_document in zip(given, returns(rewards), strict=True):
        row[: len(of_document)] = torch.tensor(of_document)
    real = given[steps.real]
    given = (given - real.mean()) / (real.std(correction=0) + 1e-6)
    advantage = given - steps.values
    log_prob = steps.log_probs.gather(2, steps.chosen[..., None]).squeeze(2)
    losses = -advantage.detach() * log_prob + advantage.square()
    return losses.masked_fill(~steps.real, 0).sum(dim=1) * (len(losses) / steps.real.sum())


class SentenceRewards:
    """Rewards of selected sentences, one after the other (F1, of words without stemming).

    A sentence that stays as it is gets what it adds to the mean of ROUGE-1 and ROUGE-2 of those before it, against the
    whole summary. Where sentences are rewritten, the t-th gets the ROUGE-L of its new text against the t-th sentence of
    the summary, and 0 beyond the last; the end gets the ROUGE-1 of all (Chen and Bansal 2018, section 3.2). Words are
    runs of a-z and 0-9, so that other scripts get no rewards.
    """

    _MOST_KEPT = 100_000

    def __init__(self, rewrite: Callable[[list[str]], list[str]] | None = None) -> None:
        self._rewrite = rewrite
        self._rewritten: dict[str, str] = {}
        self._by_sentence, self._by_summary = RougeScorer(["rougeL"]), RougeScorer(["rouge1"])
        self._by_extract = RougeScorer(["rouge1", "rouge2"])

    def __call__(self, selected: Sequence[Sequence[str]], summaries: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the rewards of each document: of its selected sentences, and of the end."""
        if self._rewrite is None:
            given = zip(selected, summaries, strict=True)
            return [[*self._added(sentences, " ".join(summary)), 0.0] for sentences, summary in given]
        self._prepare({text for sentences in selected for text in sentences}, self._rewrite)
        rewards = []
        for sentences, summary in zip(selected, summaries, strict=True):
            written = [self._rewritten.get(text, text) for text in sentences]
            one_by_one = [
                self._by_sentence.score(wanted, text)["rougeL"].fmeasure
                for text, wanted in zip(written, summary, strict=False)
            ]
            rest = [0.0] * (len(written) - len(one_by_one))
            whole = self._by_summary.score(" ".join(summary), " ".join(written))["rouge1"].fmeasure
            rewards.append([*one_by_one, *rest, whole])
        return rewards

    def _added(self, sentences: Sequence[str], summary: str) -> Iterator[float]:
        before = 0.0
        for number in range(1, len(sentences) + 1):
            found = self._by_extract.score(summary, " ".join(sentences[:number]))
            now = sum(each.fmeasure for each in found.values()) / len(found)
            yield now - before
            before = now

    def _prepare(self, texts: set[str], rewrite: Callable[[list[str]], list[str]]) -> None:
        if len(self._rewritten) > self._MOST_KEPT:
            self._rewritten.clear()
        new = sorted(text for text in texts if text.strip() and text not in self._rewritten)
        self._rewritten.update(zip(new, rewrite(new) if new else [], strict=True))

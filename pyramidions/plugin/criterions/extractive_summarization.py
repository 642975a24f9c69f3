"""Binary cross entropy over the sentences of a document, and reinforced selection."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Optional

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from pyramidions.base.arguments import Range, described, flag_of
from pyramidions.base.errors import UserError
from pyramidions.data.labels import CHOSEN, HEADING
from pyramidions.nn.selector import Steps, draw
from pyramidions.plugin.criterions.pointing import SentenceRewards, actor_critic, follow_labels, set_cross_entropy
from pyramidions.plugin.criterions.reinforced_selection import OverlapReward, gumbel_keys, reinforce, select_by
from pyramidions.plugin.criterions.summed import SummedCriterion, total
from pyramidions.text.normalization import split_sentences
from pyramidions.text.tokenizer import BOS, EOS, PAD, SPACE


@dataclass
class ExtractiveSummarizationCriterionConfig(FairseqDataclass):
    """The options of `--criterion extractive_summarization`."""

    positive_weight: float = described(
        1.0, "weight of chosen sentences against all others", Range(0, math.inf, open=True, below=True)
    )
    reward_weight: float = described(
        0.0,
        "share of the reinforced loss in the sum with cross entropy, 0 to 1; 0 never samples. "
        "Samples do not avoid repetitions, whatever --redundancy is",
        Range(0, 1),
    )
    reward_samples: Optional[int] = described(None, "selections sampled of each document; 4 if not given", Range(1))
    reward_rouge2: Optional[float] = described(
        None, "weight of ROUGE-2 beside ROUGE-1 in the reward; 1 if not given", Range(0, math.inf, below=True)
    )
    rewriter: Optional[str] = described(
        None,
        "model that rewrites single sentences (`pyramidions prepare --divide sentences`), for the rewards "
        "of --selector pointer: each sentence gets the ROUGE of what it is rewritten to",
    )


@register_criterion("extractive_summarization", dataclass=ExtractiveSummarizationCriterionConfig)
class ExtractiveSummarizationCriterion(SummedCriterion):
    """Trains a model to rate the sentences that summarize a document above all others.

    With ``--selector pointer`` the loss of a document is that of choosing its labelled sentences, in any order, and
    then the end, a step on average; reinforced selection has the critic of Chen and Bansal 2018 and a reward for each
    sentence (`pointing`). The rest is about sentences that are rated at once.

    The loss of a document is the mean binary cross entropy of its sentences (Nallapati et al. 2017);
    headings, and sentences whose vector a pooling dropped, are left out. It also logs ``precision``: the share of
    chosen sentences among as many of the highest scores.

    Reinforced selection adapts Chen and Bansal 2018 to a model that rates all sentences at once. Sentences are drawn
    without replacement from the softmax of the scores (Plackett-Luce) until the words of the task's ``extract_words``
    are used up; there is neither a pointer decoder nor a learned end. As sentences are not rewritten, the reward is
    that of the whole extract: ROUGE-1 plus ROUGE-2 (F1) on pieces of words, not one for each sentence, so that nothing
    is discounted. The baseline is the reward of the best-rated sentences within ``extract_words``, in place of a critic
    (self-critical training, Rennie et al. 2017). That is the extract of inference without --redundancy: neither samples
    nor baseline avoid repetitions, and the reward alone makes them rarer. Validation samples nothing: its loss is the
    cross entropy, and ``reward`` that of the best-rated sentences.
    """

    conditional_metrics: ClassVar[tuple[str, ...]] = ("precision",)
    training_metrics: ClassVar[tuple[str, ...]] = ("sampled_reward",)

    def __init__(
        self,
        task: Any,
        positive_weight: float,
        reward_weight: float,
        reward_samples: Optional[int],
        reward_rouge2: Optional[float],
        rewriter: Optional[str],
    ) -> None:
        super().__init__(task)
        if not hasattr(task, "extract_words"):
            raise UserError("--criterion extractive_summarization needs --task extractive_summarization.")
        for name, value in (("reward_samples", reward_samples), ("reward_rouge2", reward_rouge2)):
            if value is not None and task.points:
                raise UserError(f"{flag_of(name)} is not for --selector pointer, which draws one selection.")
        if positive_weight != 1 and task.points:
            raise UserError("--positive-weight is not for --selector pointer, which has no other sentences to weigh.")
        if rewriter is not None and not (task.points and reward_weight > 0):
            raise UserError("--rewriter is for --selector pointer with a --reward-weight above 0.")
        self.positive_weight = positive_weight
        self.reward_weight = reward_weight
        self.reward_samples = 4 if reward_samples is None else reward_samples
        self.reward_rouge2 = 1.0 if reward_rouge2 is None else reward_rouge2
        if task.points:
            self._rewriter = None if rewriter is None else _rewriter(rewriter)
            self._rewards: SentenceRewards | None = None
        pieces = task.source_dictionary.symbols
        self.marker = task.preprocessing.need_tokenizer().marker_id
        special = {BOS, PAD, EOS, self.marker}  # <unk> stands for text
        self.is_text = torch.tensor([i not in special for i in range(len(pieces))])
        # A piece begins a word where it has a space.
        self.words = torch.tensor([piece.count(SPACE) for piece in pieces])

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Any, Any, dict[str, Any]]:
        rated, losses, logged = (self._pointed if self.task.points else self._rated)(model, sample)
        # Documents without a sentence have no loss, and do not count.
        documents = int(rated.any(dim=1).sum())
        loss = losses.sum() if reduce else losses
        counts = {"ntokens": sample["ntokens"], "nsentences": len(rated), "sample_size": documents}
        return loss, documents, {**counts, **logged, "loss": loss.data}

    def _rated(self, model: Any, sample: dict[str, Any]) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """Return which units count (B, U), the loss of each document (B,), and what to log, of units rated at once."""
        scores, labels = model(**sample["net_input"]).float(), sample["labels"]
        if scores.shape != labels.shape:
            raise ValueError(f"The model must return {tuple(labels.shape)} scores, but returned {tuple(scores.shape)}.")
        rated = (labels != HEADING) & scores.isfinite()
        scores, positive = scores.masked_fill(~rated, -torch.inf), rated & (labels == CHOSEN)
        losses = self._cross_entropy(scores, rated, positive)
        logging_output = {"hits": _hits(scores, positive), "positive": positive.sum()}
        if self.reward_weight > 0:
            reinforced, logged = self._reinforced(scores, sample)
            logging_output.update(logged, cross_entropy=losses.sum().data)
            if self.training:
                losses = (1 - self.reward_weight) * losses + self.reward_weight * reinforced
        return rated, losses, logging_output

    def _pointed(self, model: Any, sample: dict[str, Any]) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """Return the same of a model that selects sentence by sentence."""
        allowed, labelled = sample["labels"] != HEADING, sample["labels"] == CHOSEN
        tokenizer = self.task.preprocessing.need_tokenizer()
        units = [tokenizer.units_in(ids) for ids in sample["net_input"]["src_tokens"].tolist()]
        # A text may have been cut to a unit without a token.
        for row, of_document in zip(allowed, units, strict=True):
            row[: len(of_document)] &= torch.tensor([bool(unit) for unit in of_document], device=row.device)
        share = self.reward_weight if self.training else 0
        picks = [*([follow_labels(labelled)] if share < 1 else []), *([draw] if share > 0 else [])]
        # One pass of the encoder for both losses.
        found = model(**sample["net_input"], allowed=allowed, picks=picks)
        logging_output: dict[str, Any] = {}
        losses = torch.zeros(len(labelled), device=labelled.device)
        if share < 1:
            # Labels teach the critic nothing, but every weight of a replica must be in the graph.
            losses = set_cross_entropy(found[0], labelled) + 0 * found[0].values.sum(dim=1)
            if self.reward_weight > 0:
                logging_output["cross_entropy"] = losses.sum().data
        if share > 0:
            rewards = self._rewards_on(losses.device)(
                _selected(found[-1], units, tokenizer.decode), self._summaries(sample)
            )
            # What sentences add sums to the reward of all, which rewritten ones get at the end.
            whole = [sum(each) if self._rewriter is None else each[-1] for each in rewards]
            logging_output["sampled_reward"] = torch.tensor(sum(whole))
            losses = (1 - share) * losses + share * actor_critic(found[-1], rewards)
        return allowed, losses.masked_fill(~allowed.any(dim=1), 0), logging_output

    def _rewards_on(self, device: torch.device) -> SentenceRewards:
        """Return what rewards sentences; what rewrites them computes where the model does."""
        if self._rewards is None:
            rewrite = None if self._rewriter is None else _rewriting(self._rewriter, device)
            self._rewards = SentenceRewards(rewrite)
        return self._rewards

    def _summaries(self, sample: dict[str, Any]) -> list[list[str]]:
        decode = self.task.preprocessing.need_tokenizer().decode
        return [split_sentences(decode([i for i in ids if i not in (EOS, PAD)])) for ids in sample["target"].tolist()]

    def _cross_entropy(self, scores: Tensor, rated: Tensor, positive: Tensor) -> Tensor:
        """Return the mean over the rated sentences of each document: (B, U) -> (B,)."""
        weight = scores.new_tensor(self.positive_weight)
        losses = F.binary_cross_entropy_with_logits(
            scores.masked_fill(~rated, 0.0), positive.to(scores.dtype), reduction="none", pos_weight=weight
        )
        return losses.masked_fill(~rated, 0.0).sum(dim=1) / rated.sum(dim=1).clamp(min=1)

    def _reinforced(self, scores: Tensor, sample: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        """Return the reinforced loss of each document (B,), 0 in evaluation, and what to log."""
        source, device = sample["net_input"]["src_tokens"], scores.device
        units = source.eq(self.marker)
        units[:, 0] = False
        units = units.cumsum(dim=1)
        lengths = (
            torch.zeros_like(units[:, :1]).expand(scores.shape).scatter_add(1, units, self.words.to(device)[source])
        )
        # The last sentence may have been cut to nothing.
        scores = scores.masked_fill(lengths == 0, -torch.inf)
        reward = OverlapReward(
            units, source, sample["target"], self.is_text.to(device), scores.size(1), self.reward_rouge2
        )
        words = self.task.extract_words
        with torch.no_grad():
            baseline = reward(select_by(scores, scores, lengths, words).chosen[None])
        logged = {"reward": baseline.sum()}
        if not self.training:
            return scores.new_zeros(len(scores)), logged
        # (B, U) -> (K * B, U)
        repeated, all_lengths = (x.repeat(self.reward_samples, 1) for x in (scores, lengths))
        # fairseq seeds torch with its --seed and the number of updates before each: a resumed run draws the same.
        drawn = select_by(gumbel_keys(repeated.detach()), repeated, all_lengths, words)
        # (K * B, ...) -> (K, B, ...)
        chosen, log_prob = (x.unflatten(0, (self.reward_samples, -1)) for x in drawn)
        rewards = reward(chosen)
        logged["sampled_reward"] = rewards.mean(dim=0).sum()
        return reinforce(log_prob, rewards, baseline).mean(dim=0), logged

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        sum_of = partial(total, logging_outputs)
        documents, positive = sum_of("sample_size"), sum_of("positive")
        for name, unit in (("loss", math.log(2)), ("cross_entropy", math.log(2)), ("reward", 1), ("sampled_reward", 1)):
            if any(name in log for log in logging_outputs):
                metrics.log_scalar(name, sum_of(name) / max(documents, 1) / unit, documents, round=4)
        if positive > 0:
            metrics.log_scalar("precision", 100 * sum_of("hits") / positive, positive, round=2)


def _selected(steps: Steps, units: list[list[list[int]]], decode: Callable[[list[int]], str]) -> list[list[str]]:
    """Return the sentences of each document that were selected, in the order of choice."""
    end, rows = steps.log_probs.size(2) - 1, zip(units, steps.chosen.tolist(), steps.real.tolist(), strict=True)
    return [
        [decode(of_document[unit]) for unit, is_real in zip(chosen, real, strict=True) if is_real and unit != end]
        for of_document, chosen, real in rows
    ]


def _rewriter(path: str) -> Any:
    from pyramidions.pretrained.saved_model import load_model

    model = load_model(path)
    if model.queries:
        raise UserError(f"--rewriter must answer no queries, but {path} does.")
    return model


def _rewriting(model: Any, device: torch.device) -> Callable[[list[str]], list[str]]:
    from pyramidions.inference.summarizer import Summarizer

    summarizer = Summarizer(model, str(device))
    # As `--long rewrite` does: a sentence may become as long as it is.
    most = min(model.config.decoding_max_length, model.max_target_positions - 1)
    options = {"long": "truncate", "beam": 1, "max_len": most}
    return lambda texts: [summary.text for summary in summarizer.summarize(texts, **options)]


def _hits(scores: Tensor, positive: Tensor) -> Tensor:
    """Return how many chosen sentences are among as many of the highest scores: (B, U) -> ()."""
    ranks = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return (positive & (ranks < positive.sum(dim=1, keepdim=True))).sum()

"""ROUGE as `fairseq-generate --scoring rouge` prints it."""

from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import Scores, metrics_of, score_documents


@dataclass
class RougeScorerConfig(FairseqDataclass):
    """ROUGE has nothing to configure: all settings are in its signature line."""


@register_scorer("rouge", dataclass=RougeScorerConfig)
class RougeScorer(BaseScorer):
    """ROUGE-1, -2, -L and -Lsum of what fairseq-generate hands over.

    fairseq hands over targets that went through the tokenizer and were cut to --max-target-positions; `pyramidions
    score` takes the raw references instead, and its figures are the ones to report.
    """

    def score(self) -> float:
        return self._scores().estimates["rouge1"].mean

    def result_string(self) -> str:
        scores = self._scores()
        means = "  ".join(f"{name} {e.mean:.2f} [{e.low:.2f}, {e.high:.2f}]" for name, e in scores.estimates.items())
        return f"{means} | {scores.signature} | references: detokenised targets"

    def _scores(self) -> Scores:
        return score_documents(Examples(self.pred, [(reference,) for reference in self.ref]), metrics_of(["rouge"]))

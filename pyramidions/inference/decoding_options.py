"""The decoding options that a user chooses; they need no torch."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, TypedDict

from pyramidions.base.arguments import Count, CountOrZero, Range, checked
from pyramidions.inference.reader import TokenizedText

_PENALTIES = 10.0  # powers of a length beyond which a score may be no number any more


@checked
@dataclass(frozen=True)
class SamplingOptions:
    """How summaries are sampled, in place of beam search.

    Attributes:
        temperature: above 0; below 1 probable tokens become more probable, above 1 less.
        top_k: how many of the most probable tokens each token is sampled from; 0 for all.
        top_p: probability, above 0 and at most 1, of the most probable tokens, from which each token is sampled.
        seed: random seed, at least 0. A sampled summary depends on it, on the document, and on how many came before.
    """

    temperature: Annotated[float, Range(0, open=True)] = 1.0
    top_k: CountOrZero = 0
    top_p: Annotated[float, Range(0, 1, open=True)] = 1.0
    seed: Annotated[int, Range(0)] = 1

    @checked
    def seed_of(self, document: TokenizedText) -> int:
        """Return the seed for sampling the summary of a document or a part."""
        told = f"{self.seed} {document.number} {' '.join(document.tokens)}"
        return int.from_bytes(blake2b(told.encode(), digest_size=7).digest(), "big")


class DecodingOptions(TypedDict, total=False):
    """Options of decoding; None, or no value, uses the model's decoding default."""

    beam: Count | None  #: hypotheses of a document
    min_len: CountOrZero | None  #: fewest tokens of a summary, without its end
    max_len: Count | None  #: most tokens of a summary, without its end, up to the model's own limit
    length_penalty: Annotated[float, Range(-_PENALTIES, _PENALTIES)] | None  #: above 1 favours long summaries
    no_repeat_ngram: CountOrZero | None  #: a summary holds each n-gram of this n at most once; 0 allows all
    sampling: SamplingOptions | None  #: sample summaries instead of searching for the most probable ones

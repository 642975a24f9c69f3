"""Decoding settings: the user's, or else the model's defaults, with lengths lowered for short documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, NamedTuple, TypedDict

from pyramidions.errors import UserError
from pyramidions.inference.reader import TokenizedText
from pyramidions.inference.saved_model import SavedModel
from pyramidions.nn import BeamSearch, Sampling, Writer
from pyramidions.text.tokenizer import EOS

_GRID = 64  # of document lengths, in tokens
_PENALTIES = 10.0  # powers of a length beyond which a score may be no number any more


class Bounds(NamedTuple):
    """Lengths of a document's summary, in tokens without its end; documents that share them can share a batch.

    Attributes:
        least: fewest tokens.
        most: most tokens.
        shortened_to: `most`, where the document is so short that this is less than for a long one; else None.
    """

    least: int
    most: int
    shortened_to: int | None


@dataclass(frozen=True)
class SamplingOptions:
    """How summaries are sampled, in place of beam search.

    Attributes:
        temperature: above 0; below 1 probable tokens become more probable, above 1 less.
        top_k: how many of the most probable tokens each token is sampled from; 0 for all.
        top_p: probability, above 0 and at most 1, of the most probable tokens, from which each token is sampled.
        seed: random seed, at least 0. A sampled summary depends on it, on the document, and on how many came before.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def seed_of(self, document: TokenizedText) -> int:
        """Return the seed for sampling the summary of a document or a part."""
        told = f"{self.seed} {document.number} {' '.join(document.tokens)}"
        return int.from_bytes(blake2b(told.encode(), digest_size=7).digest(), "big")


class DecodingOptions(TypedDict, total=False):
    """Options of decoding; None, or no value, uses the model's decoding default."""

    beam: int | None  #: hypotheses of a document
    min_len: int | None  #: fewest tokens of a summary, without its end
    max_len: int | None  #: most tokens of a summary, without its end; at most as many as the model writes
    length_penalty: float | None  #: above 1 favours long summaries
    no_repeat_ngram: int | None  #: a summary holds each n-gram of this n at most once; 0 allows all
    sampling: SamplingOptions | None  #: sample summaries instead of searching for the most probable ones


class DecodingSettings(NamedTuple):
    """How a model decodes; a length that the user did not set is lowered for short documents.

    Each summary begins with ``prefix``.
    """

    beam: int
    min_len: int
    max_len: int
    length_penalty: float
    no_repeat_ngram: int
    lowers_min: bool
    lowers_max: bool
    prefix: tuple[int, ...] = ()
    sampling: SamplingOptions | None = None

    def for_length(self, tokens: int, share: int = 1) -> Bounds:
        """Return the lengths of the summary of a document of so many tokens, its end included.

        Args:
            tokens: of the document or part.
            share: how many parts of a document share the lengths; each may take an equal share of them.
        """
        length = _rounded_down(max(tokens - 1, 1))
        longest = -(-self.max_len // share)
        most, least = longest, self.min_len // share
        if self.lowers_max:
            most = min(most, length if self.lowers_min else max(length, least))
        if self.lowers_min:
            # The user's maximum may be below the model's own minimum.
            least = min(least, length // 2, most)
        return Bounds(least, most, most if most < longest else None)

    def writer(self, bounds: Bounds, documents: Sequence[TokenizedText]) -> Writer:
        """Build what writes summaries of these lengths of a batch of documents."""
        rules = (bounds.least, bounds.most, self.length_penalty, self.no_repeat_ngram, EOS)
        if self.sampling is None:
            return BeamSearch(self.beam, *rules, best=1, prefix=self.prefix)
        return Sampling(
            *rules,
            self.prefix,
            seeds=[self.sampling.seed_of(document) for document in documents],
            temperature=self.sampling.temperature,
            top_k=self.sampling.top_k,
            top_p=self.sampling.top_p,
        )


def _rounded_down(tokens: int) -> int:
    """Round down to a multiple of the grid, or to a power of two below it, so that similar documents share a batch."""
    return tokens // _GRID * _GRID or 2 ** (tokens.bit_length() - 1)


def decoding_settings(
    model: SavedModel,
    beam: int | None = None,
    min_len: int | None = None,
    max_len: int | None = None,
    length_penalty: float | None = None,
    no_repeat_ngram: int | None = None,
    sampling: SamplingOptions | None = None,
) -> DecodingSettings:
    """Return how a model decodes documents of any length; `None` uses its own default, and no sampling.

    Raises:
        UserError: an argument breaks a rule.
    """
    _check_kinds(beam, min_len, max_len, length_penalty, no_repeat_ngram, sampling)
    config = model.config
    # One position is the end of the text.
    longest = model.max_target_positions - 1
    if max_len is not None and max_len > longest:
        raise UserError(f"`max_len` must be at most {longest}, what the model writes, but is {max_len}.")
    penalty = config.decoding_length_penalty if length_penalty is None else length_penalty
    _check_penalty(penalty)
    vocabulary = model.tokenizer.vocab_size
    if beam is not None and beam > vocabulary - 2:
        raise UserError(
            f"`beam` must be at most {vocabulary - 2}, the vocabulary without padding and end, but is {beam}."
        )
    found = DecodingSettings(
        config.decoding_beam if beam is None else beam,
        config.decoding_min_length if min_len is None else min_len,
        min(longest, config.decoding_max_length if max_len is None else max_len),
        penalty,
        config.decoding_no_repeat_ngram if no_repeat_ngram is None else no_repeat_ngram,
        min_len is None,
        max_len is None,
        model.tokenizer.prefix,
        sampling,
    )
    _check_bounds(found)
    return found


def check_decoding(
    beam: int | None = None,
    min_len: int | None = None,
    max_len: int | None = None,
    length_penalty: float | None = None,
    no_repeat_ngram: int | None = None,
    sampling: SamplingOptions | None = None,
) -> None:
    """Check what `decoding_settings` checks, as far as this needs no model.

    Raises:
        UserError: an argument breaks a rule, whatever the model.
    """
    _check_kinds(beam, min_len, max_len, length_penalty, no_repeat_ngram, sampling)
    penalty = 0.0 if length_penalty is None else length_penalty
    _check_penalty(penalty)
    # Values that break no rule stand for those of the model.
    least, most = 0 if min_len is None else min_len, 2**30 if max_len is None else max_len
    ngram = 0 if no_repeat_ngram is None else no_repeat_ngram
    given = 1 if beam is None else beam, least, most, penalty, ngram
    _check_bounds(DecodingSettings(*given, min_len is None, max_len is None, sampling=sampling))


def _check_bounds(settings: DecodingSettings) -> None:
    # If the bounds of a long document keep the rules, so do those of a short one.
    try:
        settings.writer(settings.for_length(2**30), [])
    except ValueError as error:
        raise UserError(str(error)) from None


def _check_penalty(penalty: float) -> None:
    # NaN fails this comparison, too.
    if not abs(penalty) <= _PENALTIES:
        raise UserError(f"`length_penalty` must be from {-_PENALTIES:g} to {_PENALTIES:g}, but is {penalty}.")


def _check_kinds(
    beam: int | None,
    min_len: int | None,
    max_len: int | None,
    length_penalty: float | None,
    no_repeat_ngram: int | None,
    sampling: SamplingOptions | None,
) -> None:
    require_numbers(Integral, beam=beam, min_len=min_len, max_len=max_len, no_repeat_ngram=no_repeat_ngram)
    require_numbers(Real, length_penalty=length_penalty)
    if sampling is not None:
        _check_sampling(sampling, beam=beam, length_penalty=length_penalty)


def _check_sampling(sampling: SamplingOptions, **of_search: float | None) -> None:
    for name, value in of_search.items():
        if value is not None:
            raise UserError(f"`{name}` is an option of beam search, but is {value} with sampling.")
    for name, kind in (("temperature", Real), ("top_k", Integral), ("top_p", Real), ("seed", Integral)):
        _require_number(kind, name, getattr(sampling, name))
    if sampling.seed < 0:
        raise UserError(f"`seed` must be at least 0, but is {sampling.seed}.")


def require_numbers(kind: type, **arguments: Any) -> None:
    """Refuse arguments that are neither None nor numbers of a kind."""
    for name, value in arguments.items():
        if value is not None:
            _require_number(kind, name, value)


def _require_number(kind: type, name: str, value: Any) -> None:
    if not isinstance(value, kind):
        rule = "a whole number" if kind is Integral else "a number"
        raise UserError(f"`{name}` must be {rule}, but is {value!r}.")

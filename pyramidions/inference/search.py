"""Decoding settings: the user's, or else the model's defaults, with lengths lowered for short documents."""

from numbers import Integral, Real
from typing import Any, NamedTuple, TypedDict

from pyramidions.errors import UserError
from pyramidions.inference.saved_model import SavedModel
from pyramidions.nn import BeamSearch
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


class DecodingOptions(TypedDict, total=False):
    """Options of decoding; None, or no value, uses the model's decoding default."""

    beam: int | None  #: hypotheses of a document
    min_len: int | None  #: fewest tokens of a summary, without its end
    max_len: int | None  #: most tokens of a summary, without its end; at most as many as the model writes
    length_penalty: float | None  #: above 1 favours long summaries
    no_repeat_ngram: int | None  #: a summary holds each n-gram of this n at most once; 0 allows all


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

    def beam_search(self, bounds: Bounds) -> BeamSearch:
        """Build the search for summaries of these lengths."""
        return BeamSearch(
            self.beam,
            bounds.least,
            bounds.most,
            self.length_penalty,
            self.no_repeat_ngram,
            eos=EOS,
            best=1,
            prefix=self.prefix,
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
) -> DecodingSettings:
    """Return how a model decodes documents of any length; `None` uses its own default.

    Raises:
        UserError: an argument breaks a rule.
    """
    require_numbers(Integral, beam=beam, min_len=min_len, max_len=max_len, no_repeat_ngram=no_repeat_ngram)
    require_numbers(Real, length_penalty=length_penalty)
    config = model.config
    # One position is the end of the text.
    longest = model.max_target_positions - 1
    if max_len is not None and max_len > longest:
        raise UserError(f"`max_len` must be at most {longest}, what the model writes, but is {max_len}.")
    penalty = config.decoding_length_penalty if length_penalty is None else length_penalty
    # NaN fails this comparison, too.
    if not abs(penalty) <= _PENALTIES:
        raise UserError(f"`length_penalty` must be from {-_PENALTIES:g} to {_PENALTIES:g}, but is {penalty}.")
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
    )
    # If the bounds of a long document keep the rules, so do those of a short one.
    try:
        found.beam_search(found.for_length(2**30))
    except ValueError as error:
        raise UserError(str(error)) from None
    return found


def require_numbers(kind: type, **arguments: Any) -> None:
    """Refuse arguments that are neither None nor numbers of a kind."""
    for name, value in arguments.items():
        if value is not None and not isinstance(value, kind):
            rule = "a whole number" if kind is Integral else "a number"
            raise UserError(f"`{name}` must be {rule}, but is {value!r}.")

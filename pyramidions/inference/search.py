"""How a document is decoded: what the user asked for, the model's defaults, and less of them for a short one."""

from numbers import Integral, Real
from typing import Any, NamedTuple

from pyramidions.data.tokenizer import EOS
from pyramidions.errors import UserError
from pyramidions.inference.saved_model import SavedModel
from pyramidions.nn import BeamSearch

_PENALTIES = 10.0  # powers of a length beyond which a score may be no number any more


class Search(NamedTuple):
    """How a document is decoded; documents that share it can share a batch."""

    beam: int
    min_len: int
    max_len: int
    length_penalty: float
    no_repeat_ngram: int
    is_short: bool  # whether the document is too short for the shortest summary that is usual

    def made(self) -> BeamSearch:
        """Build what decodes so."""
        try:
            return BeamSearch(
                self.beam, self.min_len, self.max_len, self.length_penalty, self.no_repeat_ngram, eos=EOS, best=1
            )
        except ValueError as error:
            raise UserError(str(error)) from None


class Searches(NamedTuple):
    """How documents of any length are decoded: bounds that nobody asked for are lowered for short ones."""

    beam: int
    min_len: int
    max_len: int
    length_penalty: float
    no_repeat_ngram: int
    lowers_min: bool
    lowers_max: bool

    def of(self, tokens: int) -> Search:
        """Return how a document of so many tokens, its end included, is decoded."""
        # Rounded down, so that documents of like length share a batch.
        length = 2 ** (max(tokens - 1, 1).bit_length() - 1)
        most, least = self.max_len, self.min_len
        if self.lowers_max:
            most = min(most, length if self.lowers_min else max(length, least))
        if self.lowers_min:
            # A shorter limit that the user sets leaves no room for the model's own least length.
            least = min(least, length // 2, most)
        is_short = self.lowers_min and length // 2 < self.min_len
        search = Search(self.beam, least, most, self.length_penalty, self.no_repeat_ngram, is_short)
        search.made()
        return search


def searches(
    model: SavedModel,
    beam: int | None,
    min_len: int | None,
    max_len: int | None,
    length_penalty: float | None,
    no_repeat_ngram: int,
) -> Searches:
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
    # Not so for NaN, either.
    if not abs(penalty) <= _PENALTIES:
        raise UserError(f"`length_penalty` must be from {-_PENALTIES:g} to {_PENALTIES:g}, but is {penalty}.")
    vocabulary = model.tokenizer.vocab_size
    if beam is not None and beam > vocabulary - 2:
        raise UserError(
            f"`beam` must be at most {vocabulary - 2}, the vocabulary without padding and end, but is {beam}."
        )
    found = Searches(
        config.decoding_beam if beam is None else beam,
        config.decoding_min_length if min_len is None else min_len,
        min(longest, config.decoding_max_length if max_len is None else max_len),
        penalty,
        no_repeat_ngram,
        min_len is None,
        max_len is None,
    )
    found.of(2**30)  # refuses a wrong argument before anything is read
    return found


def require_numbers(kind: type, **arguments: Any) -> None:
    """Refuse arguments that are neither None nor numbers of a kind."""
    for name, value in arguments.items():
        if value is not None and not isinstance(value, kind):
            rule = "a whole number" if kind is Integral else "a number"
            raise UserError(f"`{name}` must be {rule}, but is {value!r}.")

"""Decoding settings: the user's, or else the model's defaults, with lengths lowered for short documents."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack, cast

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.inference.decoding_options import DecodingOptions, SamplingOptions
from pyramidions.inference.reader import TokenizedText
from pyramidions.nn import BeamSearch, Sampling, Writer
from pyramidions.nn.writer import ForcedEnd
from pyramidions.pretrained.saved_model import SavedModel
from pyramidions.text.tokenizer import EOS

_GRID = 64  # of document lengths, in tokens


class Bounds(NamedTuple):
    """Lengths of a document's summary, in tokens without its end; documents that share them can share a batch."""

    least: int  # fewest tokens
    most: int  # most tokens
    shortened_to: int | None  # `most`, where the document is so short that this is less than for a long one; else None


class DecodingSettings(NamedTuple):
    """How a model decodes; a length that the user did not set is lowered for short documents.

    Each summary begins with ``prefix``, and ends in one of ``ends``.
    """

    beam: int
    min_len: int
    max_len: int
    length_penalty: float
    no_repeat_ngram: int
    lowers_min: bool = True
    lowers_max: bool = True
    prefix: tuple[int, ...] = ()
    ends: tuple[int, ...] = (EOS,)
    forced_end: ForcedEnd = "counted"
    early_stopping: bool = True
    sampling: SamplingOptions | None = None

    def for_length(self, tokens: int, share: int = 1, sentence: bool = False) -> Bounds:
        """Return the lengths of the summary of a part of so many tokens; a sentence may become as long as it is."""
        length = -(-tokens // 16) * 16 if sentence else _rounded_down(max(tokens - 1, 1))
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
        rules = (bounds.least, bounds.most, self.length_penalty, self.no_repeat_ngram, self.ends)
        prefix, forced_end = self.prefix, self.forced_end
        if self.sampling is None:
            early = self.early_stopping
            return BeamSearch(self.beam, *rules, 1, prefix, forced_end, early_stopping=early)
        return Sampling(
            *rules,
            prefix,
            forced_end,
            seeds=[self.sampling.seed_of(document) for document in documents],
            temperature=self.sampling.temperature,
            top_k=self.sampling.top_k,
            top_p=self.sampling.top_p,
        )


def _rounded_down(tokens: int) -> int:
    """Round down to a multiple of the grid, or to a power of two below it, so that similar documents share a batch."""
    return tokens // _GRID * _GRID or 2 ** (tokens.bit_length() - 1)


@checked
def decoding_settings(model: SavedModel, **asked: Unpack[DecodingOptions]) -> DecodingSettings:
    """Return how a model decodes documents of any length; `None` uses its own default, and no sampling."""
    config = model.config
    # One position is the end of the text.
    longest = model.max_target_positions - 1
    if (max_len := asked.get("max_len")) is not None and max_len > longest:
        raise UserError(f"`max_len` must be at most {longest}, what the model writes, but is {max_len}.")
    most = model.tokenizer.vocab_size - 2
    if (beam := asked.get("beam")) is not None and beam > most:
        raise UserError(f"`beam` must be at most {most}, the vocabulary without padding and end, but is {beam}.")
    own = DecodingSettings(
        config.decoding_beam,
        config.decoding_min_length,
        min(longest, config.decoding_max_length),
        config.decoding_length_penalty,
        config.decoding_no_repeat_ngram,
        prefix=model.tokenizer.prefix if config.decoding_forced_start == "yes" else (),
        ends=model.tokenizer.ends,
        forced_end=cast(ForcedEnd, config.decoding_forced_end),
        early_stopping=config.decoding_early_stopping == "yes",
    )
    return _settings(own, asked)


@checked
def check_decoding(**asked: Unpack[DecodingOptions]) -> None:
    """Check what `decoding_settings` checks, as far as this needs no model."""
    # Values that break no rule stand for those of the model.
    _settings(DecodingSettings(1, 0, 2**30, 0.0, 0), asked)


def _settings(own: DecodingSettings, asked: DecodingOptions) -> DecodingSettings:
    """Return the settings of a model with those that the user set."""
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    for name in ("beam", "length_penalty"):
        if name in given and "sampling" in given:
            raise UserError(f"`{name}` is an option of beam search, but is {given[name]} with sampling.")
    lowers = {"lowers_min": "min_len" not in given, "lowers_max": "max_len" not in given}
    found = own._replace(**given | lowers)
    # If the bounds of a long document keep the rules, so do those of a short one.
    try:
        found.writer(found.for_length(2**30), [])
    except ValueError as error:
        raise UserError(str(error)) from None
    return found

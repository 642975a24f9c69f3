"""What the paper claims about cost, beside what we count."""

from functools import cache
from typing import Any, NamedTuple

from pyramidions.measure.cost import Lengths, cost_of
from pyramidions.measure.parts import DECODER, Part
from pyramidions.models import preset

_LONGEST = 8192
_INFERENCE = 256  # tokens that the paper's benchmark of inference generates, the shorter of its two lengths
_SELF, _CROSS = Part.ENCODER_ATTENTION, Part.CROSS_ATTENTION


class Claim(NamedTuple):
    """A figure of the paper and ours.

    Attributes:
        claim: what is said, and where.
        paper: the paper's figure.
        ours: our figure.
        assumptions: what is counted, and how.
        unit: of ours, "x" for a factor.
    """

    claim: str
    paper: str
    ours: float
    assumptions: str
    unit: str = "x"

    def ours_in_words(self) -> str:
        """Return our figure with its unit."""
        return f"{self.ours:.2f}x" if self.unit == "x" else f"{self.ours:.0f}{self.unit}"


def claims() -> list[Claim]:
    """Return the claims of Pietruszka et al. 2022 (sections 3.2 and 5) beside our counts."""
    return [*_savings(), *_decoder(), *_further()]


def count(name: str, lengths: Lengths, **overrides: Any) -> dict[Part, int]:
    """Return the multiplications of a preset, made for documents of that length, by part."""
    return dict(_counted(name, lengths, **overrides))


@cache
def _counted(name: str, lengths: Lengths, **overrides: Any) -> dict[Part, int]:
    config = preset(name, **{"max_source_positions": lengths.source, **overrides})
    return cost_of(config, lengths).multiplications()


def _savings() -> list[Claim]:
    lengths = Lengths(_LONGEST)
    vanilla, blockwise = (count(name, lengths)[_SELF] for name in ("vanilla", "blockwise"))
    deep, pooled = (count(name, lengths) for name in ("deep_blockwise", "deep_pyramidion"))
    halving = "4096,2048,1024,512,None"
    whole = count("blockwise", lengths, encoder_layers=1)[_SELF]
    halved = count("pyramidion", lengths, encoder_layers=5, pooling_lengths=halving)[_SELF]
    return [
        Claim(
            "encoder self-attention, blockwise less than vanilla (section 5)",
            "16x",
            vanilla / blockwise,
            "scores and mixes at 8192 tokens, blocks of 512; projections are the same in both",
        ),
        Claim(
            "encoder self-attention, DeepPyramidion less than blockwise (sections 3.2 and 5)",
            "2.5x",
            deep[_SELF] / pooled[_SELF],
            "scores and mixes of six layers that read 8192, 8192, 2048, 512, 512 and 512 instead of 8192 tokens each",
        ),
        Claim(
            "cross-attention, DeepPyramidion less than blockwise (sections 3.2 and 5)",
            "16x",
            deep[_CROSS] / pooled[_CROSS],
            "scores and mixes over 512 instead of 8192 representations, whatever the summary's length",
        ),
        Claim(
            "all layers of an encoder that halves its input, in units of its first layer (section 3.2)",
            "2 - k/n = 1.94x",
            halved / whole,
            f"scores and mixes, n = 8192, k = 512, pooling_lengths {halving}",
        ),
    ]


def _decoder() -> list[Claim]:
    attention = (Part.DECODER_ATTENTION, _CROSS)
    claim = "multiplications of the decoder, DeepPyramidion less than blockwise (section 5)"
    usual = (
        f"the counting that gives 13: scores and mixes alone, {_INFERENCE} tokens as in the paper's benchmark of "
        "inference, each attending to those up to it; the paper does not state its own"
    )
    unmasked = f"{_INFERENCE} tokens, the masked half of self-attention counted too, as training computes it"
    everything = f"everything: {_INFERENCE} tokens, all projections, feed-forward and the output layer of 32768 pieces"
    return [
        Claim(claim, "13x", _saved(_INFERENCE, attention), usual),
        Claim(claim, "13x", _saved(512, attention), "the same with 512 tokens"),
        Claim(claim, "13x", _saved(_INFERENCE, attention, causal=False), unmasked),
        Claim(
            claim,
            "13x",
            _saved(512, (*attention, Part.MEMORY_PROJECTIONS)),
            "512 tokens, keys and values of the memory projected once, too",
        ),
        Claim(claim, "13x", _saved(_INFERENCE, DECODER), everything),
        Claim(claim, "13x", _saved(512, DECODER), "everything, 512 tokens"),
    ]


def _saved(target: int, parts: tuple[Part, ...], causal: bool = True) -> float:
    """Return how many times less these parts of DeepPyramidion's decoder multiply than those of blockwise."""
    counts = [count(name, Lengths(_LONGEST, target)) for name in ("deep_blockwise", "deep_pyramidion")]
    if causal:
        for counted in counts:
            # Token i attends to i tokens: T (T + 1) / 2 pairs instead of T T.
            counted[Part.DECODER_ATTENTION] = counted[Part.DECODER_ATTENTION] * (target + 1) // (2 * target)
    before, after = (sum(counted[part] for part in parts) for counted in counts)
    return before / after


def _further() -> list[Claim]:
    lengths = Lengths(_LONGEST, 512)
    attention = (_SELF, Part.DECODER_ATTENTION, _CROSS)
    layer = count("vanilla", lengths, embed_dim=768, ffn_embed_dim=3072, encoder_layers=1)
    pyramidion = count("deep_pyramidion", lengths)
    others = layer[Part.ENCODER_PROJECTIONS] + layer[Part.ENCODER_FEED_FORWARD]
    return [
        Claim(
            "a whole DeepPyramidion, less than one Transformer layer that reads 8192 tokens (section 5)",
            "5x",
            layer[_SELF] / sum(pyramidion[part] for part in attention),
            "scores and mixes of encoder and decoder, 512 target tokens, width 768; with everything else counted it "
            f"is {(layer[_SELF] + others) / sum(pyramidion.values()):.2f}x",
        ),
        Claim(
            "tokens above which attention multiplies more than projections and feed-forward (section 5)",
            "approx. 4k",
            lengths.source * others / layer[_SELF],
            "full attention, width 768: 2 n n d against 12 n d d",
            " tokens",
        ),
    ]

"""What the paper claims about cost, and the orders of its table 1, beside what we count."""

import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import click

from pyramidions.cli.columns import columns
from pyramidions.models import PyramidionConfig, preset
from pyramidions.models.declared import part_fields
from pyramidions.models.notation import changed, lengths_in, written
from pyramidions.models.spec import Part
from pyramidions.runs.measure.cost import Lengths, cost_of
from pyramidions.runs.measure.parts import DECODER, CostPart

_LONGEST = 8192
_INFERENCE = 256  # tokens that the paper's benchmark of inference generates, the shorter of its two lengths
_SELF, _CROSS = CostPart.ENCODER_ATTENTION, CostPart.CROSS_ATTENTION


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


@cache
def count(name: str, lengths: Lengths, **overrides: Any) -> Mapping[CostPart, int]:
    """Return the multiplications of a preset, made for documents of that length, by part."""
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
    attention = (CostPart.DECODER_ATTENTION, _CROSS)
    claim = "multiplications of the decoder, DeepPyramidion less than blockwise (section 5)"
    usual = (
        f"the counting that gives 13: scores and mixes alone, {_INFERENCE} tokens as in the paper's benchmark of "
        "inference, each attending to those up to it; the paper does not state its own"
    )
    unmasked = f"{_INFERENCE} tokens, the masked half of self-attention counted too, as training computes it"
    everything = f"everything: {_INFERENCE} tokens, all projections, feed-forward and the output layer of 32768 pieces"
    ours = {
        usual: _saved(_INFERENCE, attention),
        "the same with 512 tokens": _saved(512, attention),
        unmasked: _saved(_INFERENCE, attention, causal=False),
        "512 tokens, keys and values of the memory projected once, too": _saved(
            512, (*attention, CostPart.MEMORY_PROJECTIONS)
        ),
        everything: _saved(_INFERENCE, DECODER),
        "everything, 512 tokens": _saved(512, DECODER),
    }
    return [Claim(claim, "13x", times, assumptions) for assumptions, times in ours.items()]


def _saved(target: int, parts: tuple[CostPart, ...], causal: bool = True) -> float:
    """Return how many times less these parts of DeepPyramidion's decoder multiply than those of blockwise."""
    counts = [count(name, Lengths(_LONGEST, target)) for name in ("deep_blockwise", "deep_pyramidion")]
    if causal:
        # Token i attends to i tokens: T (T + 1) / 2 pairs instead of T T.
        own = CostPart.DECODER_ATTENTION
        counts = [{**counted, own: counted[own] * (target + 1) // (2 * target)} for counted in counts]
    before, after = (sum(counted[part] for part in parts) for counted in counts)
    return before / after


def _further() -> list[Claim]:
    lengths = Lengths(_LONGEST, 512)
    attention = (_SELF, CostPart.DECODER_ATTENTION, _CROSS)
    layer = count("vanilla", lengths, embed_dim=768, ffn_embed_dim=3072, encoder_layers=1)
    pyramidion = count("deep_pyramidion", lengths)
    others = layer[CostPart.ENCODER_PROJECTIONS] + layer[CostPart.ENCODER_FEED_FORWARD]
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


def _attention(kind: str, **options: int) -> dict[str, Any]:
    return {"self_attention": written(Part(kind, options))}


_N: dict[str, Any] = {"source": 4096}
_D = {"embed_dim": 512}
_BLOCK = _attention("blockwise", block_size=256)
_PYRAMID = {"pooling_lengths": "1024,512"}
_POWER = {"self_attention": "full"}
_LSH, _EFFICIENT = _attention("lsh", local_heads=0), _attention("efficient", local_heads=0)
_FAR = "no local heads"
_HASHED = "no local heads; with hashing into n/m buckets, which is itself of h n n d / m"
_C = "pooling lengths grow with n, so that c stays"
# The model and its order, the letter that is doubled, the part that the order is of, and by how much it should grow;
# our preset, the overrides and lengths whose numbers are doubled, those that stay, and what the count assumes.
_TABLE: tuple[tuple[str, str, CostPart, int, str, dict[str, Any], dict[str, Any], str], ...] = (
    ("Vanilla, l n n d", "n", _SELF, 4, "vanilla", _N, {}, ""),
    ("Vanilla, l n n d", "l", _SELF, 2, "vanilla", {"encoder_layers": 2}, {}, ""),
    ("Vanilla, l n n d", "d", _SELF, 2, "vanilla", _D, {}, ""),
    ("Vanilla, t n d", "n", _CROSS, 2, "vanilla", _N, {}, ""),
    ("Vanilla, t n d", "t", _CROSS, 2, "vanilla", {"target": 512}, {}, ""),
    ("Sparse, l m n d", "n", _SELF, 2, "blockwise", _N, {}, ""),
    ("Sparse, l m n d", "m", _SELF, 2, "blockwise", _BLOCK, {}, ""),
    ("LSH, l m h n d", "n", _SELF, 2, "lsh", _N, _LSH, _HASHED),
    ("LSH, l m h n d", "m", _SELF, 2, "lsh", _attention("lsh", local_heads=0, bucket_size=64), {}, _HASHED),
    ("LSH, l m h n d", "h", _SELF, 2, "lsh", _attention("lsh", local_heads=0, num_hashes=4), {}, _HASHED),
    ("Efficient, l n d d", "n", _SELF, 2, "efficient", _N, _EFFICIENT, _FAR),
    ("Efficient, l n d d", "d", _SELF, 4, "efficient", _D, _EFFICIENT, _FAR),
    ("PoWER, c n n d", "n", _SELF, 4, "power", _N | _PYRAMID, _POWER, _C),
    ("Transpooler, l m n d", "n", _SELF, 2, "transpooler", _N, {}, ""),
    ("Transpooler, l m n d", "m", _SELF, 2, "transpooler", _BLOCK, {}, ""),
    ("Transpooler, t k d", "k", _CROSS, 2, "transpooler", {"pooling_lengths": "None,512"}, {}, ""),
    ("Transpooler, t k d", "n", _CROSS, 1, "transpooler", _N, {}, ""),
    ("Pyramidion, c m n d", "n", _SELF, 2, "pyramidion", _N | _PYRAMID, {}, _C),
    ("Pyramidion, c m n d", "m", _SELF, 2, "pyramidion", _BLOCK, {}, ""),
    ("Pyramidion, t k d", "k", _CROSS, 2, "pyramidion", _PYRAMID, {}, ""),
    ("Pyramidion, t k d", "n", _CROSS, 1, "pyramidion", _N, {}, ""),
)


def orders() -> list[Claim]:
    """Return the growth of scores and mixes for every row of table 1 that can be built: all but Linformer.

    Pietruszka et al. 2022, table 1: l layers, n input tokens, d width, t target tokens, m tokens that one attends to,
    h hashes, k pooled representations, c effective layers.
    """
    found = []
    for row, letter, part, factor, model, some, others, remark in _TABLE:
        before, after = (_counted(model, part, **sizes, **others) for sizes in (some, _doubled(some)))
        found.append(Claim(f"{row}: {letter}", f"{factor}x", after / before, remark))
    return found


def _doubled(overrides: dict[str, Any]) -> dict[str, Any]:
    return {name: doubled(name, value) for name, value in overrides.items()}


def doubled(name: str, value: Any) -> Any:
    """Return a field of a config with every number in it doubled."""
    if isinstance(value, int):
        return 2 * value
    if name in part_fields(PyramidionConfig):
        return changed(name, value, lambda part: Part(part.kind, {key: 2 * of for key, of in part.options.items()}))
    return ",".join(str(2 * int(entry)) if entry.isdecimal() else entry for entry in lengths_in(str(value)))


def _counted(model: str, part: CostPart, source: int = 8192, target: int = 512, **overrides: Any) -> int:
    return count(model, Lengths(source, target), **overrides)[part]


@click.command("claims", short_help="Count what the paper claims about cost.")
def claims_command() -> None:
    """Put the claims of Pietruszka et al. 2022 about cost, and the orders of table 1, beside what we count."""
    click.echo(_table("The paper claims", claims()))
    click.echo("\n" + _table("Table 1: scores and mixes when a letter is doubled", orders()))


def _table(title: str, told: Sequence[Claim]) -> str:
    """Return claims as plain text, with what they assume below each."""
    head, *rows = columns([(title, "paper", "ours"), *((c.claim, c.paper, c.ours_in_words()) for c in told)])
    lines = [head]
    for claim, row in zip(told, rows, strict=True):
        lines += [row, *textwrap.wrap(claim.assumptions, 116, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)

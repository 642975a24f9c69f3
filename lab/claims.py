"""`python -m lab claims`: what the paper claims about cost, and the orders of its table 1, beside what we count."""

import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import click

from pyramidions.cli.outputs import columns
from pyramidions.models import preset
from pyramidions.runs.measure import CostPart, Lengths, cost_of

_SELF, _OWN, _CROSS = CostPart.ENCODER_ATTENTION, CostPart.DECODER_ATTENTION, CostPart.CROSS_ATTENTION
_OTHERS = (CostPart.ENCODER_PROJECTIONS, CostPart.ENCODER_FEED_FORWARD)
_DECODER = tuple(CostPart)[tuple(CostPart).index(_OWN) :]  # with the projections of the memory to keys and values


class Counted(NamedTuple):
    """Multiplications of some parts of a preset in one forward pass; `source` and `target` are overrides, too."""

    model: str
    parts: Sequence[CostPart]
    overrides: Mapping[str, Any] = {}
    causal: bool = False

    @property
    def number(self) -> float:
        """The count; without the masked half of the decoder's self-attention where it is causal."""
        counted, target = _count(self.model, **self.overrides), self.overrides.get("target", 512)
        # Token i attends to i tokens: T (T + 1) / 2 pairs instead of T T.
        share = (target + 1) / (2 * target) if self.causal else 1.0
        return sum(counted[part] * (share if part is _OWN else 1.0) for part in self.parts)


@cache
def _count(model: str, source: int = 8192, target: int = 512, **overrides: Any) -> Mapping[CostPart, int]:
    config = preset(model, max_source_positions=source, **overrides)
    return cost_of(config, Lengths(source, target)).multiplications()


class Claim(NamedTuple):
    """A figure of the paper, and the two counts whose ratio is ours, times `tokens` where the figure has that unit."""

    claim: str
    paper: str
    more: Counted
    less: Counted
    assumptions: str = ""
    tokens: int | None = None

    @property
    def ours(self) -> float:
        """Our figure."""
        return self.more.number / self.less.number * (self.tokens or 1)

    def ours_in_words(self) -> str:
        """Return our figure with its unit."""
        return f"{self.ours:.2f}x" if self.tokens is None else f"{self.ours:.0f} tokens"


_HALVING = "4096,2048,1024,512,None"
_LAYER = {"embed_dim": 768, "ffn_embed_dim": 3072, "encoder_layers": 1}
_DECODERS = "multiplications of the decoder, DeepPyramidion less than blockwise (section 5)"
_LESS_THAN_A_LAYER = "a whole DeepPyramidion, less than one Transformer layer that reads 8192 tokens (section 5)"

#: What Pietruszka et al. 2022 say in sections 3.2 and 5.
CLAIMS = (
    Claim(
        "encoder self-attention, blockwise less than vanilla (section 5)",
        "16x",
        Counted("vanilla", [_SELF]),
        Counted("blockwise", [_SELF]),
        "scores and mixes at 8192 tokens, blocks of 512; projections are the same in both",
    ),
    Claim(
        "encoder self-attention, DeepPyramidion less than blockwise (sections 3.2 and 5)",
        "2.5x",
        Counted("deep_blockwise", [_SELF]),
        Counted("deep_pyramidion", [_SELF]),
        "scores and mixes of six layers that read 8192, 8192, 2048, 512, 512 and 512 instead of 8192 tokens each",
    ),
    Claim(
        "cross-attention, DeepPyramidion less than blockwise (sections 3.2 and 5)",
        "16x",
        Counted("deep_blockwise", [_CROSS]),
        Counted("deep_pyramidion", [_CROSS]),
        "scores and mixes over 512 instead of 8192 representations, whatever the summary's length",
    ),
    Claim(
        "all layers of an encoder that halves its input, in units of its first layer (section 3.2)",
        "2 - k/n = 1.94x",
        Counted("pyramidion", [_SELF], {"encoder_layers": 5, "pooling_lengths": _HALVING}),
        Counted("blockwise", [_SELF], {"encoder_layers": 1}),
        f"scores and mixes, n = 8192, k = 512, pooling_lengths {_HALVING}",
    ),
    Claim(
        _DECODERS,
        "13x",
        Counted("deep_blockwise", [_OWN, _CROSS], {"target": 256}, causal=True),
        Counted("deep_pyramidion", [_OWN, _CROSS], {"target": 256}, causal=True),
        "the counting that gives 13: scores and mixes alone, 256 tokens as in the paper's benchmark of inference, each "
        "attending to those up to it; the paper does not state its own",
    ),
    Claim(
        _DECODERS,
        "13x",
        Counted("deep_blockwise", _DECODER, {"target": 256}, causal=True),
        Counted("deep_pyramidion", _DECODER, {"target": 256}, causal=True),
        "everything: 256 tokens, all projections, feed-forward and the output layer of 32768 pieces",
    ),
    Claim(
        _LESS_THAN_A_LAYER,
        "5x",
        Counted("vanilla", [_SELF], _LAYER),
        Counted("deep_pyramidion", [_SELF, _OWN, _CROSS]),
        "scores and mixes of encoder and decoder, 512 target tokens, width 768",
    ),
    Claim(
        _LESS_THAN_A_LAYER,
        "5x",
        Counted("vanilla", [_SELF, *_OTHERS], _LAYER),
        Counted("deep_pyramidion", [*CostPart]),
        "everything",
    ),
    Claim(
        "tokens above which attention multiplies more than projections and feed-forward (section 5)",
        "approx. 4k",
        Counted("vanilla", _OTHERS, _LAYER),
        Counted("vanilla", [_SELF], _LAYER),
        "full attention, width 768: 2 n n d against 12 n d d",
        tokens=8192,
    ),
)

# What stands for a letter of table 1, and for twice as much
_N = ({"source": 4096}, {"source": 8192})
_D = ({"embed_dim": 512}, {"embed_dim": 1024})
_L = ({"encoder_layers": 2}, {"encoder_layers": 4})
_M = tuple({"self_attention": f"blockwise(block_size={size})"} for size in (256, 512))
_BUCKETS = tuple({"self_attention": f"lsh(local_heads=0, bucket_size={size})"} for size in (64, 128))
_HASHES = tuple({"self_attention": f"lsh(local_heads=0, num_hashes={number})"} for number in (4, 8))
_K = ({"pooling_lengths": "None,512"}, {"pooling_lengths": "None,1024"})
_LAST_K = ({"pooling_lengths": "1024,512"}, {"pooling_lengths": "2048,1024"})
_N_AND_K = tuple({**n, **k} for n, k in zip(_N, _LAST_K, strict=True))
_T = ({"target": 512}, {"target": 1024})
_LSH, _EFFICIENT = ({"self_attention": f"{kind}(local_heads=0)"} for kind in ("lsh", "efficient"))
_FAR = "no local heads"
_HASHED = "no local heads; with hashing into n/m buckets, which is itself of h n n d / m"
_C = "pooling lengths grow with n, so that c stays"
# The model and its order, the letter that is doubled, the part that the order is of, and by how much it should grow;
# our preset, the overrides and lengths before and after, those that stay, and what the count assumes.
_TABLE: tuple[tuple[str, str, CostPart, int, str, Sequence[dict[str, Any]], dict[str, Any], str], ...] = (
    ("Vanilla, l n n d", "n", _SELF, 4, "vanilla", _N, {}, ""),
    ("Vanilla, l n n d", "l", _SELF, 2, "vanilla", _L, {}, ""),
    ("Vanilla, l n n d", "d", _SELF, 2, "vanilla", _D, {}, ""),
    ("Vanilla, t n d", "n", _CROSS, 2, "vanilla", _N, {}, ""),
    ("Vanilla, t n d", "t", _CROSS, 2, "vanilla", _T, {}, ""),
    ("Sparse, l m n d", "n", _SELF, 2, "blockwise", _N, {}, ""),
    ("Sparse, l m n d", "m", _SELF, 2, "blockwise", _M, {}, ""),
    ("LSH, l m h n d", "n", _SELF, 2, "lsh", _N, _LSH, _HASHED),
    ("LSH, l m h n d", "m", _SELF, 2, "lsh", _BUCKETS, {}, _HASHED),
    ("LSH, l m h n d", "h", _SELF, 2, "lsh", _HASHES, {}, _HASHED),
    ("Efficient, l n d d", "n", _SELF, 2, "efficient", _N, _EFFICIENT, _FAR),
    ("Efficient, l n d d", "d", _SELF, 4, "efficient", _D, _EFFICIENT, _FAR),
    ("PoWER, c n n d", "n", _SELF, 4, "power", _N_AND_K, {"self_attention": "full"}, _C),
    ("Transpooler, l m n d", "n", _SELF, 2, "transpooler", _N, {}, ""),
    ("Transpooler, l m n d", "m", _SELF, 2, "transpooler", _M, {}, ""),
    ("Transpooler, t k d", "k", _CROSS, 2, "transpooler", _K, {}, ""),
    ("Transpooler, t k d", "n", _CROSS, 1, "transpooler", _N, {}, ""),
    ("Pyramidion, c m n d", "n", _SELF, 2, "pyramidion", _N_AND_K, {}, _C),
    ("Pyramidion, c m n d", "m", _SELF, 2, "pyramidion", _M, {}, ""),
    ("Pyramidion, t k d", "k", _CROSS, 2, "pyramidion", _LAST_K, {}, ""),
    ("Pyramidion, t k d", "n", _CROSS, 1, "pyramidion", _N, {}, ""),
)
#: Growth of scores and mixes for every row of table 1 that can be built: all but Linformer. l: layers, n: input tokens,
#: d: width, t: target tokens, m: tokens that one attends to, h: hashes, k: pooled representations, c: effective layers.
ORDERS = tuple(
    Claim(
        f"{row}: {letter}",
        f"{factor}x",
        Counted(model, [part], {**twice, **others}),
        Counted(model, [part], {**once, **others}),
        remark,
    )
    for row, letter, part, factor, model, (once, twice), others, remark in _TABLE
)


@click.command("claims", short_help="Count what the paper claims about cost.")
def claims_command() -> None:
    """Put the claims of Pietruszka et al. 2022 about cost, and the orders of table 1, beside what we count."""
    click.echo(_table("The paper claims", CLAIMS))
    click.echo("\n" + _table("Table 1: scores and mixes when a letter is doubled", ORDERS))


def _table(title: str, told: Sequence[Claim]) -> str:
    """Return claims as plain text, with what they assume below each."""
    head, *rows = columns([(title, "paper", "ours"), *((c.claim, c.paper, c.ours_in_words()) for c in told)])
    lines = [head]
    for claim, row in zip(told, rows, strict=True):
        lines += [row, *textwrap.wrap(claim.assumptions, 116, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)

"""Table 1's orders of the paper: what doubling a letter does to our counts."""

from json import dumps
from typing import Any, NamedTuple

from pyramidions.measure.claims import Claim, count
from pyramidions.measure.cost import Lengths
from pyramidions.measure.parts import Part


class Growth(NamedTuple):
    """One letter of an order in table 1.

    Attributes:
        row: the model and its order, in the table's letters.
        letter: what is doubled.
        part: what the order is of.
        factor: by how much it should grow.
        preset: our model.
        before: the preset's overrides, and "source" and "target" for lengths.
        after: likewise, with the letter doubled.
        remark: what the count holds beside scores and mixes, or assumes.
    """

    row: str
    letter: str
    part: Part
    factor: int
    preset: str
    before: dict[str, Any]
    after: dict[str, Any]
    remark: str = ""


def orders() -> list[Claim]:
    """Return the growth of scores and mixes for every row of table 1 that can be built: all but Linformer.

    Pietruszka et al. 2022, table 1: l layers, n input tokens, d width, t target tokens, m tokens that one attends to,
    h hashes, k pooled representations, c effective layers.
    """
    return [
        Claim(
            f"{growth.row}: {growth.letter}",
            f"{growth.factor}x",
            _counted(growth, growth.after) / _counted(growth, growth.before),
            "x",
            growth.remark,
        )
        for growth in _GROWTHS
    ]


def _counted(growth: Growth, chosen: dict[str, Any]) -> int:
    overrides = dict(chosen)
    lengths = Lengths(overrides.pop("source", 8192), overrides.pop("target", 512))
    return count(growth.preset, lengths, **overrides)[growth.part]


def _attention(**options: int) -> dict[str, Any]:
    return {"self_attention_args": dumps(options)}


def _lsh(**options: int) -> dict[str, Any]:
    return _attention(local_heads=0, **options)


_SELF, _CROSS = Part.ENCODER_ATTENTION, Part.CROSS_ATTENTION
_N, _2N = {"source": 4096}, {"source": 8192}
_WIDE = {"embed_dim": 1024}
_HALF_BLOCK, _WHOLE_BLOCK = _attention(block_size=256), _attention(block_size=512)
_K, _2K = {"pooling_lengths": "None,512"}, {"pooling_lengths": "None,1024"}
_PYRAMID, _2PYRAMID = {"pooling_lengths": "1024,512"}, {"pooling_lengths": "2048,1024"}
_POWER = {"self_attention": "full", "self_attention_args": "{}"}
_EFFICIENT = _attention(local_heads=0)
_FAR = "no local heads"
_HASHED = "no local heads; with hashing into n/m buckets, which is itself of h n n d / m"
_C = "pooling lengths grow with n, so that c stays"
_GROWTHS = [
    Growth("Vanilla, l n n d", "n", _SELF, 4, "vanilla", _N, _2N),
    Growth("Vanilla, l n n d", "l", _SELF, 2, "vanilla", {}, {"encoder_layers": 4}),
    Growth("Vanilla, l n n d", "d", _SELF, 2, "vanilla", {}, _WIDE),
    Growth("Vanilla, t n d", "n", _CROSS, 2, "vanilla", _N, _2N),
    Growth("Vanilla, t n d", "t", _CROSS, 2, "vanilla", {}, {"target": 1024}),
    Growth("Sparse, l m n d", "n", _SELF, 2, "blockwise", _N, _2N),
    Growth("Sparse, l m n d", "m", _SELF, 2, "blockwise", _HALF_BLOCK, _WHOLE_BLOCK),
    Growth("LSH, l m h n d", "n", _SELF, 2, "lsh", {**_N, **_lsh()}, {**_2N, **_lsh()}, _HASHED),
    Growth("LSH, l m h n d", "m", _SELF, 2, "lsh", _lsh(), _lsh(bucket_size=128), _HASHED),
    Growth("LSH, l m h n d", "h", _SELF, 2, "lsh", _lsh(), _lsh(num_hashes=8), _HASHED),
    Growth("Efficient, l n d d", "n", _SELF, 2, "efficient", {**_N, **_EFFICIENT}, {**_2N, **_EFFICIENT}, _FAR),
    Growth("Efficient, l n d d", "d", _SELF, 4, "efficient", _EFFICIENT, {**_WIDE, **_EFFICIENT}, _FAR),
    Growth("PoWER, c n n d", "n", _SELF, 4, "power", {**_N, **_POWER, **_PYRAMID}, {**_2N, **_POWER, **_2PYRAMID}, _C),
    Growth("Transpooler, l m n d", "n", _SELF, 2, "transpooler", _N, _2N),
    Growth("Transpooler, l m n d", "m", _SELF, 2, "transpooler", _HALF_BLOCK, _WHOLE_BLOCK),
    Growth("Transpooler, t k d", "k", _CROSS, 2, "transpooler", _K, _2K),
    Growth("Transpooler, t k d", "n", _CROSS, 1, "transpooler", _N, _2N),
    Growth("Pyramidion, c m n d", "n", _SELF, 2, "pyramidion", {**_N, **_PYRAMID}, {**_2N, **_2PYRAMID}, _C),
    Growth("Pyramidion, c m n d", "m", _SELF, 2, "pyramidion", _HALF_BLOCK, _WHOLE_BLOCK),
    Growth("Pyramidion, t k d", "k", _CROSS, 2, "pyramidion", _PYRAMID, _2PYRAMID),
    Growth("Pyramidion, t k d", "n", _CROSS, 1, "pyramidion", _N, _2N),
]

"""Table 1's orders of the paper: what doubling a letter does to our counts."""

from json import dumps
from typing import Any

from pyramidions.measure.claims import Claim, count
from pyramidions.measure.cost import Lengths
from pyramidions.measure.parts import Part


def _attention(**options: int) -> dict[str, Any]:
    return {"self_attention_args": dumps(options)}


def _lsh(**options: int) -> dict[str, Any]:
    return _attention(local_heads=0, **options)


_SELF, _CROSS = Part.ENCODER_ATTENTION, Part.CROSS_ATTENTION
_N: dict[str, Any] = {"source": 4096}
_2N: dict[str, Any] = {"source": 8192}
_WIDE = {"embed_dim": 1024}
_HALF_BLOCK, _WHOLE_BLOCK = _attention(block_size=256), _attention(block_size=512)
_K, _2K = {"pooling_lengths": "None,512"}, {"pooling_lengths": "None,1024"}
_PYRAMID, _2PYRAMID = {"pooling_lengths": "1024,512"}, {"pooling_lengths": "2048,1024"}
_POWER = {"self_attention": "full", "self_attention_args": "{}"}
_EFFICIENT = _attention(local_heads=0)
_FAR = "no local heads"
_HASHED = "no local heads; with hashing into n/m buckets, which is itself of h n n d / m"
_C = "pooling lengths grow with n, so that c stays"


def orders() -> list[Claim]:
    """Return the growth of scores and mixes for every row of table 1 that can be built: all but Linformer.

    Pietruszka et al. 2022, table 1: l layers, n input tokens, d width, t target tokens, m tokens that one attends to,
    h hashes, k pooled representations, c effective layers.
    """
    return [
        _growth("Vanilla, l n n d", "n", _SELF, 4, "vanilla", _N, _2N),
        _growth("Vanilla, l n n d", "l", _SELF, 2, "vanilla", {}, {"encoder_layers": 4}),
        _growth("Vanilla, l n n d", "d", _SELF, 2, "vanilla", {}, _WIDE),
        _growth("Vanilla, t n d", "n", _CROSS, 2, "vanilla", _N, _2N),
        _growth("Vanilla, t n d", "t", _CROSS, 2, "vanilla", {}, {"target": 1024}),
        _growth("Sparse, l m n d", "n", _SELF, 2, "blockwise", _N, _2N),
        _growth("Sparse, l m n d", "m", _SELF, 2, "blockwise", _HALF_BLOCK, _WHOLE_BLOCK),
        _growth("LSH, l m h n d", "n", _SELF, 2, "lsh", _N, _2N, _HASHED, **_lsh()),
        _growth("LSH, l m h n d", "m", _SELF, 2, "lsh", _lsh(), _lsh(bucket_size=128), _HASHED),
        _growth("LSH, l m h n d", "h", _SELF, 2, "lsh", _lsh(), _lsh(num_hashes=8), _HASHED),
        _growth("Efficient, l n d d", "n", _SELF, 2, "efficient", _N, _2N, _FAR, **_EFFICIENT),
        _growth("Efficient, l n d d", "d", _SELF, 4, "efficient", {}, _WIDE, _FAR, **_EFFICIENT),
        _growth("PoWER, c n n d", "n", _SELF, 4, "power", _N | _PYRAMID, _2N | _2PYRAMID, _C, **_POWER),
        _growth("Transpooler, l m n d", "n", _SELF, 2, "transpooler", _N, _2N),
        _growth("Transpooler, l m n d", "m", _SELF, 2, "transpooler", _HALF_BLOCK, _WHOLE_BLOCK),
        _growth("Transpooler, t k d", "k", _CROSS, 2, "transpooler", _K, _2K),
        _growth("Transpooler, t k d", "n", _CROSS, 1, "transpooler", _N, _2N),
        _growth("Pyramidion, c m n d", "n", _SELF, 2, "pyramidion", _N | _PYRAMID, _2N | _2PYRAMID, _C),
        _growth("Pyramidion, c m n d", "m", _SELF, 2, "pyramidion", _HALF_BLOCK, _WHOLE_BLOCK),
        _growth("Pyramidion, t k d", "k", _CROSS, 2, "pyramidion", _PYRAMID, _2PYRAMID),
        _growth("Pyramidion, t k d", "n", _CROSS, 1, "pyramidion", _N, _2N),
    ]


def _growth(
    row: str,
    letter: str,
    part: Part,
    factor: int,
    preset: str,
    before: dict[str, Any],
    after: dict[str, Any],
    remark: str = "",
    **shared: Any,
) -> Claim:
    """Return what doubling one letter of an order does.

    Args:
        row: the model and its order, in the table's letters.
        letter: what is doubled.
        part: what the order is of.
        factor: by how much it should grow.
        preset: our model.
        before: the preset's overrides, and "source" and "target" for lengths.
        after: likewise, with the letter doubled.
        remark: what the count holds beside scores and mixes, or assumes.
        shared: overrides of both.
    """
    grown = _counted(preset, part, **after, **shared) / _counted(preset, part, **before, **shared)
    return Claim(f"{row}: {letter}", f"{factor}x", grown, remark)


def _counted(preset: str, part: Part, source: int = 8192, target: int = 512, **overrides: Any) -> int:
    return count(preset, Lengths(source, target), **overrides)[part]

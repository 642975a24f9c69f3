"""What the options of each kind of part may be: an unknown one and one that means nothing are refused by a sentence."""

import math
import re
from typing import Any

import pytest
from small_parts import SETTING
from tables import for_each

from pyramidions.base.registry import Registry
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.boundaries import BOUNDARIES
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import RECURRENCE
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.segments import SEGMENT_UPSAMPLING, SEGMENTS
from pyramidions.nn.stack import STACK
from pyramidions.nn.upsampling import UPSAMPLING

REGISTRIES: list[Registry[Any]] = [
    *(ATTENTION, BOUNDARIES, DECODER, FEED_FORWARD, OUTPUT, POOLING, POSITIONS, PROJECTIONS, RECURRENCE, SCORER),
    *(SEGMENTS, SEGMENT_UPSAMPLING, STACK, UPSAMPLING),
]


@for_each(("registry", "kind"), [(registry, kind) for registry in REGISTRIES for kind in registry.names])
def test_an_unknown_option_is_an_error_that_names_what_has_none_such(registry: Registry[Any], kind: str) -> None:
    with pytest.raises(ValueError, match=rf"^\w+ \({registry.axis} '{kind}'\) has no option 'blok_size'; it knows "):
        registry.build(kind, {"blok_size": 3})


CONVOLUTIONS = [
    ({"modules": 3}, "`embed_dim` (8) must be divisible by `modules` (3)."),
    ({"modules": 0}, "`modules` must be at least 1, but is 0."),
    ({"modules": 2, "kernel": 2}, "`kernel` must be odd and at least 1, but is 2."),
    ({"modules": 2, "value_kernel": -1}, "`value_kernel` must be odd and at least 1, but is -1."),
    ({"modules": 2, "length_kernel": 0}, "`length_kernel` must be at least 1, but is 0."),
]


@for_each(
    ("registry", "kind", "options", "sentence"),
    [
        (ATTENTION, "adaptive_span", {"max_window": 0}, "`max_window` must be even and at least 2, but is 0."),
        (ATTENTION, "adaptive_span", {"max_window": 9}, "`max_window` must be even and at least 2, but is 9."),
        (ATTENTION, "adaptive_span", {"ramp": 0}, "`ramp` must be at least 1, but is 0."),
        (ATTENTION, "adaptive_span", {"penalty": -1.0}, "`penalty` must be at least 0, but is -1.0."),
        (ATTENTION, "adaptive_span", {"penalty": math.nan}, "`penalty` must be at least 0, but is nan."),
        (ATTENTION, "bigbird", {"block_size": 0}, "`block_size` must be at least 1, but is 0."),
        (ATTENTION, "bigbird", {"window_blocks": 2}, "`window_blocks` must be odd and at least 1, but is 2."),
        (ATTENTION, "bigbird", {"global_blocks": -1}, "`global_blocks` must be at least 0, but is -1."),
        (ATTENTION, "bigbird", {"random_blocks": -1}, "`random_blocks` must be at least 0, but is -1."),
        (ATTENTION, "blockwise", {"block_size": 0}, "`block_size` must be at least 1, but is 0."),
        (
            ATTENTION,
            "bucketed",
            {"furthest": 16},
            "`furthest` must be above half of the `buckets` (16), but is 16.",
        ),
        *(
            (ATTENTION, "lsh", {"num_buckets": wrong}, f"`num_buckets` must be even and at least 2, but is {wrong}.")
            for wrong in (0, 1, 3, -2)
        ),
        (ATTENTION, "hepos", {"stride": 0}, "`stride` must be at least 1, but is 0."),
        (ATTENTION, "linformer", {"max_length": 9, "compressed": 0}, "`compressed` must be at least 1, but is 0."),
        (ATTENTION, "pooled_blockwise", {"padding": 18}, "`padding` must be below `window` (18), but is 18."),
        (ATTENTION, "pooled_blockwise", {"stride": 19}, "`stride` must be at most `window` (18), but is 19."),
        (ATTENTION, "pooled_blockwise", {"window": 0}, "`window` must be at least 1, but is 0."),
        (ATTENTION, "sinkhorn", {"bucket_size": 0}, "`bucket_size` must be at least 1, but is 0."),
        (ATTENTION, "sinkhorn", {"iterations": 0}, "`iterations` must be at least 1, but is 0."),
        (ATTENTION, "sinkhorn", {"temperature": 0.0}, "`temperature` must be above 0, but is 0.0."),
        (ATTENTION, "sliding_window", {"window": 3}, "`window` must be even and at least 2, but is 3."),
        (ATTENTION, "sliding_window", {"window": 0}, "`window` must be even and at least 2, but is 0."),
        (ATTENTION, "sliding_window", {"dilation": 0}, "`dilation` must be at least 1, but is 0."),
        (ATTENTION, "sliding_window", {"dilated_heads": -1}, "`dilated_heads` must be at least 0, but is -1."),
        (
            ATTENTION,
            "sliding_window",
            {"dilation": 2},
            "`dilation` above 1 and `dilated_heads` above 0 need each other, but are 2 and 0.",
        ),
        (ATTENTION, "strided", {"stride": 0}, "`stride` must be at least 1, but is 0."),
        (ATTENTION, "strided", {"window": 0}, "`window` must be even and at least 2, but is 0."),
        (ATTENTION, "strided", {"window": 7}, "`window` must be even and at least 2, but is 7."),
        (BOUNDARIES, "fixed", {"factor": 1}, "`factor` must be at least 2, but is 1."),
        (BOUNDARIES, "fixed", {"factor": 0}, "`factor` must be at least 2, but is 0."),
        (BOUNDARIES, "gumbel", {"prior": 0.0}, "`prior` must be above 0 and below 1, but is 0.0."),
        (BOUNDARIES, "gumbel", {"prior": 1.5}, "`prior` must be above 0 and below 1, but is 1.5."),
        (BOUNDARIES, "gumbel", {"temperature": 0.0}, "`temperature` must be above 0, but is 0.0."),
        (BOUNDARIES, "unigram", {"threshold": 1.0}, "`threshold` must be above 0 and below 1, but is 1.0."),
        (BOUNDARIES, "routing", {"factor": 1.0}, "`factor` must be above 1, but is 1.0."),
        (BOUNDARIES, "routing", {"weight": 0.0}, "`weight` must be above 0, but is 0.0."),
        (BOUNDARIES, "entropy", {"window": 0}, "`window` must be at least 1, but is 0."),
        (BOUNDARIES, "unigram", {"loss": "thrice"}, "`loss` must be one of logits, twice, but is 'thrice'."),
        (FEED_FORWARD, "dense", {"chunk_size": -1}, "`chunk_size` must be at least 0, but is -1."),
        (FEED_FORWARD, "experts", {"experts": 5}, "`ffn_embed_dim` (16) must be divisible by `experts` (5)."),
        (FEED_FORWARD, "experts", {"experts": 0}, "`experts` must be at least 1, but is 0."),
        (FEED_FORWARD, "experts", {"temperature": -0.1}, "`temperature` must be at least 0, but is -0.1."),
        (FEED_FORWARD, "experts", {"quantized": -0.5}, "`quantized` must be from 0 to 1, but is -0.5."),
        (FEED_FORWARD, "sparse", {"block_size": 5}, "`ffn_embed_dim` (16) must be divisible by `block_size` (5)."),
        (FEED_FORWARD, "sparse", {"block_size": 32}, "`ffn_embed_dim` (16) must be divisible by `block_size` (32)."),
        (FEED_FORWARD, "sparse", {"block_size": 0}, "`block_size` must be at least 1, but is 0."),
        (FEED_FORWARD, "sparse", {"rank": 0}, "`rank` must be at least 1, but is 0."),
        (FEED_FORWARD, "sparse", {"temperature": -0.1}, "`temperature` must be at least 0, but is -0.1."),
        (FEED_FORWARD, "sparse", {"temperature": math.inf}, "`temperature` must be a number, but is inf."),
        (FEED_FORWARD, "sparse", {"quantized": 1.1}, "`quantized` must be from 0 to 1, but is 1.1."),
        (FEED_FORWARD, "sparse", {"quantized": math.nan}, "`quantized` must be from 0 to 1, but is nan."),
        (
            FEED_FORWARD,
            "sparse",
            {"activation_dropout": 1.0},
            "`activation_dropout` must be at least 0 and below 1, but is 1.0.",
        ),
        (
            ATTENTION,
            "block_global",
            {"block_size": 5},
            "`block_size` of staggered blocks must be even, but is 5.",
        ),
        (ATTENTION, "efficient", {"local_heads": -1}, "`local_heads` must be at least 0, but is -1."),
        (ATTENTION, "efficient", {"local_window": 0}, "`local_window` must be even and at least 2, but is 0."),
        (ATTENTION, "segments", {"segment_length": 0}, "`segment_length` must be at least 1, but is 0."),
        (
            ATTENTION,
            "linformer",
            {"max_length": None},
            "Linformer needs `max_length`, to which its weights are tied, but it is not known here.",
        ),
        (ATTENTION, "lsh", {"bucket_size": 0}, "`bucket_size` must be at least 1, but is 0."),
        (ATTENTION, "lsh", {"num_hashes": 0}, "`num_hashes` must be at least 1, but is 0."),
        (ATTENTION, "lsh", {"local_heads": -1}, "`local_heads` must be at least 0, but is -1."),
        (ATTENTION, "lsh", {"local_window": 0}, "`local_window` must be even and at least 2, but is 0."),
        (ATTENTION, "lsh", {"local_window": 3}, "`local_window` must be even and at least 2, but is 3."),
        (ATTENTION, "lsh", {"chunk_buckets": 0}, "`chunk_buckets` must be at least 1, but is 0."),
        (ATTENTION, "lsh", {"chunks_after": 2}, "`chunks_after` must be from 0 to 1, but is 2."),
        (ATTENTION, "lsh", {"hash_factors": 3}, "`hash_factors` must be from 1 to 2, but is 3."),
        (RECURRENCE, "sru", {"dim": 0}, "`dim` must be at least 1, but is 0."),
        (RECURRENCE, "sru", {"layers": 0}, "`layers` must be at least 1, but is 0."),
        (POSITIONS, "sinusoidal", {"embed_dim": 7}, "`embed_dim` must be even and at least 4, but is 7."),
        (POOLING, "markers", {"k": 0}, "`k` must be at least 1, but is 0."),
        (POOLING, "segments", {"k": 0, "window": 4}, "`k` must be at least 1, but is 0."),
        (
            POOLING,
            "segments",
            {"k": 2, "window": 4, "prior": 1.0},
            "`prior` must be above 0 and below 1, but is 1.0.",
        ),
        (
            POOLING,
            "soft_topk",
            {"k": 4, "scorer": SCORER.build("index", {"stride": 1}), "base": 1.0},
            "`base` must be above 1, but is 1.0.",
        ),
        *((PROJECTIONS, kind, *row) for kind in ("conv", "multiplicative_conv") for row in CONVOLUTIONS),
    ],
)
def test_an_option_that_means_nothing_is_refused(
    registry: Registry[Any], kind: str, options: dict[str, Any], sentence: str
) -> None:
    given = {key: value for key, value in SETTING.items() if key not in options}
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        registry.build(kind, options, **given)

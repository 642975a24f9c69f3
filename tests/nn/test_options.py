"""What the options of each kind of part may be: an unknown one and one that means nothing are refused by its name."""

import math
from typing import Any

import pytest
from small_parts import SETTING

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


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.axis)
def test_no_kind_takes_an_option_that_it_does_not_know(registry: Registry[Any]) -> None:
    for kind in registry.names:
        with pytest.raises(ValueError, match="blok_size"):
            registry.build(kind, {"blok_size": 3})


#: by kind: each option, and values of which each means nothing
WRONG: list[tuple[Registry[Any], str, dict[str, tuple[Any, ...]]]] = [
    (ATTENTION, "adaptive_span", {"max_window": (0, 9), "ramp": (0,), "penalty": (-1.0, math.nan)}),
    (ATTENTION, "bigbird", {"block_size": (0,), "window_blocks": (2,), "global_blocks": (-1,), "random_blocks": (-1,)}),
    (ATTENTION, "block_global", {"block_size": (5,)}),
    (ATTENTION, "blockwise", {"block_size": (0,)}),
    (ATTENTION, "bucketed", {"furthest": (16,)}),
    (ATTENTION, "efficient", {"local_heads": (-1,), "local_window": (0,)}),
    (ATTENTION, "hepos", {"stride": (0,)}),
    (ATTENTION, "linformer", {"max_length": (None,)}),
    (ATTENTION, "lsh", {"num_buckets": (0, 3), "bucket_size": (0,), "num_hashes": (0,), "local_heads": (-1,)}),
    (ATTENTION, "lsh", {"local_window": (0, 3), "chunk_buckets": (0,), "chunks_after": (2,), "hash_factors": (3,)}),
    (ATTENTION, "pooled_blockwise", {"padding": (18,), "stride": (19,), "window": (0,)}),
    (ATTENTION, "segments", {"segment_length": (0,)}),
    (ATTENTION, "sinkhorn", {"bucket_size": (0,), "iterations": (0,), "temperature": (0.0,)}),
    (ATTENTION, "sliding_window", {"window": (0, 3), "dilation": (0, 2), "dilated_heads": (-1,)}),
    (ATTENTION, "strided", {"stride": (0,), "window": (0, 7)}),
    (BOUNDARIES, "fixed", {"factor": (1,)}),
    (BOUNDARIES, "gumbel", {"prior": (0.0, 1.5), "temperature": (0.0,)}),
    (BOUNDARIES, "unigram", {"threshold": (1.0,), "loss": ("thrice",)}),
    (BOUNDARIES, "routing", {"factor": (1.0,), "weight": (0.0,)}),
    (BOUNDARIES, "entropy", {"window": (0,)}),
    (FEED_FORWARD, "dense", {"chunk_size": (-1,)}),
    (FEED_FORWARD, "experts", {"experts": (0, 5), "temperature": (-0.1,), "quantized": (-0.5,)}),
    (FEED_FORWARD, "sparse", {"block_size": (0, 5, 32), "rank": (0,), "temperature": (-0.1, math.inf)}),
    (FEED_FORWARD, "sparse", {"quantized": (1.1, math.nan), "activation_dropout": (1.0,)}),
    (POOLING, "markers", {"k": (0,)}),
    (POSITIONS, "sinusoidal", {"embed_dim": (7,)}),
    (PROJECTIONS, "conv", {"modules": (0, 3), "kernel": (2,), "value_kernel": (-1,), "length_kernel": (0,)}),
    (PROJECTIONS, "multiplicative_conv", {"modules": (0, 3), "kernel": (2,), "length_kernel": (0,)}),
    (RECURRENCE, "sru", {"dim": (0,), "layers": (0,)}),
]


@pytest.mark.parametrize(("registry", "kind", "options"), WRONG)
def test_a_value_that_means_nothing_is_refused_by_the_name_of_its_option(
    registry: Registry[Any], kind: str, options: dict[str, tuple[Any, ...]]
) -> None:
    for option, values in options.items():
        given = {key: value for key, value in SETTING.items() if key != option}
        for value in values:
            with pytest.raises(ValueError, match=f"`{option}`"):
                registry.build(kind, {option: value}, **given)


def test_values_that_do_not_go_together_are_refused_by_their_names() -> None:
    for kind, options, name in (
        ("linformer", {"max_length": 9, "compressed": 0}, "compressed"),
        ("sliding_window", {"dilation": 2}, "dilated_heads"),
    ):
        with pytest.raises(ValueError, match=f"`{name}`"):
            ATTENTION.build(kind, options, **SETTING)
    for kind, options, name in (
        ("segments", {"k": 0, "window": 4}, "k"),
        ("segments", {"k": 2, "window": 4, "prior": 1.0}, "prior"),
        ("soft_topk", {"k": 4, "scorer": SCORER.build("index", {"stride": 1}), "base": 1.0}, "base"),
    ):
        with pytest.raises(ValueError, match=f"`{name}`"):
            POOLING.build(kind, options, **SETTING)

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from refusals import refused
from torch import Tensor

from pyramidions.models import PRESETS, PyramidionConfig, preset
from pyramidions.nn.attention import BlockwiseAttention, Feature, supporting
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import RECURRENCE
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.stack import STACK
from pyramidions.runs.measure import CostPart, Lengths, compare, cost_of, shrink

TINY = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
FOUR_TO_THREE = Lengths(source=4, target=3, vocab_size=10)


def small(name: str, lengths: Lengths, **overrides: Any) -> tuple[PyramidionConfig, Lengths]:
    """Return a small instance of a preset with nothing dropped out, unless told otherwise."""
    output = {"output": overrides["output"]} if "output" in overrides else {}
    config, lengths = shrink(preset(name, max_source_positions=2048, **output), lengths)
    return replace(config, **overrides), lengths


def test_a_tiny_vanilla_multiplies_as_counted_by_hand() -> None:
    counted = cost_of(preset("vanilla", **TINY), FOUR_TO_THREE)
    assert counted.products == {
        CostPart.EMBEDDING_AND_NORMS: 0,
        CostPart.ENCODER_ATTENTION: 2 * 4 * 4 * 8,
        CostPart.ENCODER_PROJECTIONS: 4 * 4 * 8 * 8,
        CostPart.ENCODER_FEED_FORWARD: 2 * 4 * 8 * 16,
        CostPart.POOLING: 0,
        CostPart.DECODER_ATTENTION: 2 * 3 * 3 * 8,
        CostPart.CROSS_ATTENTION: 2 * 3 * 4 * 8,
        CostPart.DECODER_PROJECTIONS: 6 * 3 * 8 * 8,
        CostPart.MEMORY_PROJECTIONS: 2 * 4 * 8 * 8,
        CostPart.DECODER_FEED_FORWARD: 2 * 3 * 8 * 16,
        CostPart.OUTPUT: 3 * 8 * 10,
    }
    assert counted.total() == 256 + 1024 + 1024 + 144 + 192 + 1152 + 512 + 768 + 240


def test_sparse_projections_and_output_multiply_as_counted_by_hand() -> None:
    fields = dict.fromkeys(("encoder_projections", "decoder_projections", "cross_projections"), "multiplicative_conv")
    config = preset("vanilla", **TINY, **fields, output="multiplicative(modules=2)")
    products = cost_of(config, FOUR_TO_THREE).products
    # Of two modules of four numbers: a filter sees three tokens, of queries and keys three modules.
    multiplicative, query, value = 8 * 8, 3 * 3 * 4 * 8, 3 * 4 * 8
    assert products[CostPart.ENCODER_PROJECTIONS] == 4 * (multiplicative + 2 * query + value)
    # Self-attention, and queries to the memory.
    assert products[CostPart.DECODER_PROJECTIONS] == 3 * (multiplicative + 2 * query + value + multiplicative + query)
    assert products[CostPart.MEMORY_PROJECTIONS] == 4 * (multiplicative + query + value)
    assert products[CostPart.OUTPUT] == 3 * 8 * 10


def test_a_tiny_vanilla_keeps_what_was_counted_by_hand() -> None:
    config = preset("vanilla", **TINY, dropout=0.0, activation_dropout=0.0)
    assert cost_of(config, FOUR_TO_THREE).activations == {
        # token numbers, and of five norms: input, mean and standard deviation
        CostPart.EMBEDDING_AND_NORMS: 8 * (4 + 3) + 4 * (2 * 4 + 3 * 3) * (8 + 2),
        # q, k, v and output; the log-sum-exp of each head; no mask, since nothing is padding
        CostPart.ENCODER_ATTENTION: 4 * (4 * 4 * 8 + 4 * 2),
        CostPart.ENCODER_PROJECTIONS: 4 * 4 * 8,
        CostPart.ENCODER_FEED_FORWARD: 4 * 4 * (8 + 16),
        CostPart.POOLING: 0,
        CostPart.DECODER_ATTENTION: 4 * (4 * 3 * 8 + 3 * 2),
        CostPart.CROSS_ATTENTION: 4 * (2 * 3 * 8 + 2 * 4 * 8 + 3 * 2),
        CostPart.DECODER_PROJECTIONS: 4 * 2 * 3 * 8,
        CostPart.MEMORY_PROJECTIONS: 4 * 4 * 8,
        CostPart.DECODER_FEED_FORWARD: 4 * 3 * (8 + 16),
        CostPart.OUTPUT: 4 * 3 * (8 + 10) + 8 * 3,
    }


def test_dropout_keeps_its_masks_but_none_after_relu() -> None:
    for activation, beside in (("relu", 0), ("gelu", 4 * 16)):
        bare, dropped = (
            cost_of(
                preset("vanilla", **TINY, dropout=p, activation_dropout=p, feed_forward=f"dense({activation=})"),
                FOUR_TO_THREE,
            ).activations
            for p in (0.0, 0.1)
        )
        # Both embeddings, two sublayers of the encoder and three of the decoder.
        assert dropped[CostPart.EMBEDDING_AND_NORMS] - bare[CostPart.EMBEDDING_AND_NORMS] == (3 * 4 + 4 * 3) * 8
        assert dropped[CostPart.ENCODER_FEED_FORWARD] - bare[CostPart.ENCODER_FEED_FORWARD] == beside


def test_a_tournament_multiplies_each_embedding_once_and_a_batch_counts_twice() -> None:
    config = preset("transpooler", **{**TINY, "pooling_lengths": "3"})
    # Six tokens fill a tournament of 3 * 2; the scorer is a product with a vector.
    counted = cost_of(config, Lengths(6, 3, batch=2, vocab_size=10))
    assert counted.weighted[CostPart.POOLING] == 2 * 6 * 8
    assert counted.products[CostPart.POOLING] == 2 * 6 * 8
    assert counted.multiplications()[CostPart.POOLING] == 2 * (6 + 6) * 8
    assert counted.products[CostPart.CROSS_ATTENTION] == 2 * 2 * 3 * 3 * 8
    # Seven need 3 * 4 slots; three are handed on as they are.
    assert cost_of(config, Lengths(7, 3, vocab_size=10)).weighted[CostPart.POOLING] == 12 * 8
    assert cost_of(config, Lengths(3, 3, vocab_size=10)).weighted[CostPart.POOLING] == 0


def padded(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple


# By hand: multiplications of scores and mixes of one layer with 8 heads of 4 dimensions on 101 tokens.
ATTENTION_BY_HAND = {
    "full": ("", 2 * 8 * 101 * 101 * 4),
    # Blocks of 32 tokens, the last of them filled up with padding.
    "blockwise": ("(block_size=32)", 2 * 8 * padded(101, 32) * 32 * 4),
    # 21 blocks of 5 tokens: the first five see as many, the others four; the two ends see everything.
    "bigbird": (
        "(block_size=5, window_blocks=1, random_blocks=1)",
        2 * 8 * (5 * 5 + 16 * 4) * 5 * 5 * 4 + 2 * 8 * 2 * 5 * padded(101, 5) * 4,
    ),
    # Two heads see chunks of 8 tokens and their neighbours; the other six multiply E x E matrices.
    "efficient": ("(local_heads=2, local_window=16)", 2 * 2 * padded(101, 8) * 3 * 8 * 4 + 2 * 6 * 101 * 4 * 4),
    # Keys and values are compressed to 12 each.
    "linformer": ("(compressed=12)", 2 * 8 * 101 * 12 * 4 + 2 * 8 * 101 * 12 * 4),
    # Two rounds of buckets of 16 tokens: products with 7 columns (half the buckets), and chunks that see one back.
    "lsh": (
        "(local_heads=2, local_window=16, bucket_size=16, num_hashes=2)",
        2 * 2 * padded(101, 8) * 3 * 8 * 4 + 2 * 6 * padded(101, 16) * 4 * (7 + 2 * 2 * 16),
    ),
    # Rows 0 to 63 see keys up to 71, and meet distances from 63 to -71; the others see those from 56.
    "relative_window": ("(window=16)", 2 * 8 * (64 * 72 + 37 * 45) * 4 + 8 * (64 * 135 + 37 * 81) * 4),
    # Seven buckets of 16 tokens: scores, mixtures of keys and values, and how much of those is real; then attention.
    "sinkhorn": ("(bucket_size=16)", 8 * 7 * 7 * (4 + 2 * 16 * 4 + 16) + 2 * 8 * padded(101, 16) * 2 * 16 * 4),
    # Chunks of 8 tokens, half a window, and their neighbours; two heads see 51 tokens of each parity.
    "sliding_window": (
        "(window=16, dilation=2, dilated_heads=2)",
        2 * 6 * padded(101, 8) * 3 * 8 * 4 + 2 * 2 * 2 * padded(51, 8) * 3 * 8 * 4,
    ),
}
# The same of a decoder's layer.
CAUSAL_BY_HAND = {
    # Two heads see chunks of 8 tokens and the one before. In two rounds six are multiplied with 4 columns, half the
    # buckets, and meet chunks of 16 and the one before.
    "lsh": (
        "(local_heads=2, local_window=16, bucket_size=16, num_hashes=2, num_buckets=8)",
        2 * 2 * padded(101, 8) * 2 * 8 * 4 + 2 * 6 * (101 * 4 * 4 + padded(101, 16) * 2 * 2 * 16 * 4),
    ),
    # In tiles of up to 64 rows, which see keys up to their last.
    "relative_window": ("(window=16)", 2 * 8 * (64 * 64 + 37 * 45) * 4 + 8 * (64 * 127 + 37 * 81) * 4),
    # Chunks of eight see themselves and the one before.
    "sliding_window": ("(window=16)", 2 * 8 * padded(101, 8) * 16 * 4),
}


@pytest.mark.parametrize(
    ("field", "kind"),
    [("self_attention", kind) for kind in ATTENTION_BY_HAND]
    + [("decoder_self_attention", kind) for kind in CAUSAL_BY_HAND],
)
def test_attention_multiplies_as_counted_by_hand(field: str, kind: str) -> None:
    encodes = field == "self_attention"
    options, by_hand = (ATTENTION_BY_HAND if encodes else CAUSAL_BY_HAND)[kind]
    shape = {"embed_dim": 32, "num_heads": 8, "encoder_layers": 1, "decoder_layers": 1}
    config = preset("vanilla", **shape, **{field: f"{kind}{options}"})
    part = CostPart.ENCODER_ATTENTION if encodes else CostPart.DECODER_ATTENTION
    lengths = Lengths(*(101, 3) if encodes else (3, 101), vocab_size=10)
    assert cost_of(config, lengths).products[part] == by_hand


@pytest.mark.parametrize(("stride", "source", "pooled"), [(2, 101, None), (4, 104, None), (4, 104, "32,None")])
def test_strides_divide_cross_attention_and_the_projections_of_the_memory(
    stride: int, source: int, pooled: str | None
) -> None:
    shape = {**TINY, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "pooling_lengths": pooled}
    config = preset("transpooler", **shape, cross_attention=f"hepos(stride={stride})")
    products = cost_of(config, Lengths(source, 3, vocab_size=10)).products
    read = padded(source if pooled is None else 32, stride) // stride
    # Two layers: keys and values, scores and mixes of three tokens, of 8 numbers each.
    assert products[CostPart.MEMORY_PROJECTIONS] == 2 * 2 * read * 8 * 8
    assert products[CostPart.CROSS_ATTENTION] == 2 * 2 * read * 3 * 8


def test_parameters_are_those_of_the_paper() -> None:
    for name, millions in (("vanilla", 31.5), ("deep_blockwise", 124.4), ("deep_pyramidion", 124.4)):
        assert round(cost_of(preset(name), Lengths()).parameters / 1e6, 1) == millions


#: of presets, those that are unlike all others; the kinds of parts are below
UNLIKE = ("deep_pyramidion", "discourse_pointer", "look_back", "reformer", "terraformer", "hmnet")


@pytest.mark.parametrize(
    "name", [name if name in UNLIKE else pytest.param(name, marks=pytest.mark.nightly) for name in PRESETS]
)
def test_every_preset_costs_what_is_counted_in_a_run(name: str) -> None:
    comparison = compare(*small(name, Lengths(1777, 80, batch=2)))
    assert comparison.agrees(), comparison
    assert sum(comparison.measured.products.values()) > 0


#: options that fit the small widths, and as many segments as there may be
OPTIONS = {
    ("feed_forward", "sparse"): "(block_size=16)",
    ("feed_forward", "experts"): "(experts=16)",
    ("pooling", "segments"): "(prior=0.999)",
}


#: Axes of kinds that go together.
TOGETHER = {
    "self_attention": supporting(Feature.ITSELF),
    "cross_attention": supporting(Feature.OTHERS),
    "decoder_self_attention": supporting(Feature.STEPS),
    "feed_forward": FEED_FORWARD.names,
    "stack": STACK.names,
    **dict.fromkeys(("encoder_projections", "decoder_projections", "cross_projections"), PROJECTIONS.names),
    "output": OUTPUT.names,
}
KINDS = [
    # Shifted, since segments do not go with convolutions.
    *(
        {axis: sorted(kinds)[(row + (axis != "self_attention")) % len(kinds)] for axis, kinds in TOGETHER.items()}
        for row in range(17)
    ),
    # Those of transpooler are in the rows before.
    *({"pooling": kind} for kind in POOLING.names if kind != "soft_topk"),
    *({"scorer": kind} for kind in SCORER.names if kind != "linear"),
    *({"decoder": kind, "recurrence": "sru"} for kind in DECODER.names),
]


def test_all_kinds_are_in_a_run() -> None:
    for axis, kinds in (*TOGETHER.items(), ("recurrence", RECURRENCE.names)):
        assert {chosen.get(axis) for chosen in KINDS} >= set(kinds)


@pytest.mark.parametrize("chosen", KINDS)
def test_every_kind_of_every_registry_costs_what_is_counted_in_a_run(chosen: dict[str, str]) -> None:
    shape: dict[str, Any] = {"self_attention": "full", "pooling_lengths": "32,None"}
    shape |= {axis: kind + OPTIONS.get((axis, kind), "") for axis, kind in chosen.items()}
    shape["normalize_before"] = chosen.get("stack") == "reversible"
    comparison = compare(*small("transpooler", Lengths(1777, 80, batch=2), **shape))
    assert comparison.agrees(), comparison


@pytest.mark.parametrize(
    "overrides",
    [
        {"pooling": "hard_topk", "scorer": "nonlinear(dropout=0.1)"},
        {"scorer": "embedding", "pooling_lengths": "33,33"},
        {"pooling": "soft_topk(base=None)", "normalize_before": True},
        {"pooling": "soft_topk(sort=False)", "checkpoint_activations": True},
        {"pooling_lengths": "500,7", "dropout": 0.1, "activation_dropout": 0.2},
        {"activation_dropout": 0.2, "feed_forward": "dense(activation='gelu')"},
        {"self_attention": "lsh(local_heads=9, local_window=10)", "feed_forward": "dense(chunk_size=100)"},
        {"self_attention": "lsh(local_heads=0, bucket_size=200)"},
        {"self_attention": "efficient(local_heads=0)"},
    ],
)
def test_every_choice_costs_what_is_counted_in_a_run(overrides: dict[str, Any]) -> None:
    comparison = compare(*small("pyramidion", Lengths(1777, 80, batch=2), **overrides))
    assert comparison.agrees(), comparison


@pytest.mark.parametrize("name", ["pyramidion", "lsh"])
def test_a_document_of_one_token_costs_what_is_counted_in_a_run(name: str) -> None:
    comparison = compare(*small(name, Lengths(1, 1)))
    assert comparison.counted.lengths == Lengths(1, 1, vocab_size=611)
    assert comparison.agrees(), comparison


def test_a_small_instance_has_blocks_that_fit_its_width() -> None:
    parts = "sparse | dense | experts(experts=10, quantized=0.1) | sparse(block_size=8)"
    config, lengths = shrink(preset("vanilla", feed_forward=parts, num_heads=2), Lengths(64, 16))
    assert config.ffn_embed_dim == 24
    small_ones = "sparse(block_size=8) | dense | experts(experts=2, quantized=0.1) | sparse(block_size=8)"
    assert config.feed_forward == small_ones
    assert compare(config, lengths).agrees()


def test_a_part_that_does_other_work_on_a_gpu_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = BlockwiseAttention.forward

    def shirk(self: BlockwiseAttention, q: Tensor, k: Tensor, v: Tensor, *rest: Any, **named: Any) -> Tensor:
        return v if q.device.type == "cuda" else forward(self, q, k, v, *rest, **named)

    monkeypatch.setattr(BlockwiseAttention, "forward", shirk)
    comparison = compare(*small("blockwise", Lengths(2048, 112)))
    assert not comparison.agrees()
    counted, measured = (cost.products for cost in comparison)
    assert [part for part in CostPart if counted[part] != measured[part]] == [CostPart.ENCODER_ATTENTION]


def test_work_that_depends_on_values_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda x: x[x > 0],
        lambda x: x * int(x.sum()),
        lambda x: x if x.any() else -x,
    )
    for look in looks:
        monkeypatch.setattr(FEED_FORWARD["dense"], "forward", lambda self, x, *_, look=look: look(x))
        with refused("What this model costs depends on the values that it reads: ", ValueError):
            cost_of(preset("vanilla", **TINY), FOUR_TO_THREE)


def test_an_error_of_the_model_is_not_taken_for_one_of_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FEED_FORWARD["dense"], "forward", lambda self, x, *_: x @ x)
    with pytest.raises(RuntimeError):
        cost_of(preset("vanilla", **TINY), FOUR_TO_THREE)


def test_a_product_with_a_vector_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    # (B, L, D) @ (D,)
    monkeypatch.setattr(FEED_FORWARD["dense"], "forward", lambda self, x, *_: x * (x @ self.fc1.weight[0])[..., None])
    assert cost_of(preset("vanilla", **TINY), FOUR_TO_THREE).products[CostPart.ENCODER_FEED_FORWARD] == 4 * 8


def test_lengths_are_at_least_one() -> None:
    with refused("`target` must be at least 1, but is 0.", ValueError):
        cost_of(preset("vanilla"), Lengths(target=0))


def test_a_small_instance_keeps_the_proportions() -> None:
    config, lengths = shrink(preset("deep_pyramidion"), Lengths(8192, 512, batch=8))
    assert lengths == Lengths(512, 32, batch=2, vocab_size=611)
    assert config.self_attention == "blockwise(block_size=32)"
    assert config.pooling_lengths == "None,128,32,None,None,None"
    assert config.encoder_layers == 6
    config, _ = shrink(preset("transpooler_embedding", scorer="embedding(coordinate=100)"), Lengths())
    assert (config.embed_dim, config.scorer) == (32, "embedding(coordinate=4)")
    # One part for each layer.
    config, _ = shrink(preset("vanilla", self_attention="blockwise(block_size=512) | full"), Lengths())
    assert config.self_attention == "blockwise(block_size=32) | full"
    # A decoder's own attention shrinks alike.
    config, _ = shrink(preset("blockwise", decoder_self_attention="full | lsh"), Lengths())
    assert config.decoder_self_attention == "full | lsh(bucket_size=4, local_window=16)"
    # Modules share the width.
    config, _ = shrink(preset("vanilla", decoder_projections="conv(modules=5)", output="multiplicative"), Lengths())
    assert config.embed_dim == 160
    # Funnel's blocks stay multiples of its window.
    config, _ = shrink(preset("funnel", self_attention="blockwise(block_size=80)"), Lengths(8192, 512))
    assert config.self_attention == "blockwise(block_size=80)"

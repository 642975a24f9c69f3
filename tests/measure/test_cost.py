from dataclasses import replace
from typing import Any

import pytest

from pyramidions.measure import (
    Lengths,
    NotModelledError,
    Part,
    activations,
    claims,
    compare,
    multiplications,
    orders,
    parameters,
    shrink,
)
from pyramidions.measure.kinds import ATTENTION_PRODUCTS, FEED_FORWARD_FORMS, POOLING_FORMS, SCORER_FORMS
from pyramidions.models import PRESETS, PyramidionConfig, preset
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import SCORER

NOT_MODELLED = ("lsh", "efficient", "funnel")
TINY = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
FOUR_TO_THREE = Lengths(source=4, target=3, vocab_size=10)


def small(name: str, lengths: Lengths, **overrides: Any) -> tuple[PyramidionConfig, Lengths]:
    """Return a small instance of a preset with nothing dropped out, unless told otherwise."""
    config, lengths = shrink(preset(name, max_source_positions=2048), lengths)
    return replace(config, **overrides), lengths


def test_a_tiny_vanilla_multiplies_as_counted_by_hand() -> None:
    counted = multiplications(preset("vanilla", **TINY), FOUR_TO_THREE)
    assert counted.products == {
        Part.EMBEDDING_AND_NORMS: 0,
        Part.ENCODER_ATTENTION: 2 * 4 * 4 * 8,
        Part.ENCODER_PROJECTIONS: 4 * 4 * 8 * 8,
        Part.ENCODER_FEED_FORWARD: 2 * 4 * 8 * 16,
        Part.POOLING: 0,
        Part.DECODER_ATTENTION: 2 * 3 * 3 * 8,
        Part.CROSS_ATTENTION: 2 * 3 * 4 * 8,
        Part.DECODER_PROJECTIONS: 6 * 3 * 8 * 8,
        Part.MEMORY_PROJECTIONS: 2 * 4 * 8 * 8,
        Part.DECODER_FEED_FORWARD: 2 * 3 * 8 * 16,
        Part.OUTPUT: 3 * 8 * 10,
    }
    assert counted.total() == 256 + 1024 + 1024 + 144 + 192 + 1152 + 512 + 768 + 240


def test_a_tiny_vanilla_keeps_what_was_counted_by_hand() -> None:
    config = preset("vanilla", **TINY, dropout=0.0, activation_dropout=0.0)
    assert activations(config, FOUR_TO_THREE) == {
        # token numbers, and of five norms: input, mean and standard deviation
        Part.EMBEDDING_AND_NORMS: 8 * (4 + 3) + 4 * (2 * 4 + 3 * 3) * (8 + 2),
        # q, k, v and output; the log-sum-exp of each head; no mask, since nothing is padding
        Part.ENCODER_ATTENTION: 4 * (4 * 4 * 8 + 4 * 2),
        Part.ENCODER_PROJECTIONS: 4 * 4 * 8,
        Part.ENCODER_FEED_FORWARD: 4 * 4 * (8 + 16),
        Part.POOLING: 0,
        Part.DECODER_ATTENTION: 4 * (4 * 3 * 8 + 3 * 2),
        Part.CROSS_ATTENTION: 4 * (2 * 3 * 8 + 2 * 4 * 8 + 3 * 2),
        Part.DECODER_PROJECTIONS: 4 * 2 * 3 * 8,
        Part.MEMORY_PROJECTIONS: 4 * 4 * 8,
        Part.DECODER_FEED_FORWARD: 4 * 3 * (8 + 16),
        Part.OUTPUT: 4 * 3 * (8 + 10) + 8 * 3,
    }


@pytest.mark.parametrize(("activation", "beside"), [("relu", 0), ("gelu", 4 * 16)])
def test_dropout_keeps_its_masks_but_none_after_relu(activation: str, beside: int) -> None:
    options = f'{{"activation": "{activation}"}}'
    bare, dropped = (
        activations(
            preset("vanilla", **TINY, dropout=p, activation_dropout=p, feed_forward_args=options), FOUR_TO_THREE
        )
        for p in (0.0, 0.1)
    )
    # Both embeddings, two sublayers of the encoder and three of the decoder.
    assert dropped[Part.EMBEDDING_AND_NORMS] - bare[Part.EMBEDDING_AND_NORMS] == (3 * 4 + 4 * 3) * 8
    assert dropped[Part.ENCODER_FEED_FORWARD] - bare[Part.ENCODER_FEED_FORWARD] == beside


def test_a_tournament_multiplies_each_embedding_once_and_a_batch_counts_twice() -> None:
    config = preset("transpooler", **{**TINY, "pooling_lengths": "3"})
    # Six tokens fill a tournament of 3 * 2; the scorer is a product with a vector.
    counted = multiplications(config, Lengths(6, 3, batch=2, vocab_size=10))
    assert counted.weighted == 2 * 6 * 8
    assert counted.products[Part.POOLING] == 2 * 6 * 8
    assert counted.by_part()[Part.POOLING] == 2 * (6 + 6) * 8
    assert counted.products[Part.CROSS_ATTENTION] == 2 * 2 * 3 * 3 * 8
    # Seven need 3 * 4 slots; three are handed on as they are.
    assert multiplications(config, Lengths(7, 3, vocab_size=10)).weighted == 12 * 8
    assert multiplications(config, Lengths(3, 3, vocab_size=10)).weighted == 0


@pytest.mark.parametrize(
    ("name", "millions"), [("vanilla", 31.5), ("deep_blockwise", 124.4), ("deep_pyramidion", 124.4)]
)
def test_parameters_are_those_of_the_paper(name: str, millions: float) -> None:
    assert round(parameters(preset(name), 32768) / 1e6, 1) == millions


@pytest.mark.parametrize("lengths", [Lengths(2048, 112), Lengths(1777, 80, batch=2)], ids=["whole", "odd"])
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_costs_what_torch_counts(name: str, lengths: Lengths) -> None:
    comparison = compare(*small(name, lengths))
    assert comparison.agrees(), comparison
    assert sum(pair.measured for pair in comparison.products.values()) > 0
    assert (comparison.saved is not None) == (name not in NOT_MODELLED)


@pytest.mark.parametrize(
    "overrides",
    [
        {"pooling": "gumbel_topk"},
        {"pooling": "iterative_topk"},
        {"pooling": "hard_topk"},
        {"pooling": "hard_topk", "scorer": "nonlinear"},
        {"pooling": "mean"},
        {"pooling": "max"},
        {"scorer": "nonlinear"},
        {"scorer": "embedding", "pooling_lengths": "33,33"},
        {"scorer": "random"},
        {"pooling_args": '{"base": null}'},
        {"pooling_lengths": "33,33"},
        {"pooling_lengths": "500,7"},
        {"normalize_before": True},
        {"feed_forward_args": '{"activation": "gelu"}'},
        {"dropout": 0.1, "activation_dropout": 0.2},
        {"activation_dropout": 0.2, "feed_forward_args": '{"activation": "gelu"}'},
        {"self_attention": "full", "self_attention_args": "{}"},
        {"self_attention": "lsh", "self_attention_args": '{"local_heads": 9, "window": 5}'},
        {"self_attention": "lsh", "self_attention_args": '{"local_heads": 0, "bucket_size": 200}'},
        {"self_attention": "efficient", "self_attention_args": '{"local_heads": 0}'},
    ],
    ids=str,
)
@pytest.mark.parametrize("lengths", [Lengths(2048, 112), Lengths(1777, 80, batch=2)], ids=["whole", "odd"])
def test_every_choice_costs_what_torch_counts(overrides: dict[str, Any], lengths: Lengths) -> None:
    comparison = compare(*small("pyramidion", lengths, **overrides))
    assert comparison.agrees(), comparison


@pytest.mark.parametrize("name", ["pyramidion", "lsh", "efficient", "funnel"])
def test_a_document_of_one_token_costs_what_torch_counts(name: str) -> None:
    comparison = compare(*small(name, Lengths(1, 1)))
    assert comparison.lengths == Lengths(1, 1, vocab_size=61)
    assert comparison.agrees(), comparison


def test_a_wrong_closed_form_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTENTION_PRODUCTS, "blockwise", lambda *_: 1)
    comparison = compare(*small("blockwise", Lengths(2048, 112)))
    assert not comparison.agrees()
    wrong = [part for part, pair in comparison.products.items() if pair.counted != pair.measured]
    assert wrong == [Part.ENCODER_ATTENTION]


def test_every_registered_kind_has_a_closed_form() -> None:
    assert set(ATTENTION_PRODUCTS) == set(ATTENTION.names)
    assert set(FEED_FORWARD_FORMS) == set(FEED_FORWARD.names)
    assert set(POOLING_FORMS) == set(POOLING.names)
    assert set(SCORER_FORMS) == set(SCORER.names)


def test_a_kind_without_a_closed_form_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SCORER_FORMS, "linear")
    with pytest.raises(ValueError, match=r"^The cost of scorer 'linear' has no closed form yet; there is one for "):
        multiplications(preset("transpooler"), Lengths())


def test_lengths_are_at_least_one() -> None:
    with pytest.raises(ValueError, match=r"^`target` must be at least 1, but is 0\.$"):
        multiplications(preset("vanilla"), Lengths(target=0))


@pytest.mark.parametrize(
    ("name", "overrides", "sentence"),
    [
        ("lsh", {}, "The activation memory of `self_attention` lsh is not modelled."),
        ("funnel", {}, "The activation memory of `pooling` funnel is not modelled."),
        (
            "vanilla",
            {"checkpoint_activations": True},
            "The activation memory of `checkpoint_activations` is not modelled.",
        ),
        (
            "transpooler_nonlinear",
            {"scorer_args": '{"dropout": 0.1}'},
            "The activation memory of `scorer_args` with dropout is not modelled.",
        ),
        (
            "transpooler",
            {"pooling_args": '{"sort": false}'},
            "The activation memory of `pooling_args` without sort is not modelled.",
        ),
    ],
)
def test_memory_that_is_not_modelled_is_not_guessed(name: str, overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NotModelledError) as error:
        activations(preset(name, **overrides), Lengths())
    assert str(error.value) == sentence


def test_a_small_instance_keeps_the_proportions() -> None:
    config, lengths = shrink(preset("deep_pyramidion"), Lengths(8192, 512, batch=8))
    assert lengths == Lengths(512, 32, batch=2, vocab_size=61)
    assert config.self_attention_args == '{"block_size": 32}'
    assert config.pooling_lengths == "None,128,32,None,None,None"
    assert config.encoder_layers == 6
    config, _ = shrink(preset("transpooler_embedding", scorer_args='{"coordinate": 100}'), Lengths())
    assert (config.embed_dim, config.scorer_args) == (32, '{"coordinate": 4}')
    # Funnel's blocks stay multiples of its window.
    config, _ = shrink(preset("funnel", self_attention_args='{"block_size": 80}'), Lengths(8192, 512))
    assert config.self_attention_args == '{"block_size": 80}'


def test_the_claims_of_the_paper_come_out() -> None:
    ours = [round(claim.ours, 2) for claim in claims()]
    savings, bound, decoder, others = ours[:3], ours[3], ours[4:10], ours[10:]
    assert savings == [16.0, 2.46, 16.0]
    assert bound == round(2 - 512 / 8192, 2)
    # Scores and mixes at 256 and 512 tokens, unmasked, with the memory's projections, and everything at both lengths.
    assert decoder == [12.99, 10.99, 11.0, 13.5, 3.99, 2.99]
    assert others == [5.02, 4608.0]


def test_scores_and_mixes_grow_as_table_1_says_but_for_hashing() -> None:
    growths = orders()
    assert len(growths) == 21
    others = {growth.claim: round(growth.ours, 2) for growth in growths if growth.paper != f"{growth.ours:g}x"}
    # Hashing costs n n d / m: it grows with the number of buckets, and falls with their size.
    assert others == {"LSH, l m h n d: n": 2.22, "LSH, l m h n d: m": 1.7}

"""Presets and configs of language models: their sizes, what each field changes, what is refused."""

import re
from dataclasses import fields as fields_of
from typing import Any

import pytest
import torch
from small_language_models import SPACE, VOCABULARY, fields, texts
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models import (
    LANGUAGE_MODEL_PRESETS,
    LanguageModelConfig,
    build_language_model,
    language_model_preset,
)
from pyramidions.nn import LanguageModel

# Nawrot et al. 2023, counted from their code with the 27 symbols of text8
WITHOUT, MARKED, PREDICTED = 41_009_179, 41_010_715, 42_063_388
SIZES = {
    "hourglass_vanilla": WITHOUT,
    **dict.fromkeys(("hourglass_fixed_2", "hourglass_fixed_3", "hourglass_fixed_4", "hourglass_whitespace"), MARKED),
    **dict.fromkeys(("hourglass_gumbel", "hourglass_unigram", "hourglass_entropy"), PREDICTED),
    # Hwang et al. 2025: projections of queries, of keys and, with a bias, of positions.
    "hourglass_routing": MARKED + 3 * 512**2 + 512,
    # Beltagy et al. 2020, table 12: as many layers as without segments, and one norm more behind pre-norm layers; one
    # less, since post-norm ones have it too
    "longformer_lm": WITHOUT + 1024,
}


def count(name: str, **overrides: Any) -> int:
    with torch.device("meta"):
        model = build_language_model(language_model_preset(name, **overrides), 27, space_idx=SPACE)
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize("name", LANGUAGE_MODEL_PRESETS)
def test_every_preset_has_exactly_the_published_size(name: str) -> None:
    assert count(name) == SIZES[name]


def test_a_layer_has_exactly_the_published_size() -> None:
    assert count("hourglass_whitespace", layers="2,9,2") - MARKED == 3_415_040
    assert count("hourglass_vanilla", layers="12") == WITHOUT


def test_segments_have_one_hourglass_more_if_it_is_nested() -> None:
    # A null group and a norm.
    assert count("hourglass_fixed_2", layers="2,1,6,1,2") - MARKED == 512 + 2 * 512


def made(seed: int = 1, **overrides: Any) -> LanguageModel:
    name, chosen = fields("whitespace", **overrides)
    torch.manual_seed(seed)
    return build_language_model(language_model_preset(name, **chosen), VOCABULARY, space_idx=SPACE)


CHANGES: list[dict[str, Any]] = [
    {"embed_dim": 16},
    {"ffn_embed_dim": 32},
    {"num_heads": 4},
    {"layers": "2,1,1"},
    {"boundaries": "none"},
    {"boundaries": "fixed"},
    {"boundaries": "fixed(factor=3)"},
    {"segments": "last"},
    {"boundaries": "routing", "upsampling": "smoothing"},
    {"boundaries": "unigram", "upsampling": "smoothing"},
    {"self_attention": "full"},
    {"self_attention": "full | relative | relative | relative"},
    {"self_attention": "lsh(bucket_size=2, local_heads=0)"},
    {"feed_forward": "experts(experts=2)"},
    {"feed_forward": "dense"},
    {"normalize_before": True},
    {"normalize_before": True, "stack": "reversible"},
    {"output": "tied"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@torch.no_grad()
def test_every_field_changes_the_output(change: dict[str, Any]) -> None:
    tokens, models = texts(30, 30), [made(), made(**change)]
    for model in models:
        for weight in model.parameters():
            # New weights are so small that attention is nearly uniform.
            weight.mul_(10)
    assert not torch.allclose(*(model.eval()(tokens) for model in models), rtol=0, atol=1e-3)


def test_fields_that_no_test_above_changes_are_known() -> None:
    changed = {name for change in CHANGES for name in change}
    assert {field.name for field in fields_of(LanguageModelConfig)} - changed == {
        *("dropout", "attention_dropout", "activation_dropout", "checkpoint_activations"),
    }


@for_each("field", ["dropout", "attention_dropout", "activation_dropout"])
@torch.no_grad()
def test_dropout_acts_in_training_only(field: str) -> None:
    tokens, model = texts(30, 30), made(**{field: 0.5})
    assert not model.train()(tokens).equal(model(tokens))
    assert model.eval()(tokens).equal(model(tokens))


def test_the_bias_of_the_output_layer_is_an_option() -> None:
    assert made().output.linear.bias is not None
    assert made(output="untied").output.linear.bias is None


def test_stacks_that_keep_inputs_alone_have_the_same_gradients() -> None:
    found = []
    for options in ({}, {"stack": "recomputing"}, {"checkpoint_activations": True}):
        model = made(**options).train()
        model(texts(30, 30)).square().sum().backward()
        found.append([weight.grad for weight in model.parameters()])
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[0], found[2])


def test_new_weights_are_normal_with_the_published_deviations() -> None:
    name, chosen = fields("gumbel", embed_dim=64, ffn_embed_dim=128)
    torch.manual_seed(0)
    model = build_language_model(language_model_preset(name, **chosen), 500, space_idx=SPACE)
    for key, weight in model.named_parameters():
        mean, deviation = (1.0, 0.02) if re.search(r"norm\.weight$", key) else (0.0, 0.02)
        if key.endswith("bias") and "content" not in key and "position_bias" not in key:
            assert not weight.any(), key
            continue
        deviation = 1.0 if key.endswith("null_group") else deviation
        assert weight.mean().item() == pytest.approx(mean, abs=deviation * 4 / weight.numel() ** 0.5), key
        assert weight.std().item() == pytest.approx(deviation, rel=3 / weight.numel() ** 0.5 + 0.05), key


@for_each(
    ("fields", "message"),
    [
        (
            {"layers": "2,8"},
            "`layers` must be one number, three or five ..., such as 2,8,2, and from 1 to 1,000 in all",
        ),
        ({"layers": "2,x,2"}, "`layers` must be one number, three or five"),
        ({"layers": "0,0,0"}, "`layers` must be one number, three or five"),
        ({"layers": "1,9999,1"}, "`layers` must be one number, three or five"),
        ({"layers": ""}, "`layers` must be one number, three or five"),
        ({"layers": "12"}, "`boundaries` must be none where `layers` is one number, '12', but is 'whitespace'."),
        (
            {"boundaries": "word"},
            "`boundaries` must be one of none, entropy, fixed, gumbel, routing, unigram, whitespace, but",
        ),
        (
            {"boundaries": "fixed | fixed"},
            "or one per hourglass with | in between, but has 2 for 1",
        ),
        ({"boundaries": "whitespace(factor=3)"}, "WhitespaceBoundaries .* has no option 'factor'"),
        (
            {"boundaries": "none(factor=3)"},
            "`boundaries` must be none without options",
        ),
        ({"boundaries": "fixed(factor=0)"}, "`factor` must be at least 2, but is 0."),
        ({"boundaries": "fixed(factor=1)"}, "`factor` must be at least 2, but is 1."),
        (
            {"boundaries": "gumbel(prior=1.0)"},
            "`prior` must be above 0 and below 1, but is 1.0.",
        ),
        (
            {"boundaries": "gumbel", "segments": "last"},
            "GumbelBoundaries learns from means of segments, but `segments`",
        ),
        ({"boundaries": "routing"}, "RoutingBoundaries learns from smoothed segments, but `upsampling` is by Repeated"),
        ({"upsampling": "smoothing"}, "SmoothedSegments reads probabilities of boundaries, but `boundaries` are White"),
        ({"upsampling": "max"}, "`upsampling` must be one of repeat, smoothing, but is 'max'."),
        ({"segments": "max"}, "`segments` must be one of last, mean, but is 'max'."),
        (
            {"layers": "1,1,1,1,1"},
            "`boundaries` of an hourglass within another must be a kind that reads no tokens (fixed, gumbel, routing), "
            "but is 'whitespace'.",
        ),
        ({"self_attention": "linformer"}, "`self_attention` of a language model must be a kind that writes token by"),
        ({"embed_dim": 9, "num_heads": 3}, "`embed_dim` must be even for sinusoids of distances, but is 9."),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1, but is 1.0."),
        ({"layer": "12"}, "The model has no field 'layer'; did you mean 'layers'?"),
    ],
)
def test_a_config_that_means_nothing_is_refused_in_a_sentence(fields: dict[str, Any], message: str) -> None:
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(UserError, match=pattern):
        made(**fields)


def test_whitespace_needs_a_space_in_the_vocabulary() -> None:
    with pytest.raises(UserError, match="^`boundaries` whitespace needs a vocabulary with a space"):
        build_language_model(language_model_preset("hourglass_whitespace"), 27)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UserError, match="^The architecture must be one of hourglass_vanilla, .*, but is 'hourglass'.$"):
        language_model_preset("hourglass")


def test_layers_around_nothing_that_is_shortened_are_one_stack() -> None:
    layers = "1,1,1,1,1"
    inner_only = made(layers=layers, boundaries="none | whitespace")
    assert [len(part) for part in (inner_only.hourglass.before, inner_only.hourglass.after)] == [2, 2]
    assert len(made(layers=layers, boundaries="none").hourglass.before) == 5

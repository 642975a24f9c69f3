"""Presets and configs of language models: their sizes, what each field changes, what is refused."""

import re
from dataclasses import fields as fields_of
from typing import Any

import pytest
import torch
from small_language_models import SPACE, VOCABULARY, fields, texts

from pyramidions.models import LanguageModelConfig, build_language_model, language_model_preset
from pyramidions.nn import LanguageModel

# Nawrot et al. 2023, counted from their code with the 27 symbols of text8
WITHOUT, MARKED, PREDICTED = 41_009_179, 41_010_715, 42_063_388
SIZES = {
    "hourglass_vanilla": WITHOUT,
    "hourglass_fixed_2": MARKED,
    "hourglass_whitespace": MARKED,
    "hourglass_gumbel": PREDICTED,
    "hourglass_entropy": PREDICTED,
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


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_a_preset_has_exactly_the_published_size(name: str, size: int) -> None:
    assert count(name) == size


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
    {"boundaries": "fixed(factor=3)"},
    {"segments": "last"},
    {"boundaries": "routing", "upsampling": "smoothing"},
    {"self_attention": "full | relative | relative | relative"},
    {"self_attention": "lsh(bucket_size=2, local_heads=0)"},
    {"feed_forward": "experts(experts=2)"},
    {"feed_forward": "dense"},
    {"normalize_before": True, "stack": "reversible"},
    {"output": "tied"},
    {"output": "untied"},  # without its bias
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
        *("dropout", "attention_dropout", "activation_dropout", "checkpoint_activations")
    }


@pytest.mark.parametrize("field", ["dropout", "attention_dropout", "activation_dropout"])
@torch.no_grad()
def test_dropout_acts_in_training_only(field: str) -> None:
    tokens, model = texts(30, 30), made(**{field: 0.5})
    assert not model.train()(tokens).equal(model(tokens))
    assert model.eval()(tokens).equal(model(tokens))


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


def test_layers_around_nothing_that_is_shortened_are_one_stack() -> None:
    layers = "1,1,1,1,1"
    inner_only = made(layers=layers, boundaries="none | whitespace")
    assert [len(part) for part in (inner_only.hourglass.before, inner_only.hourglass.after)] == [2, 2]
    assert len(made(layers=layers, boundaries="none").hourglass.before) == 5

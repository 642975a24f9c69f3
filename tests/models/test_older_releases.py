"""What older releases wrote, and what it means today."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY, build_model
from omegaconf import OmegaConf
from tables import for_each

import pyramidions.plugin  # noqa: F401  (registers with fairseq)
from pyramidions.base.errors import UserError
from pyramidions.models import LanguageModelConfig, PyramidionConfig, build, older_releases, preset
from pyramidions.models.notation import parse_parts
from pyramidions.models.older_releases import config_as_written, of_kind, rename_from_0_1
from pyramidions.models.presets import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS
from pyramidions.plugin.models.architectures import config_from

# Those with "core." are of checkpoints, the others of exports.
NAMES = {
    "encoder.core.embedding.weight": "encoder.core.embedder.tokens.weight",
    "decoder.core.embedding.weight": "decoder.core.embedder.tokens.weight",
    "encoder.embedding.weight": "encoder.embedder.tokens.weight",
    "encoder.core.layers.0.self_attention.q_proj.weight": (
        "encoder.core.layers.0.sublayers.self_attention.function.projections.q_proj.weight"
    ),
    "encoder.core.layers.0.around_attention.norm.bias": "encoder.core.layers.0.sublayers.self_attention.norm.bias",
    "encoder.core.layers.11.feed_forward.fc1.weight": (
        "encoder.core.layers.11.sublayers.feed_forward.function.fc1.weight"
    ),
    "encoder.core.layers.11.around_feed_forward.norm.weight": (
        "encoder.core.layers.11.sublayers.feed_forward.norm.weight"
    ),
    "decoder.layers.1.self_attention.out_proj.bias": (
        "decoder.layers.1.sublayers.self_attention.function.projections.out_proj.bias"
    ),
    "decoder.layers.1.cross_attention.k_proj.weight": (
        "decoder.layers.1.sublayers.cross_attention.function.projections.k_proj.weight"
    ),
    "decoder.layers.1.around_cross_attention.norm.weight": "decoder.layers.1.sublayers.cross_attention.norm.weight",
    "decoder.layers.1.around_self_attention.norm.weight": "decoder.layers.1.sublayers.self_attention.norm.weight",
    # Funnel pooling's own layer attends from pooled to unpooled positions.
    "encoder.core.poolers.0.layer.self_attention.v_proj.weight": (
        "encoder.core.poolers.0.layer.sublayers.cross_attention.function.projections.v_proj.weight"
    ),
    "encoder.poolers.0.layer.around_attention.norm.weight": (
        "encoder.poolers.0.layer.sublayers.cross_attention.norm.weight"
    ),
    "encoder.poolers.0.layer.feed_forward.fc2.bias": (
        "encoder.poolers.0.layer.sublayers.feed_forward.function.fc2.bias"
    ),
    "encoder.poolers.0.layer.around_feed_forward.norm.bias": (
        "encoder.poolers.0.layer.sublayers.feed_forward.norm.bias"
    ),
    # These stay.
    "encoder.core.poolers.1.scorer.linear.weight": "encoder.core.poolers.1.scorer.linear.weight",
    "encoder.poolers.0.scorer.dense.bias": "encoder.poolers.0.scorer.dense.bias",
    "encoder.norm.weight": "encoder.norm.weight",
    "decoder.core.norm.bias": "decoder.core.norm.bias",
    "vocabulary": "vocabulary",
}


def test_weights_are_renamed_in_their_order() -> None:
    weights = {name: torch.tensor(float(number)) for number, name in enumerate(NAMES)}
    held = weights
    rename_from_0_1(weights)
    assert weights is held
    assert list(weights) == list(NAMES.values())
    assert [weight.item() for weight in weights.values()] == list(range(len(NAMES)))


def test_todays_names_stay() -> None:
    for name in ("funnel", "deep_pyramidion"):
        small = {"embed_dim": 8, "ffn_embed_dim": 8, "num_heads": 2}
        weights = build(preset(name, **small), vocab_size=10).state_dict()
        before = list(weights)
        rename_from_0_1(weights)
        assert list(weights) == before


def options(field: str, config: Any) -> list[dict[str, Any]]:
    return [dict(part.options) for part in parse_parts(field, getattr(config, field))[0]]


@pytest.fixture
def lsh_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if, before format 3, LSH had done what the option `flat` asks for."""
    rule = of_kind("attention", "lsh", lambda options: {"flat": True, **options})
    monkeypatch.setattr(older_releases, "RULES", [(3, rule)])


@for_each(
    ("kinds", "options", "expected"),
    [
        ("full", {"a": 1}, "full(a=1)"),
        ("lsh", {}, "lsh(flat=True)"),
        ("lsh", {"flat": False}, "lsh(flat=False)"),
        ("lsh", [{}, {"a": 1}], "lsh(flat=True) | lsh(flat=True, a=1)"),
        ("full, lsh", {}, "full | lsh(flat=True)"),
        ("full,lsh", [{"a": 1}, {"b": 2}], "full(a=1) | lsh(flat=True, b=2)"),
    ],
)
@for_each("field", ["self_attention", "decoder_self_attention", "cross_attention"])
def test_options_get_what_they_meant_wherever_the_kind_stands(
    lsh_flat: None, field: str, kinds: str, options: Any, expected: str
) -> None:
    fields = {field: kinds, f"{field}_args": json.dumps(options)}
    for written in (None, 1, 2):
        assert vars(config_as_written(PyramidionConfig, fields, written))[field] == expected
    today = vars(config_as_written(PyramidionConfig, fields, 3))[field]
    assert today == expected.replace("(flat=True)", "").replace("flat=True, ", "")


@for_each(
    ("kinds", "options", "expected"),
    [
        ("lsh", {}, "lsh(flat=True)"),
        ("full;lsh", {}, "full; lsh(flat=True)"),
        ("lsh", [{"a": 1}, {}], "lsh(flat=True, a=1); lsh(flat=True)"),
        ("full;full,lsh", [{}, {}], "full; full | lsh(flat=True)"),
        ("full;full,lsh", [{"a": 1}, [{}, {"b": 2}]], "full(a=1); full | lsh(flat=True, b=2)"),
    ],
)
def test_options_get_what_they_meant_for_each_memory(lsh_flat: None, kinds: str, options: Any, expected: str) -> None:
    fields = {"memories": "1,last", "cross_attention": kinds, "cross_attention_args": json.dumps(options)}
    assert config_as_written(PyramidionConfig, fields, None).cross_attention == expected


@for_each("written", [0, 4, True, "2", []])
def test_a_format_that_no_release_had_is_refused(written: Any) -> None:
    with pytest.raises(UserError, match=r"^`config_format` must be from 1 to 3, but is "):
        config_as_written(PyramidionConfig, {}, written)


ARCHITECTURES = [*PRESETS, *EXTRACTOR_PRESETS, *LANGUAGE_MODEL_PRESETS]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_field_that_a_checkpoint_lacks_has_its_default_and_not_that_of_a_preset(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By way of fairseq, which fills in the fields of models, but not of their other architectures."""
    read: list[Any] = []

    def reading(kind: type[Any], config: Any) -> Any:
        read.append(kind(embed_dim=8, **({"max_source_positions": 64} if kind is not LanguageModelConfig else {})))
        read.append(config_from(kind, config))
        raise NotImplementedError

    monkeypatch.setattr(f"{ARCH_MODEL_REGISTRY[name].__module__}.config_from", reading)
    task = SimpleNamespace(source_dictionary=None, target_dictionary=None, max_positions=lambda: (64, 32))
    with pytest.raises(NotImplementedError):
        build_model(OmegaConf.create({"_name": name, "embed_dim": 8, "max_source_positions": 64}), task, True)
    assert read[0] == read[1]


def test_lsh_attention_of_0_2_keeps_its_scores_and_numbers_of_buckets_and_sru_its_scale() -> None:
    flat = {"is_flat": True, "chunk_buckets": 1}
    fields = {
        "self_attention": "lsh | full",
        "decoder_self_attention": "lsh(num_buckets=None) | lsh(num_buckets=8)",
        "recurrence": "none | none | sru | sru",
    }
    config = config_as_written(PyramidionConfig, fields, 2)
    assert config.self_attention == "lsh(is_flat=True, chunk_buckets=1) | full"
    assert options("decoder_self_attention", config) == [{**flat, "num_buckets": 16}, {**flat, "num_buckets": 8}]
    assert options("recurrence", config) == [{}, {}, {"scaled": False}, {"scaled": False}]
    causal = config_as_written(LanguageModelConfig, {"self_attention": "lsh"}, None)
    assert options("self_attention", causal) == [{**flat, "num_buckets": 16}]
    assert config_as_written(PyramidionConfig, fields, 3) == PyramidionConfig(**fields)


@for_each("kind", ["lsh", "efficient"])
@for_each(
    ("given", "expected"),
    [
        ({"window": 3}, {"local_window": 6}),
        ({}, {}),
        # Refused by whoever builds the model.
        ({"window": 3, "local_window": 6}, {"window": 3, "local_window": 6}),
        ({"window": 3.0}, {"window": 3.0}),
        ({"window": True}, {"window": True}),
    ],
)
def test_until_0_2_0_a_window_was_half_of_a_local_window(kind: str, given: Any, expected: Any) -> None:
    fields = {"self_attention": f"{kind},full", "self_attention_args": json.dumps([given, {"window": 3}])}
    for written in (None, 1, 2):
        first, second = options("self_attention", config_as_written(PyramidionConfig, fields, written))
        assert expected.items() <= first.items() and ("window" in first) == ("window" in expected)
        assert second == {"window": 3}
    assert options("self_attention", config_as_written(PyramidionConfig, fields, 3)) == [given, {"window": 3}]

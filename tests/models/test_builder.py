import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
import torch
from tables import for_each
from tiny_presets import tiny_fields

from pyramidions.models import (
    PRESETS,
    ExtractorConfig,
    PyramidionConfig,
    build,
    build_extractor,
    extractor_preset,
    preset,
)
from pyramidions.models.config import EncoderConfig, config_as

# Shared queries and keys save a matrix a layer, which table 5 does not count. All but one have the base size of BART
# with 16,384 positions; Linformer has its projections beside, and a decoder of two memories a second cross-attention.
SIZES = {
    "hat": 159.0,
    "hmnet": 195.7,
    "reformer": 121.0,
    "lsh": 31.5,
    **dict.fromkeys(("stride", "bigbird", "sinkhorn", "sinkhorn_hepos"), 137.8),
    **dict.fromkeys(("lsh_window", "lsh_hepos"), 136.0),
    "linformer": 150.4,
    "look_back": 152.0,
    # BART's large size with 16,384 positions; BART-LS has four further attentions, the other two layers and four.
    "bart_ls": 420.9,
    **dict.fromkeys(("top_down", "top_down_pyramidion"), 446.1),
    # By name 800M and 17B. The paper does not say what it counts; its table 1 widens the feed-forward parts.
    "scaling_800m": 876.7,
    "scaling_17b": 16906,
    "terraformer": 134.2,
    "terraformer_800m": 791.9,
    "terraformer_17b": 16978,
    "terraformer_pyramidion": 137.7,
    "toy_vanilla": 17.9,
    "toy_terraformer": 17.3,
    # Two predictors of boundaries.
    "pyramidion_segments": 33.6,
}


def small(name: str = "vanilla", **overrides: Any) -> PyramidionConfig:
    return config_as(PyramidionConfig, {**tiny_fields(name), **overrides})


@for_each("name", PRESETS)
def test_every_preset_has_the_size_of_the_paper(name: str) -> None:
    with torch.device("meta"):
        model = build(preset(name), vocab_size=32768, marker_idx=4)
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    # LED has wider projections of global tokens and two tables of positions, beside a deep Transformer.
    size = SIZES.get(name, 124 if name.startswith("deep") else 148.4 if name.startswith("led") else 32)
    assert millions == pytest.approx(size, rel=0.02)


@for_each("name", PRESETS)
def test_every_preset_runs_and_every_parameter_is_in_its_graph(name: str) -> None:
    model = build(small(name), vocab_size=50, marker_idx=4)
    for source in (torch.randint(4, 50, (2, 30)), torch.tensor([[2]])):
        model.zero_grad()
        logits = model(source, torch.randint(4, 50, (len(source), 5)))
        assert logits.shape == (len(source), 5, 50)
        logits.sum().backward()
        assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    "change",
    [
        {"embed_dim": 32},
        {"ffn_embed_dim": 64},
        {"num_heads": 2},
        {"encoder_layers": 3, "pooling_lengths": "None,8,4"},
        {"decoder_layers": 3},
        {"self_attention": "blockwise(block_size=8)"},
        {"pooling": "soft_topk(base=3.0)"},
        {"pooling_lengths": "8,4"},
        {"pooling": "mean", "max_source_positions": 30},
        {"scorer": "nonlinear"},
        {"scorer": "index", "max_source_positions": 30},
        {"scorer": "random(seed=3)"},
        {"feed_forward": "dense(activation='gelu')"},
        {"feed_forward": "sparse(block_size=4)"},
        {"feed_forward": "dense | experts(experts=2) | dense | sparse(block_size=4)"},
        {"normalize_before": True},
        {"encoder_positions": "none"},
        {"decoder_positions": "sinusoidal"},
        {"decoder_start": "<s>"},
        {"self_attention": "full"},
        {"self_attention": "blockwise(block_size=16) | full"},
        {"self_attention": "blockwise(block_size=16) | blockwise(block_size=8)"},
        {"feed_forward": "dense | dense | dense | dense(activation='gelu')"},
        {"pooling": "mean | soft_topk", "pooling_lengths": "8,4", "max_source_positions": 30},
        {"pooling": "mean", "pooling_lengths": "8,None", "upsampling": "repeat", "max_source_positions": 30},
        {"encoder_positions": "sinusoidal(first=9)"},
        {"decoder_positions": "sinusoidal(first=9)"},
        {"encoder_positions": "axial", "max_source_positions": 30},
        {"decoder_positions": "axial"},
        {"layernorm_embedding": True},
        {"no_scale_embedding": True},
        {"norm": "rms"},
        {"self_attention": "bucketed"},
        {"output": "untied"},
        {"decoder_self_attention": "lsh"},
        {"decoder_self_attention": "full | lsh(local_heads=0)"},
        {"recurrence": "sru"},
        {"recurrence": "sru(dim=5)"},
    ],
)
def test_every_field_changes_the_output(change: dict[str, Any]) -> None:
    source, prefix = torch.arange(4, 34)[None], torch.arange(4, 9)[None]
    outputs = []
    for overrides in ({}, change):
        torch.manual_seed(1)
        base = {"pooling_lengths": "None,4", "self_attention": "blockwise(block_size=16)"}
        config = small("blockwise", **{**base, **overrides})
        outputs.append(build(config, vocab_size=50).eval()(source, prefix))
    assert not torch.allclose(*outputs)


@pytest.mark.parametrize("part", [{"pooling": "mean"}, {"scorer": "index"}])
def test_a_fixed_ratio_is_that_of_the_longest_document(part: dict[str, str]) -> None:
    source, prefix = torch.arange(4, 34)[None], torch.arange(4, 9)[None]
    outputs = []
    for longest in (16, 32):
        torch.manual_seed(1)
        config = small("blockwise", pooling_lengths="None,4", max_source_positions=longest, **part)
        outputs.append(build(config, vocab_size=50).eval()(source, prefix))
    assert not torch.allclose(*outputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite_on_many_long_documents(dtype: torch.dtype) -> None:
    # More scores than half precision can count to.
    model = build(small("deep_pyramidion", pooling_lengths="None,8,4,None,None,None"), vocab_size=50).to(dtype).eval()
    with torch.no_grad():
        assert model(torch.randint(4, 50, (9, 8192)), torch.tensor([[2, 5]] * 9)).isfinite().all()


def test_fields_that_no_test_changes_are_known() -> None:
    # Each has a test of its own: dropouts below, axes of one kind and options of kinds without any are only refused,
    # generation reads decoding_*, tests/models/test_global_tokens.py is about global_*, test_memories.py about
    # memories, test_projections.py about projections, tests/commands/test_tags.py about tag_dim, and
    # tests/models/test_memory_and_precision.py asks what is kept for the backward pass.
    tested_elsewhere = {
        *("checkpoint_activations", "stack", "decoder"),
        *("encoder_projections", "decoder_projections", "cross_projections"),
        *("global_tokens", "global_markers", "global_query", "global_projections", "global_vectors"),
        *("dropout", "attention_dropout", "activation_dropout", "cross_attention", "memories", "max_source_positions"),
        *("decoding_beam", "decoding_length_penalty", "decoding_min_length", "decoding_max_length"),
        *("decoding_no_repeat_ngram", "decoding_long", "tag_dim"),
    }
    marks = test_every_field_changes_the_output.pytestmark
    changed = {name for mark in marks for change in mark.args[1] for name in change}
    assert {field.name for field in fields(PyramidionConfig)} == tested_elsewhere | changed


@for_each(
    ("name", "kind"),
    [
        ("upsampling", "repeat"),
        ("stack", "plain"),
        ("decoder", "cross_attending"),
        ("output", "tied"),
    ],
)
def test_an_option_of_a_part_that_has_none_is_refused(name: str, kind: str) -> None:
    pooled = {"pooling": "mean", "pooling_lengths": "8,None", "upsampling": "repeat"}
    with pytest.raises(ValueError, match="has no option 'depth'; it knows none."):
        build(small("blockwise", **{**pooled, name: f"{kind}(depth=3)"}), vocab_size=50)


@for_each("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_every_dropout_acts_in_training(name: str) -> None:
    zero = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    source, prefix = torch.arange(4, 34)[None], torch.arange(4, 9)[None]
    outputs = []
    for overrides in (zero, {**zero, name: 0.5}):
        torch.manual_seed(1)
        outputs.append(build(small(**overrides), vocab_size=50)(source, prefix))
    assert not torch.allclose(*outputs)


@for_each(
    ("change", "message"),
    [
        ({"self_attention": "blockwise(block_size=0)"}, "`block_size` must be at least 1, but is 0."),
        ({"pooling_lengths": "4,8"}, "`pooling_lengths` must not grow, but layer 2 hands on 8 after 4."),
        (
            {"self_attention": "fulll"},
            "`self_attention` must be one of .*, full, .*but is 'fulll'.",
        ),
        (
            {"self_attention": "full | hepos"},
            r"`self_attention` must be a kind by which a sequence reads itself \(adaptive_span, .*\), but is 'hepos'.",
        ),
        (
            {"cross_attention": "hepos(stride=3)"},
            r"`num_heads` \(4\) must be divisible by the `stride` of hepos \(3\).",
        ),
        (
            {"cross_attention": "hepos(stride=0)"},
            "`stride` must be at least 1, but is 0.",
        ),
        ({"cross_attention": "blockwise"}, "`cross_attention` must be a kind that reads another sequence"),
        (
            {"decoder_self_attention": "full | blockwise"},
            r"`decoder_self_attention` must be a kind that writes token by token "
            r"\(bucketed, full, lsh, relative, relative_window, sliding_window\)",
        ),
        (
            {"decoder_self_attention": "full | lsh | full"},
            "`decoder_self_attention` must have one entry, or one per decoder layer with . in between, but has 3 for 2",
        ),
        (
            {"decoder_self_attention": "lsh(num_buckets=5)"},
            "`num_buckets` must be even and at least 2, but is 5.",
        ),
        (
            {"self_attention": "lsh(hash_factors=3)"},
            "`hash_factors` must be from 1 to 2, but is 3.",
        ),
        ({"scorer": "liner"}, "`scorer` must be one of .*, linear, .*but is 'liner'."),
        ({"encoder_layers": 0}, "`encoder_layers` must be from 1 to 1,000, but is 0."),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1, but is 1.0."),
        ({"pooling": "soft_topk(base=2)"}, "`pooling` is .* but nothing is pooled"),
        ({"pooling_lengths": "None,None", "pooling": "soft_topk(base=2)"}, "but nothing is pooled"),
        ({"decoding_beam": 0}, "`decoding_beam` must be from 1 to 1,024, but is 0."),
        ({"pooling": "mean", "pooling_lengths": "None,4", "scorer": "random"}, "`pooling` 'mean' takes no scorer."),
        ({"pooling": "funnel", "pooling_lengths": "None,4"}, "must name one length, after a layer that another one"),
        (
            {
                "pooling": "funnel",
                "pooling_lengths": "4,None",
                "self_attention": "efficient",
            },
            "Funnel pooling needs `self_attention` blockwise or full, but it is 'efficient'.",
        ),
        (
            {"pooling": "funnel", "pooling_lengths": "4,None", "max_source_positions": 12},
            r"The block size of funnel pooling \(512\) must be divisible by its window \(3\).",
        ),
        (
            {
                "scorer": "attention",
                "pooling_lengths": "4,4",
                "self_attention": "efficient",
            },
            "`scorer` 'attention' needs attention that tells what each position received",
        ),
        (
            {"self_attention": "full | full | full"},
            "`self_attention` must have one entry, or one per encoder layer with . in between, but has 3 for 2: 'full",
        ),
        ({"self_attention": "full; full"}, "or one per memory with semicolons in between, but has 2 for 1 of"),
        (
            {"self_attention": "full(block_size=512)"},
            r"FullAttention \(attention 'full'\) has no option 'block_size'; it knows none.",
        ),
        ({"upsampling": "repeat", "pooling_lengths": "8,None"}, "`upsampling` 'repeat' needs pooling over windows"),
        ({"upsampling": "repeat"}, "`upsampling` is 'repeat', but nothing is pooled"),
        (
            {"upsampling": "repeat", "pooling": "mean", "pooling_lengths": "None,8"},
            "`upsampling` 'repeat' needs a layer after the last pooling",
        ),
        ({"pooling": "funnel | mean", "pooling_lengths": "8,4"}, "`upsampling` must be given"),
        (
            {"pooling": "mean | soft_topk", "pooling_lengths": "8,4", "scorer": "random | linear"},
            "but `pooling` 'mean' takes no scorer: give it linear, without options.",
        ),
        (
            {"output": "tide"},
            "`output` must be one of multiplicative, pointer, tied, untied, but is 'tide'.",
        ),
        (
            {"encoder_positions": "none(first=1)"},
            "`encoder_positions` must be none without options, but is none.first=1..",
        ),
        (
            {"encoder_positions": "axail"},
            "must be one of none, axial, learned, sinusoidal, but is 'axail'.",
        ),
        (
            {"feed_forward": "spars"},
            "`feed_forward` must be one of dense, experts, gated, sparse, but is 'spars'.",
        ),
        (
            {"feed_forward": "dense(activation='tanh')"},
            "`activation` must be one of relu, gelu, gelu_tanh, but is 'tanh'.",
        ),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(small("blockwise", **change), vocab_size=50)


def test_a_vocabulary_without_room_for_padding_is_refused() -> None:
    with pytest.raises(ValueError, match="`vocab_size` must be above 1, the padding, but is 1."):
        build(small(), vocab_size=1)


def test_an_unknown_preset_or_field_is_named() -> None:
    with pytest.raises(ValueError, match="must be one of vanilla, .* but is 'vanila'"):
        preset("vanila")
    with pytest.raises(ValueError, match="The model has no field 'embed_dims'; did you mean 'embed_dim'?"):
        preset("vanilla", embed_dims=3)


def test_an_extractor_has_the_fields_of_an_encoder_and_one_of_its_own() -> None:
    encoders = {field.name for field in fields(EncoderConfig)}
    assert {field.name for field in fields(ExtractorConfig)} == {*encoders, "selector"}
    others = {field.name for field in fields(PyramidionConfig)} - encoders
    assert all(name.startswith(("decod", "cross_", "output", "memories")) for name in others)
    with pytest.raises(ValueError, match="The model has no field 'decoder_layers'"):
        extractor_preset("extractor", decoder_layers=2)
    with pytest.raises(
        ValueError, match="must be one of extractor, extractor_pyramidion, extractor_pointer, but is 'vanilla'"
    ):
        extractor_preset("vanilla")


@for_each(
    ("change", "message"),
    [
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1, but is 1.0."),
        ({"encoder_layers": 0}, "`encoder_layers` must be from 1 to 1,000, but is 0."),
        ({"feed_forward": "dense | dense"}, "or one per layer with . in between, but has 2 for 4"),
        ({"pooling_lengths": "None,None,None,None", "pooling": "marker"}, "`pooling` must be one of .*, markers, "),
        ({"scorer": "random"}, "`scorer` is 'random', but `pooling` 'markers' takes no scorer."),
    ],
)
def test_a_field_of_an_extractor_that_breaks_a_rule_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_extractor(extractor_preset("extractor", **change), vocab_size=50, marker_idx=4)


# For a normal value on the meta device torch imports 800 modules, which takes longer than to read a model.
def test_shapes_alone_have_no_memory_and_import_little() -> None:
    program = """
import sys
from pyramidions.models import build, preset
from pyramidions.models.builder import shapes_alone
config = preset("led_pyramidion", encoder_positions="learned", decoder_positions="learned")
before = set(sys.modules)
with shapes_alone():
    model = build(config, 50_000)
print(all(weight.is_meta for weight in model.parameters()), len(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    alone, imported = done.stdout.split()
    assert alone == "True" and int(imported) < 50

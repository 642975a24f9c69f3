import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
import torch
from tiny_presets import tiny_fields

from pyramidions.models import ExtractorConfig, PyramidionConfig, build, preset
from pyramidions.models.config import EncoderConfig, config_as
from pyramidions.nn.attention import SelfAttention

#: Millions of weights; tests/golden holds the shapes of all presets. Shared queries and keys save a matrix a layer,
#: which table 5 does not count. By name the last has 17B; the paper does not say what it counts.
SIZES = {
    "vanilla": 32,
    "pyramidion_segments": 33.6,  # two predictors of boundaries
    # the base size of BART with 16,384 positions
    "bigbird": 137.8,
    "reformer": 121.0,
    "led": 148.4,  # wider projections of global tokens and two tables of positions
    "hat": 159.0,
    "hmnet": 195.7,
    # BART's large size with 16,384 positions; BART-LS has four further attentions, the other two layers and four
    "bart_ls": 420.9,
    "terraformer": 134.2,
    "scaling_17b": 16906,
}


def small(name: str = "vanilla", **overrides: Any) -> PyramidionConfig:
    return config_as(PyramidionConfig, {**tiny_fields(name), **overrides})


def outputs(*configs: PyramidionConfig, training: bool = False) -> list[torch.Tensor]:
    """Return logits of models that begin with the same seed."""
    found = []
    for config in configs:
        torch.manual_seed(1)
        model = build(config, vocab_size=50).train(training)
        found.append(model(torch.arange(4, 34)[None], torch.arange(4, 9)[None]))
    return found


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_a_preset_has_the_size_of_its_paper(name: str, size: float) -> None:
    with torch.device("meta"):
        model = build(preset(name), vocab_size=32768, marker_idx=4)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(size, rel=0.02)


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
        {"feed_forward": "dense | experts(experts=2) | dense | sparse(block_size=4)"},
        {"normalize_before": True},
        {"encoder_positions": "none"},
        {"decoder_positions": "sinusoidal"},
        {"decoder_start": "<s>"},
        {"self_attention": "blockwise(block_size=16) | blockwise(block_size=8)"},
        {"pooling": "mean | soft_topk", "pooling_lengths": "8,4", "max_source_positions": 30},
        {"pooling": "mean", "pooling_lengths": "8,None", "upsampling": "repeat", "max_source_positions": 30},
        {"encoder_positions": "sinusoidal(first=9)"},
        {"encoder_positions": "axial", "max_source_positions": 30},
        {"layernorm_embedding": True},
        {"no_scale_embedding": True},
        {"norm": "rms"},
        {"self_attention": "bucketed"},
        {"output": "untied"},
        {"decoder_self_attention": "full | lsh(local_heads=0)"},
        {"recurrence": "sru(dim=5)"},
    ],
)
def test_every_field_changes_the_output(change: dict[str, Any]) -> None:
    base = {"pooling_lengths": "None,4", "self_attention": "blockwise(block_size=16)"}
    assert not torch.allclose(*outputs(small("blockwise", **base), small("blockwise", **{**base, **change})))


@pytest.mark.parametrize("part", [{"pooling": "mean"}, {"scorer": "index"}])
def test_a_fixed_ratio_is_that_of_the_longest_document(part: dict[str, str]) -> None:
    fields = {"pooling_lengths": "None,4", **part}
    assert not torch.allclose(*outputs(*(small("blockwise", max_source_positions=n, **fields) for n in (16, 32))))


def test_half_precision_stays_finite_on_many_long_documents() -> None:
    # More scores than half precision can count to.
    model = build(small("pyramidion", pooling_lengths="8,4"), vocab_size=50).half().eval()
    with torch.no_grad():
        assert model(torch.randint(4, 50, (9, 8192)), torch.tensor([[2, 5]] * 9)).isfinite().all()


def test_fields_that_no_test_changes_are_known() -> None:
    # Each has a test of its own: dropouts below, axes of one kind and options of kinds without any are only refused,
    # generation reads decoding_*, tests/models/test_global_tokens.py is about global_*, test_memories.py about
    # memories, test_projections.py about projections, test_flex.py about kernels, tests/commands/test_tags.py about
    # tag_dim, and tests/models/test_memory_and_precision.py asks what is kept for the backward pass.
    tested_elsewhere = {
        *("checkpoint_activations", "kernels", "stack", "decoder"),
        *("encoder_projections", "decoder_projections", "cross_projections"),
        *("global_tokens", "global_markers", "global_query", "global_projections", "global_vectors"),
        *("dropout", "attention_dropout", "activation_dropout", "cross_attention", "memories", "max_source_positions"),
        *("decoding_beam", "decoding_length_penalty", "decoding_min_length", "decoding_max_length"),
        *("decoding_no_repeat_ngram", "decoding_forced_start", "decoding_forced_end", "decoding_early_stopping"),
        *("decoding_long", "tag_dim"),
    }
    marks = test_every_field_changes_the_output.pytestmark
    changed = {name for mark in marks for change in mark.args[1] for name in change}
    assert {field.name for field in fields(PyramidionConfig)} == tested_elsewhere | changed


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_every_dropout_acts_in_training(name: str) -> None:
    zero = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    assert not torch.allclose(*outputs(small(**zero), small(**{**zero, name: 0.5}), training=True))


def test_random_blocks_differ_from_layer_to_layer_and_not_from_model_to_model() -> None:
    def drawn() -> list[torch.Tensor]:
        model = build(small(self_attention="bigbird"), vocab_size=50)
        lists = [layer.function(SelfAttention).attention.lists for layer in model.encoder.layers]
        return [each.of_others(torch.tensor([30]), 2, torch.arange(30)) for each in lists]

    first, second = drawn(), drawn()
    assert not first[0].equal(first[1])
    assert all(one.equal(other) for one, other in zip(first, second, strict=True))


def test_an_extractor_has_the_fields_of_an_encoder_and_one_of_its_own() -> None:
    encoders = {field.name for field in fields(EncoderConfig)}
    assert {field.name for field in fields(ExtractorConfig)} == {*encoders, "selector"}
    others = {field.name for field in fields(PyramidionConfig)} - encoders
    assert all(name.startswith(("decod", "cross_", "output", "memories")) for name in others)


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

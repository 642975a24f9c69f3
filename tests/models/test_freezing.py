"""Parts of a model that do not learn."""

import pytest
import torch
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models import PRESETS, build, build_extractor, extractor_preset, preset
from pyramidions.models.freezing import freeze
from pyramidions.nn import Transformer

SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "max_source_positions": 64}
SOURCE, PREFIX = torch.tensor([[5, 9, 7, 4, 8, 2]]), torch.tensor([[2, 5, 6]])


def model(**overrides: object) -> Transformer:
    torch.manual_seed(0)
    fields = {"encoder_layers": 3, "decoder_layers": 2, "pooling_lengths": "None,4,None", **SMALL, **overrides}
    return build(preset("vanilla", **fields), 50)


def learning(model: torch.nn.Module) -> set[str]:
    """Return the beginnings of the names of all weights that learn."""
    return {".".join(name.split(".")[:3]) for name, weight in model.named_parameters() if weight.requires_grad}


ENCODER = {f"encoder.layers.{n}" for n in range(3)}
DECODER = {f"decoder.layers.{n}" for n in range(2)}
# The decoder's embeddings are the same, and go by the name that comes first.
TOKENS, POOLER = {"encoder.embedder.tokens"}, {"encoder.poolers.1"}


@for_each(
    ("parts", "left"),
    [
        ("embeddings", ENCODER | DECODER | POOLER),
        ("encoder", TOKENS | DECODER | POOLER),
        ("decoder", TOKENS | ENCODER | POOLER),
        ("poolers", TOKENS | ENCODER | DECODER),
        ("encoder.1", TOKENS | ENCODER - {"encoder.layers.1"} | DECODER | POOLER),
        ("embeddings, encoder.0-1 ,decoder.1-1", {"encoder.layers.2", "decoder.layers.0"} | POOLER),
    ],
)
def test_everything_else_learns(parts: str, left: set[str]) -> None:
    frozen = model()
    assert learning(frozen) == TOKENS | ENCODER | DECODER | POOLER
    size = freeze(frozen, parts)
    assert learning(frozen) == left
    assert size == sum(weight.numel() for weight in frozen.parameters() if not weight.requires_grad)


def test_parts_of_other_models_go_with_their_side() -> None:
    learned = {"encoder_positions": "learned", "decoder_positions": "learned", "layernorm_embedding": True}
    other = model(**learned, normalize_before=True, output="untied")
    freeze(other, "embeddings,encoder")
    assert learning(other) == {*DECODER, *POOLER, "decoder.norm.weight", "decoder.norm.bias", "decoder.output.linear"}
    freeze(other, "decoder")
    assert learning(other) == POOLER


def test_a_pointer_learns_unless_it_is_named() -> None:
    pointing = model(output="pointer(tied=False)")
    freeze(pointing, "embeddings,encoder,decoder,poolers")
    parts = {f"decoder.output.pointer.{part}" for part in ("query", "key", "value", "gate", "token_query", "token_key")}
    assert {name.rsplit(".", 1)[0] for name, weight in pointing.named_parameters() if weight.requires_grad} == parts


def test_global_vectors_go_with_the_encoder() -> None:
    reads_them = model(self_attention="block_global(block_size=8)", global_vectors=2)
    assert "encoder.global_vectors.weight" in learning(reads_them)
    freeze(reads_them, "encoder")
    assert learning(reads_them) == TOKENS | DECODER | POOLER


def test_norms_of_memories_go_with_the_encoder() -> None:
    frozen = model(normalize_before=True, memories="2,last")
    freeze(frozen, "embeddings,encoder,poolers")
    assert not any(weight.requires_grad for weight in frozen.encoder.parameters())


@for_each("stack", ["plain", "recomputing", "reversible"])
def test_frozen_weights_get_no_gradient_and_no_update_and_all_others_do(stack: str) -> None:
    frozen = model(stack=stack, normalize_before=stack == "reversible", pooling_lengths="None,3,None").train()
    freeze(frozen, "embeddings,encoder.0-1")
    before = {name: weight.clone() for name, weight in frozen.state_dict().items()}
    trained = [weight for weight in frozen.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.5)
    frozen(SOURCE, PREFIX).square().sum().backward()
    optimizer.step()
    for name, weight in frozen.named_parameters():
        assert (weight.grad is not None) == weight.requires_grad
        assert torch.equal(weight, before[name]) != weight.requires_grad, name


@for_each("name", PRESETS)
def test_every_architecture_has_these_parts(name: str) -> None:
    with torch.device("meta"):
        made = build(preset(name), 50, marker_idx=4)
    freeze(made, "embeddings,encoder,decoder.0")
    poolers = {f"encoder.poolers.{n}" for n, pooler in made.encoder.poolers.items() if list(pooler.parameters())}
    own = {
        f"decoder.{part}.{name.split('.')[0]}"
        for part in ("norm", "output")
        if getattr(made.decoder, part) is not None
        for name, weight in getattr(made.decoder, part).named_parameters()
        if weight is not made.encoder.embedder.tokens.weight
    }
    assert learning(made) == {f"decoder.layers.{n}" for n in range(1, len(made.decoder.layers))} | poolers | own


def test_an_extractor_has_no_decoder() -> None:
    extractor = build_extractor(extractor_preset("extractor"), 50, marker_idx=4)
    freeze(extractor, "embeddings,encoder.0")
    assert "encoder.layers.0" not in learning(extractor) and "encoder.layers.1" in learning(extractor)
    for part, sentence in {
        "decoder": "--freeze names decoder, but the model has none.",
        "decoder.0": "--freeze names decoder.0, but the decoder has 0 layers, counted from 0.",
    }.items():
        with pytest.raises(UserError, match=sentence):
            freeze(extractor, part)


@for_each(
    ("parts", "sentence"),
    [
        ("encoder.3", r"--freeze names encoder\.3, but the encoder has 3 layers, counted from 0\."),
        ("encoder.1-3", r"--freeze names encoder\.1-3, but the encoder has 3 layers"),
        ("encoder.2-1", r"--freeze names encoder\.2-1, but the encoder has 3 layers"),
        ("encoders", r"--freeze must name embeddings, encoder, .* encoder\.0-3, with commas .* but names 'encoders'\."),
        ("encoder,", r"but names ''\."),
        ("encoder.-1", r"but names 'encoder\.-1'\."),
        ("embeddings,encoder,decoder,poolers", "--freeze must leave weights to train, but .* are all of the model."),
    ],
)
def test_what_no_model_has_is_one_sentence(parts: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        freeze(model(), parts)


def test_poolers_of_a_model_without_any_are_refused() -> None:
    with pytest.raises(UserError, match="--freeze names poolers, but the model has none."):
        freeze(model(pooling_lengths=None), "poolers")

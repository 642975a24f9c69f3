"""What training changes of a model: frozen parts, and poolings that shrink."""

import copy
from itertools import pairwise

import pytest
import torch

from pyramidions.models import build, build_extractor, extractor_preset, preset
from pyramidions.models.training import PoolingWarmup, freeze
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


LEARNED = {"encoder_positions": "learned", "decoder_positions": "learned", "layernorm_embedding": True}
OWN = {"decoder.norm.weight", "decoder.norm.bias", "decoder.output.linear"}
NORMED = {"normalize_before": True, "memories": "2,last"}
JOINED = {"decoder": "concatenated", "pooling_lengths": None}


@pytest.mark.parametrize(
    ("fields", "parts", "left"),
    [
        ({}, "embeddings", ENCODER | DECODER | POOLER),
        ({}, "encoder", TOKENS | DECODER | POOLER),
        ({}, "decoder", TOKENS | ENCODER | POOLER),
        ({}, "poolers", TOKENS | ENCODER | DECODER),
        ({}, "encoder.1", TOKENS | ENCODER - {"encoder.layers.1"} | DECODER | POOLER),
        ({}, "embeddings, encoder.0-1 ,decoder.1-1", {"encoder.layers.2", "decoder.layers.0"} | POOLER),
        # Parts of other models go with their side, and a layer has all of its sublayers with it.
        ({**LEARNED, "normalize_before": True, "output": "untied"}, "embeddings,encoder", DECODER | POOLER | OWN),
        ({**LEARNED, "normalize_before": True, "output": "untied"}, "embeddings,encoder,decoder", POOLER),
        ({"self_attention": "block_global(block_size=8)", "global_vectors": 2}, "encoder", TOKENS | DECODER | POOLER),
        (NORMED, "embeddings,encoder,poolers", DECODER | {"decoder.norm.weight", "decoder.norm.bias"}),
        ({"recurrence": "sru"}, "decoder.1", TOKENS | ENCODER | POOLER | {"decoder.layers.0"}),
        (JOINED, "decoder.1", TOKENS | ENCODER | {"decoder.layers.0"}),
        # A pointer learns unless it is named.
        ({"output": "pointer(tied=False)"}, "embeddings,encoder,decoder,poolers", {"decoder.output.pointer"}),
    ],
)
def test_everything_else_learns(fields: dict[str, object], parts: str, left: set[str]) -> None:
    frozen = model(**fields)
    size = freeze(frozen, parts)
    assert learning(frozen) == left
    assert size == sum(weight.numel() for weight in frozen.parameters() if not weight.requires_grad)


@pytest.mark.parametrize("stack", ["plain", "recomputing", "reversible"])
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


@pytest.mark.parametrize(
    "name", ["hat", "hmnet", "funnel", "led", "top_down", "terraformer", "pointer_generator", "pyramidion_segments"]
)
def test_architectures_have_these_parts(name: str) -> None:
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


BLOCKS = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "self_attention": "blockwise(block_size=8)"}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
DOCUMENTS = torch.randint(4, 50, (2, 64), generator=torch.Generator().manual_seed(1))


def shrinking(**overrides: object) -> Transformer:
    torch.manual_seed(0)
    return build(
        preset("pyramidion", **{**BLOCKS, "pooling_lengths": "16,4", "max_source_positions": 64, **overrides}), 50
    )


def handed_on(model: Transformer) -> list[int]:
    encoded = model.encoder(DOCUMENTS, DOCUMENTS.eq(1))
    return [pooled.x.size(1) for pooled in encoded.pooled.values()]


def test_lengths_halve_together_from_the_longest_document_to_those_configured() -> None:
    trained = shrinking().train()
    warmup = PoolingWarmup(trained, 64, 100)
    found = {}
    for update in (0, 24, 25, 49, 50, 74, 75, 99, 100, 10_000):
        warmup.set_num_updates(update)
        found[update] = handed_on(trained)
    phases = {0: [64, 64], 25: [64, 32], 50: [64, 16], 75: [32, 8], 100: [16, 4]}
    assert found == {**phases, 24: phases[0], 49: phases[25], 74: phases[50], 99: phases[75], 10_000: phases[100]}


def test_no_length_grows_when_lengths_are_no_powers_of_two() -> None:
    trained = shrinking(pooling_lengths="23,5").train()
    warmup, lengths = PoolingWarmup(trained, 64, 7), []
    for update in range(9):
        warmup.set_num_updates(update)
        lengths.append(handed_on(trained))
    assert lengths[0] == [64, 64] and lengths[-2:] == [[23, 5]] * 2
    for before, after in pairwise(lengths):
        assert after[0] <= before[0] and after[1] <= before[1] and after[1] <= after[0]


def test_evaluation_has_the_configured_lengths_throughout() -> None:
    evaluated = shrinking().eval()
    PoolingWarmup(evaluated, 64, 100).set_num_updates(0)
    assert handed_on(evaluated) == [16, 4]


def test_at_first_the_model_computes_what_it_does_without_pooling() -> None:
    pooled, plain = shrinking(**QUIET).train(), shrinking(**QUIET, pooling_lengths=None).train()
    plain.load_state_dict({name: value for name, value in pooled.state_dict().items() if "poolers" not in name})
    PoolingWarmup(pooled, 64, 100).set_num_updates(0)
    torch.testing.assert_close(
        pooled.encoder(DOCUMENTS, DOCUMENTS.eq(1)).sequence.x,
        plain.encoder(DOCUMENTS, DOCUMENTS.eq(1)).sequence.x,
        rtol=0,
        atol=1e-6,
    )


def test_it_adds_nothing_to_the_weights_and_is_copied_with_the_model() -> None:
    trained = shrinking()
    names = list(trained.state_dict())
    trained.pooling_warmup = PoolingWarmup(trained, 64, 100)
    assert list(trained.state_dict()) == names and len(list(trained.parameters())) == len(set(trained.parameters()))
    other = copy.deepcopy(trained).train()
    other.pooling_warmup.set_num_updates(0)
    assert handed_on(other) == [64, 64] and handed_on(trained.train()) == [16, 4]


def test_what_reads_no_more_than_there_will_be_can_be_warmed_up() -> None:
    # Weights for positions before the first pooling, and a decoder for as many vectors as there will be.
    PoolingWarmup(shrinking(self_attention="linformer(compressed=4) | full"), 64, 9)
    PoolingWarmup(shrinking(decoder="concatenated(longest_memory=32)"), 32, 100)

"""Poolings that shrink while a model trains."""

import copy
from itertools import pairwise

import torch

from pyramidions.models import build, preset
from pyramidions.models.training import PoolingWarmup
from pyramidions.nn import Transformer

SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "self_attention": "blockwise(block_size=8)"}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
SOURCE = torch.randint(4, 50, (2, 64), generator=torch.Generator().manual_seed(1))


def model(**overrides: object) -> Transformer:
    torch.manual_seed(0)
    return build(
        preset("pyramidion", **{**SMALL, "pooling_lengths": "16,4", "max_source_positions": 64, **overrides}), 50
    )


def handed_on(model: Transformer) -> list[int]:
    encoded = model.encoder(SOURCE, SOURCE.eq(1))
    return [pooled.x.size(1) for pooled in encoded.pooled.values()]


def test_lengths_halve_together_from_the_longest_document_to_those_configured() -> None:
    trained = model().train()
    warmup = PoolingWarmup(trained, 64, 100)
    found = {}
    for update in (0, 24, 25, 49, 50, 74, 75, 99, 100, 10_000):
        warmup.set_num_updates(update)
        found[update] = handed_on(trained)
    phases = {0: [64, 64], 25: [64, 32], 50: [64, 16], 75: [32, 8], 100: [16, 4]}
    assert found == {**phases, 24: phases[0], 49: phases[25], 74: phases[50], 99: phases[75], 10_000: phases[100]}


def test_no_length_grows_when_lengths_are_no_powers_of_two() -> None:
    trained = model(pooling_lengths="23,5").train()
    warmup, lengths = PoolingWarmup(trained, 64, 7), []
    for update in range(9):
        warmup.set_num_updates(update)
        lengths.append(handed_on(trained))
    assert lengths[0] == [64, 64] and lengths[-2:] == [[23, 5]] * 2
    for before, after in pairwise(lengths):
        assert after[0] <= before[0] and after[1] <= before[1] and after[1] <= after[0]


def test_evaluation_has_the_configured_lengths_throughout() -> None:
    evaluated = model().eval()
    PoolingWarmup(evaluated, 64, 100).set_num_updates(0)
    assert handed_on(evaluated) == [16, 4]


def test_at_first_the_model_computes_what_it_does_without_pooling() -> None:
    pooled, plain = model(**QUIET).train(), model(**QUIET, pooling_lengths=None).train()
    plain.load_state_dict({name: value for name, value in pooled.state_dict().items() if "poolers" not in name})
    PoolingWarmup(pooled, 64, 100).set_num_updates(0)
    torch.testing.assert_close(
        pooled.encoder(SOURCE, SOURCE.eq(1)).sequence.x,
        plain.encoder(SOURCE, SOURCE.eq(1)).sequence.x,
        rtol=0,
        atol=1e-6,
    )


def test_after_the_warmup_the_model_is_the_configured_one() -> None:
    warm, cold = model(**QUIET).train(), model(**QUIET).train()
    warmup = PoolingWarmup(warm, 64, 3)
    for update in range(4):
        warmup.set_num_updates(update)
    prefix = torch.tensor([[2, 5]] * 2)
    assert torch.equal(warm(SOURCE, prefix), cold(SOURCE, prefix))


def test_it_adds_nothing_to_the_weights_and_is_copied_with_the_model() -> None:
    trained = model()
    names = list(trained.state_dict())
    trained.pooling_warmup = PoolingWarmup(trained, 64, 100)
    assert list(trained.state_dict()) == names and len(list(trained.parameters())) == len(set(trained.parameters()))
    other = copy.deepcopy(trained).train()
    other.pooling_warmup.set_num_updates(0)
    assert handed_on(other) == [64, 64] and handed_on(trained.train()) == [16, 4]


def test_what_reads_no_more_than_there_will_be_can_be_warmed_up() -> None:
    # Weights for positions before the first pooling, and a decoder for as many vectors as there will be.
    PoolingWarmup(model(self_attention="linformer(compressed=4) | full"), 64, 9)
    PoolingWarmup(model(decoder="concatenated(longest_memory=32)"), 32, 100)

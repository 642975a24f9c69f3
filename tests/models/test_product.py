"""Any attention, pooling, stack, decoder and feed-forward part: it trains, goes on bit for bit, and decodes.

What cannot be combined is refused by a sentence.
"""

import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from whole_models import PAD, READS_ITSELF, batch, refused, tiny

from pyramidions.base.errors import UserError
from pyramidions.nn import Transformer
from pyramidions.nn.attention import ATTENTION, Feature
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.stack import STACK

# self-attention, pooling ("none", too), stack, decoder, feed-forward part
Combination = tuple[str, str, str, str, str]
#: decoders, and the fields that make them
DECODERS: dict[str, dict[str, str]] = {
    "full": {},
    "hepos": {"cross_attention": "hepos"},
    "discourse": {"cross_attention": "discourse"},
    "hashing": {"decoder_self_attention": "lsh"},
    "concatenated": {"decoder": "concatenated"},
    "concatenated and recurring": {"decoder": "concatenated", "recurrence": "sru"},
}
PRODUCT: list[Combination] = list(
    itertools.product(READS_ITSELF, ["none", *POOLING.names], STACK.names, [*DECODERS], FEED_FORWARD.names)
)
# A step that is prime to the number of kinds of each axis meets all of them; that of the smaller sample meets all pairs
# of stack, decoder and feed-forward part, too. All pairs of attention and pooling are in tests/nn/test_encoder.py.
SAMPLE, LARGE_SAMPLE = PRODUCT[::301], PRODUCT[::31]


def model(combination: Combination) -> Transformer:
    attention, pooling, stack, decoder, feed_forward = combination
    # Reversible layers are pre-norm.
    return tiny(
        attention,
        pooling,
        stack=stack,
        **DECODERS[decoder],
        feed_forward=feed_forward,
        normalize_before=stack == "reversible",
        dropout=0.1,
        attention_dropout=0.1,
        decoder_positions="sinusoidal",
    )


def step(model: Transformer, optimizer: torch.optim.Optimizer, seed: int) -> float:
    torch.manual_seed(seed)
    source, target = batch(23, 9, 1, seed=seed), batch(6, 6, 6, seed=seed + 1)
    loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def check_that_it_decodes_from_a_cache(model: Transformer) -> None:
    source, prefix = batch(23, 9, 1), batch(6, 6, 6, seed=1)
    memories = model.eval().encoder(source, source.eq(PAD)).memories
    whole, cache = model.decoder(prefix, memories), model.decoder.new_cache()
    steps = [model.decoder(prefix[:, t : t + 1], memories, cache) for t in range(prefix.size(1))]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-5)


def is_refused(combination: Combination) -> bool:
    """Hold a combination to what all promise; return whether it is refused."""
    try:
        one, resumed = model(combination).train(), model(combination).train()
    except UserError as refusal:
        (sentence,) = str(refusal).splitlines()
        assert "`" in sentence or "pooling" in sentence, sentence
        assert sentence.endswith("."), sentence
        return True
    first, second = (torch.optim.Adam(each.parameters(), lr=1e-3) for each in (one, resumed))
    assert step(one, first, 1) < 100
    resumed.load_state_dict(copy.deepcopy(one.state_dict()))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    step(one, first, 2), step(resumed, second, 2)
    for name, weight in one.state_dict().items():
        assert weight.isfinite().all() and weight.equal(resumed.state_dict()[name]), name
    check_that_it_decodes_from_a_cache(one)
    return False


def cannot_be(combination: Combination) -> bool:
    attention, pooling, _, decoder, _ = combination
    # A recurrence does not stay inside sentences.
    inside = Feature.UNITS in ATTENTION[attention].supports
    biased = pooling != "none" and POOLING[pooling].biases_keys
    read = decoder in ("full", "hashing")
    # A funnel brings its vectors back to full length.
    lost = pooling not in ("none", "funnel") and not POOLING[pooling].has_provenance
    return (
        refused(attention, pooling)
        or (inside and "recurrence" in DECODERS[decoder])
        or (biased and not read)
        or (lost and decoder == "discourse")
    )


@pytest.mark.parametrize("combination", SAMPLE, ids="-".join)
def test_a_combination_works_or_is_refused(combination: Combination) -> None:
    assert is_refused(combination) == cannot_be(combination)


def test_the_sample_has_every_kind_of_every_axis() -> None:
    for axis in range(5):
        assert {combination[axis] for combination in SAMPLE} == {combination[axis] for combination in PRODUCT}


def check_all(combinations: list[Combination]) -> None:
    refused = [combination for combination in combinations if is_refused(combination)]
    print(f"{len(combinations)} combinations, {len(refused)} of them refused")
    assert refused == [combination for combination in combinations if cannot_be(combination)]


# Every kind is met above.
@pytest.mark.nightly
def test_a_large_sample_works_but_for_attention_that_cannot_stand_beside_its_pooling() -> None:
    check_all(LARGE_SAMPLE)

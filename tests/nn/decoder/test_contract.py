"""What every decoder promises; a new kind is held to it by being registered.

tests/nn/test_decoder.py holds whole models to more.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from small_parts import DIM, SETTING, VOCABULARY, ends_after, layer, vectors
from torch import Tensor, nn

from pyramidions.nn.attention import CrossAttention, Feature, FullAttention, SelfAttention
from pyramidions.nn.decoder import DECODER, Decoder
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.stack import STACK
from pyramidions.nn.sublayer import Memory

kinds = pytest.mark.parametrize("kind", DECODER.names)


def make(kind: str, dropout: float = 0.0, normalize_before: bool = False, projections: str = "dense") -> Decoder:
    torch.manual_seed(0)
    names = DECODER[kind].sublayers
    options = {"projections": projections, "dropout": dropout, "normalize_before": normalize_before}
    given = {
        "embedder": Embedder(nn.Embedding(VOCABULARY, DIM), SinusoidalPositions(DIM), dropout=dropout),
        "layers": [layer(*names, is_causal=True, **options) for _ in range(2)],
        "stack": STACK.build("plain", {}),
        "output": OUTPUT.build("tied", {}),
        "norm": nn.LayerNorm(DIM) if normalize_before else None,
    }
    return DECODER.build(kind, {}, **SETTING, **given).eval()


def prefixes(count: int, length: int) -> Tensor:
    generator = torch.Generator(torch.get_default_device()).manual_seed(3)
    return torch.randint(4, VOCABULARY, (count, length), generator=generator)


def memories() -> tuple[Memory]:
    return (Memory(vectors(2, 4, DIM, seed=1), ends_after(4, 2)),)


@kinds
@torch.no_grad()
def test_features_are_vectors_and_logits_are_made_of_them(kind: str) -> None:
    decoder, tokens = make(kind, normalize_before=True), prefixes(2, 5)
    features = decoder.features(tokens, memories())
    assert features.shape == (2, 5, DIM) and features.isfinite().all()
    logits = decoder(tokens, memories())
    assert logits.shape == (2, 5, VOCABULARY)
    torch.testing.assert_close(logits, decoder.logits(features))
    torch.testing.assert_close(logits, features @ decoder.embedder.tokens.weight.T)


@kinds
@pytest.mark.parametrize(
    ("normalize_before", "projections", "steps"),
    [
        (False, "dense", (1, 1, 1, 1, 1)),
        (True, "dense", (3, 2)),
        *((True, other, (1, 3, 1)) for other in sorted({*PROJECTIONS.names} - {"dense"})),
    ],
)
@torch.no_grad()
def test_a_new_cache_is_empty_and_steps_through_it_equal_a_pass(
    kind: str, normalize_before: bool, projections: str, steps: tuple[int, ...]
) -> None:
    decoder = make(kind, normalize_before=normalize_before, projections=projections)
    tokens, cache = prefixes(4, 5), decoder.new_cache()
    assert (cache.length, cache.documents, cache.width) == (0, 0, 0)
    found = []
    for new in tokens.split(steps, dim=1):
        found.append(decoder.features(new, memories(), cache))
        assert (cache.length, cache.documents, cache.width) == (sum(len(one[0]) for one in found), 2, 2)
    whole = decoder.features(tokens, tuple(memory.select(torch.tensor([0, 0, 1, 1])) for memory in memories()))
    torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=0, atol=1e-5)
    # A pass over several prefixes of a document is one over each.
    torch.testing.assert_close(decoder.features(tokens, memories()), whole, rtol=0, atol=1e-5)


@kinds
@pytest.mark.parametrize("projections", ["dense", "conv"])
@torch.no_grad()
def test_a_position_sees_none_that_follow_it_and_no_padding_of_the_memory(kind: str, projections: str) -> None:
    decoder, tokens, (memory,) = make(kind, projections=projections), prefixes(2, 5), memories()
    before = decoder.features(tokens, (memory,))
    changed = tokens.clone()
    changed[:, 3:] = 3
    torch.testing.assert_close(decoder.features(changed, (memory,))[:, :3], before[:, :3])
    other = memory._replace(x=memory.x.masked_fill(memory.padding_mask[..., None], 1e3))
    torch.testing.assert_close(decoder.features(tokens, (other,)), before)


@kinds
@pytest.mark.parametrize("projections", ["dense", "conv"])
def test_gradients_reach_the_memory_and_every_parameter(kind: str, projections: str) -> None:
    decoder, ((read, padding, *_),) = make(kind, projections=projections).train(), memories()
    read.requires_grad_()
    targets = prefixes(2, 5)
    F.cross_entropy(decoder(targets, (Memory(read, padding),)).flatten(0, 1), targets.flatten()).backward()
    assert read.grad is not None and ((read.grad.abs().sum(dim=-1) > 0) == ~padding).all()
    for name, weight in decoder.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name
        # A bias of all keys alike leaves every attention weight as it is.
        assert weight.grad.any() or "k_proj.bias" in name, name


@kinds
def test_it_tells_how_each_position_spends_its_attention_to_the_memory(kind: str) -> None:
    decoder, (memory,) = make(kind), memories()
    memory.x.requires_grad_()
    assert decoder.tells_weights
    (weights,) = decoder.cross_attention_weights(prefixes(2, 5), (memory,))
    assert weights.shape == (2, 5, 4) and weights.dtype == torch.float32 and not weights.requires_grad
    # Some of it goes to the prefix where there is no attention to the memory alone.
    spent = weights.sum(dim=-1)
    assert ((spent > 0).all() and (spent < 1).all()) or _crossing(decoder)
    assert (weights >= 0).all() and weights[1, :, 2:].eq(0).all() and (weights[0] > 0).all()
    # Not of dropout, and not only of the whole: a longer prefix changes nothing before it.
    (shorter,) = decoder.cross_attention_weights(prefixes(2, 5)[:, :2], (memory,))
    torch.testing.assert_close(weights[:, :2], shorter)


@pytest.mark.parametrize("normalize_before", [False, True])
@torch.no_grad()
def test_weights_of_cross_attention_are_the_mean_over_layers_and_heads_of_those_inside(normalize_before: bool) -> None:
    decoder, seen = make("cross_attending", normalize_before=normalize_before), []

    def watch(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        q, k, _, context = inputs
        hidden = context.padding_mask[:, None, None]
        seen.append((q @ k.mT / q.size(-1) ** 0.5).masked_fill(hidden, -torch.inf).softmax(-1))

    for part in _crossing(decoder):
        part.attention.register_forward_hook(watch)
    decoder(prefixes(2, 5), memories())
    assert len(seen) == 2
    (found,) = decoder.cross_attention_weights(prefixes(2, 5), memories())
    torch.testing.assert_close(found, torch.stack(seen).mean(dim=(0, 2)))


class Silent(FullAttention):
    """Attention that cannot tell its weights."""

    supports = FullAttention.supports - {Feature.WEIGHTS}


@kinds
def test_it_says_whether_its_attention_can_tell(kind: str) -> None:
    decoder = make(kind)
    attending = _crossing(decoder) or [part for part in decoder.modules() if isinstance(part, SelfAttention)]
    attending[-1].attention = Silent()
    assert not decoder.tells_weights


def _crossing(decoder: Decoder) -> list[CrossAttention]:
    return [part for part in decoder.modules() if isinstance(part, CrossAttention)]


@kinds
def test_prefixes_are_as_many_of_each_document(kind: str) -> None:
    with pytest.raises(ValueError, match=r"`tokens` \(3 rows\)"):
        make(kind).features(prefixes(3, 2), memories())


@kinds
def test_the_same_seed_drops_the_same_and_evaluation_drops_nothing(kind: str) -> None:
    decoder, found = make(kind, dropout=0.3), []
    for _ in range(2):
        torch.manual_seed(5)
        found.append(decoder.train().features(prefixes(2, 5), memories()))
    expected = make(kind).features(prefixes(2, 5), memories())
    assert torch.equal(*found) and not found[0].equal(expected)
    assert decoder.eval().features(prefixes(2, 5), memories()).equal(expected)

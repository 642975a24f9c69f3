"""What every decoder promises; a new kind is held to it by being registered.

tests/nn/test_decoder.py holds whole models to more.
"""

from typing import Any

import pytest
import torch
from small_parts import DIM, SETTING, VOCABULARY, ends_after, layer, vectors
from torch import Tensor, nn

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.attention import CrossAttention, Feature, FullAttention, SelfAttention
from pyramidions.nn.decoder import DECODER, Decoder
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.positions import SinusoidalPositions
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
def test_logits_are_made_of_features_and_a_pass_over_several_prefixes_of_a_document_is_one_over_each(kind: str) -> None:
    decoder, tokens = make(kind, normalize_before=True), prefixes(4, 5)
    features = decoder.features(tokens, memories())
    assert features.shape == (4, 5, DIM)
    torch.testing.assert_close(decoder(tokens, memories()), features @ decoder.embedder.tokens.weight.T)
    each = tuple(memory.select(torch.tensor([0, 0, 1, 1])) for memory in memories())
    torch.testing.assert_close(decoder.features(tokens, each), features, rtol=0, atol=1e-5)


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
def test_the_same_seed_drops_the_same_and_evaluation_drops_nothing(kind: str) -> None:
    decoder, found = make(kind, dropout=0.3), []
    for _ in range(2):
        torch.manual_seed(5)
        found.append(decoder.train().features(prefixes(2, 5), memories()))
    expected = make(kind).features(prefixes(2, 5), memories())
    assert torch.equal(*found) and not found[0].equal(expected)
    assert decoder.eval().features(prefixes(2, 5), memories()).equal(expected)


SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2}


def model(start: str) -> Transformer:
    torch.manual_seed(3)
    return build(preset("vanilla", **SMALL, decoder_start=start), vocab_size=20).eval()


def test_the_start_stands_for_the_first_token_of_a_prefix() -> None:
    document, other = torch.randint(4, 20, (2, 9)), torch.tensor([[7, 5, 6], [8, 9, 4]])
    given = torch.cat([torch.zeros_like(other[:, :1]), other[:, 1:]], dim=1)
    assert torch.equal(model("<s>")(document, other), model("</s>")(document, given))
    memory = (Memory(torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)),)
    (ours,) = model("<s>").decoder.cross_attention_weights(other, memory)
    assert torch.equal(ours, model("</s>").decoder.cross_attention_weights(given, memory)[0])
    ((found,),) = BeamSearch(1, min_len=3, max_len=3)(model("<s>"), document[:1])
    logits = model("</s>")(document[:1], torch.cat([torch.zeros(1, 1).long(), found.tokens[None, :-1]], dim=1))
    expected = logits[0].log_softmax(-1).gather(1, found.tokens[:, None])[:, 0]
    torch.testing.assert_close(found.token_scores, expected, rtol=0, atol=1e-5)


def test_cached_steps_read_it_once() -> None:
    started = model("<s>")
    memory, tokens = torch.randn(1, 5, 16), torch.tensor([[2, 5, 6, 2]])
    cache = started.decoder.new_cache()
    steps = [started.decoder(tokens[:, t : t + 1], (Memory(memory),), cache) for t in range(4)]
    torch.testing.assert_close(torch.cat(steps, dim=1), started.decoder(tokens, (Memory(memory),)), rtol=0, atol=1e-5)

"""The concatenated decoder, beside layers that run over each document by hand."""

import pytest
import torch
from small_parts import DIM, VOCABULARY, ends_after, layer, vectors
from torch import Tensor, nn

from pyramidions.nn.decoder import ConcatenatedDecoder
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.positions import SinusoidalPositions
from pyramidions.nn.stack import STACK
from pyramidions.nn.sublayer import LayerContext, Memory

forms = pytest.mark.parametrize("stack", STACK.names)


def make(stack: str = "plain", recurs: bool = False, attention_layers: int = 2, dropout: float = 0.0):
    torch.manual_seed(0)
    names = ConcatenatedDecoder.sublayers_with({"attention_layers": attention_layers})
    options = {"is_causal": True, "normalize_before": True, "recurs": recurs, "dropout": dropout}
    return ConcatenatedDecoder(
        Embedder(nn.Embedding(VOCABULARY, DIM), SinusoidalPositions(DIM), dropout=dropout),
        [layer(*names, **options) for _ in range(2)],
        STACK.build(stack, {}),
        OUTPUT.build("tied", {}),
        nn.LayerNorm(DIM),
        attention_layers=attention_layers,
    ).eval()


def prefixes(count: int, length: int, seed: int = 3) -> Tensor:
    return torch.randint(4, VOCABULARY, (count, length), generator=torch.Generator().manual_seed(seed))


def by_hand(decoder: ConcatenatedDecoder, vectors: Tensor, tokens: Tensor) -> Tensor:
    """Return the features of one document, (K, D) and (T,) without any padding, layer by layer."""
    joined = torch.cat([vectors, decoder.embedder(tokens[None])[0]])[None]
    first = second = joined
    for one in decoder.layers:
        for sublayer in one.sublayers.values():
            if decoder.stack.streams == 2:
                first, second = second, first + sublayer.branch(second, LayerContext())
            else:
                first = second = sublayer(first, LayerContext())
    return decoder.norm((first + second) / 2)[0, len(vectors) :]


@forms
@torch.no_grad()
def test_a_document_in_a_batch_is_what_it_is_alone_wherever_its_padding_stands(stack: str) -> None:
    decoder, x, tokens = make(stack, recurs=True), vectors(4, 5, DIM, seed=1), prefixes(4, 6)
    padding = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()
    found = decoder.features(tokens, (Memory(x.masked_fill(padding[..., None], 1e3), padding),))
    for row in range(4):
        expected = by_hand(decoder, x[row][~padding[row]], tokens[row])
        torch.testing.assert_close(found[row], expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_memory_is_read_once_and_shared_by_its_hypotheses() -> None:
    decoder, memory = make(), Memory(vectors(2, 5, DIM, seed=1), ends_after(5, 3))
    cache, read = decoder.new_cache(), []
    decoder.layers[0].sublayers["feed_forward"].norm.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    for token in prefixes(6, 3).split(1, dim=1):
        decoder.features(token, (memory,), cache)
    # Five vectors of each document, then a token of each of its three hypotheses.
    assert [tuple(x.shape[:2]) for x in read] == [(2, 5), (2, 3), (2, 3), (2, 3)]


@torch.no_grad()
def test_a_layer_has_as_many_self_attentions_as_are_asked_for() -> None:
    tokens, memory = prefixes(1, 3), Memory(vectors(1, 4, DIM))
    for count in (1, 3):
        decoder = make(attention_layers=count)
        names = ["self_attention", "self_attention_2", "self_attention_3"][:count]
        assert list(decoder.layers[0].sublayers) == [*names, "feed_forward"]
        expected = by_hand(decoder, memory.x[0], tokens[0])
        torch.testing.assert_close(decoder.features(tokens, (memory,))[0], expected)


@torch.no_grad()
def test_weights_are_the_mean_over_layers_and_heads_of_what_goes_to_the_memory() -> None:
    decoder, tokens = make("plain"), prefixes(2, 3)
    memory = Memory(vectors(2, 4, DIM, seed=1), torch.tensor([[False] * 4, [True, False, False, True]]))
    (found,) = decoder.cross_attention_weights(tokens, (memory,))
    seen: list[tuple[Tensor, Tensor]] = []
    for one in decoder.layers:
        for name in ("self_attention", "self_attention_2"):
            attention = one.sublayers[name].function.attention
            attention.register_forward_hook(lambda _, given, out: seen.append((given[0], given[1])))
    for row in range(2):
        real = ~memory.padding_mask[row]
        seen.clear()
        by_hand(decoder, memory.x[row][real], tokens[row])
        length = int(real.sum())
        hidden = torch.ones(length + 3, length + 3).triu(1).bool()
        weights = [((q @ k.mT) / q.size(-1) ** 0.5).masked_fill(hidden, -torch.inf).softmax(-1) for q, k in seen]
        expected = torch.stack(weights).mean(dim=(0, 1, 2))[length:, :length]
        torch.testing.assert_close(found[row][:, real], expected, rtol=0, atol=1e-5)
        assert not found[row][:, ~real].any()

"""HAT and HMNet at tiny size: two levels of layers, and a decoder that reads both."""

import pytest
import torch
import torch.nn.functional as F
from reading import MARKER, PAD, small
from torch import Tensor

from pyramidions.nn import Transformer

#: a pooling of tokens in front of that of units
POOLED = {
    "hat": {"pooling": "soft_topk | markers", "pooling_lengths": "None,None,None,16,None,8,None"},
    "hmnet": {
        "pooling": "soft_topk | markers(role_tokens=4, numbers=True)",
        "pooling_lengths": "None,None,16,None,None,8,None,None,None,None,None,None",
    },
}
hierarchies = pytest.mark.parametrize("name", ["hat", "hmnet"])


def model(name: str, pooled: bool = False) -> Transformer:
    return small(name, decoder_layers=2, **(POOLED[name] if pooled else {}))


def documents() -> Tensor:
    """Two meetings, of five turns and of one."""
    first, second = torch.arange(5, 38), torch.arange(9, 20)
    first[[6, 13, 14, 27]] = MARKER
    return torch.stack([first, F.pad(second, (0, 22), value=PAD)])


@hierarchies
def test_the_decoder_reads_tokens_first_then_units(name: str) -> None:
    tokens = documents()
    words, units = model(name).encoder(tokens, tokens.eq(PAD)).memories
    assert words.x.shape == (2, 33, 16) and units.x.shape == (2, 5, 16)
    assert units.padding_mask is not None and units.padding_mask.sum(dim=1).tolist() == [0, 4]


@pytest.mark.parametrize(("name", "pooled"), [("hat", True), ("hmnet", False), ("hmnet", True)])
def test_it_learns_and_writes_the_same_with_a_cache_and_without(name: str, pooled: bool) -> None:
    whole, tokens, written = model(name, pooled).train(), documents(), torch.arange(5, 17).view(2, 6)
    optimizer = torch.optim.Adam(whole.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        loss = F.cross_entropy(whole(tokens, written).flatten(0, 1), written.flatten())
        losses.append(loss.item())
        loss.backward()
        assert [key for key, weight in whole.named_parameters() if weight.grad is None] == []
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0]
    whole.eval()
    with torch.no_grad():
        memories, cache = whole.encoder(tokens, tokens.eq(PAD)).memories, whole.decoder.new_cache()
        at_once = whole.decoder(written, memories)
        steps = [whole.decoder(written[:, step : step + 1], memories, cache) for step in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), at_once, rtol=0, atol=1e-5)

"""What every decoder promises, of whatever cross-attention, positions and stack it is made."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from covering import covering
from torch import Tensor
from whole_models import STACKS, VOCABULARY, batch, decode, encode, tiny

from pyramidions.nn import Transformer
from pyramidions.nn.attention import Feature, supporting
from pyramidions.nn.decoder import DECODER

CROSSING = supporting(Feature.OTHERS)
WRITING = supporting(Feature.STEPS)
# Each attention, position, stack and decoder once; all together at night.
CASES = [
    *itertools.product(["concatenated"], ["sinusoidal"], STACKS, ["full"]),
    *itertools.product(CROSSING, ["none", "sinusoidal"], STACKS, ["full"]),
    *itertools.product(["full"], ["sinusoidal"], STACKS, sorted({*WRITING} - {"full"})),
]
every = pytest.mark.parametrize(("cross", "positions", "stack", "own"), covering(CASES, strength=1))
# The second has fewer vectors than the others.
LENGTHS = (24, 3, 13)


def make(cross: str, positions: str, stack: str, own: str = "full") -> Transformer:
    reads = {"decoder": cross} if cross in DECODER.names else {"cross_attention": cross}
    fields = {**reads, "decoder_positions": positions, "decoder_self_attention": own, **STACKS[stack]}
    return tiny("full", "soft_topk", **fields).eval()


def seeded(seed: int) -> torch.Generator:
    return torch.Generator(torch.get_default_device()).manual_seed(seed)


def prefixes(count: int, length: int, seed: int = 7) -> Tensor:
    return torch.randint(4, VOCABULARY, (count, length), generator=seeded(seed))


@every
@torch.no_grad()
def test_a_token_changes_nothing_before_it(cross: str, positions: str, stack: str, own: str) -> None:
    model, tokens = make(cross, positions, stack, own), prefixes(3, 6)
    memory, mask = encode(model, batch(*LENGTHS))
    before = decode(model, tokens, memory, mask)
    for place in range(6):
        changed = tokens.clone()
        changed[:, place] = 4 + (changed[:, place] - 3) % (VOCABULARY - 4)
        after = decode(model, changed, memory, mask)
        if own == "full":
            assert after[:, :place].equal(before[:, :place])
        # What is sorted may be summed in another order.
        torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=1e-6)
        assert not torch.isclose(after[:, place:], before[:, place:], atol=1e-6).all(dim=-1).any()
    longer = decode(model, F.pad(tokens, (0, 3), value=1), memory, mask)
    torch.testing.assert_close(longer[:, :6], before, rtol=0, atol=1e-6)


@every
@torch.no_grad()
def test_a_batch_equals_its_documents_alone_and_padding_of_the_memory_is_not_read(
    cross: str, positions: str, stack: str, own: str
) -> None:
    model, tokens = make(cross, positions, stack, own), prefixes(3, 5)
    memory, mask = encode(model, batch(*LENGTHS))
    together = decode(model, tokens, memory, mask)
    for row, padding in enumerate(mask):
        alone = decode(model, tokens[row : row + 1], memory[row : row + 1, ~padding], None)
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-5)
    more = F.pad(memory, (0, 0, 0, 4), value=9.0), F.pad(mask, (0, 4), value=True)
    torch.testing.assert_close(decode(model, tokens, *more), together, rtol=0, atol=1e-5)


@every
def test_gradients_reach_the_memory_and_every_parameter(cross: str, positions: str, stack: str, own: str) -> None:
    model = make(cross, positions, stack, own).train()
    memory = torch.randn(3, 5, 8, generator=seeded(1)).requires_grad_()
    decode(model, prefixes(3, 4), memory, None).square().sum().backward()
    assert memory.grad is not None and (memory.grad.abs().sum(dim=-1) > 0).all()
    for name, weight in model.decoder.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name
        # A bias of all keys alike leaves every attention weight as it is.
        assert weight.grad.any() or "k_proj.bias" in name, name


@every
@torch.no_grad()
def test_the_document_and_the_whole_prefix_count(cross: str, positions: str, stack: str, own: str) -> None:
    model, tokens = make(cross, positions, stack, own), prefixes(2, 4)
    memory, _ = encode(model, batch(24, 24))
    assert not torch.allclose(decode(model, tokens, memory, None), decode(model, tokens, memory.flip(0), None))
    # With positions, even of equal tokens the second is another than the first.
    same = decode(model, torch.full((2, 2), 5), memory, None)
    assert torch.allclose(same[:, 0], same[:, 1], atol=1e-6) == (positions == "none")

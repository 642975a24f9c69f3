"""Windows and global tokens beside the encoder's self-attention of Hugging Face's LED."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pyramidions.nn.attention import GlobalRows, SelfAttention, SlidingWindowAttention
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.structure import StructureOf
from pyramidions.nn.sublayer import LayerContext

DIM, HEADS, WINDOW = 48, 3, 8


def released() -> Any:
    """LED's attention with random weights, biases too."""
    from transformers import LEDConfig
    from transformers.models.led.modeling_led import LEDEncoderAttention

    config = LEDConfig(
        d_model=DIM, encoder_attention_heads=HEADS, attention_window=[WINDOW], attention_dropout=0.0, encoder_layers=1
    )
    torch.manual_seed(0)
    theirs = LEDEncoderAttention(config, 0).eval()
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.15)
    return theirs


def ours_of(theirs: Any) -> SelfAttention:
    """Our sublayer with the weights of LED's."""
    first, second = DenseProjections(DIM, HEADS), DenseProjections(DIM, HEADS, joins_heads=False)
    inner = theirs.longformer_self_attn
    pairs = [
        *((getattr(first, f"{name[0]}_proj"), getattr(inner, name)) for name in ("query", "key", "value")),
        *((getattr(second, f"{name[0]}_proj"), getattr(inner, f"{name}_global")) for name in ("query", "key", "value")),
        (first.out_proj, theirs.output),
    ]
    for mine, other in pairs:
        mine.load_state_dict(other.state_dict())
    return SelfAttention(first, SlidingWindowAttention(WINDOW), global_rows=GlobalRows(second)).eval()


def run(theirs: Any, x: Tensor, padding_mask: Tensor, marks: Marks) -> Tensor:
    """Run LED's attention, which wants lengths that its window divides, as its encoder does."""
    length = x.size(1)
    missing = -length % WINDOW
    x = nn.functional.pad(x, (0, 0, 0, missing))
    padding_mask = nn.functional.pad(padding_mask, (0, missing), value=True)
    marked = nn.functional.pad(marks.marked, (0, missing))
    mask = torch.zeros(padding_mask.shape).masked_fill(padding_mask, -10_000.0).masked_fill(marked, 10_000.0)
    return theirs(x, mask, padding_mask, marked, bool(marked.any()))[0][:, :length]


@pytest.mark.parametrize(
    ("length", "first"), [(1, 1), (4, 3), (5, 1), (8, 40), (9, 3), (23, 40), (64, 1), (150, 40), (300, 3)]
)
@torch.no_grad()
def test_outputs_are_those_of_led(length: int, first: int) -> None:
    theirs = released()
    ours, x = ours_of(theirs), torch.randn(3, length, DIM)
    padding_mask = torch.arange(length) >= torch.tensor([[length], [max(1, length - 5)], [(length + 1) // 2]])
    structure = StructureOf(global_tokens=first)(padding_mask.long(), padding_mask)
    # The first tokens of each document, or any, other ones in each.
    anywhere = (torch.rand(3, length, generator=torch.Generator().manual_seed(3)) < 0.2) & ~padding_mask
    anywhere[:, 0] = True
    for marks in (structure.marks, Marks(anywhere, int(anywhere.sum(dim=1).max()))):
        assert marks is not None
        found = ours(x, LayerContext(padding_mask, marks=marks))
        expected = run(theirs, x, padding_mask, marks)
        torch.testing.assert_close(found[~padding_mask], expected[~padding_mask], rtol=0, atol=1e-5)

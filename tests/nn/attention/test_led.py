"""Windows and global tokens beside the encoder's self-attention of Hugging Face's LED."""

from typing import Any

import torch
from tables import for_each
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


@for_each("length", [1, 2, 4, 5, 6, 8, 9, 16, 23, 64, 150, 300])
@for_each("first", [1, 3, 40])
@torch.no_grad()
def test_outputs_are_those_of_led(length: int, first: int) -> None:
    theirs = released()
    ours, x = ours_of(theirs), torch.randn(3, length, DIM)
    padding_mask = torch.arange(length) >= torch.tensor([[length], [max(1, length - 5)], [(length + 1) // 2]])
    marks = StructureOf(global_tokens=first)(padding_mask.long(), padding_mask).marks
    assert marks is not None
    found = ours(x, LayerContext(padding_mask, marks=marks))
    expected = run(theirs, x, padding_mask, marks)
    torch.testing.assert_close(found[~padding_mask], expected[~padding_mask], rtol=0, atol=1e-5)


@torch.no_grad()
def test_marks_anywhere_and_other_ones_in_each_document() -> None:
    theirs = released()
    ours, x = ours_of(theirs), torch.randn(3, 50, DIM)
    padding_mask = torch.arange(50) >= torch.tensor([[50], [41], [20]])
    marked = (torch.rand(3, 50, generator=torch.Generator().manual_seed(3)) < 0.2) & ~padding_mask
    marked[:, 7] = True
    marks = Marks(marked, int(marked.sum(dim=1).max()))
    found = ours(x, LayerContext(padding_mask, marks=marks))
    torch.testing.assert_close(
        found[~padding_mask], run(theirs, x, padding_mask, marks)[~padding_mask], rtol=0, atol=1e-5
    )


def test_gradients_are_those_of_led() -> None:
    theirs = released()
    ours = ours_of(theirs)
    padding_mask = torch.zeros(2, 70, dtype=torch.bool)
    x = torch.randn(2, 70, DIM, requires_grad=True)
    weight = torch.randn(2, 70, DIM)
    marks = StructureOf(global_tokens=2)(padding_mask.long(), padding_mask).marks
    assert marks is not None
    found = torch.autograd.grad((ours(x, LayerContext(marks=marks)) * weight).sum(), x)[0]
    expected = torch.autograd.grad((run(theirs, x, padding_mask, marks) * weight).sum(), x)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)

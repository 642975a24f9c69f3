"""Attention inside units, against full attention with a mask that keeps units apart."""

import pytest
import torch
from torch import Tensor

from pyramidions.nn.attention import SegmentsAttention
from pyramidions.nn.sublayer import LayerContext
from pyramidions.nn.units import Units

# A digit per position, the number of its unit; "." is padding.
TEXTS = ["0000011122", "0", "01234", "00000000000000000", "0011......", "...0012...", "00..11..11", "....."]


def units(*texts: str) -> Tensor:
    width = max(map(len, texts))
    return torch.tensor([[-1 if digit == "." else int(digit) for digit in text.ljust(width, ".")] for text in texts])


def heads(unit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator(torch.get_default_device()).manual_seed(0)
    q, k, v = (torch.randn(len(unit), 2, unit.size(1), 8, generator=generator) for _ in range(3))
    return q, k, v


def apart(unit: Tensor, length: int) -> Tensor:
    """Return which positions of documents must not see each other: (B, L, L)."""
    segment = torch.zeros_like(unit)
    for document, row in zip(unit.tolist(), segment, strict=True):
        number, size = 0, 0
        for place, one in enumerate(document):
            size = 0 if place and one != document[place - 1] else size
            number, size = number + (size % length == 0), size + 1
            row[place] = number
    padding = unit < 0
    return (segment[:, :, None] != segment[:, None]) | padding[:, :, None] | padding[:, None]


@pytest.mark.parametrize("length", [1, 3, 4, 64])
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[1:2], TEXTS[7:]])
def test_it_is_full_attention_with_units_and_their_segments_kept_apart(texts: list[str], length: int) -> None:
    unit = units(*texts)
    given, real, hidden = [x.requires_grad_() for x in heads(unit)], unit >= 0, apart(unit, length)[:, None]
    q, k, v = given
    found = SegmentsAttention(length)(q, k, v, LayerContext(~real, units=Units(unit)))
    weights = (q @ k.mT / 8**0.5).masked_fill(hidden, -1e9).softmax(dim=-1).masked_fill(hidden, 0.0)
    assert found.isfinite().all()
    outputs = [x.transpose(1, 2)[real] for x in (found, weights @ v)]
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*(torch.autograd.grad(x.square().sum(), given, retain_graph=True) for x in outputs))
    received = SegmentsAttention(length).received(q, k, LayerContext(~real, units=Units(unit)))
    torch.testing.assert_close(received, weights.sum(dim=(1, 2)))


def test_units_of_like_length_share_a_batch_and_none_is_padded_to_more_than_twice_its_length() -> None:
    unit = torch.arange(60).repeat_interleave(torch.arange(1, 61))[None]
    rows = Units(unit).segments(64).rows
    shapes = [batch.shape for batch in rows]
    assert shapes == [(16, 16), (16, 32), (28, 60)]
    assert sum(count * width for count, width in shapes) < 1.5 * unit.numel()
    assert max(width for batch in Units(unit).segments(32).rows for width in batch.shape[1:]) == 32
    (filled,) = Units(units("000011112222")).segments(4).rows
    assert filled.shape == (3, 4) and filled.padding_mask is None


def test_places_count_from_the_start_of_each_unit() -> None:
    places = Units(units("0001122223", "0011......")).places
    assert places[0].tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3, 0]
    assert places[1, :4].tolist() == [0, 1, 0, 1] and places.max() < 10

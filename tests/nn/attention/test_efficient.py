import pytest
import torch
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, EfficientAttention
from pyramidions.nn.attention.local_heads import LocalHeads
from pyramidions.nn.sublayer import LayerContext


def test_queries_read_a_summary_of_all_keys() -> None:
    q, k, v = torch.randn(3, 2, 3, 7, 4)
    mask = torch.arange(7) >= torch.tensor([[7], [5]])
    out = EfficientAttention(local_heads=0)(q, k, v, LayerContext(mask))
    for row, length in enumerate((7, 5)):
        for head in range(3):
            keys = k[row, head, :length].softmax(dim=0)
            expected = q[row, head].softmax(dim=1) @ (keys.T @ v[row, head, :length])
            torch.testing.assert_close(out[row, head], expected)


@pytest.mark.parametrize("autocast", [False, True])
def test_weights_of_many_keys_are_not_rounded_to_half_precision(autocast: bool) -> None:
    # Of so many like keys each weighs 200.5 of float16's least numbers.
    q, v = torch.zeros(1, 1, 83_677, 32).half(), torch.ones(1, 1, 83_677, 32).half()
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        out = EfficientAttention(local_heads=0)(q, q, v)
    assert out.dtype == torch.half and out[0, 0, 0].tolist() == pytest.approx([1.0] * 32, abs=1e-3)


@pytest.mark.parametrize("kind", ["efficient", "lsh"])
def test_a_local_window_has_both_sides_and_no_other_name(kind: str) -> None:
    assert ATTENTION.build(kind, {"local_window": 6}).local.side == 3
    assert ATTENTION.build(kind, {}).local.side == 128
    with pytest.raises(ValueError, match="has no option 'window'"):
        ATTENTION.build(kind, {"window": 3})


@for_each("window", [2, 4, 6, 100])
def test_local_heads_attend_within_their_window(window: int) -> None:
    q, k, v = torch.randn(3, 2, 2, 11, 4)
    mask = torch.arange(11) >= torch.tensor([[11], [6]])
    far = (torch.arange(11)[:, None] - torch.arange(11)).abs() > window // 2
    hidden = far | mask[:, None, None]
    expected = (q @ k.transpose(-1, -2) / 2).masked_fill(hidden, -torch.inf).softmax(-1) @ v
    out = EfficientAttention(local_heads=2, local_window=window)(q, k, v, LayerContext(mask))
    torch.testing.assert_close(out[0], expected[0])
    torch.testing.assert_close(out[1, :, :6], expected[1, :, :6])


@pytest.mark.parametrize("see_themselves", [False, True])
def test_local_heads_hand_torch_four_dimensions_which_is_what_fused_kernels_know(
    see_themselves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.Size, torch.Size]] = []
    fused = torch.nn.functional.scaled_dot_product_attention

    def watched(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, **rest: object) -> Tensor:
        seen.append((k.shape, attn_mask.shape))
        return fused(q, k, v, attn_mask, **rest)

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", watched)
    monkeypatch.setattr("pyramidions.nn.functional.attention.computes_in_tiles", lambda x: False)
    x = torch.randn(2, 3, 11, 4)
    LocalHeads(3, 8, see_themselves=see_themselves).beside(lambda *_: x, x, x, x, None)
    # Two documents of three chunks, each of which sees three.
    assert seen == [((6, 3, 12, 4), (6, 1, 4, 12))]


def test_the_first_heads_are_the_local_ones() -> None:
    q, k, v = torch.randn(3, 1, 3, 9, 4)
    both = EfficientAttention(local_heads=1, local_window=4)(q, k, v)
    assert torch.equal(both[:, 1:], EfficientAttention(local_heads=0)(q[:, 1:], k[:, 1:], v[:, 1:]))
    assert torch.equal(both[:, :1], EfficientAttention(local_heads=1, local_window=4)(q[:, :1], k[:, :1], v[:, :1]))

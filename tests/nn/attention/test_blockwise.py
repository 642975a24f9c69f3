import torch

from pyramidions.nn.attention import BlockwiseAttention, FullAttention


def test_each_block_is_full_attention_on_its_own() -> None:
    q, k, v = torch.randn(3, 2, 2, 10, 8).unbind(0)
    out = BlockwiseAttention(block_size=4)(q, k, v)
    full = FullAttention()
    for start, end in ((0, 4), (4, 8), (8, 10)):
        block = slice(start, end)
        torch.testing.assert_close(out[:, :, block], full(q[:, :, block], k[:, :, block], v[:, :, block]))

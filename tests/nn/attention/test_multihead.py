import pytest
import torch
from torch import nn

from pyramidions.nn.attention import FullAttention, SelfAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext


def test_it_equals_torch_multihead_attention() -> None:
    ours, theirs = DenseProjections(16, 4), nn.MultiheadAttention(16, 4, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.q_proj.bias, ours.k_proj.bias, ours.v_proj.bias]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    x, mask = torch.randn(2, 5, 16), torch.tensor([[False] * 5, [False, False, True, True, True]])
    out = SelfAttention(ours, FullAttention())(x, LayerContext(mask))
    torch.testing.assert_close(out, theirs(x, x, x, key_padding_mask=mask, need_weights=False)[0])


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`embed_dim` \(16\) must be divisible by `num_heads` \(3\)."):
        DenseProjections(16, 3)

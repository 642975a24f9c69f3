"""Full attention beside torch's, and what it tells of long sequences."""

import torch
from small_parts import ends_after
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
    x, mask = torch.randn(2, 5, 16), ends_after(5, 2)
    out = SelfAttention(ours, FullAttention())(x, LayerContext(mask))
    torch.testing.assert_close(out, theirs(x, x, x, key_padding_mask=mask, need_weights=False)[0])


def test_what_is_received_adds_up_over_more_rows_than_are_held_at_a_time() -> None:
    (q, k), mask = torch.randn(2, 2, 2, 600, 8), ends_after(600, 300)
    weights = (q @ k.mT / 8**0.5).masked_fill(mask[:, None, None], -torch.inf).softmax(-1)
    expected = weights.masked_fill(mask[:, None, :, None], 0.0).sum((1, 2))
    torch.testing.assert_close(FullAttention().received(q, k, LayerContext(mask)), expected)

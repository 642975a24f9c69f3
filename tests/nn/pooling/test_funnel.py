"""Funnel against a forward written out by hand."""

import torch
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn import Encoder
from pyramidions.nn.layer import Layer

WINDOW, BLOCK = 4, 8


def encoder(normalize_before: bool) -> Encoder:
    torch.manual_seed(0)
    config = preset(
        "funnel",
        embed_dim=16,
        ffn_embed_dim=32,
        num_heads=2,
        encoder_layers=3,
        pooling_lengths="8,None,None",
        max_source_positions=8 * WINDOW,
        self_attention=f"blockwise(block_size={BLOCK})",
        normalize_before=normalize_before,
    )
    return build(config, vocab_size=50).encoder.eval()


def layer_on_block(layer: Layer, queries: Tensor, keys: Tensor, pre: bool) -> Tensor:
    """One layer on one block, every head by itself: (Q, D), (M, D) -> (Q, D)."""
    around, last = layer.sublayers.values()
    a, feed_forward = around.function.projections, last.function
    read, seen = (around.norm(queries), around.norm(keys)) if pre else (queries, keys)
    heads = []
    for head in range(2):
        part = slice(8 * head, 8 * head + 8)
        q, k, v = a.q_proj(read)[:, part], a.k_proj(seen)[:, part], a.v_proj(seen)[:, part]
        heads.append((q @ k.T / 8**0.5).softmax(-1) @ v)
    x = queries + a.out_proj(torch.cat(heads, -1))
    x = x if pre else around.norm(x)
    fed = feed_forward.fc2(feed_forward.fc1(last.norm(x) if pre else x).relu())
    return x + fed if pre else last.norm(x + fed)


def by_hand(encoder: Encoder, tokens: Tensor, pre: bool) -> Tensor:
    """The whole encoder on one document without padding: (L,) -> (L, D)."""
    length = len(tokens)
    x = encoder.embedder(tokens[None])[0]
    first = torch.cat([layer_on_block(encoder.layers[0], b, b, pre) for b in x.split(BLOCK)])
    pooled = []
    for block in first.split(BLOCK):
        queries = torch.stack([window.mean(0) for window in block.split(WINDOW)])
        pooled.append(layer_on_block(encoder.poolers["0"].layer, queries, block, pre))
    y = torch.cat(pooled)
    y = torch.cat([layer_on_block(encoder.layers[1], b, b, pre) for b in y.split(BLOCK)])
    y = y.repeat_interleave(WINDOW, 0)[:length] + first
    return encoder.norm(y) if encoder.norm is not None else y


def test_it_equals_a_forward_by_hand_whatever_the_batch() -> None:
    for pre in (False, True):
        model = encoder(pre)
        lengths = [32, 19, 7]
        tokens = torch.randint(4, 50, (3, 32), generator=torch.Generator().manual_seed(1))
        padding_mask = torch.arange(32) >= torch.tensor(lengths)[:, None]
        encoded = model(tokens, padding_mask)
        assert torch.equal(encoded.sequence.padding_mask, padding_mask)
        for row, length in enumerate(lengths):
            torch.testing.assert_close(encoded.sequence.x[row, :length], by_hand(model, tokens[row, :length], pre))

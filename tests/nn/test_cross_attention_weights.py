"""What the decoder looks at, against what its attention is seen to do."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pyramidions.models import PyramidionConfig, build


@pytest.mark.parametrize("normalize_before", [False, True])
def test_it_is_the_mean_over_layers_and_heads_of_the_weights_seen_inside(normalize_before: bool) -> None:
    torch.manual_seed(0)
    config = PyramidionConfig(
        embed_dim=8, ffn_embed_dim=16, num_heads=2, encoder_layers=1, decoder_layers=3,
        normalize_before=normalize_before, decoder_positions="sinusoidal",
    )  # fmt: skip
    model = build(config, 50, 1).eval()
    source, prefix = torch.randint(4, 50, (2, 9)), torch.randint(4, 50, (2, 5))
    source[1, 6:] = 1
    encoded = model.encoder(source, source.eq(1))
    seen: list[Tensor] = []

    def watch(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        q, k, _, context = inputs
        seen.append(
            (q @ k.transpose(-1, -2) / 2).masked_fill(context.padding_mask[:, None, None], -torch.inf).softmax(-1)
        )

    for layer in model.decoder.layers:
        layer.sublayers["cross_attention"].function.attention.register_forward_hook(watch)
    with torch.no_grad():
        model.decoder(prefix, encoded.memories)
    expected = torch.stack(seen).mean(dim=(0, 2))
    (got,) = model.decoder.cross_attention_weights(prefix, encoded.memories)
    assert got.shape == (2, 5, 9)
    torch.testing.assert_close(got, expected)

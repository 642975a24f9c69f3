"""Kinds and options of attention that differ from layer to layer."""

import torch

from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.nn.attention import (
    CoreAttention,
    FullAttention,
    LSHAttention,
    SelfAttention,
    SinkhornAttention,
    SlidingWindowAttention,
)


def made(attention: str) -> Transformer:
    shape = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "encoder_layers": 4}
    config = preset("vanilla", **shape, self_attention=attention)
    return build(config, vocab_size=50)


def test_layers_of_a_decoder_attend_to_its_own_tokens_each_in_its_way() -> None:
    attention = "lsh(bucket_size=8) | full | lsh(num_buckets=4)"
    model = build(preset("vanilla", decoder_self_attention=attention, decoder_layers=3), vocab_size=50)
    first, second, third = (layer.function(SelfAttention).attention for layer in model.decoder.layers)
    assert isinstance(first, LSHAttention) and isinstance(second, FullAttention) and isinstance(third, LSHAttention)
    assert [(one.bucket_size, one.num_buckets) for one in (first, third)] == [(8, None), (64, 4)]
    # Queries and keys of those that hash are one projection.
    has_keys = [
        any("self_attention" in name and "k_proj" in name for name in layer.state_dict())
        for layer in model.decoder.layers
    ]
    assert has_keys == [False, True, False]


def attentions(model: Transformer) -> list[CoreAttention]:
    found = [layer.function(SelfAttention) for layer in model.encoder.layers]
    return [function.attention for function in found if function is not None]


def test_lsh_and_sinkhorn_alternate_with_windows_each_with_its_own_options() -> None:
    model = made(
        "lsh(bucket_size=8, num_hashes=2, local_heads=0) | sliding_window(window=4) "
        "| sinkhorn(bucket_size=6, iterations=3) | sliding_window(window=10)"
    )
    lsh, near, sinkhorn, wider = attentions(model)
    assert isinstance(lsh, LSHAttention) and isinstance(sinkhorn, SinkhornAttention)
    assert isinstance(near, SlidingWindowAttention) and isinstance(wider, SlidingWindowAttention)
    assert (lsh.bucket_size, lsh.num_hashes, lsh.local.count) == (8, 2, 0)
    assert (sinkhorn.bucket_size, sinkhorn.iterations) == (6, 3)
    assert (near.side, wider.side) == (2, 5)
    loss = model(torch.randint(4, 50, (2, 30)), torch.randint(4, 50, (2, 5))).logsumexp(-1).sum()
    loss.backward()
    assert loss.isfinite() and all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_random_blocks_differ_from_layer_to_layer_and_not_from_model_to_model() -> None:
    def drawn() -> list[torch.Tensor]:
        lists = [attention.lists for attention in attentions(made("bigbird"))]  # type: ignore[union-attr]
        return [each.of_others(torch.tensor([30]), 2, torch.arange(30)) for each in lists]

    first, second = drawn(), drawn()
    assert not first[0].equal(first[1])
    assert all(one.equal(other) for one, other in zip(first, second, strict=True))

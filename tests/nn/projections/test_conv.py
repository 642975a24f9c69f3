"""Convolutional projections, against loops over tokens and modules."""

from typing import Any

import pytest
import torch
from small_parts import DIM, HEADS, SETTING, vectors
from torch import Tensor

from pyramidions.nn.projections import PROJECTIONS, ConvProjections
from pyramidions.nn.projections.conv import ModuleConvolution

KINDS = ["conv", "multiplicative_conv"]
kinds = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, shares_query_key: bool = False, **options: Any) -> ConvProjections:
    torch.manual_seed(0)
    setting = {**SETTING, "shares_query_key": shares_query_key}
    projections = PROJECTIONS.build(kind, options, **setting)
    assert isinstance(projections, ConvProjections)
    for name, weight in projections.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight)
    return projections


def looped(convolution: ModuleConvolution, rows: Tensor, modules: int) -> Tensor:
    """One sequence, token by token and module by module: (L, D) -> (L, D)."""
    image = rows.unflatten(-1, (modules, -1))
    length_kernel, kernel, _, _ = convolution.weight.shape
    out = torch.zeros_like(image)
    for token in range(len(image)):
        for module in range(modules):
            out[token, module] = convolution.bias
            for back in range(length_kernel):
                for aside in range(-(kernel // 2), kernel // 2 + 1):
                    if token - back >= 0 and 0 <= module + aside < modules:
                        weight = convolution.weight[length_kernel - 1 - back, kernel // 2 + aside]
                        out[token, module] += image[token - back, module + aside] @ weight
    return out.flatten(1)


@torch.no_grad()
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("conv", {}),
        ("conv", {"modules": 4, "kernel": 5}),
        ("conv", {"modules": 1, "length_kernel": 1}),
        ("multiplicative_conv", {"modules": DIM}),
        ("multiplicative_conv", {"kernel": 1, "value_kernel": 3}),
        ("multiplicative_conv", {"length_kernel": 4}),
    ],
)
def test_queries_keys_and_values_are_those_of_loops_in_the_order_of_modules(kind: str, options: dict[str, int]) -> None:
    projections, x = make(kind, **options), vectors(1, 5, DIM)
    modules, heads = options.get("modules", SETTING["num_heads"]), SETTING["num_heads"]
    rows = projections.in_proj(x)[0]
    assert rows.equal(x[0]) == (kind == "conv")
    filters = (projections.q_proj, projections.k_proj, projections.v_proj)
    for found, convolution in zip(projections(x), filters, strict=True):
        expected = looped(convolution, rows, modules)
        # Heads are consecutive numbers of a token, whatever its modules are.
        torch.testing.assert_close(found[0].transpose(0, 1).flatten(1), expected)
        assert found.shape == (1, heads, 5, DIM // heads)
    seen = (options.get("length_kernel", 3), options.get("kernel", 3))
    assert projections.q_proj.weight.shape[:2] == projections.k_proj.weight.shape[:2] == seen
    assert projections.v_proj.weight.shape[:2] == (seen[0], options.get("value_kernel", 1))
    assert projections.look_back == seen[0] - 1


@torch.no_grad()
def test_the_output_filters_modules_of_one_token_or_is_what_heads_have_mixed() -> None:
    heads, size = SETTING["num_heads"], SETTING["head_dim"]
    mixed = vectors(1, heads, 5, size)
    joined = mixed[0].transpose(0, 1).flatten(1)
    filtered = make("conv", modules=4)
    assert filtered.out_proj.weight.shape == (1, 3, 2, 2)
    torch.testing.assert_close(filtered.output(mixed)[0], looped(filtered.out_proj, joined, 4))
    assert make("multiplicative_conv").output(mixed)[0].equal(joined)


@torch.no_grad()
@kinds
def test_where_queries_are_keys_both_are_the_mean_of_two_convolutions(kind: str) -> None:
    shared, apart, x = make(kind, shares_query_key=True), make(kind), vectors(2, 5, DIM)
    apart.load_state_dict(shared.state_dict())
    q, k, v = apart(x)
    for found, expected in zip(shared(x), ((q + k) / 2, (q + k) / 2, v), strict=True):
        torch.testing.assert_close(found, expected)


@torch.no_grad()
@pytest.mark.parametrize(("kernel", "length_kernel"), [(3, 3), (1, 3), (5, 1)])
def test_both_ways_to_filter_are_the_loops(kernel: int, length_kernel: int) -> None:
    convolution, rows = ModuleConvolution(4, kernel, length_kernel), vectors(2, 13, 12)
    expected = torch.stack([looped(convolution, each, 3)[length_kernel - 1 :] for each in rows])
    torch.testing.assert_close(convolution.multiplied(rows), expected)
    torch.testing.assert_close(convolution.convolved(rows), expected)
    # Few tokens are multiplied, many convolved.
    torch.testing.assert_close(convolution(rows), expected)
    torch.testing.assert_close(convolution(rows[:1, :6]), expected[:1, : 7 - length_kernel])


def test_a_memory_has_a_multiplicative_layer_of_its_own_where_there_is_one() -> None:
    crossing = PROJECTIONS.build("multiplicative_conv", {}, **SETTING, crosses=True)
    assert isinstance(crossing, ConvProjections) and crossing.memory_proj is not None
    x = vectors(1, 5, DIM)
    q, k, v = crossing(x)[0], *crossing.keys_values(x)
    with torch.no_grad():
        crossing.memory_proj.within.mul_(2.0)
    assert crossing.queries(x).equal(q)
    assert not any(new.equal(old) for new, old in zip(crossing.keys_values(x), (k, v), strict=True))
    assert make("multiplicative_conv").memory_proj is None


@torch.no_grad()
def test_of_a_dense_memory_keys_and_values_are_linear_and_queries_as_ever() -> None:
    torch.manual_seed(0)
    crossing = PROJECTIONS.build("multiplicative_conv", {"dense_memory": True}, **SETTING, crosses=True)
    x, mixed = vectors(1, 5, DIM), vectors(1, HEADS, 5, DIM // HEADS)
    for found, layer in zip(crossing.keys_values(x), (crossing.k_proj, crossing.v_proj), strict=True):
        assert found.transpose(1, 2).flatten(2).equal(x @ layer.weight.T + layer.bias)
    filtered = looped(crossing.q_proj, crossing.in_proj(x)[0], HEADS)
    torch.testing.assert_close(crossing.queries(x)[0].transpose(0, 1).flatten(1), filtered)
    assert crossing.output(mixed).equal(mixed.transpose(1, 2).flatten(2)) and crossing.memory_proj is None

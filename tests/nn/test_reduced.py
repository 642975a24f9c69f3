"""Networks with weights of 16 and of 8 bits."""

import re
from itertools import cycle

import pytest
import torch
import whole_models
from tiny_presets import covering_presets, tiny_fields
from torch import Tensor, nn

from pyramidions.models import build, preset
from pyramidions.models.config import PyramidionConfig, config_as
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.projections.dense import HeadsLinear
from pyramidions.nn.reduced import Int8HeadsLinear, Int8Linear, in_bfloat16, in_int8
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

WAYS = {"bfloat16": in_bfloat16, "int8": in_int8}
#: by turns
CASES = [pytest.param(*one.values, way, marks=one.marks) for one, way in zip(covering_presets(), cycle(WAYS))]


def tiny(name: str, **changes: object) -> Transformer:
    """Build a preset that reads 600 tokens and hands on 40."""
    torch.manual_seed(0)
    fields = {**tiny_fields(name), "max_source_positions": 600}
    lengths = preset(name).pooling_lengths
    if lengths is not None:
        fields["pooling_lengths"] = lengths.replace("2048", "150").replace("1024", "40").replace("512", "40")
    for kind, option in (("blockwise", "block_size"), ("sliding_window", "window")):
        if re.fullmatch(rf"{kind}\([^|]*\)", preset(name).self_attention):
            fields["self_attention"] = f"{kind}({option}=60)"
    return build(config_as(PyramidionConfig, {**fields, **changes}), 100, 1, marker_idx=4).eval()


def documents() -> Tensor:
    """Return two documents of several sentences, the second one shorter."""
    tokens = torch.randint(5, 100, (2, 300), generator=torch.Generator().manual_seed(1))
    tokens[:, ::15] = 4
    tokens[1, 280:] = 1
    return tokens


def test_a_layer_of_8_bits_multiplies_rounded_numbers_exactly() -> None:
    layer = Int8Linear(torch.tensor([[127.0, -50.0], [0.0, 0.0]]), torch.tensor([0.5, -1.0]))
    # The largest number of each row is 127 steps, here of 1 and of 2: 53 is rounded to 52 or 54.
    x = torch.tensor([[127.0, 3.0], [-254.0, 54.0], [0.0, 0.0]])
    expected = [[127 * 127 - 150 + 0.5, -1.0], [-254 * 127 - 54 * 50 + 0.5, -1.0], [0.5, -1.0]]
    assert layer(x).tolist() == expected


def test_products_of_many_vectors_are_those_of_each() -> None:
    layer = Int8Linear(torch.randn(24, 16))
    x = torch.randn(2, 600, 16)
    torch.testing.assert_close(
        layer(x), torch.stack([torch.stack([layer(row[None])[0] for row in each]) for each in x])
    )
    assert layer(x[:, :0]).shape == (2, 0, 24)


def test_a_layer_of_8_bits_is_close_to_the_one_it_stands_for() -> None:
    linear, x = nn.Linear(64, 32), torch.randn(10, 64)
    for largest in (127, 63):
        layer = Int8Linear(linear.weight, linear.bias, largest)
        assert layer.weight_int8.abs().amax(dim=1).eq(largest).all()
        error = (layer(x) - linear(x)).norm() / linear(x).norm()
        assert 0 < error < 1.5 / largest


@pytest.mark.parametrize(
    ("pooling", "way"), [("delete_gate", "bfloat16"), ("segments", "int8"), ("segments", "bfloat16")]
)
def test_poolings_decide_in_float32(pooling: str, way: str) -> None:
    model = whole_models.tiny("blockwise", pooling, pooling_lengths="24,None,None").eval()
    whole, reduced = (each.encoder.poolers["0"] for each in (model, WAYS[way](model)))
    x = torch.randn(1, 60, model.encoder.embedder.tokens.embedding_dim).bfloat16()
    given = Sequence(x.float(), torch.zeros(1, 60, dtype=torch.bool))
    nobody = PoolingContext(received=lambda: pytest.fail("they ask for no attention"))
    expected = whole(given, nobody)
    found = reduced(given._replace(x=x) if way == "bfloat16" else given, nobody)
    assert found.lengths == expected.lengths and found.sources.equal(expected.sources)
    if expected.key_bias is not None:
        torch.testing.assert_close(found.key_bias, expected.key_bias, rtol=1e-5, atol=1e-5)


def test_heads_read_rows_of_their_own_through_weights_of_8_bits() -> None:
    linear = HeadsLinear(16, 16)
    layer = Int8HeadsLinear(linear.weight, linear.bias)
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(layer(x, 4), linear(x, 4), atol=0.02, rtol=0)


@pytest.mark.parametrize(("name", "way"), CASES)
def test_every_architecture_writes_with_fewer_bits(name: str, way: str) -> None:
    model = tiny(name)
    reduced = WAYS[way](model)
    tokens, written = documents(), torch.randint(5, 100, (2, 7))
    with torch.inference_mode():
        logits = reduced.decoder(written, reduced.encoder(tokens, tokens.eq(1)).memories)
        exact = model.decoder(written, model.encoder(tokens, tokens.eq(1)).memories)
        (first, *_), _ = BeamSearch(2, 3, 8)(reduced, tokens)
    assert logits.isfinite().all() and not torch.equal(logits.float(), exact)
    # A tiny model with random weights selects other vectors where scores lie close together.
    assert (logits.float() - exact).norm() < 0.3 * exact.norm()
    assert 4 <= len(first.tokens) <= 9 and first.token_scores.dtype == torch.float32


def test_scorers_keep_their_digits_and_the_model_itself_its_weights() -> None:
    model = tiny("pyramidion")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    own = [part.state_dict() for part in model.modules() if isinstance(part, Scorer)]
    for way in WAYS.values():
        reduced = [part.state_dict() for part in way(model).modules() if isinstance(part, Scorer)]
        assert own
        torch.testing.assert_close(reduced, own, rtol=0, atol=0)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    halved = in_bfloat16(tiny("vanilla"))
    assert halved.encoder.embedder.tokens.weight is halved.decoder.embedder.tokens.weight
    assert halved.encoder.embedder.tokens.weight.dtype == torch.bfloat16

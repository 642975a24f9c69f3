"""Which tokens are global, from the config to the layers, and through poolings."""

from typing import Any

import pytest
import torch
from reading import MARKER, PAD, VOCABULARY, memory, reached, small
from torch import Tensor

from pyramidions.nn import Transformer

WINDOW = {"self_attention": "sliding_window(window=4)"}


def model(**overrides: Any) -> Transformer:
    return small(**{**WINDOW, **overrides})


def document(length: int = 40) -> Tensor:
    tokens = torch.randint(5, VOCABULARY, (1, length), generator=torch.Generator().manual_seed(0))
    tokens[0, [11, 23]] = MARKER
    return tokens


def test_without_global_tokens_two_layers_reach_two_windows() -> None:
    assert reached(model(), document(), 30) == list(range(26, 35))


@pytest.mark.parametrize(
    ("fields", "told"), [({"global_tokens": 1}, [0]), ({"global_markers": True}, [11, 23]), ({"global_vectors": 3}, [])]
)
def test_what_is_global_carries_news_from_anywhere_to_everywhere(fields: dict[str, Any], told: list[int]) -> None:
    assert reached(model(**fields), document(), 30) == list(range(40))
    assert reached(model(**fields, encoder_layers=1), document(), 30) == [*told, 28, 29, 30, 31, 32]


def test_tokens_that_are_named_in_a_call_are_global_beside_those_of_the_config() -> None:
    marked = torch.zeros(1, 40, dtype=torch.bool)
    marked[0, 17] = True
    assert reached(model(encoder_layers=1), document(), 30, marked) == [17, 28, 29, 30, 31, 32]
    assert reached(model(encoder_layers=1, global_tokens=2), document(), 30, marked) == [0, 1, 17, 28, 29, 30, 31, 32]
    whole, prefix = model(), torch.tensor([[2, 5]])
    assert not whole(document(), prefix, marked).allclose(whole(document(), prefix), atol=1e-4)


@pytest.mark.parametrize("kind", ["dense", "multiplicative"])
def test_second_projections_start_as_copies_and_are_read_by_global_tokens_alone(kind: str) -> None:
    fields = {"global_tokens": 1, "global_markers": True, "encoder_projections": kind}
    apart, same = model(**fields, global_projections=kind), model(**fields)
    copied = {name: value for name, value in apart.state_dict().items() if "global_rows" not in name}
    same.load_state_dict(copied)
    torch.testing.assert_close(memory(apart, document()), memory(same, document()), rtol=0, atol=1e-5)
    last = apart.encoder.layers[-1].sublayers["self_attention"].function
    with torch.no_grad():
        for weight in last.global_rows.projections.v_proj.parameters():
            weight.mul_(-2.0)
    differs = (memory(apart, document()) - memory(same, document())).abs().amax(dim=-1)[0] > 1e-4
    assert differs.nonzero().squeeze(1).tolist() == [0, 11, 23]


def test_vectors_and_tokens_may_be_global_together() -> None:
    both = model(global_vectors=3, global_tokens=1, encoder_layers=1)
    assert reached(both, document(), 30) == [0, 28, 29, 30, 31, 32]


def test_poolings_never_see_global_vectors() -> None:
    pooled = model(encoder_layers=2, pooling_lengths="12,None", scorer="attention", global_vectors=3)
    read: list[int] = []
    pooled.encoder.poolers["0"].register_forward_pre_hook(lambda module, given: read.append(given[0].x.size(1)))
    assert memory(pooled, document()).shape == (1, 12, 16) and read == [40]


@pytest.mark.parametrize("pooling", ["soft_topk", "mean", "markers", "gumbel_topk"])
def test_marks_survive_pooling(pooling: str) -> None:
    pooled = model(
        encoder_layers=3, pooling=pooling, pooling_lengths="None,12,None", global_tokens=2, global_projections="dense"
    )
    marks = []
    last = pooled.encoder.layers[-1].sublayers["self_attention"].function
    last.register_forward_pre_hook(lambda module, arguments: marks.append(arguments[1].marks))
    batch = torch.full((2, 40), PAD)
    batch[0], batch[1, :19] = document()[0], document()[0, :19]
    memory(pooled, batch)
    assert marks[0] is not None and marks[0].most == 2 and marks[0].marked.sum(dim=1).max() <= 2
    if pooling in ("mean", "markers"):
        # The first window, or sentence, holds both.
        assert marks[0].marked.nonzero().tolist() == [[0, 0], [1, 0]]


def test_blocks_see_global_vectors_too_and_begin_half_a_block_earlier_in_every_second_layer() -> None:
    blocks = {"self_attention": "block_global(block_size=8)"}
    assert reached(model(**blocks, global_vectors=3), document(), 30) == list(range(40))
    assert reached(model(**blocks, encoder_layers=1), document(), 30) == list(range(24, 32))
    assert reached(model(**blocks, encoder_layers=3), document(), 30) == list(range(16, 40))

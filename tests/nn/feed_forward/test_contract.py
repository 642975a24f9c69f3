"""What every feed-forward part promises; a new kind is held to it by being registered."""

import pytest
import torch
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor

from pyramidions.nn.feed_forward import FEED_FORWARD, FeedForward
from pyramidions.nn.sublayer import LayerContext

# Further options of a kind under which it promises the same, behind its name.
FORMS: dict[str, tuple[str, dict[str, object]]] = {
    **{kind: (kind, dict(FEED_FORWARD[kind].narrow)) for kind in FEED_FORWARD.names},
    "dense in chunks": ("dense", {"chunk_size": 3}),
    "sparse, weighting all": ("sparse", {"block_size": 2, "quantized": 0.0}),
    "sparse, choosing": ("sparse", {"block_size": 2, "quantized": 1.0}),
    "experts, choosing": ("experts", {"experts": 2, "quantized": 1.0}),
}
kinds = pytest.mark.parametrize("kind", FORMS)


def make(kind: str, dropout: float = 0.0, **options: object) -> FeedForward:
    torch.manual_seed(0)
    kind, given = FORMS[kind]
    return FEED_FORWARD.build(kind, {**given, **options}, **{**SETTING, "activation_dropout": dropout}).eval()


def run(part: FeedForward, x: Tensor) -> Tensor:
    return part(x, LayerContext())


@kinds
def test_a_position_reads_itself_alone_wherever_it_stands(kind: str) -> None:
    part, x, padding = make(kind), vectors(2, 7, DIM), ends_after(7, 3)
    before, context = run(part, x), LayerContext(padding)
    after = part(x.masked_fill(padding[..., None], 1e4), context)
    assert after.shape == x.shape and after[~padding].equal(before[~padding])
    torch.testing.assert_close(run(part, x[1:, :3]), before[1:, :3])
    torch.testing.assert_close(run(part, x.flip(1)), before.flip(1))
    torch.testing.assert_close(part.step(x, LayerContext(), part.new_state()), before)


@kinds
def test_dropout_acts_in_training_only_and_a_seed_repeats_it(kind: str) -> None:
    part, x = make(kind, dropout=0.5), vectors(2, 7, DIM)
    expected = run(part, x)
    assert run(part, x).equal(expected) and run(make(kind), x).equal(expected)
    dropped = []
    for _ in range(2):
        torch.manual_seed(3)
        dropped.append(run(part.train(), x))
    torch.manual_seed(3)
    kept = run(make(kind).train(), x)
    assert torch.equal(*dropped) and not dropped[0].equal(kept)


@kinds
def test_the_output_has_the_precision_of_the_input(kind: str) -> None:
    for dtype in (torch.bfloat16, torch.float64):
        out = run(make(kind).to(dtype), vectors(2, 3, DIM).to(dtype))
        assert out.dtype == dtype and out.isfinite().all()

import pytest
import torch

from pyramidions.nn.pooling.topk import SoftTopKPooler
from pyramidions.nn.scorer import LinearScorer
from pyramidions.nn.sequence import PoolingContext, Sequence

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("a linear scorer asks for no attention"))


def test_a_short_batch_is_handed_on_bit_for_bit() -> None:
    x, mask = torch.randn(2, 3, 8), torch.zeros(2, 3).bool()
    assert torch.equal(SoftTopKPooler(4, LinearScorer(8))(Sequence(x, mask), NO_CONTEXT).x, x)


def test_the_base_changes_what_comes_out() -> None:
    x, mask, scorer = torch.randn(1, 9, 8), torch.zeros(1, 9).bool(), LinearScorer(8)
    outputs = [SoftTopKPooler(4, scorer, base=base)(Sequence(x, mask), NO_CONTEXT).x for base in (20.0, 5.0, None)]
    assert not torch.equal(outputs[0], outputs[1]) and not torch.equal(outputs[1], outputs[2])

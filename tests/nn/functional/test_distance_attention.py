"""Attention with a bias for each distance, where a GPU takes another path."""

import pytest
import torch

from pyramidions.nn.functional import distance_attention
from pyramidions.nn.functional.distance_attention import attend_by_distance


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_many_large_values_of_equal_share_stay_in_the_range_of_half_precision(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distance_attention, "computes_in_tiles", lambda x: False)
    q = torch.zeros(1, 1, 1024, 4, dtype=dtype)
    v = torch.full_like(q, 200.0)
    hidden, bias = torch.zeros(1, 1024, dtype=torch.bool), torch.zeros(1, 2047)
    mixed = attend_by_distance(q, q, v, hidden, bias).mixed
    torch.testing.assert_close(mixed, v, rtol=1e-2, atol=0)

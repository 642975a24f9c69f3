import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyramidions.nn.ngram import block_repeated_ngrams


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 4))
def test_only_what_would_repeat_an_ngram_is_forbidden(tokens: list[int], size: int) -> None:
    blocked = block_repeated_ngrams(torch.zeros(1, 4), torch.tensor([tokens]), size)[0]
    seen = {tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)}
    for token in range(4):
        ngram = (*tokens[len(tokens) - size + 1 :], token)
        assert blocked[token].item() == (-torch.inf if ngram in seen else 0.0)


def test_hypotheses_do_not_disturb_each_other() -> None:
    blocked = block_repeated_ngrams(torch.zeros(2, 6), torch.tensor([[4, 5, 4], [5, 5, 4]]), 2)
    assert blocked.isneginf().nonzero().tolist() == [[0, 5]]


def test_a_size_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="`size` must be at least 1, but is 0."):
        block_repeated_ngrams(torch.zeros(1, 4), torch.tensor([[1]]), 0)

import torch

from pyramidions.nn.functional.masking import attendable, flush_right_padding

CPU = torch.device("cpu")


def test_without_padding_or_causality_everything_is_allowed() -> None:
    assert attendable(None, False, 2, 3, CPU) is None


def test_the_last_query_sees_every_key() -> None:
    assert attendable(None, True, 2, 3, CPU).tolist() == [[[[True, True, False], [True, True, True]]]]


def test_padding_is_hidden_but_a_row_of_nothing_else_is_not() -> None:
    mask = torch.tensor([[False, True], [True, True]])
    assert attendable(mask, False, 1, 2, CPU).tolist() == [[[[True, False]]], [[[True, True]]]]


def test_padding_on_the_left_moves_behind_the_tokens() -> None:
    tokens = torch.tensor([[1, 1, 5, 6, 2], [4, 5, 6, 7, 2], [8, 2, 1, 1, 1]])
    assert flush_right_padding(tokens, 1).tolist() == [[5, 6, 2, 1, 1], [4, 5, 6, 7, 2], [8, 2, 1, 1, 1]]

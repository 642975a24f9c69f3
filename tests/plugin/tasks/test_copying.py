"""The start at which a model copies its documents."""

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.plugin.tasks.copying import copying_batch, spans_to_copy


@given(st.integers(0, 200), st.integers(1, 200), st.integers(0, 2**20))
def test_tokens_to_copy_are_different_ones_in_reading_order_and_not_too_many(length: int, most: int, seed: int) -> None:
    places = spans_to_copy(length, most, np.random.default_rng(seed))
    assert len(places) <= most and (np.diff(places) > 0).all()
    assert len(places) == 0 if not length else places[0] >= 0 and places[-1] < length


def test_all_of_a_document_is_copied_where_a_summary_is_as_long() -> None:
    assert spans_to_copy(70, 200, np.random.default_rng(1)).tolist() == list(range(70))


def test_most_of_what_is_copied_comes_in_spans() -> None:
    places = spans_to_copy(1000, 100, np.random.default_rng(1))
    assert 90 < len(places) <= 100 and (np.diff(places) == 1).mean() > 0.9


def batch() -> dict[str, Any]:
    source = torch.tensor([[11, 12, 13, 14, 2], [21, 22, 2, 1, 1]])
    target = torch.tensor([[5, 6, 7, 8, 9, 2], [5, 6, 2, 1, 1, 1]])
    before = torch.tensor([[2, 5, 6, 7, 8, 9], [2, 5, 6, 1, 1, 1]])
    inputs = {"src_tokens": source, "lengths": [5, 3], "prev_output_tokens": before}
    return {"id": torch.tensor([7, 3]), "net_input": inputs, "target": target, "ntokens": 9}


def test_a_document_stands_where_its_summary_did() -> None:
    made = copying_batch(batch(), [1, 0], 50)
    assert made["target"].tolist() == [[11, 12, 13, 14, 2], [21, 22, 2, 1, 1]]
    assert made["net_input"]["prev_output_tokens"].tolist() == [[2, 11, 12, 13, 14], [2, 21, 22, 1, 1]]
    assert made["ntokens"] == 8 and made["net_input"]["src_tokens"] is not None


def test_a_query_is_not_copied_and_tags_are_no_part_of_tokens() -> None:
    asked = batch()
    # "7 8" asks for "9 10" with the tags 1 and 3; the other document is empty.
    asked["net_input"]["src_tokens"] = torch.tensor([[7, 8, 2, 59, 160, 2], [7, 8, 9, 2, 2, 1]])
    asked["net_input"]["lengths"] = [6, 5]
    made = copying_batch(asked, [1, 0], 50)
    assert made["target"].tolist() == [[9, 10, 2], [2, 1, 1]] and made["ntokens"] == 4
    assert made["net_input"]["prev_output_tokens"].tolist() == [[2, 9, 10], [2, 1, 1]]


def test_a_resumed_run_copies_the_same_spans_and_a_later_update_others() -> None:
    source = torch.arange(4, 304)[None]
    long = {
        "id": torch.tensor([9]),
        "net_input": {"src_tokens": source, "lengths": [300], "prev_output_tokens": torch.full((1, 65), 2)},
        "target": torch.full((1, 65), 5),
        "ntokens": 65,
    }
    first, again, later = (copying_batch(long, [1, update], 304)["target"].tolist() for update in (4, 4, 5))
    assert first == again != later

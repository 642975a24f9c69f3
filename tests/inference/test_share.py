"""Which inputs a share holds, and how documents are cut into blocks."""

import pytest

from pyramidions.errors import UserError
from pyramidions.inference.documents import InputText, Origin
from pyramidions.inference.share import Share, Turns, blocks


def test_every_block_belongs_to_one_share() -> None:
    held = [[block for block in range(1, 8) if Share(shard, 3).holds(block)] for shard in (1, 2, 3)]
    assert held == [[1, 4, 7], [2, 5], [3, 6]]


def test_turns_are_those_of_whole_blocks_behind_what_is_done() -> None:
    def taken(turns: Turns) -> list[int]:
        return [turns.number for _ in range(12) if turns.is_next()]

    assert taken(Turns(Share(2, 3), size=2)) == [3, 4, 9, 10]
    assert taken(Turns(Share(2, 3), size=2, done=2)) == [9, 10]
    assert taken(Turns()) == list(range(1, 13))


def test_documents_are_cut_by_their_numbers_and_read_when_asked_for() -> None:
    read: list[int] = []

    def documents():
        for number in (1, 2, 3, 5, 6, 10):
            read.append(number)
            yield InputText(Origin("a", None, 1), "A text.", 7, number=number)

    found = []
    for block, some in blocks(documents(), 3):
        found.append((block, [document.number for document in some], list(read)))
    # The first block ends with its last number; that the second ends is known when the next document is read.
    assert found == [(1, [1, 2, 3], [1, 2, 3]), (2, [5, 6], [1, 2, 3, 5, 6]), (4, [10], [1, 2, 3, 5, 6, 10])]


@pytest.mark.parametrize("text", ["", "3", "3/", "/3", "1/2/3", "1.0/2", "x/y", "0/2", "3/2", "1/0", "1/1001"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="`shard` must be"):
        Share.parse(text)
    assert Share.parse("3/16") == Share(3, 16) and str(Share(3, 16)) == "3/16"

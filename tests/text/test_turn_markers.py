"""A tokenizer that keeps the lines of a text apart, such as the turns of a meeting."""

import pytest
from refusals import refused

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.text.normalization import normalize
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import NAME_END, TURN_MARKER, Tokenizer

MEETING = "Ann: We start. Is Bob here?\nBob: Yes, I am.\r\n\n  Ann: Good. \nBob: Fine!"
TURNS = ["Ann: We start. Is Bob here?", "Bob: Yes, I am.", "Ann: Good.", "Bob: Fine!"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TURNS * 20, Settings(vocab_size=31, turn_markers=True))


def test_a_marker_stands_before_each_line_and_another_behind_its_name(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.encode_as_pieces(f"{MEETING}\nNobody speaks.\nAnn:")
    _, *cut = " ".join(pieces).split(TURN_MARKER)
    names = [tokenizer.decode_pieces(turn.split(NAME_END)[0].split()) for turn in cut if NAME_END in turn]
    assert names == ["Ann:", "Bob:", "Ann:", "Bob:"] and len(cut) == 6
    cut = cut[:4]
    assert [tokenizer.decode_pieces(turn.split()) for turn in cut] == TURNS
    assert tokenizer.decode(tokenizer.encode(MEETING)) == normalize(MEETING)
    assert Tokenizer.from_bytes(tokenizer.model_bytes).encode(MEETING) == tokenizer.encode(MEETING)


@pytest.mark.parametrize("most", [8, 20, 1000])
def test_a_text_of_several_windows_has_the_same_ids(tokenizer: Tokenizer, most: int) -> None:
    found = tokenizer.surfaces(windows(MEETING, most))
    assert tokenizer.ids_of([token for tokens in found for token in tokens]) == tokenizer.encode(MEETING)


def test_sentences_and_turns_are_not_marked_at_once() -> None:
    with refused("`turn_markers`"):
        Settings(sentence_markers=True, turn_markers=True)

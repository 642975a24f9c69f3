"""The line breaks of a text, given back to its tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.inference.line_breaks import LineBreaks
from pyramidions.text.normalization import normalize


def spaced(text: str) -> list[str]:
    """Return the words of a normalised text as a tokenizer spells them."""
    return [f" {word}" for word in normalize(text).split()]


@pytest.mark.parametrize(
    ("text", "tokens", "restored"),
    [
        ("a b\nc", [" a", " b", " c"], [" a", " b", "\nc"]),
        ("a\n\n\n b", [" a", " b"], [" a", "\n\nb"]),
        ("\n\n a \r\n b\rc", [" a", " b", " c"], [" a", "\nb", "\nc"]),
        ("a\x0cb\u2028c\u2029d", [" a", " b", " c", " d"], [" a", "\nb", "\nc", "\nd"]),
        # A line of what nobody sees is empty.
        ("a\n\u200b\nb", [" a", " b"], [" a", "\n\nb"]),
        # Markers between sentences hold no text, and pieces of words no space.
        ("One.\nTwo", [" On", "e", ".", "", " Tw", "o"], [" On", "e", ".", "", "\nTw", "o"]),
        # What stands behind the name of a speaker is no text.
        (
            "Ann: I do\nBob: no",
            [" Ann:", "\u2060", " I", " do", " Bob:", "\u2060", " no"],
            [" Ann:", "", " I", " do", "\nBob:", "", " no"],
        ),
        # A token over the end of a line keeps it; the next one begins the line.
        ("ab\ncd e", [" ab cd", " e"], [" ab cd", "\ne"]),
        # What NFKC takes apart is counted as it comes out: a ligature, a fraction, a Thai sara am.
        ("ﬁ ½\nกำ\nb", [" fi", " 1⁄2", " กํา", " b"], [" fi", " 1⁄2", "\nกํา", "\nb"]),
        # A tokenizer shows the character that spells a space as one.
        ("a▁\nb", [" a", " ", " b"], [" a", "\n ", " b"]),
    ],
)
def test_a_line_begins_where_that_of_the_text_does(text: str, tokens: list[str], restored: list[str]) -> None:
    assert LineBreaks(text).restore(tokens) == restored


def test_pieces_of_a_text_go_on_where_the_last_one_ended() -> None:
    line_breaks = LineBreaks("a b\nc\n\nd")
    assert line_breaks.restore([" a", " b", ""]) == [" a", " b", ""]
    assert line_breaks.restore([" c"]) == ["\nc"] and line_breaks.restore([" d"]) == ["\n\nd"]


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="▁")), max_size=6))
def test_any_text_keeps_its_words_and_its_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = "".join(LineBreaks(text).restore(spaced(text)))
    assert found.split() == normalize(text).split()
    assert [normalize(line) for line in found.split("\n") if line] == [
        normalize(line) for part in lines for line in part.splitlines() if normalize(line)
    ]

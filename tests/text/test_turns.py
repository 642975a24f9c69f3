"""Dialogues: who says what."""

import pytest

from pyramidions.text.turns import Turn, dialogue_outline, split_turn

MEETING = """Ann: We start. Is Bob here {vocalsound} ?
Bob: Yes, I am.

Ann Lee (chair): [laughter] Good.
I go on with
the {disfmarker} the plan.
Bob: Fine!
Ann: The end.
"""
SAID = [
    *(("Ann", "We start."), ("Ann", "Is Bob here ?"), ("Bob", "Yes, I am."), ("Ann Lee (chair)", "Good.")),
    *(("Ann Lee (chair)", "I go on with"), ("Ann Lee (chair)", "the the plan."), ("Bob", "Fine!"), ("Ann", "The end.")),
]


def test_sentences_have_speakers_and_no_noises_and_other_texts_are_no_dialogues() -> None:
    found = dialogue_outline(MEETING)
    assert found is not None and found.headings == ("",)
    assert list(zip(found.speakers, found.texts, strict=True)) == SAID
    for text in (
        "",
        "Ann: We start.\nAnn: We go on.\nAnn: We end.",
        "Title: A paper\nAuthor: Ann\nDate: May\nKeywords: bees",
        "Note: one.\nNote: two.\nHint: one.\nHint: two.\n" + "A line of prose.\n" * 5,
    ):
        assert dialogue_outline(text) is None, text


@pytest.mark.parametrize(
    ("line", "turn"),
    [
        ("Grad D: OK .", Turn("Grad D", " OK .")),
        ("[00:12:04] Ann: Hello.", Turn("Ann", " Hello.")),
        ("田中：始めます。", Turn("田中", "始めます。")),
        ("SPEAKER 1:", Turn("SPEAKER 1", "")),
        ("https://example.org/page", None),
        ("See https://example.org", None),
        ("12:30 was late.", None),
        ("as follows: one, two", None),
        ("We say in this long first sentence of it: two things", None),
    ],
)
def test_a_turn_begins_with_a_name(line: str, turn: Turn | None) -> None:
    assert split_turn(line) == turn

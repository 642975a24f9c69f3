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
    *(("Ann Lee (chair)", "I go on with the the plan."), ("Bob", "Fine!"), ("Ann", "The end.")),
]


def test_sentences_have_speakers_and_no_noises_and_other_texts_are_no_dialogues() -> None:
    found = dialogue_outline(MEETING)
    assert found is not None and found.headings == ("",)
    assert list(zip(found.speakers, found.texts, strict=True)) == SAID
    for text in (
        "",
        "Ann: We start.\nAnn: We go on.\nAnn: We end.",
        "Title: A paper\nAuthor: Ann\nDate: May\nKeywords: bees",
        # A paper with masks for citations and numbers
        "Rare\n <cit> . Bees are\n <cit> . And\n <dig> of them\n <dig> .",
        "Note: one.\nNote: two.\nHint: one.\nHint: two.\n" + "A line of prose.\n" * 5,
    ):
        assert dialogue_outline(text) is None, text


@pytest.mark.parametrize(
    ("lines", "sentences"),
    [
        # The lines of captions go on; a time may stand in front.
        ("[00:03] Ann: I saw\n[00:05] Ann: it. We\n[00:08] Bob: Yes, so\n\nBob: did I.\nAnn: Good.",
         ["I saw it.", "We", "Yes, so did I.", "Good."]),
        # Lines of chats end, in small letters and without stops, too.
        ("ann: hi all\nann: who comes\nand how\nbob: me\nthis: one\nbob: ok",
         ["hi all", "who comes", "and how", "me", "this: one", "ok"]),
        ("[10:01] <ann> hi all\n[10:02] <bob> hi\n<ann> who comes\n<bob> me", ["hi all", "hi", "who comes", "me"]),
        ("05.05.25, 10:01 - Ann: hi\n5/5/25, 1:02 pm - Bob: hi\n[2025-05-05 10:03:00] Ann: me\n10:04 Bob: ok",
         ["hi", "hi", "me", "ok"]),
        # All are turns, and one speaks twice.
        ("ann: Hi.\nbob: Me too.\nann: And so on.", ["Hi.", "Me too.", "And so on."]),
        (f"Ann: {'We saw bees and so did ' * 3}\nMarie at noon\nBob: Yes\nAnn: OK\nBob: Bye",
         [f"{'We saw bees and so did ' * 3}Marie at noon", "Yes", "OK", "Bye"]),
    ],
)  # fmt: skip
def test_lines_of_one_speaker_in_a_row_are_a_turn(lines: str, sentences: list[str]) -> None:
    found = dialogue_outline(lines, language="en")
    assert found is not None and list(found.texts) == sentences


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

"""A reader that hands on less than a file holds says so."""

from pathlib import Path

import pytest

from pyramidions.base.notes import listening
from pyramidions.documents.file_formats import file_text
from pyramidions.documents.lost import note_lost

WORDS = "bees wasps ants moths flies beetles crickets mantises earwigs termites".split()
SENTENCES = [f"The {a} and {b} fly over {c}. " for a in WORDS for b in WORDS[:5] for c in WORDS[:2]]
HAN = "蜜蜂在春天飞过山谷采集花蜜酿成甜美的蜂蜜送给邻居孩子们都很喜欢它们的味道"


@pytest.mark.parametrize(
    ("held", "read", "told"),
    [
        (SENTENCES, SENTENCES, []),
        (SENTENCES, SENTENCES[:50], ["a.tex: about 50% of its text is missing"]),
        ([HAN[i:] + HAN[:i] for i in range(30)], [HAN], ["a.tex: about"]),
        (["  ".join(SENTENCES).replace(" ", "\n")], SENTENCES, []),
        (SENTENCES[:10], [], []),
    ],
    ids=["whole", "half", "han", "lines", "short"],
)
def test_what_is_missing_is_told(held: list[str], read: list[str], told: list[str]) -> None:
    notes: list[str] = []
    with listening(notes.append):
        note_lost("a.tex", held, " ".join(read))
    assert len(notes) == len(told) and all(note.startswith(start) for note, start in zip(notes, told, strict=True))


@pytest.mark.parametrize("place", [40, 100])
def test_a_brace_that_nothing_closes_is_told_if_it_costs_much(place: int, tmp_path: Path) -> None:
    text = [*SENTENCES[:place], "As in (\\cite{Ray1950 the bees fly. ", *SENTENCES[place:]]
    (tmp_path / "a.tex").write_text("\\begin{document}\n" + "\n".join(text) + "\\end{document}")
    notes: list[str] = []
    with listening(notes.append):
        file_text(tmp_path / "a.tex")
    assert [note for note in notes if "60% of its text is missing" in note] == notes and len(notes) == (place == 40)

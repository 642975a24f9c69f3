"""`prepare --divide sentences`: sentences of a document, and those of the summary that they are rewritten to."""

import pytest

from pyramidions.data.divide import DivideSentences
from pyramidions.data.readers import Document

# Two sentences begin alike.
PAPER = "# Bees\n\nBees dance at night. Nobody has seen it.\n\n# Methods\n\nWe watched two hives. Bees dance."


@pytest.mark.parametrize(
    ("summary", "pairs"),
    [
        # Of equal recall, the first; one sentence may serve two.
        ("Two hives. Bees dance.", [("We watched two hives.", "Two hives."), ("Bees dance at night.", "Bees dance.")]),
        (
            "Bees at night. Night bees.",
            [("Bees dance at night.", "Bees at night."), ("Bees dance at night.", "Night bees.")],
        ),
        ("Nobody knows. Xyzzy.", [("Nobody has seen it.", "Nobody knows.")]),
        ("Xyzzy.", []),
    ],
)
def test_each_sentence_of_a_summary_has_the_one_that_holds_most_of_it(
    summary: str, pairs: list[tuple[str, str]]
) -> None:
    found = DivideSentences()(Document("a", PAPER, summary))
    assert [(each.source, each.target) for each in found.documents] == pairs
    assert [each.id for each in found.documents] == [f"a/{number}" for number in range(1, len(pairs) + 1)]
    assert not found.is_whole


def test_a_document_without_sentences_is_taken_as_it_is() -> None:
    document = Document("a", "# Bees", "Bees dance.")
    assert DivideSentences()(document) == ([document], True)


def test_who_says_it_stands_before_what_is_said_in_a_meeting() -> None:
    meeting = "\n".join(f"{who}: We look at the hive number {n}." for n, who in enumerate(["Ann", "Bob"] * 4))
    ((pair,), _) = DivideSentences()(Document("a", meeting, "Bob looks at hive number 3."))
    assert pair.source == "Bob: We look at the hive number 3."

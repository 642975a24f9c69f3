"""Documents in fewer tokens."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from small_tokenizers import SENTENCES, bart

from pyramidions import Extractor
from pyramidions.extract import Budget
from pyramidions.inference.compression import as_markdown, compress, estimate_tokens, tokens_of
from pyramidions.inference.extractor import Ranked
from pyramidions.text.outline import outline

PAPER = "\n\n".join(
    [
        "# Bees",
        "## Methods",
        "We counted all bees in Rome. They were fed each day. We then looked at them.",
        "## Results",
        "All bees in Rome fly fast. No bee of ours was lost.",
    ]
)
SCORES = [5.0, 1, 4, 3, 2]


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


class Rated(Extractor):
    """Rates sentences by given numbers."""

    def __init__(self, scores: Sequence[float]) -> None:
        super().__init__()
        self._scores = np.array(scores)

    def rank(self, documents: Iterable[Ranked], limit: Budget) -> Iterator[np.ndarray]:
        yield from (self._scores for _ in documents)


def test_the_best_sentences_stand_below_their_headings_in_reading_order() -> None:
    found = compress(PAPER, Rated(SCORES), 25, words)
    methods = "## Methods\n\nWe counted all bees in Rome. [...] We then looked at them."
    assert found.text == f"# Bees\n\n{methods}\n\n## Results\n\nAll bees in Rome fly fast. [...]"
    assert found.tokens == 25
    assert [sentence.position for sentence in found.extraction.sentences] == [0, 2, 3]


@pytest.mark.parametrize("budget", [9, 14, 22, 23, 39])
def test_what_is_kept_fits_and_the_next_sentence_does_not(budget: int) -> None:
    found = compress(PAPER, Rated(SCORES), budget, words)
    assert found.tokens == len(found.text.split()) <= budget
    kept = {sentence.position for sentence in found.extraction.sentences}
    texts = outline(PAPER).texts
    # A heading has two words, a mark one, and the space before a sentence counts as a token.
    assert all(found.tokens + len(texts[place].split()) + 4 > budget for place in set(range(5)) - kept)


LONG = "## A very long heading of nine words it has\n\nThe best one of all.\n\n## Short\n\nThe next one is kept."
PARTS = "## Rollback\n\nRoll back at once.\n\n### Data\n\nThe database has nightly copies.\n\n## End\n\nIt ends."
TURNS = (
    "Ann: We start the meeting now.",
    "Bob: The control shall be yellow.",
    "Ann: I like it very much.",
    "Bob: It is late.",
)


@pytest.mark.parametrize(
    ("paper", "scores", "budget", "kept"),
    [
        (LONG, [2, 1], 9, "## Short\n\n[...] The next one is kept."),
        (PARTS, [1, 2, 0], 9, "## Data\n\n[...] The database has nightly copies. [...]"),
        # A title stands above all, unless it takes much of the budget; so does that of a plain text.
        (
            f"The law of bees\n\n§ 1 Aim\n\n{TURNS[1][5:]} I like it.",
            [1, 0],
            16,
            "# The law of bees\n\n## § 1 Aim\n\nThe control shall be yellow. [...]",
        ),
        (
            f"# {'Long ' * 9}\n\n## One\n\nBees fly fast.\n\n## Two\n\nThey rest.",
            [1, 0],
            9,
            "## One\n\nBees fly fast. [...]",
        ),
        ("\n".join(TURNS), [3, 1, 2, 0], 20, "\n\n".join(TURNS[:3]) + " [...]"),
    ],
    ids=[
        "a shorter heading leaves room",
        "the heading of a subsection",
        "a title",
        "a long title",
        "who said what in a meeting",
    ],
)
def test_sentences_are_kept_with_what_they_stand_below(paper: str, scores: list[float], budget: int, kept: str) -> None:
    assert compress(paper, Rated(scores), budget, words).text == kept


def test_many_short_sections_fill_a_budget() -> None:
    paper = "".join(f"## Heading {number}\n\nSentence {number} is one of twenty here.\n\n" for number in range(20))
    found = compress(paper, Rated([1.0] * 20), 60, words)
    assert [sentence.position for sentence in found.extraction.sentences] == [0, 1, 2, 3, 4]
    assert found.tokens == 51


def test_the_method_decides_what_is_kept() -> None:
    # Lead keeps the beginning alone.
    text = "We counted bees. " + "They were very many and nobody had counted them before. " + "None was lost."
    assert compress(text, Extractor("lead"), 10, words).text == "We counted bees. [...]"
    # A query reaches a model of concepts.
    text = "The first model reads all papers. A second model writes short abstracts."
    asked = compress(text, Extractor("biomedical"), 8, words, "Who writes?").text
    assert asked == "[...] A second model writes short abstracts."


def test_sentences_that_share_a_trigram_are_passed_over_where_that_is_asked() -> None:
    text = "We counted all bees. We counted all bees in Rome. They fly fast."
    (plain, without) = (compress(text, Rated([3, 2, 1]), 12, words, redundancy=each) for each in (None, "trigrams"))
    assert plain.text == "We counted all bees. We counted all bees in Rome. [...]"
    assert without.text == "We counted all bees. [...] They fly fast."


def test_four_characters_or_one_of_a_script_without_spaces_are_a_token() -> None:
    assert estimate_tokens(["", "four", "fives", "蜂が飛ぶ", "蜂 bees"]) == [0, 1, 2, 4, 3]


def test_a_tokenizer_counts_as_its_library_does(tmp_path: Path) -> None:
    tokenizer = bart()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    expected = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in SENTENCES]
    assert tokens_of(tmp_path)(SENTENCES) == tokens_of(tmp_path / "tokenizer.json")(SENTENCES) == expected
    assert len(set(expected)) > 1


def test_a_whole_document_is_markdown() -> None:
    assert as_markdown("# Bees\n\n## Methods\n\nWe counted\nall bees.\n\n- One.\n- Two.\n") == (
        "# Bees\n\n## Methods\n\nWe counted all bees.\n\n- One.\n\n- Two."
    )
    # The turns of a meeting are paragraphs, and the title of a plain text stands above its sections.
    meeting = "Ann: We start.\nIt is {cough} late.\nBob: I think so.\nAnn: Well.\nBob: Yes.\n"
    assert as_markdown(meeting) == "Ann: We start. It is late.\n\nBob: I think so.\n\nAnn: Well.\n\nBob: Yes."
    text = (
        "The bees of Rome\n\n1 Methods\n\nWe counted all bees.\n\n1.1 Food\n\nThey were fed.\n\n2 Results\n\nThey fly."
    )
    assert as_markdown(text) == (
        "# The bees of Rome\n\n## 1 Methods\n\nWe counted all bees.\n\n### 1.1 Food\n\nThey were fed.\n\n"
        "## 2 Results\n\nThey fly."
    )
    assert as_markdown("Of bees\n\nWinter days\nThey sleep all day.\n\nSummer days\nThey fly all day.") == (
        "# Of bees\n\n## Winter days\n\nThey sleep all day.\n\n## Summer days\n\nThey fly all day."
    )
    assert as_markdown("### Bees\n\nThey fly.\n\n## Ants\n\nThey run.").startswith("### Bees")

"""Documents in fewer tokens."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from small_tokenizers import SENTENCES, bart

from pyramidions import UserError
from pyramidions.inference.compression import as_markdown, compress, estimate_tokens, tokens_of
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
SCORES = np.array([5.0, 1, 4, 3, 2])


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def test_the_best_sentences_stand_below_their_headings_in_reading_order() -> None:
    found = compress(outline(PAPER), SCORES, 22, words)
    methods = "## Methods\n\nWe counted all bees in Rome. [...] We then looked at them."
    assert found.text == f"{methods}\n\n## Results\n\nAll bees in Rome fly fast."
    assert found.tokens == 22
    assert [sentence.position for sentence in found.extraction.sentences] == [0, 2, 3]


@pytest.mark.parametrize("budget", range(8, 40))
def test_headings_and_gaps_count_in_any_budget(budget: int) -> None:
    found = compress(outline(PAPER), SCORES, budget, words)
    assert found.tokens == len(found.text.split()) <= budget
    assert found.text.startswith("## Methods\n\nWe counted all bees in Rome.")


def test_a_budget_below_the_best_sentence_is_refused() -> None:
    with pytest.raises(UserError, match=r"^`budget` must hold a sentence with its heading, 8 tokens, but is 7\.$"):
        compress(outline(PAPER), SCORES, 7, words)


def test_four_characters_or_one_of_a_script_without_spaces_are_a_token() -> None:
    assert estimate_tokens(["", "four", "fives", "蜂が飛ぶ", "蜂 bees"]) == [0, 1, 2, 4, 3]


def test_a_tokenizer_counts_as_its_library_does(tmp_path: Path) -> None:
    tokenizer = bart()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    expected = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in SENTENCES]
    assert tokens_of(tmp_path)(SENTENCES) == tokens_of(tmp_path / "tokenizer.json")(SENTENCES) == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("content", [None, "{}"])
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(UserError, match=r"^`tokenizer` must be a tokenizer.json"):
        tokens_of(tmp_path)


def test_a_whole_document_is_markdown() -> None:
    assert as_markdown("# Bees\n\n## Methods\n\nWe counted\nall bees.\n\n- One.\n- Two.\n") == (
        "# Bees\n\n## Methods\n\nWe counted all bees.\n\n- One.\n\n- Two."
    )

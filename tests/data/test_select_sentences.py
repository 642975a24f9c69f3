"""`prepare --select`: documents become their most important sentences."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pyramidions.base.errors import UserError
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.select_sentences import SelectByOracle, SelectSentences, select_tokens, selected_texts
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.extract import HipoRank, Lead, Ranker
from pyramidions.text.outline import Outline, outline
from pyramidions.text.tokenizer import Tokenizer
from pyramidions.text.turns import read_outline

SENTENCES = [f"Word{' so' * n} and more." for n in range(6)]
TEXT = "# Methods\n\n" + " ".join(SENTENCES[:3]) + "\n\n# Results\n\n" + " ".join(SENTENCES[3:])


class Last(Ranker):
    """Prefers the last sentences."""

    def rank(self, outline: Outline) -> np.ndarray:
        return np.arange(len(outline.sentences), dtype=np.float64)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "markers"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer([*SENTENCES, "Methods Results"] * 5, Settings(23, sentence_markers=request.param))


def tokens(tokenizer: Tokenizer, places: list[int]) -> int:
    return len(tokenizer.encode(" ".join(SENTENCES[place] for place in places))) + 1


def test_the_budget_holds_for_the_tokens_of_the_text_with_markers_and_end(tokenizer: Tokenizer) -> None:
    found = outline(TEXT)
    whole = tokens(tokenizer, [0, 1, 2, 3, 4, 5])
    assert select_tokens(found, Last().rank(found), tokenizer, whole) == [0, 1, 2, 3, 4, 5]
    assert select_tokens(found, Last().rank(found), tokenizer, whole - 1) == [1, 2, 3, 4, 5]
    three = tokens(tokenizer, [3, 4, 5])
    assert select_tokens(found, Last().rank(found), tokenizer, three) == [3, 4, 5]
    # The next sentence does not fit; a shorter one further down does.
    assert select_tokens(found, Last().rank(found), tokenizer, three - 1) == [2, 4, 5]


def test_turns_fit_the_budget_with_their_markers() -> None:
    lines = [f"{'AB'[n % 2]}: we talk about {'cats' if n % 2 else 'bees'} and more {n}" for n in range(8)]
    tokenizer = train_tokenizer(lines * 5, Settings(34, turn_markers=True))
    found = read_outline("\n".join(lines))
    assert found.speakers
    for budget in range(60, 140):
        chosen = select_tokens(found, Last().rank(found), tokenizer, budget)
        assert len(tokenizer.encode("\n".join(selected_texts(found, chosen)))) < budget


def test_a_document_becomes_its_sentences_in_reading_order_without_headings(tokenizer: Tokenizer) -> None:
    selecting = SelectSentences(Last, tokens(tokenizer, [4, 5]), {"method": "last"})
    found = selecting(Document("x", TEXT, "Summary."), tokenizer)
    assert found == ([Document("x", " ".join(SENTENCES[4:]), "Summary.")], False)
    assert selecting.about() == {"kind": "sentences", "method": "last", "budget": selecting.budget}


MEETING = """Ann: We start with the plan of the new house of bees today.
Bob: Okay. The house of bees costs far too much for this year, I think.
Ann: {vocalsound} Then we wait until the next spring has come to us.
Bob: That is what all of us should have done in the last year.
"""


def test_a_meeting_becomes_turns_with_their_speakers_and_without_backchannels() -> None:
    tokenizer = train_tokenizer([line.replace("{vocalsound} ", "") for line in MEETING.split("\n")] * 9, Settings(45))
    (whole,) = SelectSentences(Last, 500, {})(Document("x", MEETING, "Summary."), tokenizer).documents
    assert whole.source == " ".join(MEETING.replace("{vocalsound} ", "").replace("Okay. ", "").split())
    half = len(tokenizer.encode(whole.source)) // 2 + 5
    (found,) = SelectSentences(Last, half, {})(Document("x", MEETING, "Summary."), tokenizer).documents
    assert found.source == whole.source[whole.source.index("Ann: Then") :]
    assert len(tokenizer.encode(found.source)) < half


def test_headings_without_text_are_taken_as_they_are(tokenizer: Tokenizer) -> None:
    document = Document("x", "# Methods\n\n# Results\n", "Summary.")
    assert SelectSentences(HipoRank, 8, {})(document, tokenizer) == ([document], True)


def test_the_best_sentence_is_kept_however_long(tokenizer: Tokenizer) -> None:
    text = "A sentence that is much longer than the budget. " + "word " * 30
    (found,) = SelectSentences(Lead, 2, {})(Document("x", text, "s"), tokenizer).documents
    assert found.source == outline(text).sentences[0].text


@pytest.mark.parametrize("count", [1, 3])
def test_the_oracles_sentences_come_first_and_hiporank_fills_the_budget(tokenizer: Tokenizer, count: int) -> None:
    found = outline(TEXT)
    others = [place for place in np.argsort(-HipoRank().rank(found), kind="stable").tolist() if place != 4]
    budget = tokens(tokenizer, sorted([4, *others[: count - 1]]))
    (made,) = SelectByOracle(budget)(Document("x", TEXT, SENTENCES[4]), tokenizer).documents
    assert SENTENCES[4] in made.source and len(tokenizer.encode(made.source)) + 1 <= budget
    assert (made.source == SENTENCES[4]) == (count == 1)


@pytest.mark.parametrize("budget", [1, -3])
def test_a_budget_without_room_is_refused(budget: int) -> None:
    with pytest.raises(UserError):
        SelectByOracle(budget)


@pytest.fixture
def inputs(write_lines: Callable[..., str]) -> dict[str, str]:
    records = [{"id": str(n), "article": TEXT.replace("more", f"m{n}"), "abstract": SENTENCES[n]} for n in range(6)]
    return {split: write_lines(f"{split}.jsonl", records) for split in ("train", "test")}


def test_the_reference_of_a_test_document_changes_nothing_in_its_source(
    tmp_path: Path, inputs: dict[str, str], write_lines: Callable[..., str]
) -> None:
    lines = [json.loads(line) for line in Path(inputs["test"]).read_text().splitlines()]
    other = write_lines("other.jsonl", [line | {"abstract": "Word."} for line in lines])
    pairings = {"train": SelectByOracle(30), "test": SelectSentences(HipoRank, 30, {})}
    for name, test in (("one", inputs["test"]), ("two", other)):
        corpora = {"train": Corpus(inputs["train"]), "test": Corpus(test)}
        prepare(tmp_path / name, corpora, Settings(30), pairings=pairings)
    one, two = (tmp_path / name / "test.source.bin" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()

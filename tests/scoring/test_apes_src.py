from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from small_encoders import save_bert
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metric import Question, Span
from pyramidions.scoring.metrics import ApesSrc
from pyramidions.scoring.metrics.apes_src import answer_f1, clozes

SOURCE = "Ann Lee met Bob in Rome in 1999. It rained. Ann Lee paid 5 euros to Eve. Nobody saw it in Oslo."
REFERENCE = "Ann Lee met Bob in 1999. Ann Lee paid Eve."


class LooksUp:
    """Answers with the words of the text that stand between the neighbours of the blank."""

    blank = "[MASK]"

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def answers(self, asked: Sequence[Question]) -> list[str]:
        self.asked += asked
        return [self._answer(*question) for question in asked]

    def _answer(self, question: str, text: str) -> str:
        left, right = (part.split() for part in question.rstrip(".").split(self.blank))
        words = text.replace(".", " .").split()
        for start in range(len(words)):
            if left and words[start : start + 1] != left[-1:]:
                continue
            first = start + 1 if left else 0
            ends = [
                n
                for n in range(first + 1, min(first + 3, len(words)) + 1)
                if not right or words[n : n + 1] == right[:1]
            ]
            if ends:
                return " ".join(words[first : ends[0]])
        return ""

    def signature(self) -> str:
        return "looks up"


class Names:
    """Takes certain names for entities."""

    def entities(self, sentences: Sequence[str]) -> list[list[Span]]:
        names = ["Ann Lee", "Bob", "Eve", "Rome"]
        return [sorted(Span(s.find(name), s.find(name) + len(name)) for name in names if name in s) for s in sentences]

    def signature(self) -> str:
        return "names"


def scored(prediction: str, *references: str, source: str = SOURCE) -> list[float]:
    return list(ApesSrc(LooksUp(), Names()).score([Example(prediction, references or (REFERENCE,), source)])[0])


def test_entities_and_numbers_are_left_out_in_turn() -> None:
    sentence = "Ann Lee paid $5.50 on 3/4/1999, or 10% of it, to B2 in 2001A."
    assert clozes(sentence, [Span(0, 7)], "_") == [
        ("_ paid $5.50 on 3/4/1999, or 10% of it, to B2 in 2001A.", "Ann Lee"),
        ("Ann Lee paid _ on 3/4/1999, or 10% of it, to B2 in 2001A.", "$5.50"),
        ("Ann Lee paid $5.50 on _, or 10% of it, to B2 in 2001A.", "3/4/1999"),
        ("Ann Lee paid $5.50 on 3/4/1999, or _ of it, to B2 in 2001A.", "10%"),
    ]


def test_a_number_in_an_entity_is_no_question_of_its_own() -> None:
    assert clozes("On 3 May 1999 it rained.", [Span(3, 13)], "_") == [("On _ it rained.", "3 May 1999")]


@for_each(
    ("answer", "expected", "f1"),
    [
        ("Ann Lee", "ann lee", 1),
        ("the Lee", "Ann Lee", 2 / 3),
        ("Bob", "Eve", 0),
        ("", "Eve", 0),
        ("", "", 0),
        ("the", "a", 0),
        ("1,000", "1,000.", 1),
        ("1,000", "2,000", 0),
        ("Bob Bob", "Bob", 2 / 3),
    ],
)
def test_answers_are_compared_by_the_f1_of_words(answer: str, expected: str, f1: float) -> None:
    assert answer_f1(answer, expected) == pytest.approx(f1)


def test_questions_about_the_reference_are_asked_of_the_summary_and_of_the_context() -> None:
    answers = LooksUp()
    summary = "Ann Lee met Tom in 1999."
    ApesSrc(answers, Names()).score([Example(summary, (REFERENCE,), SOURCE)])
    questions = [
        "[MASK] met Bob in 1999.",
        "Ann Lee met [MASK] in 1999.",
        "Ann Lee met Bob in [MASK].",
        "[MASK] paid Eve.",
        "Ann Lee paid [MASK].",
    ]
    # The two sentences that share bigrams with the reference, in the document's order.
    context = "Ann Lee met Bob in Rome in 1999. Ann Lee paid 5 euros to Eve."
    assert answers.asked == [Question(q, text) for text in (summary, context) for q in questions]


def test_a_summary_that_agrees_with_reference_and_source_has_100() -> None:
    assert scored(
        "Ann Lee met Bob in 1999.", "Ann Lee met Bob in 1999.", source="Ann Lee met Bob in 1999. It rained."
    ) == [
        100,
        100,
    ]


def test_a_false_name_costs_its_question() -> None:
    # Of three questions, the one about Bob is answered by Tom.
    found = scored("Ann Lee met Tom in 1999.", "Ann Lee met Bob in 1999.", source="Ann Lee met Bob in 1999.")
    assert found == pytest.approx([200 / 3, 200 / 3])


def test_what_the_source_says_otherwise_than_the_reference_tells_the_figures_apart() -> None:
    apes_src, apes = scored("Ann Lee met Bob.", "Ann Lee met Eve.", source="Ann Lee met Bob.")
    assert (apes_src, apes) == (100, 50)


def test_questions_of_several_references_count_alike() -> None:
    found = scored("Ann Lee met Bob.", "Ann Lee met Bob.", "It met Eve.", source="Ann Lee met Bob. It met Bob.")
    assert found[1] == pytest.approx(200 / 3)


def test_an_empty_summary_scores_nothing() -> None:
    assert scored("") == [0, 0]


def test_a_document_without_questions_scores_nothing_and_is_counted() -> None:
    metric = ApesSrc(LooksUp(), Names())
    examples = [Example("It rained.", ("It rained.",), SOURCE), Example("Bob", ("Bob sang.",), SOURCE)]
    for _ in range(2):
        metric.fit(examples)
        np.testing.assert_array_equal(metric.score(examples)[0], 0)
        assert metric.remarks() == [
            "apes_src: the references of 1 of 2 documents hold no entity and no number, so nothing was asked about "
            "them and they score 0."
        ]


def test_random_models_score_between_0_and_100(tmp_path: Path) -> None:
    reader = save_bert(tmp_path / "qa", "BertForQuestionAnswering", 64)
    labels = {0: "O", 1: "B-PER", 2: "I-PER"}
    tagger = save_bert(
        tmp_path / "tagger",
        "BertForTokenClassification",
        64,
        id2label=labels,
        label2id={v: k for k, v in labels.items()},
    )
    metric = METRICS.build("apes_src", {}, qa_model=str(reader), tagger=str(tagger), device="cpu")
    found = metric.score([Example("Ann met Bob in 1999.", (REFERENCE,), SOURCE), Example("", (REFERENCE,), SOURCE)])
    assert found.shape == (2, 2)
    assert ((found >= 0) & (found <= 100)).all()
    assert found[0].sum() > 0
    assert " | answers: qa sha256:" in metric.signature()
    assert " | entities: tagger sha256:" in metric.signature()
    assert "blank [MASK]" in metric.signature()


def test_both_models_must_be_given(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="`qa_model` must be given"):
        METRICS.build("apes_src", {})
    reader = save_bert(tmp_path / "qa", "BertForQuestionAnswering")
    with pytest.raises(UserError, match="`tagger` must be given: the folder or the name on the hub of a token classif"):
        METRICS.build("apes_src", {}, qa_model=str(reader))

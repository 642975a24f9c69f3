from collections.abc import Sequence

import pytest

from pyramidions.scoring import Example
from pyramidions.scoring.metric import Question, Span
from pyramidions.scoring.metrics.apes_src import ApesSrc, answer_f1, clozes

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
            for end in range(first + 1, min(first + 3, len(words)) + 1):
                if not right or words[end : end + 1] == right[:1]:
                    return " ".join(words[first:end])
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


def test_entities_and_numbers_are_left_out_in_turn() -> None:
    sentence = "Ann Lee paid $5.50 on 3/4/1999, or 10% of it, to B2 in 2001A."
    assert clozes(sentence, [Span(0, 7)], "_") == [
        ("_ paid $5.50 on 3/4/1999, or 10% of it, to B2 in 2001A.", "Ann Lee"),
        ("Ann Lee paid _ on 3/4/1999, or 10% of it, to B2 in 2001A.", "$5.50"),
        ("Ann Lee paid $5.50 on _, or 10% of it, to B2 in 2001A.", "3/4/1999"),
        ("Ann Lee paid $5.50 on 3/4/1999, or _ of it, to B2 in 2001A.", "10%"),
    ]
    # A number in an entity is no question of its own.
    assert clozes("On 3 May 1999 it rained.", [Span(3, 13)], "_") == [("On _ it rained.", "3 May 1999")]


@pytest.mark.parametrize(
    ("answer", "expected", "f1"),
    [
        ("Ann Lee", "ann lee", 1),
        ("the Lee", "Ann Lee", 2 / 3),
        ("", "Eve", 0),
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


@pytest.mark.parametrize(
    ("summary", "references", "source", "apes_src", "apes"),
    [
        ("Ann Lee met Bob.", ["Ann Lee met Bob."], "Ann Lee met Bob. It rained.", 100, 100),
        # Of three questions, the one about Bob is answered by Tom.
        ("Ann Lee met Tom in 1999.", ["Ann Lee met Bob in 1999."], "Ann Lee met Bob in 1999.", 200 / 3, 200 / 3),
        ("Ann Lee met Bob.", ["Ann Lee met Eve."], "Ann Lee met Bob.", 100, 50),
        # Questions of several references count alike.
        ("Ann Lee met Bob.", ["Ann Lee met Bob.", "It met Eve."], "Ann Lee met Bob. It met Bob.", 100, 200 / 3),
    ],
)
def test_false_answers_cost_their_questions(
    summary: str, references: list[str], source: str, apes_src: float, apes: float
) -> None:
    (found,) = ApesSrc(LooksUp(), Names()).score([Example(summary, tuple(references), source)])
    assert list(found) == pytest.approx([apes_src, apes])


def test_a_document_without_questions_scores_nothing_and_is_counted() -> None:
    metric = ApesSrc(LooksUp(), Names())
    examples = [Example("It rained.", ("It rained.",), SOURCE), Example("Bob", ("Bob sang.",), SOURCE)]
    for _ in range(2):
        metric.fit(examples)
        assert list(metric.score(examples)[0]) == [0, 0]
        (remark,) = metric.remarks()
        assert remark.startswith("apes_src: the references of 1 of 2 documents hold no entity and no number")

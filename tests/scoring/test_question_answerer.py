from pathlib import Path
from typing import Any

import pytest
import torch
from small_encoders import save_bert, save_roberta, transformers
from small_tokenizers import SENTENCES

from pyramidions.scoring.encoders.readers import QuestionAnswerer
from pyramidions.scoring.metric import Question

ASKED = [
    Question("The quick [MASK] jumps", SENTENCES[0]),
    Question("[MASK] documents", SENTENCES[4]),
    Question("for [MASK] steps", "The models."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("qa"), "BertForQuestionAnswering", length=64)


def by_loops(folder: Path, asked: Question, length: int, stride: int) -> str:
    """The answer by loops over windows and over all pairs of a start and an end."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    made = tokenizer(
        asked.question,
        asked.text,
        truncation="only_second",
        max_length=length,
        stride=stride,
        return_overflowing_tokens=True,
    )
    best, answer = -float("inf"), ""
    for encoding in made.encodings:
        inputs: dict[str, Any] = {"input_ids": [encoding.ids], "token_type_ids": [encoding.type_ids]}
        with torch.no_grad():
            out = model(**{name: torch.tensor(value) for name, value in inputs.items()})
        for start, first in enumerate(encoding.sequence_ids):
            for end in range(start, min(start + 30, len(encoding.ids))):
                score = float(out.start_logits[0, start] + out.end_logits[0, end])
                if first == 1 and encoding.sequence_ids[end] == 1 and score > best:
                    best, answer = score, asked.text[encoding.offsets[start][0] : encoding.offsets[end][1]]
    return answer


def test_answers_equal_loops_over_spans(folder: Path) -> None:
    found = QuestionAnswerer.of(str(folder), "cpu").answers(ASKED)
    assert found == [by_loops(folder, asked, 64, 8) for asked in ASKED]
    assert all(answer and answer in asked.text for answer, asked in zip(found, ASKED, strict=True))


def test_a_text_longer_than_the_model_is_read_in_windows(folder: Path) -> None:
    asked = Question("The [MASK] reads", " ".join(SENTENCES[:6]))
    assert len(transformers.AutoTokenizer.from_pretrained(folder).tokenize(asked.text)) > 2 * 64
    assert QuestionAnswerer.of(str(folder), "cpu").answers([asked]) == [by_loops(folder, asked, 64, 8)]


def test_a_question_that_leaves_no_room_is_cut_around_its_blank(folder: Path) -> None:
    answerer = QuestionAnswerer.of(str(folder), "cpu")
    long = " ".join([*SENTENCES[:3], "[MASK]", *SENTENCES[3:6]])
    cut = answerer._shortened(long, 32)
    assert "[MASK]" in cut
    assert cut in long
    # Of a word that is cut through, what is left may be one piece more.
    assert 32 <= len(transformers.AutoTokenizer.from_pretrained(folder).tokenize(cut)) <= 36
    assert answerer.answers([Question(long, "a fox")])[0] in "a fox"


@pytest.mark.parametrize("text", ["", "  "])
def test_a_blank_text_has_no_answer(folder: Path, text: str) -> None:
    assert QuestionAnswerer.of(str(folder), "cpu").answers([Question("a [MASK]", text)]) == [""]


def test_other_questions_make_no_difference(folder: Path) -> None:
    answerer = QuestionAnswerer.of(str(folder), "cpu")
    assert answerer.answers(ASKED) == [answerer.answers([asked])[0] for asked in ASKED]


def test_a_model_without_token_types_answers_too(tmp_path: Path) -> None:
    answerer = QuestionAnswerer.of(str(save_roberta(tmp_path / "qa", "RobertaForQuestionAnswering", length=64)), "cpu")
    assert answerer.blank == "<mask>"
    (answer,) = answerer.answers([Question("The <mask> fox", SENTENCES[0])])
    assert answer
    assert answer in SENTENCES[0]

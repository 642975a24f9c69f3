"""Models that find entities and that answer questions."""

from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refused
from small_encoders import classifier, save_bert, save_roberta, transformers, wordpiece
from small_tokenizers import SENTENCES

from pyramidions.scoring.encoders.readers import EntityTagger, QuestionAnswerer
from pyramidions.scoring.metric import Question

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
ASKED = [
    Question("The quick [MASK] jumps", SENTENCES[0]),
    Question("[MASK] documents", SENTENCES[4]),
    Question("for [MASK] steps", "The models."),
    # Longer than the model: it is read in windows.
    Question("The [MASK] reads", " ".join(SENTENCES[:6])),
    Question("a [MASK]", "  "),
]


def found(folder: Path, labels: dict[str, str], *sentences: str) -> list[list[str]]:
    """Entities by a tagger that gives pieces their labels, and all others "O"."""
    tagger = EntityTagger(str(folder), "cpu")
    names, pieces = list(tagger._labels.values()), wordpiece()
    ids = {pieces.token_to_id(piece): label for piece, label in labels.items()}

    def model(input_ids: torch.Tensor, **_: Any) -> Any:
        class Out:
            logits = torch.zeros(*input_ids.shape, len(names))

        for row, text in enumerate(input_ids.tolist()):
            for column, piece in enumerate(text):
                Out.logits[row, column, names.index(ids.get(piece, "O"))] = 1
        return Out

    model.parameters = lambda: [torch.zeros(1)]  # type: ignore[attr-defined]
    tagger._loaded = tagger._loaded._replace(model=model)
    spans = tagger.entities(sentences)
    return [[text[span.start : span.end] for span in of] for text, of in zip(sentences, spans, strict=True)]


def test_neighbours_of_one_type_are_one_entity_unless_the_second_begins_one(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "prefixed", LABELS, 16, "Token")
    labels = {"pool": "B-PER", "models": "I-PER", "documents": "B-LOC"}
    sentences = ["Pool models of documents.", "pool pool", "models", "pool documents models", ""]
    expected = [["Pool models", "documents"], ["pool", "pool"], ["models"], ["pool", "documents", "models"], []]
    assert found(folder, labels, *sentences) == expected
    # A word has the label of its first piece: "fox" is f, ##o, ##x.
    assert found(folder, {"f": "B-PER"}, "the fox.") == [["fox"]]
    assert found(folder, {"##o": "B-PER"}, "the fox.") == [[]]
    # A sentence longer than the model is read in pieces.
    assert found(folder, {"pool": "B-PER"}, "a " * 20 + "pool " + "a " * 30 + "pool") == [["pool", "pool"]]
    plain = classifier(tmp_path / "plain", ["O", "PER", "LOC"], 16, "Token")
    labels = {"pool": "PER", "models": "PER", "documents": "LOC"}
    assert found(plain, labels, "pool models documents") == [["pool models", "documents"]]


def test_a_model_whose_labels_are_no_entities_is_refused(tmp_path: Path) -> None:
    with refused("`tagger` must have the label O"):
        EntityTagger(str(classifier(tmp_path, ["LABEL_0", "LABEL_1"], of="Token")), "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("qa"), "BertForQuestionAnswering", length=64)


def by_loops(folder: Path, asked: Question, length: int, stride: int) -> str:
    """The answer by loops over windows and over all pairs of a start and an end."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    settings = {"truncation": "only_second", "max_length": length, "stride": stride, "return_overflowing_tokens": True}
    best, answer = -float("inf"), ""
    for encoding in tokenizer(asked.question, asked.text, **settings).encodings:
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
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer.tokenize(ASKED[3].text)) > 2 * 64
    answers = QuestionAnswerer(str(folder), "cpu").answers(ASKED)
    assert answers == [by_loops(folder, asked, 64, 8) for asked in ASKED]
    assert all(answer and answer in asked.text for answer, asked in zip(answers[:4], ASKED, strict=False))


def test_a_question_that_leaves_no_room_is_cut_around_its_blank(folder: Path) -> None:
    answerer = QuestionAnswerer(str(folder), "cpu")
    long = " ".join([*SENTENCES[:3], "[MASK]", *SENTENCES[3:6]])
    cut = answerer._shortened(long, 32)
    assert "[MASK]" in cut and cut in long
    # Of a word that is cut through, what is left may be one piece more.
    assert 32 <= len(transformers.AutoTokenizer.from_pretrained(folder).tokenize(cut)) <= 36
    assert answerer.answers([Question(long, "a fox")])[0] in "a fox"


def test_a_model_without_token_types_answers_too(tmp_path: Path) -> None:
    answerer = QuestionAnswerer(str(save_roberta(tmp_path / "qa", "RobertaForQuestionAnswering", length=64)), "cpu")
    assert answerer.blank == "<mask>"
    (answer,) = answerer.answers([Question("The <mask> fox", SENTENCES[0])])
    assert answer and answer in SENTENCES[0]

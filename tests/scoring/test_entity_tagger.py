from pathlib import Path
from typing import Any

import pytest
import torch
from small_encoders import save_bert, wordpiece

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders.readers import EntityTagger

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def saved(folder: Path, labels: list[str], length: int = 16) -> Path:
    names = dict(enumerate(labels))
    return save_bert(
        folder, "BertForTokenClassification", length, id2label=names, label2id={v: k for k, v in names.items()}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("tagger"), LABELS)


def found(folder: Path, labels: dict[str, str], *sentences: str) -> list[list[str]]:
    """Entities by a tagger that gives pieces their labels, and all others "O"."""
    tagger = EntityTagger.of(str(folder), "cpu")
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


def test_neighbours_of_one_type_are_one_entity_unless_the_second_begins_one(folder: Path) -> None:
    labels = {"pool": "B-PER", "models": "I-PER", "documents": "B-LOC"}
    sentences = ["Pool models of documents.", "pool pool", "models", "pool documents models", ""]
    expected = [["Pool models", "documents"], ["pool", "pool"], ["models"], ["pool", "documents", "models"], []]
    assert found(folder, labels, *sentences) == expected


def test_a_word_has_the_label_of_its_first_piece(folder: Path) -> None:
    # "fox" is f, ##o, ##x.
    assert found(folder, {"f": "B-PER"}, "the fox.") == [["fox"]]
    assert found(folder, {"##o": "B-PER"}, "the fox.") == [[]]


def test_labels_without_prefixes_join_neighbours(tmp_path: Path) -> None:
    folder = saved(tmp_path, ["O", "PER", "LOC"])
    labels = {"pool": "PER", "models": "PER", "documents": "LOC"}
    assert found(folder, labels, "pool models documents") == [["pool models", "documents"]]


def test_a_sentence_longer_than_the_model_is_read_in_pieces(folder: Path) -> None:
    assert found(folder, {"pool": "B-PER"}, "a " * 20 + "pool " + "a " * 30 + "pool") == [["pool", "pool"]]


def test_a_random_model_gives_spans_of_the_text(folder: Path) -> None:
    spans = EntityTagger.of(str(folder), "cpu").entities(["The quick fox, it reads documents.", "", "Bees"])
    assert len(spans) == 3
    assert spans[1] == []
    assert all(0 <= start < end <= 34 for start, end in spans[0])
    assert spans[0] == sorted(spans[0])


def test_a_model_whose_labels_are_no_entities_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, ["LABEL_0", "LABEL_1"])
    with pytest.raises(UserError) as refused:
        EntityTagger.of(str(folder), "cpu")
    assert str(refused.value) == (
        f"`tagger` must have the label O for words outside of entities, and labels of entities, but {folder} has "
        "LABEL_0, LABEL_1."
    )

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_encoders import TEXTS, save_bert, transformers

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example, Metric, MetricOptions
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import metrics_of, score_documents

EXAMPLES = [
    Example(TEXTS[0], (TEXTS[1], TEXTS[2])),
    Example("Bees fly.", (TEXTS[0],)),
    Example("", (TEXTS[2],)),
]


def saved(folder: Path, labels: int = 1, length: int = 96) -> str:
    return str(save_bert(folder, "BertForSequenceClassification", length, num_labels=labels))


def metric(folder: str) -> Metric:
    return METRICS.build("bleurt", {}, bleurt_model=folder)


@torch.no_grad()
def rating(folder: str, reference: str, candidate: str, **truncation: Any) -> float:
    """What the library's own model says of one pair, the reference first, as the authors' package has it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return float(model(**tokenizer([reference], [candidate], return_tensors="pt", **truncation)).logits[0, 0])


def test_the_best_of_several_references_counts(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    expected = [
        [max(rating(folder, reference, example.prediction) for reference in example.references)] for example in EXAMPLES
    ]
    # An empty summary gets what the model gives it.
    np.testing.assert_allclose(metric(folder).score(EXAMPLES), expected, atol=1e-4)
    assert rating(folder, TEXTS[0], TEXTS[1]) != pytest.approx(rating(folder, TEXTS[1], TEXTS[0]), abs=1e-3)


def test_no_worst_value_is_told_of_an_empty_summary(tmp_path: Path) -> None:
    metrics = metrics_of(["bleurt"], MetricOptions(bleurt_model=saved(tmp_path)))
    told = score_documents(Examples(["", "a"], [("a",), ("a",)]), metrics).remarks
    assert told == (
        "1 of 2 summaries is empty and gets what the model gives an empty text: BLEURT has no worst value.",
    )


def test_it_equals_the_arithmetic_of_the_authors_package(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = []
    for candidate, reference in zip(TEXTS, [*TEXTS[1:], "Bees"], strict=True):
        one, two = (tokenizer.encode(text, add_special_tokens=False) for text in (reference, candidate))
        ids = [cls, *one, sep, *two, sep]
        empty = [0] * (96 - len(ids))
        kinds = [0] * (len(one) + 2) + [1] * (len(two) + 1)
        # All rows are padded to what the model reads.
        rows.append(([*ids, *empty], [*([1] * len(ids)), *empty], [*kinds, *empty]))
    ids, mask, kinds = (torch.tensor(column) for column in zip(*rows, strict=True))
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask, token_type_ids=kinds).logits
    examples = [Example(text, (other,)) for text, other in zip(TEXTS, [*TEXTS[1:], "Bees"], strict=True)]
    np.testing.assert_allclose(metric(folder).score(examples), expected.numpy(), atol=1e-4)


def test_other_documents_and_padding_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = metric(saved(tmp_path))
    alone = np.concatenate([made.score([example]) for example in EXAMPLES])
    np.testing.assert_allclose(made.score(EXAMPLES), alone, atol=1e-5)
    monkeypatch.setattr("pyramidions.scoring.encoders.loading.TOKENS", 70)
    np.testing.assert_allclose(made.score(EXAMPLES), alone, atol=1e-5)


def test_of_a_long_pair_the_longer_text_is_truncated_first(tmp_path: Path) -> None:
    folder = saved(tmp_path, length=40)
    made, long = metric(folder), "fox " * 30
    found = made.score([Example("Bees fly.", (long,)), Example("Bees", ("Bees",))])
    assert found[0, 0] == pytest.approx(rating(folder, long, "Bees fly.", truncation=True, max_length=40), abs=1e-4)
    # Of 40 tokens, 3 are marks and 8 the summary; a fox is three.
    assert found[0, 0] == pytest.approx(rating(folder, "fox " * 9 + "fo", "Bees fly."), abs=1e-4)
    assert made.remarks() == ["bleurt: 1 of 2 pairs of texts are longer than the model reads and were truncated."]


def test_a_model_of_several_labels_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, labels=3)
    with pytest.raises(UserError) as error:
        metric(folder)
    assert str(error.value) == f"`bleurt_model` must have one label, but {folder} has 3."


def test_a_classifier_without_the_weights_of_its_pooler_is_refused(tmp_path: Path) -> None:
    folder, weights = saved(tmp_path), tmp_path / "model.safetensors"
    kept = {name: weight for name, weight in load_file(weights).items() if "pooler" not in name}
    save_file(kept, weights, {"format": "pt"})
    with pytest.raises(UserError) as error:
        metric(folder)
    told = f"`bleurt_model` must be a model with whole weights, but {folder} lacks bert.pooler.dense.bias."
    assert str(error.value) == told


def test_a_signature_names_the_model(tmp_path: Path) -> None:
    signature = metric(saved(tmp_path / "small")).signature()
    assert signature.startswith("BLEURT | best of references | small sha256:") and "at most 96 tokens" in signature

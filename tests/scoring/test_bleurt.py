from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_encoders import TEXTS, save_bert, transformers

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example, Metric


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


def test_it_equals_the_arithmetic_of_the_authors_package(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    # An empty summary gets what the model gives it.
    candidates, references = [*TEXTS, ""], [*TEXTS[1:], "Bees", "Bees"]
    rows = []
    for candidate, reference in zip(candidates, references, strict=True):
        one, two = (tokenizer.encode(text, add_special_tokens=False) for text in (reference, candidate))
        ids = [cls, *one, sep, *two, sep]
        empty = [0] * (96 - len(ids))
        kinds = [0] * (len(one) + 2) + [1] * (len(two) + 1)
        # All rows are padded to what the model reads.
        rows.append(([*ids, *empty], [*([1] * len(ids)), *empty], [*kinds, *empty]))
    ids, mask, kinds = (torch.tensor(column) for column in zip(*rows, strict=True))
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask, token_type_ids=kinds).logits
    examples = [Example(text, (other,)) for text, other in zip(candidates, references, strict=True)]
    np.testing.assert_allclose(metric(folder).score(examples), expected.numpy(), atol=1e-4)


def test_of_a_long_pair_the_longer_text_is_truncated_first(tmp_path: Path) -> None:
    folder, long = saved(tmp_path, length=40), "fox " * 30
    found = metric(folder).score([Example("Bees fly.", (long,))])
    assert found[0, 0] == pytest.approx(rating(folder, long, "Bees fly.", truncation=True, max_length=40), abs=1e-4)
    # Of 40 tokens, 3 are marks and 8 the summary; a fox is three.
    assert found[0, 0] == pytest.approx(rating(folder, "fox " * 9 + "fo", "Bees fly."), abs=1e-4)


def test_models_of_several_labels_or_without_a_pooler_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="^`bleurt_model` must have one label, but .* has 3.$"):
        metric(saved(tmp_path, labels=3))
    folder, weights = saved(tmp_path), tmp_path / "model.safetensors"
    kept = {name: weight for name, weight in load_file(weights).items() if "pooler" not in name}
    save_file(kept, weights, {"format": "pt"})
    with pytest.raises(UserError, match=r"bert\.pooler\.dense\.bias"):
        metric(folder)

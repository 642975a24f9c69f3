from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from small_encoders import TEXTS, save_bert, transformers

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


def test_it_is_what_the_librarys_own_model_says_of_a_pair(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    # An empty summary gets what the model gives it.
    candidates, references = [*TEXTS, ""], [*TEXTS[1:], "Bees", "Bees"]
    pairs = list(zip(candidates, references, strict=True))
    found = metric(folder).score([Example(candidate, (reference,)) for candidate, reference in pairs])
    expected = [rating(folder, reference, candidate) for candidate, reference in pairs]
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-4)


def test_of_a_long_pair_the_longer_text_is_truncated_first(tmp_path: Path) -> None:
    folder, long = saved(tmp_path, length=40), "fox " * 30
    found = metric(folder).score([Example("Bees fly.", (long,))])
    assert found[0, 0] == pytest.approx(rating(folder, long, "Bees fly.", truncation=True, max_length=40), abs=1e-4)
    # Of 40 tokens, 3 are marks and 8 the summary; a fox is three.
    assert found[0, 0] == pytest.approx(rating(folder, "fox " * 9 + "fo", "Bees fly."), abs=1e-4)


def test_models_of_several_labels_or_without_a_pooler_are_refused(tmp_path: Path) -> None:
    with refused("`bleurt_model` must have one label"):
        metric(saved(tmp_path, labels=3))
    folder, weights = saved(tmp_path), tmp_path / "model.safetensors"
    kept = {name: weight for name, weight in load_file(weights).items() if "pooler" not in name}
    save_file(kept, weights, {"format": "pt"})
    with refused("bert.pooler.dense.bias"):
        metric(folder)

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from small_encoders import TEXTS, save_bert, save_roberta, transformers

from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metrics import Entailment

NLI = ["contradiction", "neutral", "entailment"]
SENTENCES = [TEXTS[1], TEXTS[2], "Bees are models.", TEXTS[0]]
SUMMARY, DOCUMENT = " ".join(TEXTS[:2]), " ".join(SENTENCES)


def saved(folder: Path, labels: list[str], length: int = 60, save: Any = save_bert) -> Path:
    kind = {save_bert: "Bert", save_roberta: "Roberta"}[save]
    names = dict(enumerate(labels))
    numbers = {label: number for number, label in names.items()}
    return save(folder, f"{kind}ForSequenceClassification", length, id2label=names, label2id=numbers)


def metric(folder: Path, **options: Any) -> Entailment:
    made = METRICS.build("entailment", {}, entailment_model=str(folder), **options)
    assert isinstance(made, Entailment)
    return made


def chance(folder: Path, premise: str, claim: str, label: str, **truncation: Any) -> float:
    """What the library's own model says of one pair."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(**tokenizer(premise, claim, return_tensors="pt", **truncation)).logits[0]
    return float(logits.softmax(dim=-1)[model.config.label2id[label]])


@pytest.mark.parametrize(
    ("save", "labels"), [(save_bert, NLI), (save_roberta, ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"])]
)
def test_it_is_the_mean_over_sentences_of_the_best_in_the_document(
    save: Any, labels: list[str], tmp_path: Path
) -> None:
    folder = saved(tmp_path, labels, save=save)
    (found,) = metric(folder).score([Example(SUMMARY, ("",), DOCUMENT)])
    # SummaC-ZS is the difference of the two.
    expected = [
        np.mean([max(chance(folder, premise, claim, label) for premise in SENTENCES) for claim in TEXTS[:2]])
        for label in ((labels[2], labels[0]) if labels is NLI else labels[:2])
    ]
    np.testing.assert_allclose(found, [100 * value for value in expected], atol=1e-4)
    # An empty document entails and contradicts nothing.
    assert metric(folder).score([Example(SUMMARY, ("",), ""), Example("", ("",), "")]).tolist() == [[0, 0], [0, 100]]


def test_a_whole_document_is_truncated_to_what_the_model_reads(tmp_path: Path) -> None:
    folder = saved(tmp_path, ["CORRECT", "INCORRECT"], length=50)
    made, long = metric(folder, entailment_premise="document"), " ".join([DOCUMENT] * 3)
    (found,) = made.score([Example(TEXTS[0], ("",), long)])
    cut = {"truncation": "only_first", "max_length": 50}
    expected = [chance(folder, long, TEXTS[0], label, **cut) for label in ("CORRECT", "INCORRECT")]
    np.testing.assert_allclose(found, [100 * value for value in expected], atol=1e-4)
    assert made.remarks()[0].startswith("entailment: 1 of 1 pairs")


def test_a_long_claim_leaves_half_of_the_model_to_the_premise(tmp_path: Path) -> None:
    folder = saved(tmp_path, NLI, length=20)
    (found,) = metric(folder).score([Example("fox " * 60, ("",), DOCUMENT)])
    # A fox is three pieces: ten of them are three foxes and a letter.
    cut = {"truncation": "only_first", "max_length": 20}
    best = max(chance(folder, premise, "fox fox fox f", "entailment", **cut) for premise in SENTENCES)
    assert found[0] == pytest.approx(100 * best, abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "argument"),
    [
        (["LABEL_0", "LABEL_1"], "entailment_model"),
        (["entailment", "neutral", "other"], "entailment_model"),
        (["entailment", "contradiction", "contradicted"], "entailment_model"),
        # Two labels need the whole document.
        (["entailment", "not_entailment"], "entailment_premise"),
    ],
)
def test_other_labels_are_refused(labels: list[str], argument: str, tmp_path: Path) -> None:
    with refused(argument):
        metric(saved(tmp_path, labels))


def test_a_tokenizer_without_padding_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, NLI)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pad_token": None}))
    with refused("padding token"):
        metric(folder)

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_encoders import TEXTS, save_bert, save_roberta, transformers
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example
from pyramidions.scoring.metrics import Entailment

NLI = ["contradiction", "neutral", "entailment"]
SUMMARY, DOCUMENT = " ".join(TEXTS[:2]), " ".join([TEXTS[1], TEXTS[2], "Bees are models.", TEXTS[0]])
SENTENCES = [TEXTS[1], TEXTS[2], "Bees are models.", TEXTS[0]]


def saved(folder: Path, labels: list[str], length: int = 60, save: Any = save_bert) -> Path:
    kind = {save_bert: "Bert", save_roberta: "Roberta"}[save]
    names = dict(enumerate(labels))
    return save(
        folder,
        f"{kind}ForSequenceClassification",
        length,
        id2label=names,
        label2id={label: number for number, label in names.items()},
    )


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


@for_each(("save", "labels"), [(save_bert, NLI), (save_roberta, ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"])])
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


def test_a_whole_document_is_truncated_to_what_the_model_reads(tmp_path: Path) -> None:
    folder = saved(tmp_path, ["CORRECT", "INCORRECT"], length=50)
    made, long = metric(folder, entailment_premise="document"), " ".join([DOCUMENT] * 3)
    (found,) = made.score([Example(TEXTS[0], ("",), long)])
    cut = {"truncation": "only_first", "max_length": 50}
    expected = [chance(folder, long, TEXTS[0], label, **cut) for label in ("CORRECT", "INCORRECT")]
    np.testing.assert_allclose(found, [100 * value for value in expected], atol=1e-4)
    remark = (
        "entailment: 1 of 1 pairs of a premise and a sentence of a summary are longer than the model reads and were "
        "truncated."
    )
    assert made.remarks() == [remark]
    made.fit(())
    assert made.remarks() == []


def test_a_long_claim_leaves_half_of_the_model_to_the_premise(tmp_path: Path) -> None:
    folder = saved(tmp_path, NLI, length=20)
    made, claim = metric(folder), "fox " * 60
    (found,) = made.score([Example(claim, ("",), DOCUMENT)])
    # A fox is three pieces: ten of them are three foxes and a letter.
    cut = {"truncation": "only_first", "max_length": 20}
    best = max(chance(folder, premise, "fox fox fox f", "entailment", **cut) for premise in SENTENCES)
    assert found[0] == pytest.approx(100 * best, abs=1e-4)
    assert made.remarks()[0].startswith("entailment: 4 of 4 pairs")


def test_each_truncated_pair_counts_once(tmp_path: Path) -> None:
    made = metric(saved(tmp_path, NLI, length=45))
    made.score([Example("Bees fly. " + "The fox reads documents fast " * 3 + ".", ("",), TEXTS[0])])
    assert made.remarks()[0].startswith("entailment: 1 of 2 pairs")


def test_an_empty_summary_is_the_worst_and_an_empty_document_entails_nothing(tmp_path: Path) -> None:
    made = metric(saved(tmp_path, NLI))
    found = made.score([Example("", ("",), DOCUMENT), Example(SUMMARY, ("",), ""), Example(" \n", ("",), " \n")])
    assert found.tolist() == [[0, 100], [0, 0], [0, 100]]


@for_each(
    ("labels", "shown"),
    [
        (["LABEL_0", "LABEL_1"], "LABEL_0, LABEL_1"),
        (["entailment", "neutral", "other"], "entailment, neutral, other"),
        (["entailment", "contradiction", "contradicted"], "entailment, contradiction, contradicted"),
    ],
)
def test_other_labels_are_refused(labels: list[str], shown: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        metric(saved(tmp_path, labels))
    told = f"`entailment_model` must have labels of entailment and contradiction, but {tmp_path} has {shown}."
    assert str(error.value) == told


def test_another_premise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"`entailment_premise` must be .*sentences.*document.*, but is 'pages'"):
        metric(saved(tmp_path, NLI), entailment_premise="pages")


@for_each("labels", [["entailment", "not_entailment"], ["CORRECT", "INCORRECT"]])
def test_two_labels_need_the_whole_document(labels: list[str], tmp_path: Path) -> None:
    folder = saved(tmp_path, labels)
    with pytest.raises(UserError, match="`entailment_premise` must be document for a classifier of two labels"):
        metric(folder)
    assert np.isfinite(metric(folder, entailment_premise="document").score([Example("Bees.", ("",), DOCUMENT)])).all()


def test_a_tokenizer_without_padding_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, NLI)
    config = folder / "tokenizer_config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps({**settings, "pad_token": None}))
    with pytest.raises(UserError, match="`entailment_model` must have a tokenizer with a padding token, but .* has no"):
        metric(folder)


def test_a_signature_names_the_model_and_the_premise(tmp_path: Path) -> None:
    signature = metric(saved(tmp_path / "nli", NLI)).signature()
    assert signature.startswith("entailment | nli sha256:") and "best of the document's sentences" in signature

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from small_encoders import ENCODER_DECODERS, TEXTS, save_encoder_decoder, transformers

from pyramidions.scoring import METRICS, Example, Metric
from pyramidions.scoring.encoders import loading
from pyramidions.scoring.encoders.raters import LikelihoodRater

DOCUMENT = " ".join(TEXTS)


def metric(folder: str, name: str = "bartscore") -> Metric:
    return METRICS.build(name, {}, bartscore_model=folder)


def loaded(folder: str) -> tuple[Any, Any]:
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def likelihood(folder: str, given: str, text: str) -> float:
    """The mean log-probability of the tokens of a text, token by token, in a pass of its own for each."""
    model, tokenizer = loaded(folder)
    read, ids = tokenizer(given, return_tensors="pt").input_ids, tokenizer(text).input_ids
    total = 0.0
    for place, token in enumerate(ids):
        before = torch.tensor([[model.config.decoder_start_token_id, *ids[:place]]])
        logits = model(input_ids=read, decoder_input_ids=before).logits[0, -1].double()
        total += float(logits[token] - logits.exp().sum().log())
    return total / len(ids)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_it_is_the_mean_log_likelihood_of_each_token_after_the_others(family: str, tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path / family, family)
    # An empty text is its marks alone.
    for text, reference in (("Bees fly.", "A fox reads."), ("", "Bees.")):
        example = Example(text, (reference,), "The fox reads fast.")
        precision, recall = likelihood(folder, reference, text), likelihood(folder, text, reference)
        (found,) = metric(folder).score([example])
        np.testing.assert_allclose(found, [precision, recall, (precision + recall) / 2], atol=1e-4)
        (found,) = metric(folder, "bartscore_faithfulness").score([example])
        np.testing.assert_allclose(found, [likelihood(folder, "The fox reads fast.", text)], atol=1e-4)


def test_long_texts_are_truncated(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path)
    long = " ".join([DOCUMENT] * 3)
    found = metric(folder, "bartscore_faithfulness").score([Example("Bees fly.", ("",), long)])
    model, tokenizer = loaded(folder)
    kept = tokenizer(long, truncation=True, max_length=64, return_tensors="pt").input_ids
    with torch.no_grad():
        expected = -float(model(input_ids=kept, labels=tokenizer("Bees fly.", return_tensors="pt").input_ids).loss)
    assert found[0, 0] == pytest.approx(expected, abs=1e-4)


def test_a_decoder_that_reads_less_than_its_encoder_gets_as_much_as_it_reads(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path, "LED")
    made, (_, tokenizer) = metric(folder), loaded(folder)
    ids = tokenizer(DOCUMENT).input_ids
    # The encoder reads it whole.
    assert 16 < len(ids) <= 64
    (found,) = made.score([Example(DOCUMENT, ("Bees.",))])
    kept = tokenizer.decode(ids[:15], skip_special_tokens=True)
    assert found[0] == pytest.approx(likelihood(folder, "Bees.", kept), abs=1e-4)
    assert found[1] == pytest.approx(likelihood(folder, DOCUMENT, "Bees."), abs=1e-4)
    assert made.remarks()[0].startswith("bartscore: 1 of 2 pairs")


def test_both_metrics_share_one_model(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path)
    one, other = (metric(folder, name) for name in ("bartscore", "bartscore_faithfulness"))
    assert vars(one)["_model"] is vars(other)["_model"]


def test_models_that_do_not_end_or_begin_texts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, tokenizer = save_encoder_decoder(tmp_path), tmp_path / "tokenizer.json"
    found = loading.load(folder, LikelihoodRater.head)
    with monkeypatch.context() as patched, refused("`bartscore_model`"):
        patched.setattr(loading, "load", lambda *_: found._replace(model=found.model.get_encoder()))
        LikelihoodRater(folder)
    tokenizer.write_text(json.dumps({**json.loads(tokenizer.read_text()), "post_processor": None}))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with refused("tokenizer that ends texts"):
        metric(folder)

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_encoders import ENCODER_DECODERS, TEXTS, save_encoder_decoder, transformers
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring import METRICS, Example, Metric, MetricOptions
from pyramidions.scoring.encoders.loading import LIKELIHOOD, load
from pyramidions.scoring.encoders.raters import LikelihoodRater
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import metrics_of, score_documents

DOCUMENT = " ".join(TEXTS)
EXAMPLES = [
    Example(TEXTS[0], (TEXTS[1], TEXTS[2]), DOCUMENT),
    Example("Bees.", (TEXTS[0],), "Bees fly."),
    Example("", (TEXTS[2],), DOCUMENT),
]


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


@torch.no_grad()
def released(folder: str, given: list[str], texts: list[str]) -> list[float]:
    """What the authors' package computes: padded batches, labels padded as well, truncation at 1,024 tokens."""
    model, tokenizer = loaded(folder)
    settings = {"max_length": 1024, "truncation": True, "padding": True, "return_tensors": "pt"}
    read, written = tokenizer(given, **settings), tokenizer(texts, **settings)
    logits = model(input_ids=read.input_ids, attention_mask=read.attention_mask, labels=written.input_ids).logits
    kept = written.input_ids != model.config.pad_token_id
    losses = -logits.log_softmax(dim=-1).gather(2, written.input_ids[..., None])[..., 0] * kept
    return (-losses.sum(dim=1) / written.attention_mask.sum(dim=1)).tolist()  # type: ignore[no-any-return]


@for_each("family", ENCODER_DECODERS)
def test_it_is_the_mean_log_likelihood_of_each_token_after_the_others(family: str, tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path / family, family)
    short = Example("Bees fly.", ("A fox reads.",), "The fox reads fast.")
    precision = likelihood(folder, "A fox reads.", "Bees fly.")
    recall = likelihood(folder, "Bees fly.", "A fox reads.")
    (found,) = metric(folder).score([short])
    np.testing.assert_allclose(found, [precision, recall, (precision + recall) / 2], atol=1e-4)
    (found,) = metric(folder, "bartscore_faithfulness").score([short])
    np.testing.assert_allclose(found, [likelihood(folder, "The fox reads fast.", "Bees fly.")], atol=1e-4)


def test_it_equals_the_arithmetic_of_the_authors_package(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path)
    given, texts = [TEXTS[2], TEXTS[0], "Bees fly.", DOCUMENT[:60].strip()], [TEXTS[1], "Bees fly.", TEXTS[0], ""]
    examples = [Example(text, (one,)) for one, text in zip(given, texts, strict=True)]
    found = metric(folder).score(examples)
    np.testing.assert_allclose(found[:, 0], released(folder, given, texts), atol=1e-4)
    np.testing.assert_allclose(found[:, 1], released(folder, texts, given), atol=1e-4)
    assert (found < 0).all()


def test_of_several_references_the_mean_counts(tmp_path: Path) -> None:
    made = metric(save_encoder_decoder(tmp_path))
    (found,) = made.score([Example("Bees fly.", tuple(TEXTS[:2]))])
    alone = made.score([Example("Bees fly.", (text,)) for text in TEXTS[:2]])
    np.testing.assert_allclose(found, alone.mean(axis=0), atol=1e-5)


@for_each("name", ["bartscore", "bartscore_faithfulness"])
def test_other_documents_and_padding_change_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = metric(save_encoder_decoder(tmp_path), name)
    together, alone = made.score(EXAMPLES), np.concatenate([made.score([example]) for example in EXAMPLES])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    monkeypatch.setattr("pyramidions.scoring.encoders.loading.TOKENS", 70)
    np.testing.assert_allclose(made.score(EXAMPLES), alone, atol=1e-5)


def test_an_empty_summary_gets_the_likelihood_of_its_marks_alone(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path)
    (found,) = metric(folder, "bartscore_faithfulness").score([Example(" \n", ("",), "Bees fly.")])
    model, _ = loaded(folder)
    with torch.no_grad():
        read = torch.tensor([loaded(folder)[1]("Bees fly.").input_ids])
        # An empty text is <s> </s>; the decoder starts from </s>.
        chances = model(input_ids=read, decoder_input_ids=torch.tensor([[2, 0]])).logits[0].log_softmax(dim=-1)
    assert found[0] == pytest.approx(float(chances[0, 0] + chances[1, 2]) / 2, abs=1e-4)


def test_line_breaks_make_no_difference(tmp_path: Path) -> None:
    made = metric(save_encoder_decoder(tmp_path))
    one, other = made.score([Example("Bees fly.\nFoxes read.", ("a\n b",)), Example("Bees fly. Foxes read.", ("a b",))])
    assert one.tolist() == other.tolist()


def test_long_texts_are_truncated_and_counted(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path)
    made, long = metric(folder, "bartscore_faithfulness"), " ".join([DOCUMENT] * 3)
    found = made.score([Example("Bees fly.", ("",), long), Example("Bees fly.", ("",), "Bees.")])
    model, tokenizer = loaded(folder)
    kept = tokenizer(long, truncation=True, max_length=64, return_tensors="pt").input_ids
    ids = tokenizer("Bees fly.", return_tensors="pt").input_ids
    with torch.no_grad():
        expected = -float(model(input_ids=kept, labels=ids).loss)
    assert found[0, 0] == pytest.approx(expected, abs=1e-4)
    assert made.remarks() == [
        "bartscore_faithfulness: 1 of 2 pairs of texts are longer than the model reads and were truncated."
    ]
    made.fit(())
    assert made.remarks() == []


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


def test_a_signature_names_the_model_and_the_unit(tmp_path: Path) -> None:
    signature = metric(save_encoder_decoder(tmp_path / "small")).signature()
    assert signature.startswith("BARTScore | nats a token | mean of references | small sha256:")
    assert "at most 64 tokens" in signature


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = save_encoder_decoder(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": ["BartModel"]}))
    with pytest.raises(UserError) as error:
        metric(folder)
    told = f"a sequence-to-sequence model, such as BART (...ForConditionalGeneration), but {folder} is a BartModel."
    assert str(error.value) == f"`bartscore_model` must be {told}"


def test_a_tokenizer_that_does_not_end_texts_is_refused(tmp_path: Path) -> None:
    folder, tokenizer = save_encoder_decoder(tmp_path), tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps({**json.loads(tokenizer.read_text()), "post_processor": None}))
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>"})
    )
    with pytest.raises(UserError) as error:
        metric(folder)
    assert str(error.value) == f"`bartscore_model` must have a tokenizer that ends texts, but {folder} has none."


def test_a_model_that_does_not_say_what_its_decoder_reads_first_is_refused(tmp_path: Path) -> None:
    loaded = load(save_encoder_decoder(tmp_path), LIKELIHOOD, "cpu")
    with pytest.raises(UserError, match=r"^`bartscore_model` must be of a kind such as BART, T5 or PEGASUS, but m is "):
        LikelihoodRater(loaded._replace(model=loaded.model.get_encoder()), "m")


def test_a_remark_says_what_an_empty_summary_gets(tmp_path: Path) -> None:
    metrics = metrics_of(["rouge", "bartscore"], MetricOptions(bartscore_model=save_encoder_decoder(tmp_path)))
    told = score_documents(Examples(["", "a"], [("a",), ("a",)]), metrics).remarks
    assert told == (
        "1 of 2 summaries is empty and gets the worst of each figure: 0, or 100 if lower is better. Figures without a "
        "worst value (BARTScore precision, BARTScore recall, BARTScore F) count what the model gives an empty text.",
    )

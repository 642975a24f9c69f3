"""How probable a text is for a language model, after another one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small_encoders import TEXTS, save_bert, save_gpt2, transformers
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.scoring.encoders.raters import ContinuationRater

PAIRS = [("", TEXTS[0]), (TEXTS[1], TEXTS[0]), ("A fox reads.", "Bees fly."), ("Bees", "fly")]


@torch.no_grad()
def likelihood(folder: str, given: str, text: str) -> float:
    """Return the mean log-probability of a text's tokens, with a pass of its own for each."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    before = [0, *tokenizer(given, add_special_tokens=False).input_ids]
    ids = tokenizer(f" {text}" if given else text, add_special_tokens=False).input_ids
    if tokenizer.decode(ids[0]) == " ":
        # A piece of its own belongs to neither.
        before.append(ids.pop(0))
    total = 0.0
    for place, token in enumerate(ids):
        read = torch.tensor([[*before, *ids[:place]][-40:]])
        total += float(model(input_ids=read).logits[0, -1].double().log_softmax(-1)[token])
    return total / len(ids)


def test_it_is_the_mean_log_likelihood_of_each_token_after_the_others(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path)
    found = ContinuationRater.of(folder, "cpu").rated(PAIRS)
    np.testing.assert_allclose(found.values, [likelihood(folder, *pair) for pair in PAIRS], atol=1e-5)
    assert found.truncated == 0


def test_of_a_long_pair_the_beginning_is_left_out(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path, 12)
    rater = ContinuationRater.of(folder, "cpu")
    long, short = rater.rated([("bees " * 40 + "fly fast", "over roses")]), rater.rated([("fly fast", "over roses")])
    assert (long.truncated, short.truncated) == (1, 0)
    assert long.values[0] != short.values[0] and np.isfinite(long.values[0])
    alone = rater.rated([("", "bees " * 40)])
    assert alone.truncated == 1 and alone.values[0] < 0


@for_each("kind", ["BertModel", "BertForSequenceClassification"])
def test_a_model_that_reads_both_ways_is_refused(kind: str, tmp_path: Path) -> None:
    folder = save_bert(tmp_path, kind)
    with pytest.raises(UserError) as error:
        ContinuationRater.of(str(folder), "cpu")
    assert str(error.value) == (
        "`label_model` must be a language model that reads from left to right, such as GPT-2 (...ForCausalLM or "
        f"...LMHeadModel), but {folder} is a {kind}."
    )

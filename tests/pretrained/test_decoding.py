"""Imported models write as they were meant to: with the settings that come with them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_pretrained import FAMILIES, end_soon, given_to, model_of, save, token_ids

from pyramidions.inference.search import decoding_settings
from pyramidions.pretrained.importing import Imported, import_model

# The first token that is forced: <s>, or de_DE.
FORCED = {"bart": 0, "led": 0, "mbart": 83}


def saved(family: str, folder: Path, is_forced: bool = True, **settings: Any) -> tuple[Any, Path]:
    """Write a model that ends its texts soon, with settings of generation; return it as transformers reads it."""
    model = model_of(family)
    end_soon(model)
    save(model, folder)
    starts = {name: getattr(model.config, f"{name}_token_id") for name in ("pad", "eos", "decoder_start")}
    starts = {f"{name}_token_id": value for name, value in starts.items()}
    if is_forced:
        starts |= {"forced_eos_token_id": model.config.eos_token_id}
        starts |= {"forced_bos_token_id": FORCED[family]} if family in FORCED else {}
    (folder / "generation_config.json").write_text(json.dumps({**starts, **settings}))
    return type(model).from_pretrained(folder).eval(), folder


def theirs_and_ours(theirs: Any, found: Imported, lengths: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    """Return what transformers and our beam search write of documents, by default."""
    model = found.model
    source, ends = token_ids(model.tokenizer, *lengths), model.tokenizer.ends
    with torch.no_grad():
        # Padding is never written by ours.
        written = theirs.generate(**given_to(theirs, source), suppress_tokens=[model.tokenizer.pad])
    settings = decoding_settings(model)
    search = settings.writer(settings.for_length(2**20), [])
    expected = [text[1:] for text in written.tolist()]
    return (
        [text[: 1 + next((place for place, i in enumerate(text) if i in ends), len(text))] for text in expected],
        [best.tokens.tolist() for (best,) in search(model.transformer, source)],
    )


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("is_forced", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_beam_search_with_a_models_own_settings_writes_what_transformers_does(
    family: str, is_forced: bool, early_stopping: bool, tmp_path: Path
) -> None:
    # Theirs counts the start in n-grams, and a T5 starts with its padding.
    length_penalty, ngram = (0.8, 3) if family in ("bart", "pegasus", "longt5") else (2.0, 0)
    settings = {"num_beams": 4, "length_penalty": length_penalty, "no_repeat_ngram_size": ngram}
    settings |= {"early_stopping": early_stopping, "min_length": 6, "max_length": 39}
    theirs, folder = saved(family, tmp_path, is_forced=is_forced, **settings)
    found = import_model(folder)
    own = decoding_settings(found.model)
    assert own[:5] == (4, 5, 37, length_penalty, ngram) and len(own.prefix) == (is_forced and family in FORCED)
    expected, ours = theirs_and_ours(theirs, found, [33, 12, 7, 20, 9, 6, 14, 28, 31, 3])
    # A search that goes on may end at the limit alone.
    assert len({len(text) for text in expected}) >= 2 or not early_stopping or family in ("bart", "longt5")
    assert ours == expected


def test_any_of_several_tokens_ends_a_summary(tmp_path: Path) -> None:
    theirs, folder = saved("bart", tmp_path, num_beams=3, min_length=4, max_length=30, eos_token_id=[7, 2, 9])
    weight = theirs.get_input_embeddings().weight.data
    weight[7] = weight[2] + 0.1 * weight[7]
    theirs.save_pretrained(folder)
    found = import_model(folder)
    assert found.model.tokenizer.ends == (2, 7, 9)
    expected, ours = theirs_and_ours(theirs, found, [33, 12, 7, 20, 9, 5, 14, 28, 31, 3])
    ended = [place for place, text in enumerate(ours) if len(text) < 28]
    assert (
        {ours[place][-1] for place in ended} >= {7}
        and len(ended) >= 5
        and [ours[i] for i in ended] == [expected[i] for i in ended]
    )

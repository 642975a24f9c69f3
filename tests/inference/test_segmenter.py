"""Segments that a saved language model draws in texts."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from small_language_models import saved

from pyramidions.inference import SegmentedText, Segmenter, export_model, load_language_model, load_model
from pyramidions.pretrained.export_folder import check_export

TEXT = "the cat sat on the mat and saw a rat that sat on a hat"


def segment(folder: Path, kind: str, text: str, window: int = 64, **overrides: Any) -> SegmentedText:
    return Segmenter.from_pretrained(saved(folder, kind, window, **overrides), "cpu").segment(text)


def test_segments_of_whitespace_end_with_a_space_and_have_no_probabilities(tmp_path: Path) -> None:
    found = segment(tmp_path, "whitespace", "The cat, the hat.")
    assert (found.text, found.segments, found.rest) == ("the cat the hat", ["the ", "cat ", "the "], "hat")
    assert found.probabilities is None
    assert found.outside == {",": 1, ".": 1}
    assert (found.shortening_factor, found.boundaries_at_spaces, found.spaces_at_boundaries) == (5.0, 1.0, 1.0)
    assert found.most_frequent(1) == [("the ", 2)]
    # A text without any boundary is all rest.
    found = SegmentedText("ab", np.zeros(2, bool), None, Counter())
    assert (found.segments, found.rest, found.shortening_factor, found.boundaries_at_spaces) == ([], "ab", None, None)


@pytest.mark.parametrize("window", [64, 7])
def test_fixed_segments_go_on_from_window_to_window(window: int, tmp_path: Path) -> None:
    found = segment(tmp_path, "fixed_3", "abcdefghijklm", window)
    # The end of a text, which stands in front, is the first of the first three.
    assert (found.segments, found.rest) == (["ab", "cde", "fgh", "ijk"], "lm")
    assert (found.boundaries_at_spaces, found.spaces_at_boundaries) == (0.0, None)


def test_a_model_of_bytes_draws_segments_of_whole_characters(tmp_path: Path) -> None:
    found = segment(tmp_path, "fixed_3", "Ça va, “à”", alphabet="bytes")
    # The end of a text, which stands in front, is the first of the first three bytes.
    assert (found.segments, found.rest) == (["Ç", "a v", "a, ", "“", "à”"], "")
    segmenter = Segmenter.from_pretrained(saved(tmp_path, "gumbel", alphabet="bytes"), "cpu")
    entropies = segmenter.segment("“à” b", entropies=2).entropies
    (alone,) = segmenter.segment("“à” b", entropies=1).entropies
    assert len(entropies) == 2 and entropies[0] == pytest.approx(alone, abs=1e-4) and alone > 3


@pytest.mark.parametrize("kind", ["gumbel", "unigram", "entropy"])
def test_boundaries_of_a_predictor_stand_where_it_is_above_a_half(kind: str, tmp_path: Path) -> None:
    found = segment(tmp_path, kind, TEXT)
    assert found.probabilities is not None and 0 < found.ends.sum() < len(TEXT)
    np.testing.assert_array_equal(found.ends, found.probabilities > 0.5)
    assert "".join(found.segments) + found.rest == TEXT


@torch.no_grad()
def test_a_text_of_one_window_has_the_boundaries_of_the_whole_model(tmp_path: Path) -> None:
    # A quarter of the window holds it.
    path = saved(tmp_path, "gumbel", 400)
    found, model = Segmenter.from_pretrained(path, "cpu").segment(TEXT), load_language_model(path)
    tokens = torch.tensor([[2, *model.alphabet.encode(TEXT).tolist()]])
    (marked,) = model.network.features(tokens).segmentations
    assert marked.probabilities is not None and found.probabilities is not None
    np.testing.assert_allclose(found.probabilities, marked.probabilities[0, 1:].numpy(), atol=1e-6)


@torch.no_grad()
def test_of_each_window_the_last_quarter_counts(tmp_path: Path) -> None:
    path = saved(tmp_path, "gumbel", 8)
    found, model = Segmenter.from_pretrained(path, "cpu").segment(TEXT), load_language_model(path)
    tokens = torch.tensor([[2, *model.alphabet.encode(TEXT).tolist()]])
    assert found.probabilities is not None
    # The text begins at position 1: 20 and 21 are the last quarter of 14 to 21.
    marked = model.network.mark(tokens[:, 14:22])
    assert marked is not None and marked.probabilities is not None
    np.testing.assert_allclose(found.probabilities[19:21], marked.probabilities[0, 6:].numpy(), atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize(("kind", "window"), [("gumbel", 400), ("fixed_3", 8)])
def test_entropies_are_those_of_the_prediction_of_each_character(kind: str, window: int, tmp_path: Path) -> None:
    path = saved(tmp_path, kind, window)
    segmenter, model = Segmenter.from_pretrained(path, "cpu"), load_language_model(path)
    found, without = segmenter.segment(TEXT, entropies=99), segmenter.segment(TEXT)
    assert found.entropies is not None and found.entropies.shape == (len(TEXT),) and without.entropies is None
    np.testing.assert_array_equal(found.ends, without.ends)
    some = segmenter.segment(TEXT, entropies=9).entropies
    assert some is not None
    np.testing.assert_allclose(some, found.entropies[:9], atol=1e-6)
    tokens = torch.tensor([[2, *model.alphabet.encode(TEXT).tolist()]])
    # The first character is predicted from the end that stands in front; 20 is read from 14 on with a window of 8.
    begin, place = (0, 20) if window == 400 else (14, 6)
    logits = model.network.logits(model.network.features(tokens[:, begin : begin + 8 + 20], start=begin).x)
    p = logits[0, place].softmax(0)
    assert found.entropies[20] == pytest.approx(-(p * p.log2()).sum().item(), abs=1e-5)


@pytest.mark.parametrize(("kind", "draws"), [("gumbel", 1), ("nested and learned", 2)])
def test_boundaries_that_are_drawn_at_random_are_the_same_in_each_call(kind: str, draws: int, tmp_path: Path) -> None:
    boundaries = " | ".join(["gumbel(evaluation='sample')"] * draws)
    segmenter = Segmenter.from_pretrained(saved(tmp_path, kind, 8, boundaries=boundaries), "cpu")
    shares: list[float] = []
    first, second = segmenter.segment(TEXT, on_progress=shares.append), segmenter.segment(TEXT)
    np.testing.assert_array_equal(first.ends, second.ends)
    np.testing.assert_array_equal(first.ends, segmenter.segment(TEXT, entropies=99).ends)
    assert first.probabilities is not None and (first.ends != (first.probabilities > 0.5)).any()
    assert len(shares) > 1 and sum(shares) == pytest.approx(1)


def test_a_model_that_lacks_a_weight_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, "fixed_2")
    state = torch.load(path, weights_only=True)
    del state["model"]["decoder.core.output.linear.bias"]
    torch.save(state, path)
    with refused("output.linear.bias"):
        load_language_model(path)


def test_an_export_draws_the_same_segments_and_holds_no_pickle(tmp_path: Path) -> None:
    path, folder = saved(tmp_path, "gumbel"), tmp_path / "export"
    export_model(load_language_model(path), folder, "# A model\n")
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    about = json.loads((folder / "config.json").read_text())
    assert (about["kind"], about["characters"], about["tokens_per_sample"]) == ("language model", "en", 64)
    check_export(folder)
    first, second = (Segmenter.from_pretrained(each, "cpu").segment(TEXT) for each in (path, folder))
    assert first.probabilities is not None and second.probabilities is not None
    np.testing.assert_array_equal(first.ends, second.ends)
    # Sums may differ in their last bit, since the weights lie elsewhere in memory.
    np.testing.assert_allclose(first.probabilities, second.probabilities, rtol=1e-5)
    with refused(f"`pyramidions segments {folder}`"):
        load_model(folder)

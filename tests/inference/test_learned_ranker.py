"""A trained model that extracts: saved, read, refused where it does not belong, and rating documents of any length."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from invoking import succeed
from refusals import refused

from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.inference import LearnedRanker, SavedExtractor, export_model, load_extractor
from pyramidions.inference.learned_ranker import _plan
from pyramidions.models import build_extractor, extractor_preset
from pyramidions.models.formats import FORMAT
from pyramidions.text.outline import Outline, outline
from pyramidions.text.tokenizer import PAD

PAPER = "A title.\n\n# Roses\n\nA rose is a rose. It is a rose!\n\n# Thorns\n\nA thorn is a thorn. A rose is a thorn."
SIZE: dict[str, Any] = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2}


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    """Return what fairseq-train saves of a tiny extractor, as far as it concerns us."""
    texts = ["a rose is a rose", "a thorn is a title"]
    tokenizer = train_tokenizer(texts, Settings(vocab_size=18, sentence_markers=True))
    config = extractor_preset("extractor", **SIZE, max_source_positions=256)
    torch.manual_seed(0)
    model = build_extractor(config, tokenizer.vocab_size, tokenizer.marker_id, PAD)
    weights = {f"core.{name}": weight for name, weight in model.state_dict().items()}
    fields = {"_name": "extractor", "config_format": FORMAT, **asdict(config)}
    return {
        "cfg": {"model": fields, "task": {"_name": "extractive_summarization"}},
        "model": {**weights, "vocabulary": torch.tensor(7)},
        "task_state": {"max_source_positions": 256, "extract_words": 9, "tokenizer": tokenizer.model_bytes},
    }


@pytest.fixture(scope="module")
def checkpoint(state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extractor") / "checkpoint_best.pt"
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> SavedExtractor:
    return load_extractor(checkpoint)


def ranker(model: SavedExtractor, **changes: Any) -> LearnedRanker:
    return LearnedRanker(replace(model, **changes), "cpu")


def test_sentences_have_the_scores_of_their_units_and_headings_none(model: SavedExtractor) -> None:
    found = outline(PAPER)
    ids = model.tokenizer.encode_units([unit.text for unit in found.units])
    scores = model.ranker(torch.tensor([ids]))[0].tolist()
    expected = [score for score, unit in zip(scores, found.units, strict=True) if not unit.is_heading]
    ranked = ranker(model).rank(found)
    assert ranked.dtype == np.float64 and ranked.tolist() == pytest.approx(expected, abs=1e-6)
    assert len(ranked) == len(found.sentences) < len(found.units)
    assert ranker(model).rank(outline("")).shape == (0,)


def test_a_long_document_is_rated_in_windows_that_begin_with_half_of_the_one_before(model: SavedExtractor) -> None:
    found = outline(" ".join(["A rose is a rose."] * 9))
    (each,) = {len(model.tokenizer.encode_units([unit.text])) for unit in found.units}
    most = 4 * (each + 1)

    def scores_of(first: int, stop: int) -> list[float]:
        return ranker(model).rank(Outline(found.units[first:stop], found.headings)).tolist()

    # Four units to a window, two of which the one before has rated: 0 to 3, 2 to 5, 4 to 7, 6 to 8.
    expected = [*scores_of(0, 4), *scores_of(2, 6)[2:], *scores_of(4, 8)[2:], *scores_of(6, 9)[2:]]
    scores = ranker(model, max_source_positions=most).rank(found).tolist()
    assert scores == pytest.approx(expected, abs=1e-6)
    assert scores != pytest.approx(scores_of(0, 9), abs=1e-6)
    # A unit longer than the model is truncated.
    short, long = outline("A rose is"), outline("A rose is a rose is a thorn")
    small = ranker(model, max_source_positions=len(model.tokenizer.encode_units([short.units[0].text])))
    assert small.rank(long) == pytest.approx(small.rank(short))


def test_no_window_has_more_units_than_poolings_at_markers_hand_on(state: dict[str, Any], tmp_path: Path) -> None:
    config = {**state["cfg"]["model"], "pooling_lengths": "2,None,None,None"}
    torch.save({**state, "cfg": {**state["cfg"], "model": config}}, tmp_path / "few.pt")
    found = LearnedRanker.from_pretrained(tmp_path / "few.pt", "cpu").rank(outline(PAPER))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("lengths", "most", "units", "windows"),
    [
        ([3, 3, 3], 11, 9, [(0, 0, 3)]),
        ([3, 3, 3], 10, 9, [(0, 0, 2), (1, 2, 3)]),
        ([3, 3, 3], 7, 9, [(0, 0, 2), (2, 2, 3)]),  # 2 * 4 tokens of the second are more than half
        ([3, 9, 3], 4, 9, [(0, 0, 1), (1, 1, 2), (2, 2, 3)]),  # a unit longer than a window
        ([1, 1, 1, 9], 10, 9, [(0, 0, 3), (3, 3, 4)]),  # no room for what is known
        ([1] * 5, 99, 3, [(0, 0, 3), (2, 3, 5)]),
        ([1] * 3, 99, 1, [(0, 0, 1), (1, 1, 2), (2, 2, 3)]),
    ],
)
def test_windows_hold_whole_units_and_few_enough(
    lengths: list[int], most: int, units: int, windows: list[tuple[int, int, int]]
) -> None:
    ends = [sum(lengths[: number + 1]) + number for number in range(len(lengths))]
    begins = [end - length for end, length in zip(ends, lengths, strict=True)]
    assert list(_plan(begins, ends, most, units)) == windows


def test_documents_share_batches_and_keep_their_scores_and_order(
    model: SavedExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [PAPER, "A rose.", PAPER * 3, "# Roses", "A thorn is a rose. A rose."]
    found = [outline(text) for text in texts]
    ours = ranker(model)
    for batch_tokens, documents in ((2**16, 32), (100, 32), (1, 2)):
        monkeypatch.setattr("pyramidions.inference.learned_ranker._BATCH_TOKENS", batch_tokens)
        monkeypatch.setattr("pyramidions.inference.learned_ranker.BLOCK", documents)
        together = list(ours.rank_all(iter(found)))
        for one, scores in zip(found, together, strict=True):
            assert scores.tolist() == pytest.approx(ours.rank(one).tolist(), abs=1e-6)
    assert [len(scores) for scores in together] == [len(one.sentences) for one in found]


def test_an_export_rates_as_its_checkpoint_and_says_what_it_is(
    checkpoint: Path, model: SavedExtractor, tmp_path: Path
) -> None:
    succeed("export", checkpoint.parent, tmp_path / "my model")
    about = json.loads((tmp_path / "my model" / "config.json").read_text())
    assert about["kind"] == "extractor" and "max_target_positions" not in about
    found = outline(PAPER)
    exported = LearnedRanker.from_pretrained(tmp_path / "my model", "cpu")
    assert exported.rank(found).tolist() == ranker(model).rank(found).tolist()
    card = (tmp_path / "my model" / "README.md").read_text()
    assert "pyramidions extract paper.txt --method 'my model'" in card
    assert "| pooling | markers: 1024 vectors after layer 1 |" in card and "| layers | 4, 8 wide |" in card
    assert "decoding" not in card and "summary" not in card


def changed(folder: Path, name: str, value: Any) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), name: value}))


def selection(path: Path) -> tuple[int | None, str, float]:
    found = load_extractor(path)
    return found.extract_words, found.redundancy, found.mmr_weight


def test_how_sentences_are_selected_travels_from_the_checkpoint_to_the_export(
    state: dict[str, Any], checkpoint: Path, tmp_path: Path
) -> None:
    path = tmp_path / "with.pt"
    torch.save({**state, "task_state": {**state["task_state"], "redundancy": "mmr", "mmr_weight": 0.25}}, path)
    assert selection(path) == (9, "mmr", 0.25)
    export_model(load_extractor(path), tmp_path / "export", "# A model\n")
    assert selection(tmp_path / "export") == (9, "mmr", 0.25)
    # Trained, or exported, before these settings travelled.
    assert selection(checkpoint) == (9, "none", 0.7)
    config = tmp_path / "export" / "config.json"
    about = json.loads(config.read_text())
    for name in ("extract_words", "redundancy", "mmr_weight"):
        del about[name]
    config.write_text(json.dumps(about))
    assert selection(tmp_path / "export") == (None, "none", 0.7)


@pytest.mark.parametrize(
    ("name", "value"), [("extract_words", 0), ("redundancy", "all"), ("redundancy", None), ("mmr_weight", 1.5)]
)
def test_a_damaged_setting_of_selection_is_named(
    name: str, value: Any, state: dict[str, Any], model: SavedExtractor, tmp_path: Path
) -> None:
    export_model(model, tmp_path / "model", "# A model\n")
    changed(tmp_path / "model", name, value)
    torch.save({**state, "task_state": {**state["task_state"], name: value}}, tmp_path / "bad.pt")
    for path in (tmp_path / "model", tmp_path / "bad.pt"):
        with refused(f"settings of {path} are damaged: `{name}`"):
            load_extractor(path)


def test_a_checkpoint_without_tokenizer_or_sentence_markers_is_no_extractor(
    state: dict[str, Any], tmp_path: Path
) -> None:
    plain = train_tokenizer(["a rose is a rose", "a thorn is a title"], Settings(vocab_size=17)).model_bytes
    without_markers = {**state["task_state"], "tokenizer": plain}
    for task_state, said in (({}, "but is none"), (without_markers, "sentence markers")):
        torch.save({**state, "task_state": task_state}, tmp_path / "bad.pt")
        with refused(said):
            load_extractor(tmp_path / "bad.pt")

"""The model that rates sentences, behind fairseq's interface."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from omegaconf import OmegaConf
from refusals import refused
from torch import Tensor

from pyramidions.models import EXTRACTOR_PRESETS, PRESETS
from pyramidions.nn.selector import draw
from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig
from pyramidions.plugin.models.pyramidion_extractor import PyramidionExtractor, PyramidionExtractorConfig
from pyramidions.text.tokenizer import SENTENCE_MARKER

SMALL: dict[str, Any] = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "max_source_positions": 64}


def task(*pieces: str) -> Any:
    dictionary = Dictionary()
    for piece in (*pieces, *(f"w{number}" for number in range(20))):
        dictionary.add_symbol(piece)
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, max_positions=lambda: (64, 16))


MARKED = task(SENTENCE_MARKER)
MARKER = MARKED.source_dictionary.index(SENTENCE_MARKER)


def model(name: str = "extractor", of: Any = MARKED, **overrides: Any) -> PyramidionExtractor:
    torch.manual_seed(0)
    config = OmegaConf.structured(PyramidionExtractorConfig(**{**EXTRACTOR_PRESETS[name], **SMALL, **overrides}))
    return PyramidionExtractor.build_model(config, of)


def batch() -> Tensor:
    return torch.tensor([[5, 6, MARKER, 7, 8, MARKER, 9], [10, 11, 12, MARKER, 13, 1, 1]])


@pytest.mark.parametrize("name", EXTRACTOR_PRESETS)
def test_every_preset_rates_and_every_parameter_is_in_its_graph(name: str) -> None:
    ours = model(name)
    for source in (batch(), torch.tensor([[2]])):
        ours.zero_grad()
        if ours.points:
            (steps,) = ours(source, picks=[draw])
            (steps.log_probs.where(steps.log_probs.isfinite(), 0).sum() + steps.values.sum()).backward()
        else:
            scores = ours(source)
            scores[scores.isfinite()].sum().backward()
        assert all(p.grad is not None for p in ours.parameters())


def test_padding_on_the_left_gives_the_same_scores() -> None:
    ours = model().eval()
    left = torch.stack([row[[*range(5, 7), *range(5)]] if row[-1] == 1 else row for row in batch()])
    torch.testing.assert_close(ours(left), ours(batch()))
    torch.testing.assert_close(ours(batch(), lengths=[7, 5]), ours(batch()))


def test_the_longest_source_is_the_tasks() -> None:
    assert model().max_positions() == 64
    alone = SimpleNamespace(source_dictionary=MARKED.source_dictionary, max_positions=lambda: 32)
    assert model(of=alone).max_positions() == 32


def test_weights_that_fairseq_saved_load_and_others_are_refused() -> None:
    ours, other = model(), model(dropout=0.2)
    other.load_state_dict(ours.state_dict())
    assert other.eval()(batch()).equal(ours.eval()(batch()))
    for another, told in (
        (model(embed_dim=8), "another architecture"),
        (model(of=task(SENTENCE_MARKER, "w")), "vocabulary"),
    ):
        with refused(told, ValueError):
            another.load_state_dict(ours.state_dict())
    with refused("An extractor needs a vocabulary with sentence markers", ValueError):
        model(of=task())


def test_a_summarizer_pools_at_the_markers_of_its_vocabulary() -> None:
    fields = {**PRESETS["vanilla"], **SMALL, "pooling": "markers", "pooling_lengths": "8,None"}
    config = OmegaConf.structured(PyramidionModelConfig(**fields))
    encoded = PyramidionModel.build_model(config, MARKED).eval().encoder(batch())
    assert encoded.memories.each[0].padding_mask.tolist() == [[False, False, False], [False, False, True]]
    with refused("needs a vocabulary with markers", ValueError):
        PyramidionModel.build_model(config, task())

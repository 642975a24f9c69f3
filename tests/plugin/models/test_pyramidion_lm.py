"""The language model, behind fairseq's interface."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from noise import add_noise
from omegaconf import OmegaConf
from refusals import refused
from small_language_models import OWN_LAYERS, WITHOUT_SEGMENTS
from torch import Tensor

from pyramidions.models import LANGUAGE_MODEL_PRESETS
from pyramidions.plugin.models.pyramidion_lm import PyramidionLanguageModel, PyramidionLanguageModelConfig

SMALL: dict[str, Any] = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "layers": "1,2,1"}
#: of boundaries that the space gives, that are learned, of a fixed length, and of no boundaries at all
presets = pytest.mark.parametrize("name", ["hourglass_whitespace", "hourglass_gumbel", "longformer_lm"])


def task(symbols: str = "▁abcdefg") -> Any:
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


TASK = task()


def model(name: str, of: Any = TASK, **overrides: Any) -> PyramidionLanguageModel:
    torch.manual_seed(0)
    fields = {**LANGUAGE_MODEL_PRESETS[name], **SMALL, **OWN_LAYERS.get(name, {}), **overrides}
    made = PyramidionLanguageModel.build_model(OmegaConf.structured(PyramidionLanguageModelConfig(**fields)), of)
    add_noise(made, 0.3)
    return made.eval()


def batch() -> dict[str, Tensor]:
    tokens = torch.tensor([[2, 5, 6, 4, 7, 8], [4, 9, 9, 9, 1, 1]])
    return {"src_tokens": tokens, "src_lengths": torch.tensor([6, 4])}


@presets
@torch.no_grad()
def test_a_batch_of_fairseqs_gives_logits_and_where_segments_end(name: str) -> None:
    ours = model(name)
    logits, extra = ours(**batch())
    assert logits.shape == (2, 6, 12) and extra["attn"] == [None]
    assert len(extra["segmentations"]) == (name not in WITHOUT_SEGMENTS)
    features, _ = ours.extract_features(batch()["src_tokens"])
    torch.testing.assert_close(ours.output_layer(features), logits)
    assert ours.max_positions() == 2**24 and ours.supported_targets == {"future"}


def test_weights_that_fairseq_saved_load_and_others_are_refused() -> None:
    ours, other = model("hourglass_gumbel"), model("hourglass_gumbel", dropout=0.2)
    other.load_state_dict(ours.state_dict())
    assert other(**batch())[0].equal(ours(**batch())[0])
    permuted = model("hourglass_gumbel", task("▁gfedcba"))
    others = (model("hourglass_fixed_2"), "another architecture"), (permuted, "another vocabulary")
    for another, told in others:
        with refused(told, ValueError):
            another.load_state_dict(ours.state_dict())
    with refused("needs a vocabulary with a space", ValueError):
        model("hourglass_whitespace", task("abc"))


def test_whitespace_is_the_space_of_the_dictionary() -> None:
    (found,) = model("hourglass_whitespace")(**batch())[1]["segmentations"]
    assert found.boundaries.tolist() == [[0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]]

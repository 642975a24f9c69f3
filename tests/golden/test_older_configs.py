"""Configs that 0.2.0 wrote compute what they did, where parts have changed since."""

import json
import lzma
from pathlib import Path

import pytest
import torch
from golden_models import outputs

from pyramidions.models import ExtractorConfig, PyramidionConfig
from pyramidions.models.older_releases import config_as_written

RECORDED = json.loads(lzma.decompress((Path(__file__).parent / "changed_after_0_2_0.json.xz").read_bytes()))
KINDS = {kind.__name__: kind for kind in (PyramidionConfig, ExtractorConfig)}


@pytest.mark.parametrize("name", RECORDED)
def test_a_config_of_0_2_0_computes_what_it_did(name: str) -> None:
    recorded = RECORDED[name]
    config = config_as_written(KINDS[recorded["kind"]], recorded["fields"], 2)
    logits = torch.tensor(outputs(config, recorded["lengths"]))
    torch.testing.assert_close(logits, torch.tensor(recorded["logits"]), rtol=1e-5, atol=1e-5)

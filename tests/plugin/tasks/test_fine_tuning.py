"""Options of a training that begins gently."""

import logging
import math

import pytest
import torch
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.plugin.tasks.config import DocumentTaskConfig
from pyramidions.plugin.tasks.learning import begin_fine_tuning

SMALL = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "self_attention": "blockwise(block_size=8)"}


def model(**overrides: object) -> Transformer:
    torch.manual_seed(0)
    fields = {**SMALL, "pooling_lengths": "16,4", "max_source_positions": 64, **overrides}
    return build(preset("pyramidion", **fields), 50)


def test_without_options_a_model_stays_as_it_is() -> None:
    given = model()
    before = [name for name, _ in given.named_modules()]
    begin_fine_tuning(DocumentTaskConfig(), given, 64)
    assert [name for name, _ in given.named_modules()] == before


@for_each(
    ("options", "sentence"),
    [
        ({"pooling_warmup": -1}, "--pooling-warmup must be at least 0, but is -1."),
        ({"pooling_warmup": 9}, "--pooling-warmup is 9, but the model has no pooling by a top-k."),
        ({"freeze": "encoder.0,decoder.7"}, "--freeze names decoder.7, but the decoder has 2 layers, counted from 0."),
        ({"scorer_lr_scale": 0.0}, "--scorer-lr-scale must be positive and finite, but is 0.0."),
        ({"scorer_lr_scale": math.inf}, "--scorer-lr-scale must be positive and finite, but is inf."),
        ({"scorer_lr_scale": 10.0}, "--scorer-lr-scale is 10.0, but no scorer has weights to train."),
    ],
)
def test_what_does_not_fit_is_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        begin_fine_tuning(DocumentTaskConfig(**options), model(pooling="mean"), 64)


def test_how_much_is_frozen_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        begin_fine_tuning(DocumentTaskConfig(freeze="embeddings,poolers"), model(), 64)
    whole = sum(parameter.numel() for parameter in model().parameters())
    assert caplog.messages == [f"frozen: {50 * 16 + 2 * 17:,} of {whole:,} parameters (embeddings,poolers)"]

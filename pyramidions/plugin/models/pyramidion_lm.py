"""The language model, as fairseq sees it."""

from dataclasses import dataclass
from typing import Any

from fairseq.models import FairseqLanguageModel, register_model
from torch import Tensor

from pyramidions.models.builder import build_language_model
from pyramidions.models.config import LanguageModelConfig
from pyramidions.models.presets import LANGUAGE_MODEL_PRESETS
from pyramidions.nn import LanguageModel, LanguageModelCache
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.plugin.models.architectures import (
    CachedDecoder,
    FittingModel,
    RecordedConfig,
    config_from,
    index_of,
    register_presets,
)
from pyramidions.text.tokenizer import SPACE


class PyramidionLanguageDecoder(CachedDecoder):
    """A `LanguageModel` behind fairseq's interface."""

    core: LanguageModel

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return logits (or features), and where segments end.

        With ``incremental_state``, those of the tokens that it has not seen; segmentations are left out then.
        """
        tokens, cache = self.unread(prev_output_tokens, incremental_state)
        with in_evaluation_without_cudnn_attention(self):
            features = self.core.features(tokens, cache)
        x = features.x if features_only else self.core.logits(features.x)
        return x, {"attn": [None], "inner_states": None, "segmentations": features.segmentations}

    def reorder(self, cache: LanguageModelCache, order: Tensor) -> None:
        cache.select(order)


@dataclass
class PyramidionLanguageModelConfig(LanguageModelConfig, RecordedConfig):
    """`LanguageModelConfig` in fairseq's form."""


@register_model("pyramidion_lm", dataclass=PyramidionLanguageModelConfig)
class PyramidionLanguageModel(FittingModel, FairseqLanguageModel):
    """A `LanguageModel` behind fairseq's interface."""

    decoder: PyramidionLanguageDecoder

    def __init__(self, decoder: PyramidionLanguageDecoder) -> None:
        super().__init__(decoder)
        self.know_vocabulary(decoder.dictionary)

    @property
    def core(self) -> LanguageModel:
        return self.decoder.core

    @classmethod
    def build_model(cls, cfg: PyramidionLanguageModelConfig, task: Any) -> "PyramidionLanguageModel":
        dictionary = task.source_dictionary
        config = config_from(LanguageModelConfig, cfg)
        core = build_language_model(config, len(dictionary), dictionary.pad(), index_of(dictionary, SPACE))
        return cls(PyramidionLanguageDecoder(dictionary, core))


register_presets("pyramidion_lm", LANGUAGE_MODEL_PRESETS)

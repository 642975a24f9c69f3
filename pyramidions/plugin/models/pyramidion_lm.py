"""The language model, as fairseq sees it."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.models import FairseqIncrementalDecoder, FairseqLanguageModel, register_model
from omegaconf import DictConfig
from torch import Tensor

from pyramidions.models.builder import build_language_model
from pyramidions.models.config import LONGEST_TEXT
from pyramidions.models.fitting import VOCABULARY, fingerprint, refuse_architecture, refuse_vocabulary
from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.models.lm_presets import LANGUAGE_MODEL_PRESETS
from pyramidions.nn import LanguageModel, LanguageModelCache
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.plugin.models.architectures import RecordedConfig, config_from, register_presets, space_of

_CACHE = "pyramidions"


class PyramidionLanguageDecoder(FairseqIncrementalDecoder):
    """A `LanguageModel` behind fairseq's interface.

    Args:
        dictionary: of tokens.
        core: the model.
    """

    def __init__(self, dictionary: Any, core: LanguageModel) -> None:
        super().__init__(dictionary)
        self.core = core

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
        cache: LanguageModelCache | None = None
        if incremental_state is not None:
            if _CACHE not in incremental_state:
                incremental_state[_CACHE] = self.core.new_cache()
            cache = incremental_state[_CACHE]
            assert cache is not None
            prev_output_tokens = prev_output_tokens[:, cache.length :]
        with in_evaluation_without_cudnn_attention(self):
            features = self.core.features(prev_output_tokens, cache)
        x = features.x if features_only else self.core.logits(features.x)
        return x, {"attn": [None], "inner_states": None, "segmentations": features.segmentations}

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: None = None, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return features (B, T, D) and extras."""
        return self(prev_output_tokens, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """Return logits: (B, T, D) -> (B, T, V)."""
        return self.core.logits(features)

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Keep the texts ``new_order`` (B',): all state is in one cache."""
        cache: LanguageModelCache | None = incremental_state.get(_CACHE)
        if cache is not None and cache.length:
            cache.select(new_order)

    def max_positions(self) -> int:
        """Return the longest text, in tokens: distances have no end."""
        return LONGEST_TEXT


@dataclass
class PyramidionLanguageModelConfig(LanguageModelConfig, RecordedConfig):
    """`LanguageModelConfig` in fairseq's form."""


@register_model("pyramidion_lm", dataclass=PyramidionLanguageModelConfig)
class PyramidionLanguageModel(FairseqLanguageModel):
    """A `LanguageModel` behind fairseq's interface.

    Args:
        decoder: reads and predicts.
    """

    decoder: PyramidionLanguageDecoder

    def __init__(self, decoder: PyramidionLanguageDecoder) -> None:
        super().__init__(decoder)
        self._fingerprint = fingerprint(decoder.dictionary)
        self.register_buffer(VOCABULARY, torch.tensor(self._fingerprint))

    @property
    def core(self) -> LanguageModel:
        """What computes."""
        return self.decoder.core

    @classmethod
    def build_model(cls, cfg: PyramidionLanguageModelConfig, task: Any) -> "PyramidionLanguageModel":
        """Build the model that ``cfg`` describes for the dictionary of ``task``.

        Raises:
            ValueError: a field that breaks a rule.
        """
        dictionary = task.source_dictionary
        config = config_from(LanguageModelConfig, cfg)
        core = build_language_model(config, len(dictionary), dictionary.pad(), space_of(dictionary))
        return cls(PyramidionLanguageDecoder(dictionary, core))

    def load_state_dict(
        self,
        state_dict: dict[str, Tensor],
        strict: bool = True,
        model_cfg: DictConfig | None = None,
        args: Namespace | None = None,
    ) -> Any:
        """Copy weights, after checking that they fit.

        Raises:
            ValueError: the weights are of another vocabulary or, if ``strict``, of another architecture.
        """
        refuse_vocabulary(state_dict, self._fingerprint)
        if strict:
            refuse_architecture(state_dict, self)
        return super().load_state_dict(state_dict, strict, model_cfg, args)


register_presets("pyramidion_lm", LANGUAGE_MODEL_PRESETS)

"""The model that rates sentences, as fairseq sees it."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.models import BaseFairseqModel, register_model
from omegaconf import II, DictConfig
from torch import Tensor

from pyramidions.models.builder import build_extractor
from pyramidions.models.config import ExtractorConfig
from pyramidions.models.fitting import VOCABULARY, fingerprint, refuse_architecture, refuse_vocabulary
from pyramidions.models.presets import EXTRACTOR_PRESETS
from pyramidions.nn import SentenceRanker
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.nn.functional.masking import flush_right_padding
from pyramidions.plugin.models.architectures import RecordedConfig, config_from, marker_of, register_presets


@dataclass
class PyramidionExtractorConfig(ExtractorConfig, RecordedConfig):
    """`ExtractorConfig` in fairseq's form; the task sets the length of documents."""

    max_source_positions: int | None = II("task.max_source_positions")


@register_model("pyramidion_extractor", dataclass=PyramidionExtractorConfig)
class PyramidionExtractor(BaseFairseqModel):
    """A `SentenceRanker` behind fairseq's interface.

    Args:
        core: rates sentences.
        dictionary: of source tokens.
        max_positions: longest source, in tokens.
    """

    #: Whether loaded weights may lack scorers, which then begin at random: only where fine-tuning begins.
    may_add_scorers = False

    def __init__(self, core: SentenceRanker, dictionary: Any, max_positions: int) -> None:
        super().__init__()
        self.core = core
        self._max_positions = max_positions
        self._fingerprint = fingerprint(dictionary)
        self.register_buffer(VOCABULARY, torch.tensor(self._fingerprint))

    @classmethod
    def build_model(cls, cfg: PyramidionExtractorConfig, task: Any) -> "PyramidionExtractor":
        """Build the model that ``cfg`` describes for the dictionary of ``task``.

        Raises:
            ValueError: a dictionary without a sentence marker, or a field that breaks a rule.
        """
        dictionary, longest = task.source_dictionary, task.max_positions()
        config = config_from(ExtractorConfig, cfg)
        core = build_extractor(config, len(dictionary), marker_of(dictionary), dictionary.pad())
        # A task with summaries has two lengths.
        return cls(core, dictionary, longest[0] if isinstance(longest, tuple) else longest)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        lengths: list[int] | None = None,
        **unused: Any,
    ) -> Tensor:
        """Rate the units of ``src_tokens`` (B, L), as `SentenceRanker` does: (B, U).

        A batch padded on the left is padded on the right first. ``lengths`` are ``src_lengths`` as integers on the
        host, so that it need not wait for a GPU; such a batch is padded on the right.
        """
        tokens = src_tokens if lengths is not None else flush_right_padding(src_tokens, self.core.padding_idx)
        with in_evaluation_without_cudnn_attention(self):
            scores: Tensor = self.core(tokens, lengths)
        return scores

    def max_positions(self) -> int:
        """Return the longest source, in tokens."""
        return self._max_positions

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
            refuse_architecture(state_dict, self, may_add_scorers=self.may_add_scorers)
        return super().load_state_dict(state_dict, strict, model_cfg, args)


register_presets("pyramidion_extractor", EXTRACTOR_PRESETS)

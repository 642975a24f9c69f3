"""The model that rates sentences, as fairseq sees it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairseq.models import register_model
from omegaconf import II
from torch import Tensor

from pyramidions.models.builder import build_extractor
from pyramidions.models.config import ExtractorConfig
from pyramidions.models.presets import EXTRACTOR_PRESETS
from pyramidions.nn import SentenceRanker
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.nn.functional.masking import flush_right_padding
from pyramidions.nn.selector import Pick, Steps
from pyramidions.plugin.models.architectures import (
    FittingModel,
    RecordedConfig,
    config_from,
    index_of,
    register_presets,
)
from pyramidions.text.tokenizer import MARKERS


@dataclass
class PyramidionExtractorConfig(ExtractorConfig, RecordedConfig):
    """`ExtractorConfig` in fairseq's form; the task sets the length of documents."""

    max_source_positions: int | None = II("task.max_source_positions")


@register_model("pyramidion_extractor", dataclass=PyramidionExtractorConfig)
class PyramidionExtractor(FittingModel):
    """A `SentenceRanker` behind fairseq's interface."""

    def __init__(self, core: SentenceRanker, dictionary: Any, max_positions: int) -> None:
        super().__init__()
        self.core = core
        self._max_positions = max_positions
        self.know_vocabulary(dictionary)

    @classmethod
    def build_model(cls, cfg: PyramidionExtractorConfig, task: Any) -> "PyramidionExtractor":
        dictionary, longest = task.source_dictionary, task.max_positions()
        config = config_from(ExtractorConfig, cfg)
        core = build_extractor(config, len(dictionary), index_of(dictionary, *MARKERS), dictionary.pad())
        # A task with summaries has two lengths.
        return cls(core, dictionary, longest[0] if isinstance(longest, tuple) else longest)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        lengths: list[int] | None = None,
        allowed: Tensor | None = None,
        picks: Sequence[Pick] = (),
        **unused: Any,
    ) -> Tensor | list[Steps]:
        """Rate the units of ``src_tokens`` (B, L), or select them step by step; as in `SentenceRanker`.

        A batch padded on the left is padded on the right first. ``lengths`` are ``src_lengths`` as integers on the
        host, so that it need not wait for a GPU; such a batch is padded on the right.
        """
        tokens = src_tokens if lengths is not None else flush_right_padding(src_tokens, self.core.padding_idx)
        with in_evaluation_without_cudnn_attention(self):
            found: Tensor | list[Steps] = self.core(tokens, lengths, allowed, picks)
        return found

    @property
    def points(self) -> bool:
        return self.core.output.points

    def max_positions(self) -> int:
        return self._max_positions


register_presets("pyramidion_extractor", EXTRACTOR_PRESETS)

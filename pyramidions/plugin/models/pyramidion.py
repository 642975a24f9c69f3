"""The model as fairseq sees it: what its search says of hypotheses, and its `incremental_state`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, register_model
from omegaconf import II
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_part
from pyramidions.models.builder import build
from pyramidions.models.config import MAX_SOURCE_POSITIONS, PyramidionConfig
from pyramidions.models.presets import PRESETS
from pyramidions.nn import DecoderCache, Encoder
from pyramidions.nn.attention import CoreAttention
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.nn.functional.masking import flush_right_padding
from pyramidions.nn.pooling import Pooled
from pyramidions.nn.sublayer import Memories
from pyramidions.plugin.models.architectures import (
    CachedDecoder,
    FittingModel,
    RecordedConfig,
    config_from,
    index_of,
    register_presets,
)
from pyramidions.text.tokenizer import DOCUMENT_SEPARATOR, MARKERS, NAME_END


class EncoderOut(NamedTuple):
    """What the encoder hands to the decoder."""

    memories: Memories  # what the decoder reads
    pooled: Mapping[int, Pooled]  # of each layer that pools, by its number; what criterions log
    begun: bool = False  # whether fairseq's search has said how many hypotheses of a document there are


class PyramidionEncoder(FairseqEncoder):
    """An `Encoder` behind fairseq's interface."""

    def __init__(self, dictionary: Any, core: Encoder, max_positions: int) -> None:
        super().__init__(dictionary)
        self.core = core
        self._max_positions = max_positions

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        lengths: Optional[list[int]] = None,
        **unused: Any,
    ) -> EncoderOut:
        """Encode ``src_tokens`` (B, L); a batch padded on the left is padded on the right first.

        ``lengths`` are ``src_lengths`` as integers on the host, so that it need not wait for a GPU; such a batch is
        padded on the right.
        """
        tokens = src_tokens if lengths is not None else flush_right_padding(src_tokens, self.dictionary.pad())
        with in_evaluation_without_cudnn_attention(self):
            encoded = self.core(tokens, tokens.eq(self.dictionary.pad()), lengths)
        return EncoderOut(Memories(encoded.memories), encoded.pooled)

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Keep what the hypotheses ``new_order`` (B'W,) read; those of a document share its memories.

        Before its first step, fairseq's search repeats each document once for each of its hypotheses.
        """
        memories, _, begun = encoder_out
        width = memories.width if begun else len(new_order) // memories.each[0].x.size(0)
        # What was pooled is a diagnostic of training, not of beam search.
        return EncoderOut(memories.reorder(new_order, width), {}, begun=True)

    def max_positions(self) -> int:
        return self._max_positions


class PyramidionDecoder(CachedDecoder):
    """A `Decoder` behind fairseq's interface."""

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: Optional[dict[str, Any]] = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return logits (or features) and extras; with ``incremental_state``, of what it has not seen."""
        tokens, cache = self.unread(prev_output_tokens, incremental_state)
        with in_evaluation_without_cudnn_attention(self):
            x = self.core.features(tokens, encoder_out.memories.each, cache)
        if not features_only:
            x = self.core.logits(x, encoder_out.memories.each, cache)
        return x, {"attn": [None], "inner_states": None, "pooled": encoder_out.pooled}

    def reorder(self, cache: DecoderCache, order: Tensor) -> None:
        cache.reorder(order, cache.width)


@dataclass
class PyramidionModelConfig(PyramidionConfig, RecordedConfig):
    """`PyramidionConfig` in fairseq's form; the task sets the length of documents."""

    max_source_positions: Optional[int] = II("task.max_source_positions")


@register_model("pyramidion", dataclass=PyramidionModelConfig)
class PyramidionModel(FittingModel, FairseqEncoderDecoderModel):
    """Every architecture of the paper (Pietruszka et al. 2022); the config says which."""

    def __init__(self, config: PyramidionConfig, encoder: PyramidionEncoder, decoder: PyramidionDecoder) -> None:
        super().__init__(encoder, decoder)
        self.config = config
        self.know_vocabulary(decoder.dictionary)

    @classmethod
    def build_model(cls, cfg: PyramidionModelConfig, task: Any) -> "PyramidionModel":
        source, target = task.source_dictionary, task.target_dictionary
        if source != target:
            raise ValueError("Source and target must share one dictionary: all embeddings are shared.")
        config = config_from(PyramidionConfig, cfg)
        longest_source, longest_target = task.max_positions()
        marker, name_end, separator = (index_of(target, *of) for of in (MARKERS, [NAME_END], [DOCUMENT_SEPARATOR]))
        core = build(config, len(target), target.pad(), marker, longest_target, target.eos(), name_end, separator)
        _refuse_longer(core.encoder, longest_source, config.max_source_positions or MAX_SOURCE_POSITIONS)
        encoder = PyramidionEncoder(source, core.encoder, longest_source)
        return cls(config, encoder, PyramidionDecoder(target, core.decoder, longest_target))

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Rename, in place, the weights of fairseq's own Transformer."""
        _from_fairseq_transformer(state_dict, untied=parse_part("output", self.config.output).kind == "untied")


def _refuse_longer(encoder: Encoder, asked: int, longest: int) -> None:
    """Refuse documents that are longer than weights are for, which only some attention kinds have."""
    tied = [kind for kind in encoder.modules() if isinstance(kind, CoreAttention) and kind.longest is not None]
    if tied and asked > longest:
        raise UserError(
            f"--max-source-positions must be at most {longest}, for which {type(tied[0]).__name__} has weights, but is "
            f"{asked}."
        )


_LAYER = r"^(encoder|decoder)\.layers\.(\d+)\."
_SUBLAYER = r"\1.core.layers.\2.sublayers."
_RENAMED = [
    (r"^(encoder|decoder)\.embed_tokens\.", r"\1.core.embedder.tokens."),
    (r"^(encoder|decoder)\.layernorm_embedding\.", r"\1.core.embedder.norm."),
    (r"^(encoder|decoder)\.layer_norm\.", r"\1.core.norm."),
    (rf"{_LAYER}self_attn\.", rf"{_SUBLAYER}self_attention.function.projections."),
    (rf"{_LAYER}encoder_attn\.", rf"{_SUBLAYER}cross_attention.function.projections."),
    (rf"{_LAYER}(fc[12])\.", rf"{_SUBLAYER}feed_forward.function.\3."),
    (rf"{_LAYER}self_attn_layer_norm\.", rf"{_SUBLAYER}self_attention.norm."),
    (rf"{_LAYER}encoder_attn_layer_norm\.", rf"{_SUBLAYER}cross_attention.norm."),
    (rf"{_LAYER}final_layer_norm\.", rf"{_SUBLAYER}feed_forward.norm."),
]
# What fairseq saves and we compute: the version mark, position tables, and the output layer that is the embedding.
_DROPPED = re.compile(
    r"^(encoder|decoder)\.(version|embed_positions\._float_tensor)$|^decoder\.output_projection\.weight$"
)


def _from_fairseq_transformer(weights: dict[str, Tensor], untied: bool = False) -> None:
    """Rename, in place, the weights of a fairseq Transformer with sinusoidal positions and shared embeddings.

    Weights that already have our names stay as they are. An ``untied`` model's output layer has weights of its own, as
    the checkpoint's may.
    """
    if untied and "decoder.output_projection.weight" in weights:
        weights["decoder.core.output.linear.weight"] = weights.pop("decoder.output_projection.weight")
    shared = weights.get("decoder.embed_tokens.weight")
    for key, part in (("decoder.output_projection.weight", "output layer"), ("encoder.embed_tokens.weight", "encoder")):
        own = weights.get(key)
        if own is not None and shared is not None and not (own.shape == shared.shape and own.equal(shared)):
            raise ValueError(
                f"The checkpoint must have one embedding for all (--share-all-embeddings), but its {part} has its own."
            )
    for key in list(weights):
        if _DROPPED.search(key):
            del weights[key]
            continue
        for pattern, ours in _RENAMED:
            new, count = re.subn(pattern, ours, key)
            if count:
                weights[new] = weights.pop(key)
                break


register_presets("pyramidion", PRESETS)

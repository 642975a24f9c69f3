"""The model as fairseq sees it: its T x B x C order, `encoder_out` dictionaries and `incremental_state`."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from omegaconf import II, DictConfig
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.models.builder import build
from pyramidions.models.config import MAX_SOURCE_POSITIONS, PyramidionConfig
from pyramidions.models.fairseq_transformer import from_fairseq_transformer
from pyramidions.models.fitting import VOCABULARY, fingerprint, refuse_architecture, refuse_vocabulary
from pyramidions.models.notation import parse_part
from pyramidions.models.older_releases import rename_from_0_1
from pyramidions.models.presets import PRESETS
from pyramidions.nn import Decoder, DecoderCache, Encoder
from pyramidions.nn.attention import CoreAttention
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.nn.functional.masking import flush_right_padding
from pyramidions.nn.memory import Memory
from pyramidions.plugin.models.architectures import (
    RecordedConfig,
    config_from,
    marker_of,
    name_end_of,
    register_presets,
)

_CACHE = "pyramidions"


class PyramidionEncoder(FairseqEncoder):
    """An `Encoder` behind fairseq's interface.

    Args:
        dictionary: of source tokens.
        core: the encoder.
        max_positions: longest source, in tokens.
    """

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
    ) -> dict[str, Any]:
        """Encode ``src_tokens`` (B, L); a batch padded on the left is padded on the right first.

        ``lengths`` are ``src_lengths`` as integers on the host, so that it need not wait for a GPU; such a batch is
        padded on the right.
        """
        # A batch that comes with `lengths` is padded on the right; others may be padded on the left.
        tokens = src_tokens if lengths is not None else flush_right_padding(src_tokens, self.dictionary.pad())
        with in_evaluation_without_cudnn_attention(self):
            encoded = self.core(tokens, tokens.eq(self.dictionary.pad()), lengths)
        return {
            # (B, K, D) -> (K, B, D)
            "encoder_out": [memory.x.transpose(0, 1) for memory in encoded.memories],
            "encoder_padding_mask": [_mask(memory) for memory in encoded.memories],
            "encoder_embedding": [],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [],
            "pooled": encoded.pooled,
            "padded": [memory.padding_mask is not None for memory in encoded.memories],
        }

    def reorder_encoder_out(self, encoder_out: dict[str, Any], new_order: Tensor) -> dict[str, Any]:
        """Keep what the hypotheses ``new_order`` (B',) read; consecutive ones of a document share one row."""
        memory, mask = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
        held = mask[0].size(0)
        documents = _documents(new_order, encoder_out.get("width", 1), held)
        if documents is not None:
            memory = [x.index_select(1, documents) for x in memory]
            mask = [x.index_select(0, documents) for x in mask]
        return {
            **encoder_out,
            "encoder_out": memory,
            "encoder_padding_mask": mask,
            "width": len(new_order) // (held if documents is None else len(documents)),
            "pooled": {},  # a diagnostic of training, not of beam search
        }

    def max_positions(self) -> int:
        """Return the longest source, in tokens."""
        return self._max_positions


class PyramidionDecoder(FairseqIncrementalDecoder):
    """A `Decoder` behind fairseq's interface.

    Args:
        dictionary: of target tokens.
        core: the decoder.
        max_positions: longest target, in tokens.
    """

    def __init__(self, dictionary: Any, core: Decoder, max_positions: int) -> None:
        super().__init__(dictionary)
        self.core = core
        self._max_positions = max_positions

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any],
        incremental_state: Optional[dict[str, Any]] = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return logits (or features) and extras; with ``incremental_state``, of the last position only."""
        cache: Optional[DecoderCache] = None
        if incremental_state is not None:
            if _CACHE not in incremental_state:
                incremental_state[_CACHE] = self.core.new_cache()
            cache = incremental_state[_CACHE]
            assert cache is not None
            prev_output_tokens = prev_output_tokens[:, cache.length :]
        with in_evaluation_without_cudnn_attention(self):
            x = self.core.features(prev_output_tokens, _memories(encoder_out), cache)
        if not features_only:
            x = self.core.logits(x)
        return x, {"attn": [None], "inner_states": None, "pooled": encoder_out.get("pooled", {})}

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: dict[str, Any], **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return features (B, T, D) and extras."""
        return self(prev_output_tokens, encoder_out, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """Return logits: (B, T, D) -> (B, T, V)."""
        return self.core.logits(features)

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Keep the hypotheses ``new_order`` (B',): all state is in one cache."""
        cache: Optional[DecoderCache] = incremental_state.get(_CACHE)
        if cache is not None and cache.documents:
            cache.reorder(new_order, _documents(new_order, cache.width, cache.documents))

    def max_positions(self) -> int:
        """Return the longest target, in tokens."""
        return self._max_positions


@dataclass
class PyramidionModelConfig(PyramidionConfig, RecordedConfig):
    """`PyramidionConfig` in fairseq's form; the task sets the length of documents."""

    max_source_positions: Optional[int] = II("task.max_source_positions")


@register_model("pyramidion", dataclass=PyramidionModelConfig)
class PyramidionModel(FairseqEncoderDecoderModel):
    """Every architecture of the paper (Pietruszka et al. 2022); the config says which.

    Args:
        config: its shape and decoding settings.
        encoder: reads the document.
        decoder: writes the summary.
    """

    #: Whether loaded weights may lack scorers, which then begin at random: only where fine-tuning begins.
    may_add_scorers = False

    def __init__(self, config: PyramidionConfig, encoder: PyramidionEncoder, decoder: PyramidionDecoder) -> None:
        super().__init__(encoder, decoder)
        self.config = config
        self._fingerprint = fingerprint(decoder.dictionary)
        self.register_buffer(VOCABULARY, torch.tensor(self._fingerprint))

    @classmethod
    def build_model(cls, cfg: PyramidionModelConfig, task: Any) -> "PyramidionModel":
        """Build the model that ``cfg`` describes for the dictionary of ``task``.

        Raises:
            ValueError: separate dictionaries, or a field that breaks a rule.
        """
        source, target = task.source_dictionary, task.target_dictionary
        if source != target:
            raise ValueError("Source and target must share one dictionary: all embeddings are shared.")
        config = config_from(PyramidionConfig, cfg)
        longest_source, longest_target = task.max_positions()
        markers = marker_of(target), name_end_of(target)
        core = build(config, len(target), target.pad(), markers[0], longest_target, target.eos(), markers[1])
        _refuse_longer(core.encoder, longest_source, config.max_source_positions or MAX_SOURCE_POSITIONS)
        encoder = PyramidionEncoder(source, core.encoder, longest_source)
        return cls(config, encoder, PyramidionDecoder(target, core.decoder, longest_target))

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Rename, in place, the weights of fairseq's own Transformer, and those of 0.1.0."""
        from_fairseq_transformer(state_dict, untied=parse_part("output", self.config.output).kind == "untied")
        rename_from_0_1(state_dict)

    def load_state_dict(
        self,
        state_dict: dict[str, Tensor],
        strict: bool = True,
        model_cfg: Optional[DictConfig] = None,
        args: Optional[Namespace] = None,
    ) -> Any:
        """Copy weights, after checking that they fit.

        Raises:
            ValueError: the weights are of another vocabulary or, if ``strict``, of another architecture.
        """
        self.upgrade_state_dict(state_dict)
        refuse_vocabulary(state_dict, self._fingerprint)
        if strict:
            refuse_architecture(state_dict, self, may_add_scorers=self.may_add_scorers)
        return super().load_state_dict(state_dict, strict, model_cfg, args)


def _refuse_longer(encoder: Encoder, asked: int, longest: int) -> None:
    """Refuse documents that are longer than weights are for, which only some attention kinds have."""
    tied = [kind for kind in encoder.modules() if isinstance(kind, CoreAttention) and kind.longest is not None]
    if tied and asked > longest:
        raise UserError(
            f"--max-source-positions must be at most {longest}, for which {type(tied[0]).__name__} has weights, but is "
            f"{asked}."
        )


def _mask(memory: Memory) -> Tensor:
    """Return the mask that others expect of an encoder, where there is no padding, too: (B, K)."""
    if memory.padding_mask is not None:
        return memory.padding_mask
    return torch.zeros(memory.x.shape[:2], dtype=torch.bool, device=memory.x.device)


def _memories(encoder_out: dict[str, Any]) -> tuple[Memory, ...]:
    outputs, masks = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"] or [None]
    padded = encoder_out.get("padded", [True] * len(outputs))
    # (K, B, D) -> (B, K, D)
    return tuple(
        Memory(x.transpose(0, 1), mask if known else None)
        for x, mask, known in zip(outputs, masks, padded, strict=True)
    )


def _documents(order: Tensor, width: int, held: int) -> Optional[Tensor]:
    """Return the documents (B',) that the hypotheses ``order`` belong to, ``width`` of each so far.

    A document comes once for all of its hypotheses if as many of each stand together, and else once for each. None says
    that all the ``held`` ones stay as they are, as at most steps: nothing of theirs need be copied. Whether documents
    left is told by how many hypotheses there are, so that the host waits for no GPU unless some did.

    Raises:
        RuntimeError: as many hypotheses as before, but of other documents. It is checked on the CPU only, where that
            takes no waiting; fairseq's search never does so.
    """
    owners = order // width
    if len(order) == held * width:
        if can_be_asked(order) and not owners.equal(torch.arange(held).repeat_interleave(width)):
            raise RuntimeError("Hypotheses must not change places with those of other documents.")
        return None
    documents, counts = owners.unique_consecutive(return_counts=True)
    documents = documents if (counts == counts[0]).all() else owners
    return None if documents.equal(torch.arange(held, device=documents.device)) else documents


def can_be_asked(x: Tensor) -> bool:
    """Whether reading values needs no waiting for a GPU."""
    return x.is_cpu


register_presets("pyramidion", PRESETS)

"""A summarizer of ours with the interface of transformers: `forward` with labels, `generate`, and loading."""

import warnings
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple

from pyramidions.base.arguments import CountOrZero, check, shown
from pyramidions.base.errors import UserError
from pyramidions.hf.configuration import PyramidionsConfig
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.config import check_lengths
from pyramidions.models.formats import refuse_older
from pyramidions.nn import Decoder, DecoderCache, Encoder, Transformer
from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention
from pyramidions.nn.functional.masking import flush_right_padding
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.reduced import DECIDING
from pyramidions.nn.sublayer import Memory
from pyramidions.pretrained.own_files import ENDS, generation_fields
from pyramidions.pretrained.saved_model import SavedModel, described_config

# Of the fields that nothing else checks.
_RULES: dict[str, Any] = {
    "model": dict[str, Any],
    "vocab_size": CountOrZero,
    "prefix": list[CountOrZero],
    "marker_id": CountOrZero | None,
    "name_end_id": CountOrZero | None,
    "document_separator_id": CountOrZero | None,
}
_IGNORED = -100  # of labels, as everywhere in transformers


@dataclass
class PyramidionsEncoderOutput(BaseModelOutput):
    """What the encoder made of a batch of B documents.

    Attributes:
        last_hidden_state: (B, K, D), K vectors of each document, fewer than tokens where the model pools; `generate`
            repeats them for its hypotheses.
        memories: what the decoder reads; the hypotheses of a document share them.
    """

    memories: tuple[Memory, ...] | None = None


class PyramidionsCache:
    """What the decoder keeps between steps, as `generate` handles it."""

    is_compileable = False
    #: of layers that transformers knows: there are none
    is_linear: tuple[bool, ...] = ()

    def __init__(self, states: DecoderCache) -> None:
        self.states = states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return how many tokens have been decoded, the start included."""
        return self.states.length

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep the hypotheses ``beam_idx`` (BW,); those of a document stand together."""
        self.states.reorder(beam_idx, self.states.width)


class _Reader:
    """The encoder, as `generate` calls it."""

    main_input_name = "input_ids"

    def __init__(self, model: "PyramidionsForConditionalGeneration") -> None:
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **others: Any) -> Any:
        _refuse({name: value for name, value in others.items() if name != "return_dict"})
        return self.model.read(input_ids, attention_mask)

    __call__ = forward


class PyramidionsForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """An encoder that may pool, and a decoder.

    `forward` returns logits; with a pointer they are log-probabilities. Weights have the names that they have in an
    export.

    Args:
        config: what config.json of an export says.
        transformer: what computes, whose weights are shared; None for new weights.

    Raises:
        UserError: the config breaks a rule, or the model reads tags of words.
    """

    config_class = PyramidionsConfig
    main_input_name = "input_ids"
    accepts_loss_kwargs = True
    # Assisted decoding would cut the cache, and is refused.
    _is_stateful = True

    encoder: Encoder
    decoder: Decoder

    def __init__(self, config: PyramidionsConfig, transformer: Transformer | None = None) -> None:
        super().__init__(config)
        fields = _fields(config)
        transformer = transformer or _built(config, fields)
        self.encoder, self.decoder = transformer.encoder, transformer.decoder
        # What `generate` asks of an encoder.
        self.encoder.main_input_name = self.main_input_name  # type: ignore[assignment]
        # Of the names of one weight, as in an export, the last stays.
        owners = {id(weight): name for name, weight in self.named_parameters(remove_duplicate=False)}
        shared = {name: owners[id(weight)] for name, weight in self.named_parameters(remove_duplicate=False)}
        self._tied_weights_keys = {name: owner for name, owner in shared.items() if name != owner}
        # So that a trainer that resumes misses none.
        self._keys_to_ignore_on_save = set(self._tied_weights_keys)
        # As with `--precision bfloat16`.
        deciding = [name for name, part in self.named_modules() if isinstance(part, DECIDING)]
        self._keep_in_fp32_modules_strict = deciding
        #: types of the buffers that hold no weights
        self.counting = {name: each.dtype for name, each in self.named_buffers() if not each.is_floating_point()}
        self.post_init()
        ends = {name: getattr(config, name) for name in ENDS}
        self.generation_config = GenerationConfig(
            **generation_fields(fields, config.max_target_positions, config.prefix, ends)
        )

    @classmethod
    def from_saved(cls, model: SavedModel) -> "PyramidionsForConditionalGeneration":
        """Return a model that `load_model` read: a checkpoint, any export, or a pretrained model; it shares weights."""
        return cls(PyramidionsConfig.from_saved(model), model.transformer).eval()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *arguments: Any, **others: Any) -> Any:
        """Read an export, or what `save_pretrained` wrote; arguments are those of transformers.

        Raises:
            UserError: the weights do not fit the config; ``ignore_mismatched_sizes`` changes nothing.
        """
        told = others.pop("output_loading_info", False)
        # Of a wrong shape, transformers would raise an error of its own.
        others |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
        loaded: Any = super().from_pretrained(pretrained_model_name_or_path, *arguments, **others)
        model, info = loaded
        head = f"The weights of {pretrained_model_name_or_path} do not fit its settings:"
        for names, wrong in (("missing_keys", "is missing"), ("unexpected_keys", "has no place in the model")):
            if info[names]:
                raise UserError(f"{head} {min(info[names])} {wrong}.")
        for name, given, shape in sorted(info["mismatched_keys"])[:1]:
            raise UserError(f"{head} {name} must be {tuple(shape)}, but is {tuple(given)}.")
        # transformers casts counters, too.
        for name, dtype in model.counting.items():
            owner, _, attribute = name.rpartition(".")
            part = model.get_submodule(owner)
            setattr(part, attribute, getattr(part, attribute).to(dtype))
        return (model, info) if told else model

    def read(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> PyramidionsEncoderOutput:
        """Read documents.

        Args:
            input_ids: (B, L), padded on either side.
            attention_mask: (B, L), 0 at padding; None if that is just where the padding token stands.

        Raises:
            UserError: a document has more tokens than the model reads.
        """
        pad = self.config.pad_token_id
        tokens = input_ids if attention_mask is None else input_ids.masked_fill(attention_mask == 0, pad)
        tokens = flush_right_padding(tokens, pad)
        most = self.config.max_source_positions
        if tokens.size(1) > most:
            if (longest := int(tokens.ne(pad).sum(dim=1).max())) > most:
                raise UserError(f"`input_ids` must have at most {most:,} tokens, but has {longest:,}: use truncation.")
            tokens = tokens[:, :most]
        with in_evaluation_without_cudnn_attention(self):
            encoded = self.encoder(tokens, tokens.eq(pad))
        return PyramidionsEncoderOutput(encoded.sequence.x, memories=encoded.memories)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        encoder_outputs: PyramidionsEncoderOutput | None = None,
        cache: PyramidionsCache | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **others: Any,
    ) -> Seq2SeqLMOutput:
        """Score the next tokens of summaries.

        Args:
            input_ids, attention_mask: documents, as in `read`; not needed with ``encoder_outputs``.
            decoder_input_ids: (BW, T), summaries so far, from `</s>` on, those of a document in consecutive rows; with
                a cache, only the tokens after those in it. None for the ``labels``, shifted.
            decoder_attention_mask: (BW, T), padding on the right if at all; it changes nothing.
            labels: (BW, T), the tokens to predict, -100 where there is none.
            encoder_outputs: what `read` returned.
            cache: of earlier steps, extended in place.
            use_cache: begin a cache if there is none.
            num_items_in_batch: divides the sum of losses; None for the number of labels.

        Returns:
            loss: mean cross entropy of the labels, if there are any.
            logits: (BW, T, V).
            cache: if one is used.
            encoder_last_hidden_state: (B, K, D).

        Raises:
            UserError: an argument is missing, too long, or not supported.
        """
        _refuse(others)
        if decoder_input_ids is None:
            if labels is None:
                raise UserError("The model must be given `labels` or `decoder_input_ids`, but is given neither.")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        # Differences of booleans do not tell a rise from a fall.
        if decoder_attention_mask is not None and (decoder_attention_mask.int().diff(dim=1) > 0).any():
            raise UserError("`decoder_attention_mask` must be 0 on the right only, but is 0 elsewhere.")
        if cache is None and use_cache:
            cache = PyramidionsCache(self.decoder.new_cache())
        states = None if cache is None else cache.states
        length = decoder_input_ids.size(1) + (0 if states is None else states.length)
        if length > (most := self.config.max_target_positions):
            raise UserError(f"A summary must have at most {most:,} tokens, its end included, but has {length:,}.")
        if encoder_outputs is None:
            if input_ids is None:
                raise UserError("The model must be given `input_ids` or `encoder_outputs`, but is given neither.")
            encoder_outputs = self.read(input_ids, attention_mask)
        if not isinstance(encoder_outputs, PyramidionsEncoderOutput):
            raise UserError("`encoder_outputs` must be what `read` of the model returns, but is something else.")
        with in_evaluation_without_cudnn_attention(self):
            logits = self.decoder(decoder_input_ids, encoder_outputs.memories, states)
        return Seq2SeqLMOutput(
            loss=None if labels is None else _loss(logits, labels, num_items_in_batch),
            logits=logits,
            cache=cache,  # type: ignore[arg-type]
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
        )

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return what predicts ``labels`` (B, T): `</s>`, and all but the last of them."""
        shifted = labels.masked_fill(labels == _IGNORED, self.config.pad_token_id).roll(1, dims=1)
        shifted[:, 0] = self.config.eos_token_id
        return shifted

    def get_encoder(self, modality: str | None = None) -> Any:
        """Return what reads documents, with the arguments and results of `read`."""
        return _Reader(self)

    def get_input_embeddings(self) -> torch.nn.Module:
        """Return the embeddings, which encoder and decoder share."""
        return self.encoder.embedder.tokens

    def resize_token_embeddings(self, new_num_tokens: int | None = None, *others: Any, **more: Any) -> Any:
        """Return the embeddings, and refuse another number of them: the tokenizer's pieces are fixed."""
        if new_num_tokens not in (None, self.config.vocab_size):
            rule = f"`new_num_tokens` must be {self.config.vocab_size:,}, the pieces of the tokenizer"
            raise UserError(f"{rule}, but is {shown(new_num_tokens)}.")
        return self.get_input_embeddings()

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """Return the names under which a weight is not saved, and those under which it is."""
        return dict(self._tied_weights_keys)

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Keep what the parts themselves begin with."""

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        cache: PyramidionsCache | None = None,
        attention_mask: Tensor | None = None,
        is_first_iteration: bool | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the arguments of a step's `forward`; documents have been read, and ``labels`` are no step's."""
        unread = input_ids if cache is None else input_ids[:, cache.get_seq_length() :]
        return {**kwargs, "decoder_input_ids": unread, "cache": cache}

    def _prepare_generated_length(self, **arguments: Any) -> GenerationConfig:  # type: ignore[override]
        found: GenerationConfig = super()._prepare_generated_length(**arguments)  # type: ignore[misc]
        asked, most = found.max_length, self.config.max_target_positions + 1
        if asked is not None and asked > most:
            warnings.warn(f"`max_length` is lowered from {asked:,} to {most:,}, the most that the model writes.")
            found.max_length = most
        return found

    def _prepare_cache_for_generation(  # type: ignore[override]
        self, generation_config: GenerationConfig, model_kwargs: dict[str, Any], *_: Any
    ) -> None:
        if (asked := generation_config.cache_implementation) is not None:
            raise UserError(f"`cache_implementation` must be None, since models have their own, but is {shown(asked)}.")
        if generation_config.use_cache is not False and model_kwargs.get("cache") is None:
            model_kwargs["cache"] = PyramidionsCache(self.decoder.new_cache())

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Do nothing, as that of the config."""


def _fields(config: PyramidionsConfig) -> PyramidionConfig:
    """Return the config of ours that one of transformers describes."""
    refuse_older(config.name_or_path or "The model", config.format)
    check({name: getattr(config, name) for name in _RULES}, _RULES)
    if not config.vocab_size:
        raise UserError("`vocab_size` must be in config.json, as `pyramidions export` writes it.")
    check_lengths(config.max_source_positions, config.max_target_positions)
    fields = described_config(PyramidionConfig, config.model, config.max_source_positions)
    if fields.tag_dim:
        raise UserError(f"`tag_dim` must be 0 for transformers, whose texts have no tags, but is {fields.tag_dim}.")
    return fields


def _built(config: PyramidionsConfig, fields: PyramidionConfig) -> Transformer:
    """Build the model with new weights."""
    return build(
        fields,
        config.vocab_size,
        config.pad_token_id,
        marker_idx=config.marker_id,
        max_target_positions=config.max_target_positions,
        separator_idx=config.eos_token_id,
        name_end_idx=config.name_end_id,
        document_separator_idx=config.document_separator_id,
    )


def _loss(logits: Tensor, labels: Tensor, items: Tensor | int | None) -> Tensor:
    """Return the mean cross entropy, in float32 or wider: (B, T, V), (B, T) -> ()."""
    wide = full_precision(logits).flatten(0, 1)
    labels = labels.flatten().to(logits.device)
    if items is None:
        return F.cross_entropy(wide, labels, ignore_index=_IGNORED)
    return F.cross_entropy(wide, labels, ignore_index=_IGNORED, reduction="sum") / items


def _refuse(others: dict[str, Any]) -> None:
    """Refuse arguments of other models, unless they ask for nothing."""
    for name, value in others.items():
        if value is not None and value is not False:
            raise UserError(f"`{name}` must not be given to a model of pyramidions, but is {type(value).__name__}.")

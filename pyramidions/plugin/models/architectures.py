"""What our models share behind fairseq's interface: presets as its `--arch`, its configs, weights and dictionary."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    BaseFairseqModel,
    FairseqIncrementalDecoder,
    register_model_architecture,
)
from omegaconf import DictConfig
from torch import Tensor

from pyramidions.models.config import LONGEST_TEXT, Config, config_as, in_one_spelling
from pyramidions.models.fields import part_fields
from pyramidions.models.fitting import refuse_architecture, refuse_vocabulary
from pyramidions.models.formats import FORMAT, VOCABULARY, fingerprint, refuse_older
from pyramidions.plugin.hooks import bf16_without_tpu

_CACHE = "pyramidions"


@dataclass
class RecordedConfig(FairseqDataclass):
    """What a checkpoint records of how the config of its model is read."""

    config_format: int = field(
        default=FORMAT, metadata={"help": "format of the model's fields, for checkpoints to record; the default alone"}
    )


def config_from(kind: type[Config], cfg: Any) -> Config:
    """Return the config that a model is built from; fairseq's may lack newer fields."""
    refuse_older("The model", cfg.get("config_format", FORMAT))
    values = {name: cfg[name] for name in kind.__dataclass_fields__ if name in cfg}  # type: ignore[attr-defined]
    return config_as(kind, values)


def register_presets(model: str, presets: Mapping[str, Mapping[str, Any]]) -> None:
    """Register presets as architectures of a model."""
    parts = set(part_fields(MODEL_DATACLASS_REGISTRY[model]))
    for name, fields in {model: {}, **presets}.items():
        fill = _filling_in(fields, parts)
        if name in ARCH_CONFIG_REGISTRY:
            # fairseq files each model under its own name as an architecture without settings; this one has some.
            ARCH_CONFIG_REGISTRY[name] = fill
        else:
            register_model_architecture(model, name)(fill)


def _filling_in(fields: Mapping[str, Any], parts: Set[str]) -> Callable[[Any], None]:
    """Return the function that fairseq calls to fill in what the command line left open."""

    def fill(args: Any) -> None:
        # A field that a checkpoint lacks has its default.
        if isinstance(args, DictConfig):
            return
        bf16_without_tpu(args)
        given = {name: value for name, value in vars(args).items() if name in parts}
        for name, value in in_one_spelling({**fields, **given}, parts).items():
            if name in parts or name not in vars(args):
                setattr(args, name, value)

    return fill


class FittingModel(BaseFairseqModel):
    """A model that takes weights of its own vocabulary and architecture alone."""

    #: Whether loaded weights may lack scorers and a pointer, which then begin at random: only where fine-tuning begins.
    may_add_parts = False

    def know_vocabulary(self, dictionary: Any) -> None:
        """Keep a fingerprint of the dictionary, which travels with the weights."""
        self._fingerprint = fingerprint(dictionary.symbols)
        self.register_buffer(VOCABULARY, torch.tensor(self._fingerprint))

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True, **kwargs: Any) -> Any:
        """Copy weights, after checking that they fit."""
        self.upgrade_state_dict(state_dict)
        refuse_vocabulary(state_dict, self._fingerprint)
        if strict:
            refuse_architecture(state_dict, self, may_add_parts=self.may_add_parts)
        return super().load_state_dict(state_dict, strict, **kwargs)


class CachedDecoder(FairseqIncrementalDecoder, ABC):
    """A decoder of ours behind fairseq's interface, which keeps all state of a search in one cache."""

    def __init__(self, dictionary: Any, core: Any, max_positions: int = LONGEST_TEXT) -> None:
        super().__init__(dictionary)
        self.core = core
        self._max_positions = max_positions

    def unread(self, tokens: Tensor, incremental_state: Optional[dict[str, Any]]) -> tuple[Tensor, Any]:
        """Return the tokens that the cache of a search does not hold, and the cache; all and None without a search."""
        if incremental_state is None:
            return tokens, None
        if _CACHE not in incremental_state:
            incremental_state[_CACHE] = self.core.new_cache()
        cache = incremental_state[_CACHE]
        return tokens[:, cache.length :], cache

    def extract_features(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        return self(*args, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        return self.core.logits(features)

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Keep the hypotheses ``new_order`` (B',)."""
        cache = incremental_state.get(_CACHE)
        if cache is not None and cache.length:
            self.reorder(cache, new_order)

    @abstractmethod
    def reorder(self, cache: Any, order: Tensor) -> None:
        """Keep the hypotheses ``order`` (B',) of a cache that holds tokens."""

    def max_positions(self) -> int:
        return self._max_positions


def index_of(dictionary: Any, *names: str) -> int | None:
    """Return the index of the first of these symbols that a dictionary has, or None if it has none."""
    return next((int(dictionary.indices[name]) for name in names if name in dictionary.indices), None)

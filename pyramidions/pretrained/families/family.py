"""The role of a family of pretrained models: what its configs and weights mean for ours."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from pyramidions.base.arguments import fits, rule_of, shown
from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part
from pyramidions.models import PyramidionConfig
from pyramidions.models.config import config_as
from pyramidions.models.fields import parts_with_defaults
from pyramidions.pretrained.places import unknown_family
from pyramidions.pretrained.source import Source

#: Transformers' names of activations, and ours.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


class Family(ABC):
    """Models that read configs and weights alike."""

    name: str  # what their configs call it
    class_name: str  # what transformers calls their class, before "ForConditionalGeneration"
    tokenizer_class: str  # that of transformers which reads their tokenizers where there is no tokenizer.json

    @abstractmethod
    def shape(self, source: Source) -> "Shape":
        """Return the architecture of a model, or refuse a config that says what ours cannot be."""

    @abstractmethod
    def weights(self, source: Source, shape: "Shape") -> dict[str, Tensor]:
        """Return the weights of a model by our names, in float32; rows stay in the order of the source."""

    @abstractmethod
    def config_json(self, config: PyramidionConfig, lengths: tuple[int, int]) -> dict[str, Any]:
        """Return what config.json says of the nearest architecture: `shape`, backwards.

        `lengths` are the positions of encoder and decoder.
        """

    @property
    def takes_marks(self) -> bool:
        """Whether global tokens are given with each document."""
        return False

    @abstractmethod
    def state_dict(
        self, own: dict[str, Tensor], config: PyramidionConfig, lengths: tuple[int, int]
    ) -> dict[str, Tensor]:
        """Return weights by transformers' names: `weights`, backwards. `own` are by ours, in float32."""


@dataclass(frozen=True)
class Shape:
    """A pretrained model's architecture in our terms."""

    family: Family  # it belongs to
    config: PyramidionConfig  # of ours
    max_source_positions: int  # most tokens of a document
    max_target_positions: int  # most tokens of a summary
    # Of the special tokens: "pad", "eos", "start" of the decoder's input, and "bos" and "forced", the first token of
    # each summary, where there are any.
    ids: dict[str, int]
    source_prefix: str = ""  # stands before each document


#: by name; importing the package fills it
FAMILIES: dict[str, Family] = {}


def shape_of(source: Source) -> Shape:
    """Return the architecture of a pretrained model, or refuse one of another family."""
    family = FAMILIES.get(name := Settings(source).one("model_type", str))
    if family is None:
        raise unknown_family(source.path, name)
    return family.shape(source)


def parts_of(config: PyramidionConfig, field: str) -> list[Part]:
    """Return the parts that a field describes, of the first memory, with all of their options."""
    return parts_with_defaults(PyramidionConfig, field, getattr(config, field))[0]


class Settings:
    """Reads the settings of a config from outside, by default those of config.json."""

    def __init__(self, source: Source, values: dict[str, Any] | None = None) -> None:
        self.path = source.path
        self.values = source.config if values is None else values
        self.of_texts = source.config.get("eos_token_id")  # the token that ends texts

    def one(self, name: str, kind: Any, default: Any = None) -> Any:
        """Return a setting of a type; it must be there unless there is a default."""
        found = self.values.get(name)
        if found is None:
            if default is None:
                raise UserError(f"The config of {self.path} must say `{name}`, but does not.")
            return default
        if not fits(found, kind):
            raise UserError(f"`{name}` in the config of {self.path} must be {rule_of(kind)}, but is {shown(found)}.")
        return found

    def choice(self, name: str, *kinds: str) -> str:
        """Return a setting that must be one of these; the first if it is not there."""
        found: str = self.one(name, str, kinds[0])
        if found not in kinds:
            raise UserError(
                f"`{name}` in the config of {self.path} must be {' or '.join(kinds)}, but is {shown(found)}."
            )
        return found

    def same(self, name: str, other: str) -> int:
        """Return a number that has two names."""
        first, second = self.one(name, int), self.one(other, int)
        if first != second:
            raise UserError(
                f"`{name}` and `{other}` in the config of {self.path} must be equal, but are {first} and {second}."
            )
        return int(first)

    def must_be(self, name: str, expected: Any) -> None:
        """Refuse another value than this one, if the config has any."""
        found = self.values.get(name)
        if found is not None and found != expected:
            raise UserError(f"`{name}` in the config of {self.path} must be {expected}, but is {shown(found)}.")


def activation_of(read: Settings, setting: str, name: str) -> str:
    """Return what we call an activation, which a setting names."""
    if name not in ACTIVATIONS:
        raise UserError(
            f"`{setting}` in the config of {read.path} must be one of {', '.join(ACTIVATIONS)}, but is {shown(name)}."
        )
    return ACTIVATIONS[name]


def name_of_activation(activation: str) -> str:
    """Return what transformers calls an activation; the last of several names, which is torch's own function."""
    names = [theirs for theirs, ours in ACTIVATIONS.items() if ours == activation]
    return names[-1] if names else activation


def shaped(family: Family, source: Source, values: dict[str, Any], lengths: tuple[int, int]) -> Shape:
    """Return the shape of a model with these fields of its config, and with how it writes."""
    read = Settings(source, source.generation)
    config = config_as(PyramidionConfig, values | _decoding(read, lengths[1]))
    return Shape(family, config, *lengths, _special_ids(read), read.one("prefix", str, ""))


def _decoding(read: Settings, longest: int) -> dict[str, Any]:
    """Return how the model is meant to write; lengths of transformers' count the first input of the decoder.

    `max_new_tokens` and `min_new_tokens` do not count it, and win over `max_length` and `min_length`.
    """
    early = read.one("early_stopping", bool | Literal["never"], False)
    least, most = _length(read, "min", 0), min(_length(read, "max", longest), longest) - 2
    return {
        "decoding_beam": read.one("num_beams", int, 4),
        "decoding_length_penalty": read.one("length_penalty", float, 1.0),
        "decoding_max_length": most,
        "decoding_min_length": min(max(least - 1, 0), most),
        "decoding_no_repeat_ngram": read.one("no_repeat_ngram_size", int, 0),
        "decoding_forced_start": "no" if read.values.get("forced_bos_token_id") is None else "yes",
        "decoding_forced_end": "no" if read.values.get("forced_eos_token_id") is None else "uncounted",
        "decoding_early_stopping": "yes" if early is True else "no",
    }


def _length(read: Settings, which: str, usual: int) -> int:
    """Return the least or the most tokens that transformers writes, with the first input of the decoder."""
    if read.values.get(f"{which}_new_tokens") is None:
        return read.one(f"{which}_length", int, usual)
    return 1 + read.one(f"{which}_new_tokens", int)


def ends_of(read: Settings) -> list[int]:
    """Return the tokens that end a summary; generation_config.json may have several, in which any does.

    The one of config.json, which ends texts in training, comes first.
    """
    said: int | list[int] = read.one("eos_token_id", int | list[int], -1)
    ends = [end for end in ([said] if isinstance(said, int) else said) if end >= 0]
    return sorted(ends, key=lambda end: end != read.of_texts)


def _special_ids(read: Settings) -> dict[str, int]:
    """Return the `ids` of a `Shape`; "eos" is the first of several."""
    names = {
        "pad": "pad_token_id",
        "eos": "eos_token_id",
        "start": "decoder_start_token_id",
        "bos": "bos_token_id",
        "forced": "forced_bos_token_id",
    }
    found = {ours: read.one(theirs, int, -1) for ours, theirs in names.items() if ours != "eos"}
    found["eos"] = next(iter(ends_of(read)), -1)
    for ours in ("pad", "eos", "start"):
        if found[ours] < 0:
            raise UserError(f"The config of {read.path} must say `{names[ours]}`, but does not.")
    return {name: value for name, value in found.items() if value >= 0}

"""Loads pretrained encoders by the library transformers: from safetensors only, and never code that comes with them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import nn

from pyramidions.base.device import found_device
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.files.hub import commit_of, fetch, hub_name

_CONFIG = "config.json"
_VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"),
)
_FILES = (
    *("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors", *_VOCABULARIES),
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt"),
)
# Lengths above this mean that a tokenizer knows of none.
_NO_LENGTH = 10**9
# What families of models call the number of layers; aliases of each other in some.
_LAYERS = ("encoder_layers", "num_encoder_layers", "num_hidden_layers")
Value = TypeVar("Value")
TOKENS = 8192  #: of a batch, padding included


class Head(NamedTuple):
    """A use of a pretrained encoder."""

    option: str  #: the argument that names the model
    meaning: str  #: what such a model is, with its article
    loader: str  #: the class of transformers that loads it
    suffix: str = ""  #: ends the names of its architectures; none where the vectors of any encoder will do


class Loaded(NamedTuple):
    """A model that is ready to run."""

    model: Any  #: on its device, in single precision
    tokenizer: Any  #: that knows where in a text its pieces stand
    place: str  #: where it is from, for errors
    name: str  #: in a signature: that on the hub with the commit, or that of the folder with a hash of the weights
    length: int | None  #: most tokens that it reads, with those that the tokenizer adds; None for any number

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(iter(self.model.parameters())).device

    @property
    def truncation(self) -> dict[str, Any]:
        """How the tokenizer is called so that it cuts texts at the length, if there is one."""
        return {} if self.length is None else {"truncation": True, "max_length": self.length}

    @property
    def reads(self) -> str:
        """How much it reads, in words."""
        return "any length" if self.length is None else f"at most {self.length} tokens"

    def padded(self, encodings: Sequence[Any]) -> Any:
        """Return encodings of texts as one batch of inputs, on the device."""
        inputs = self.tokenizer.pad(
            {
                "input_ids": [encoding.ids for encoding in encodings],
                "attention_mask": [encoding.attention_mask for encoding in encodings],
                "token_type_ids": [encoding.type_ids for encoding in encodings],
            },
            padding_side="right",
            return_tensors="pt",
        ).to(self.device)
        if "token_type_ids" not in self.tokenizer.model_input_names:
            del inputs["token_type_ids"]
        return inputs


class ModelInUse:
    """A pretrained model at work for metrics, which `load` finds; UserError if it cannot do what `head` says."""

    head: ClassVar[Head]

    def __init__(self, place: str | None, device: str = "cpu") -> None:
        self._loaded = load(place, self.head, device)

    def signature(self) -> str:
        """Name the model and the library."""
        return f"{self._loaded.name} | {library_version()}"

    @torch.inference_mode()
    def _computed(self, encodings: Sequence[Any], read: Callable[[Any], Iterable[Value]]) -> list[Value]:
        """Return what ``read`` finds in the model's output for each encoding; they are computed in batches."""
        found: dict[int, Value] = {}
        for batch in batches_by_length([len(encoding.ids) for encoding in encodings]):
            out = self._loaded.model(**self._loaded.padded([encodings[index] for index in batch]))
            found |= zip(batch, read(out), strict=True)
        return [found[index] for index in range(len(encodings))]

    def _refuse(self, rule: str, found: str) -> UserError:
        """Return the error that the model breaks a rule."""
        return UserError(f"`{self.head.option}` must {rule}, but {self._loaded.place} {found}.")


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of texts of these lengths in batches of similar length, so that little is padding."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        # The first of a batch is its longest.
        if batch and (len(batch) + 1) * lengths[batch[0]] > TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def load(place: str | None, head: Head, device: str = "cpu", layers: int | None = None) -> Loaded:
    """Load a model with a tokenizer, from a folder, OWNER/NAME or OWNER/NAME@REVISION; ``layers`` of it, if not all.

    Refuses what is of another kind, has fewer layers, is not in safetensors, or needs code of its own.
    """
    if place is None:
        raise UserError(f"`{head.option}` must be given: the folder or the name on the hub of {head.meaning}.")
    found = found_device(device)
    library = optional_library("transformers", f"`{head.option}`", extra="metrics")
    hub = hub_name(place)
    # A model on the hub is judged by its config before it is downloaded.
    folder = fetch(hub, [_CONFIG]) if hub else Path(place)
    if not folder.is_dir():
        raise UserError(f"`{head.option}` must be a folder or a name on the hub, but there is no folder {place}.")
    with _quoting(head, place, library) as only_here:
        config = library.AutoConfig.from_pretrained(folder, **only_here)
    _check_kind(config, place, head, library)
    if layers is not None:
        _keep_layers(config, layers, place)
    if config.model_type == "big_bird":
        # It switches to full attention at the first short batch and stays there; texts must not depend on each other.
        config.attention_type = "original_full"
    if hub:
        folder = fetch(hub, [_CONFIG, *_FILES], commit_of(folder))
    # BERTScore is defined with a space in front of the first word, where pieces hold spaces.
    spaces = {} if head.suffix else {"add_prefix_space": True}
    with _quoting(head, place, library) as only_here:
        tokenizer = library.AutoTokenizer.from_pretrained(folder, **spaces, **only_here)
        model, read = getattr(library, head.loader).from_pretrained(
            folder, config=config, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **only_here
        )
    _check_loaded(head, place, folder, model, tokenizer, read["missing_keys"])
    if not head.suffix and config.is_encoder_decoder:
        model = model.get_encoder()
    limits = [_longest_input(model, config), tokenizer.model_max_length]
    length = min((limit for limit in limits if limit is not None and limit < _NO_LENGTH), default=None)
    name = f"{hub.name}@{folder.name[:10]}" if hub else f"{folder.resolve().name} sha256:{_digest(folder)}"
    return Loaded(model.eval().to(found), tokenizer, place, name, length)


def _check_loaded(
    head: Head, place: str, folder: Path, model: Any, tokenizer: Any, missing_keys: Iterable[str]
) -> None:
    """Refuse a model that lacks weights, or a tokenizer that does not fit it."""
    # A pooler is a head that vectors of tokens do not go through; classifiers of whole texts do.
    if missing := sorted(name for name in missing_keys if head.suffix or "pooler" not in name):
        raise UserError(f"`{head.option}` must be a model with whole weights, but {place} lacks {missing[0]}.")
    pieces = len(tokenizer)
    for holds, needed in (
        # Without one, transformers makes an empty tokenizer.
        (any((folder / name).is_file() for name in _VOCABULARIES), "a vocabulary (tokenizer.json, vocab.txt, ...)"),
        (tokenizer.is_fast, "a tokenizer that tells where its pieces stand (tokenizer.json)"),
        (not head.suffix or tokenizer.pad_token_id is not None, "a padding token"),
        (pieces <= model.get_input_embeddings().num_embeddings, f"a vector for each of its {pieces} pieces"),
    ):
        if not holds:
            raise UserError(f"`{head.option}` must have {needed}, but {place} does not.")


def library_version() -> str:
    """Return what signatures call the library."""
    return f"transformers {version('transformers')}"


def depth(config: Any) -> int:
    """Return the number of layers of an encoder, or of the encoder of an encoder-decoder."""
    return int(next(found for name in _LAYERS if (found := getattr(config, name, None)) is not None))


@contextmanager
def _quoting(head: Head, place: str, library: Any) -> Iterator[dict[str, bool]]:
    """Let transformers read quietly, and quote its errors; yields the arguments that keep it to files and to data."""
    logging = library.utils.logging
    level, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield {"local_files_only": True, "trust_remote_code": False}
    # It raises whatever a file makes it stumble over.
    except Exception as error:
        reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        if "torchaudio" in reason:
            raise UserError(f"transformers cannot load torchaudio ({reason}): `pip uninstall torchaudio`.") from None
        raise UserError(
            f"`{head.option}` must be a model in safetensors that transformers reads, but it says of {place}: {reason}."
        ) from None
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as weights:
            digest.update(hashlib.file_digest(weights, "sha256").digest())
    return digest.hexdigest()[:10]


def _check_kind(config: Any, place: str, head: Head, library: Any) -> None:
    """Refuse a model that is of another kind, by its config."""
    auto = library.models.auto.modeling_auto
    kind, names = config.model_type, config.architectures or [f"{config.model_type} without a head"]
    # What predicts masked words reads in both directions; so does the encoder of an encoder-decoder.
    both_ways = kind in (*auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, "xlnet") and not getattr(config, "is_decoder", False)
    has_encoder = config.is_encoder_decoder and kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    if head.suffix and not any(name.endswith(head.suffix) for name in names):
        raise UserError(f"`{head.option}` must be {head.meaning} (...{head.suffix}), but {place} is a {names[0]}.")
    if not (head.suffix or both_ways or has_encoder):
        raise UserError(f"`{head.option}` must be {head.meaning}, which reads both ways, but {place} is a {kind}.")


def _keep_layers(config: Any, layers: int, place: str) -> None:
    """Shorten a config, in place, to the first layers: those above need not be computed."""
    total = depth(config)
    if not 1 <= layers <= total:
        raise UserError(f"`embedding_layer` must be from 1 to {total}, the layers of {place}, but is {layers}.")
    for name, value in list(vars(config).items()):
        # One entry a layer, such as the windows of Longformer.
        if isinstance(value, list) and len(value) == total:
            setattr(config, name, value[:layers])
    for name in _LAYERS:
        if getattr(config, name, None) is not None:
            setattr(config, name, layers)


def _longest_input(model: nn.Module, config: Any) -> int | None:
    """Return for how many tokens a model has positions; None where they have no end."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa counts from behind the padding.
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - unused
    for name in ("max_encoder_position_embeddings", "max_position_embeddings"):
        if isinstance(found := getattr(config, name, None), int) and found > 0:
            return found
    return None

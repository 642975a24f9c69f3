"""Loads pretrained encoders by the library transformers: from safetensors only, and never code that comes with them."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import torch
from safetensors import SafetensorError
from torch import nn

from pyramidions.base.device import found_device
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.strict_json import parse_json
from pyramidions.files.hub import fetch, hub_name

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
_VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"),
)
_TOKENIZER = (
    *_VOCABULARIES,
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt"),
)
# Lengths above this mean that a tokenizer knows of none.
_NO_LENGTH = 10**9
# What families of models call the number of layers; aliases of each other in some.
_LAYERS = ("encoder_layers", "num_encoder_layers", "num_hidden_layers")
TOKENS = 8192  #: of a batch, padding included


class Head(NamedTuple):
    """A use of a pretrained encoder.

    Attributes:
        option: the argument that names the model.
        meaning: what such a model is, with its article.
        loader: the class of transformers that loads it.
        suffixes: one of which ends the names of its architectures; none where the vectors of any encoder will do.
    """

    option: str
    meaning: str
    loader: str
    suffixes: tuple[str, ...] = ()


VECTORS = Head("embedding_model", "an encoder, such as BERT or the encoder of BART", "AutoModel")
ANSWERS = Head(
    "qa_model", "an extractive question-answering model", "AutoModelForQuestionAnswering", ("ForQuestionAnswering",)
)
ENTITY_LABELS = Head(
    "tagger", "a token classifier that finds entities", "AutoModelForTokenClassification", ("ForTokenClassification",)
)
ENTAILMENT = Head(
    "entailment_model",
    "a classifier that tells whether one text entails another",
    "AutoModelForSequenceClassification",
    ("ForSequenceClassification",),
)
LIKELIHOOD = Head(
    "bartscore_model",
    "a sequence-to-sequence model, such as BART",
    "AutoModelForSeq2SeqLM",
    ("ForConditionalGeneration",),
)
RATING = Head(
    "bleurt_model",
    "a model that rates pairs of texts by one label",
    "AutoModelForSequenceClassification",
    ("ForSequenceClassification",),
)


class Loaded(NamedTuple):
    """A model that is ready to run.

    Attributes:
        model: on its device, in single precision.
        tokenizer: that knows where in a text its pieces stand.
        name: that tells it apart in a signature: of the hub with the commit, or of the folder with a hash of weights.
        length: most tokens that it reads, those that the tokenizer adds included; None for any number.
    """

    model: Any
    tokenizer: Any
    name: str
    length: int | None

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(iter(self.model.parameters())).device

    @property
    def truncation(self) -> dict[str, Any]:
        """How the tokenizer is called so that it cuts texts at the length, if there is one."""
        return {} if self.length is None else {"truncation": True, "max_length": self.length}

    def signature(self) -> str:
        """Name the model and the library."""
        return f"{self.name} | {library_version()}"

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
    """A pretrained model at work for metrics.

    Args:
        loaded: the model.
        place: where it is from, for errors.
    """

    #: its use
    head: ClassVar[Head]

    def __init__(self, loaded: Loaded, place: str) -> None:
        self._loaded = loaded

    @classmethod
    def of(cls, place: str | None, device: str) -> Self:
        """Load a model; errors as in `load`."""
        return cls(load(place, cls.head, device), str(place))

    def signature(self) -> str:
        """Name the model and the library."""
        return self._loaded.signature()


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of texts in batches of similar length, the longest first, so that little is padding.

    Args:
        lengths: tokens of each text; one longer than a batch is one of its own.
    """
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
    """Load a model with a tokenizer.

    Args:
        place: folder, or name on the hub: OWNER/NAME or OWNER/NAME@REVISION.
        head: what the model must be able to do.
        device: as torch names it.
        layers: number of layers of an encoder that are kept; None for all.

    Raises:
        UserError: there is no such model, it is of another kind, it has fewer layers, its weights are not in
            safetensors, or it needs code of its own; there is no such device; or a library is missing.
    """
    if place is None:
        raise UserError(f"`{head.option}` must be given: the folder or the name on the hub of {head.meaning}.")
    found = found_device(device)
    library = _transformers(f"`{head.option}`")
    name, folder = _located(place, head, library)
    _check_folder(folder, place, head, library)
    config = _read(library.AutoConfig, folder, place, head)
    _check_kind(config, place, head, library)
    if layers is not None:
        _keep_layers(config, layers, place)
    if config.model_type == "big_bird":
        # It switches to full attention at the first short batch and stays there; texts must not depend on each other.
        config.attention_type = "original_full"
    # BERTScore is defined with a space in front of the first word, where pieces hold spaces.
    settings = {} if head.suffixes else {"add_prefix_space": True}
    tokenizer = _read(library.AutoTokenizer, folder, place, head, **settings)
    if not tokenizer.is_fast:
        raise UserError(
            f"`{head.option}` must have a tokenizer that tells where its pieces stand (tokenizer.json), "
            f"but {place} has none."
        )
    if head.suffixes and tokenizer.pad_token_id is None:
        raise UserError(f"`{head.option}` must have a tokenizer with a padding token, but {place} has none.")
    model = _weights(library, folder, place, head, config)
    pieces, rows = len(tokenizer), model.get_input_embeddings().num_embeddings
    if pieces > rows:
        raise UserError(
            f"`{head.option}` must have one vector a piece, but the tokenizer of {place} has {pieces} pieces and its "
            f"weights have {rows} vectors."
        )
    limits = [_longest_input(model, config), tokenizer.model_max_length]
    length = min((limit for limit in limits if limit is not None and limit < _NO_LENGTH), default=None)
    return Loaded(model.eval().to(found), tokenizer, name, length)


def library_version() -> str:
    """Return what signatures call the library."""
    return f"transformers {version('transformers')}"


def depth(config: Any) -> int:
    """Return the number of layers of an encoder, or of the encoder of an encoder-decoder."""
    return int(next(found for name in _LAYERS if (found := getattr(config, name, None)) is not None))


def _transformers(user: str) -> Any:
    # It imports torchaudio wherever that is installed, though no text needs it, and fails where that was built for
    # another torch.
    if "torchaudio" not in sys.modules and find_spec("torchaudio") is not None:
        try:
            import torchaudio  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
        except (ImportError, OSError):
            sys.modules["torchaudio"] = None  # type: ignore[assignment]
    return optional_library("transformers", user, extra="metrics")


def _located(place: str, head: Head, library: Any) -> tuple[str, Path]:
    """Return the name and the folder of a model; one on the hub is judged by its config before it is downloaded."""
    if hub := hub_name(place):
        about = fetch(hub, ["config.json"])
        _check_kind(_read(library.AutoConfig, about.path, place, head), place, head, library)
        whole = fetch(hub, ["config.json", *_WEIGHTS, *_TOKENIZER], about.commit)
        return f"{hub.name}@{whole.commit[:10]}", whole.path
    folder = Path(place)
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "does not exist"
        raise UserError(f"`{head.option}` must be a folder or a name on the hub, but {place} {state}.")
    digest = hashlib.sha256()
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as weights:
            digest.update(hashlib.file_digest(weights, "sha256").digest())
    return f"{folder.resolve().name} sha256:{digest.hexdigest()[:10]}", folder


def _check_folder(folder: Path, place: str, head: Head, library: Any) -> None:
    """Refuse a folder that lacks files of a model, or whose model needs code of its own."""
    start = f"`{head.option}` must be a model"
    if not (folder / "config.json").is_file():
        raise UserError(f"{start}, but {place} has no config.json.")
    try:
        config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{start}, but the config.json of {place} cannot be read: {error}.") from None
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str):
        raise UserError(f"{start}, but the config.json of {place} names no model_type.")
    if kind not in library.models.auto.configuration_auto.CONFIG_MAPPING_NAMES:
        code = " and brings code of its own, which is never run" if "auto_map" in config else ""
        raise UserError(f"{start} that transformers knows, but {place} is a {kind}{code}.")
    if not any((folder / name).is_file() for name in _WEIGHTS[:2]):
        pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt"))
        why = "; its pickled weights are not read, since they may run code" if pickled else ""
        raise UserError(f"{start} with weights in {_WEIGHTS[0]}, but {place} has none{why}.")
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise UserError(f"{start} with a tokenizer, but {place} has none (tokenizer.json, vocab.txt, ...).")


def _check_kind(config: Any, place: str, head: Head, library: Any) -> None:
    """Refuse a model that is of another kind, by its config as the library reads it."""
    start = f"`{head.option}` must be {head.meaning}"
    if head.suffixes:
        architectures = config.architectures or []
        if not any(name.endswith(head.suffixes) for name in architectures):
            says = f"is a {architectures[0]}" if architectures else f"names no architecture ({config.model_type})"
            raise UserError(f"{start} (...{' or ...'.join(head.suffixes)}), but {place} {says}.")
        return
    auto = library.models.auto.modeling_auto
    # What predicts masked words reads in both directions; so does the encoder of an encoder-decoder.
    is_decoder = getattr(config, "is_decoder", False)
    reads_both_ways = config.model_type in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and not is_decoder
    has_encoder = config.is_encoder_decoder and config.model_type in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    if not (reads_both_ways or has_encoder or config.model_type == "xlnet"):
        is_causal = config.model_type in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        why = ", whose tokens do not see those to the right" if is_causal else ""
        raise UserError(f"{start}, but {place} is a {config.model_type}{why}.")


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


def _read(kind: Any, folder: Path, place: str, head: Head, **settings: Any) -> Any:
    """Read a config or a tokenizer."""
    try:
        with _quiet():
            return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **settings)
    # Its readers raise whatever a file makes them stumble over.
    except Exception as error:
        reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise UserError(f"`{head.option}` must be a model that transformers reads, but {place}: {reason}.") from None


def _weights(library: Any, folder: Path, place: str, head: Head, config: Any) -> Any:
    start = f"`{head.option}` must be a model with whole weights, but {place}"
    try:
        with _quiet():
            model, about = getattr(library, head.loader).from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{start}: {' '.join(str(error).split()).rstrip('.')}.") from None
    # A pooler is a head that vectors of tokens do not go through; classifiers of whole texts do.
    if missing := sorted(name for name in about["missing_keys"] if head.suffixes or "pooler" not in name):
        raise UserError(f"{start} lacks {missing[0]}.")
    return model.get_encoder() if not head.suffixes and config.is_encoder_decoder else model


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


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library's warnings about what is checked here, then restore them."""
    logging = sys.modules["transformers"].utils.logging
    level, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()

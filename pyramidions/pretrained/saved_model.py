"""Trained models from disk, ready to compute."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from torch import nn

from pyramidions.base.arguments import Count, Range, Share, check, checked, shown
from pyramidions.base.errors import UserError
from pyramidions.base.parts import MissingPartError
from pyramidions.base.results import brief_model
from pyramidions.extract.selection import MMR_WEIGHT, Redundancy
from pyramidions.models import (
    ExtractorConfig,
    LanguageModelConfig,
    PyramidionConfig,
    build,
    build_extractor,
    build_language_model,
)
from pyramidions.models.builder import shapes_alone
from pyramidions.models.config import LONGEST_TEXT, EncoderConfig, check_lengths, config_as
from pyramidions.models.fitting import check_fits
from pyramidions.models.formats import FORMAT
from pyramidions.nn import LanguageModel, SentenceRanker, Transformer
from pyramidions.pretrained.bundle import WINDOW, Bundle, read_bundle
from pyramidions.pretrained.model_kinds import EXTRACTOR, LANGUAGE_MODEL, SUMMARIZER, ModelKind
from pyramidions.pretrained.origin import Origin, origin_of
from pyramidions.pretrained.own_files import config_fields
from pyramidions.text.alphabets import Alphabet, recorded_alphabet
from pyramidions.text.tokenizer import PAD, Tokenizer

Encoding = TypeVar("Encoding", bound=EncoderConfig)
#: How an extractor selects sentences; checkpoints and exports may lack it.
SELECTION = ("extract_words", "redundancy", "mmr_weight")

#: Encoder and decoder share their embeddings; a file of weights holds each tensor once.
SHARED_EMBEDDING, OWN_EMBEDDING = "encoder.embedder.tokens.weight", "decoder.embedder.tokens.weight"


@dataclass(frozen=True)
class SavedModel:
    """A trained model with all that it takes to summarize a text.

    Attributes:
        transformer: in evaluation mode, on the CPU, in float32.
        config: its shape and decoding settings.
        tokenizer: of documents and summaries.
        max_source_positions: most tokens of a document, its end included.
        max_target_positions: most tokens of a summary, its end included.
        origin: of the weights that it started from; None if it started from nothing, or does not say.
        queries: it answers queries, and was trained on documents with one before each.
        source_prefix: stands before each document, as "summarize: " does in T5.
    """

    kind: ClassVar[ModelKind] = SUMMARIZER
    transformer: Transformer
    config: PyramidionConfig
    tokenizer: Tokenizer
    max_source_positions: int
    max_target_positions: int
    origin: Origin | None = None
    queries: bool = False
    source_prefix: str = ""

    __repr__ = brief_model

    def settings(self) -> dict[str, Any]:
        """Return what an export says of it beside its shape."""
        said: dict[str, Any] = {
            "max_source_positions": self.max_source_positions,
            "max_target_positions": self.max_target_positions,
        }
        if self.origin is not None:
            said["source"] = self.origin.known()
        if self.tokenizer.special_tokens:
            said["special_tokens"] = self.tokenizer.special_tokens
        if self.source_prefix:
            said["source_prefix"] = self.source_prefix
        return {**said, "queries": True} if self.queries else said

    def source_ids(self, text: str) -> list[int]:
        """Return the ids of a document as training has it: framed, behind the prefix of sources, and truncated."""
        front = self.tokenizer.encode(self.source_prefix)
        room = self.tokenizer.room(self.max_source_positions - len(front), "max_source_positions")
        return self.tokenizer.framed(self.tokenizer.head(self.tokenizer.encode_documents(text), room), front)

    def target_ids(self, text: str) -> list[int]:
        """Return the ids of a summary as training has it: framed and truncated."""
        room = self.tokenizer.room(self.max_target_positions, "max_target_positions")
        return self.tokenizer.framed(self.tokenizer.encode(text)[:room])

    @property
    def network(self) -> nn.Module:
        """What computes."""
        return self.transformer


@dataclass(frozen=True)
class SavedExtractor:
    """A trained model with all that it takes to extract the sentences of a text.

    Attributes:
        ranker: in evaluation mode, on the CPU, in float32.
        config: its shape.
        tokenizer: of documents.
        max_source_positions: most tokens of a document.
        extract_words: of an extract, as in training; None if the model does not say.
        redundancy: how an extract avoids repetitions, as in training; see `SelectionRules`.
        mmr_weight: likewise.
    """

    kind: ClassVar[ModelKind] = EXTRACTOR
    ranker: SentenceRanker
    config: ExtractorConfig
    tokenizer: Tokenizer
    max_source_positions: int
    extract_words: Count | None = None
    redundancy: Redundancy = "none"
    mmr_weight: Share = MMR_WEIGHT

    __repr__ = brief_model

    def settings(self) -> dict[str, Any]:
        """Return what an export says of it beside its shape."""
        return {name: getattr(self, name) for name in ("max_source_positions", *SELECTION)}

    @property
    def network(self) -> nn.Module:
        """What computes."""
        return self.ranker


@dataclass(frozen=True)
class SavedLanguageModel:
    """A trained language model with all that it takes to read a text.

    Attributes:
        network: in evaluation mode, on the CPU, in float32.
        config: its shape.
        alphabet: of its texts.
        window: characters that it read at once in training.
    """

    kind: ClassVar[ModelKind] = LANGUAGE_MODEL
    network: LanguageModel
    config: LanguageModelConfig
    alphabet: Alphabet
    window: int

    __repr__ = brief_model

    def settings(self) -> dict[str, Any]:
        """Return what an export says of it beside its shape."""
        return {LANGUAGE_MODEL.vocabulary: self.alphabet.name, WINDOW: self.window}


def weights_hash(network: nn.Module, about: bytes) -> str:
    """Return a SHA-256 of what tells a network apart beside its weights, and of these, whatever file they are in."""
    digest = sha256(about)
    for name, weight in sorted(network.state_dict().items()):
        digest.update(name.encode() + weight.cpu().numpy().tobytes())
    return digest.hexdigest()


@checked
def load_model(path: str | Path) -> SavedModel:
    """Read a model that writes summaries: a checkpoint, a folder of them, an export, or a model of transformers.

    An export or a model of transformers may lie on the Hugging Face hub: OWNER/NAME, or OWNER/NAME@REVISION.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another task or architecture.
    """
    return _summarizer(read_bundle(path, SUMMARIZER))


@checked
def load_extractor(path: str | Path) -> SavedExtractor:
    """Read a model that extracts sentences; arguments and errors are those of `load_model`."""
    return _extractor(read_bundle(path, EXTRACTOR))


@checked
def load_language_model(path: str | Path) -> SavedLanguageModel:
    """Read a language model of characters; arguments and errors are those of `load_model`."""
    return _language_model(read_bundle(path, LANGUAGE_MODEL))


@checked
def load_any(path: str | Path) -> SavedModel | SavedExtractor | SavedLanguageModel:
    """Read a model of any kind; arguments and errors are those of `load_model`."""
    bundle = read_bundle(path, SUMMARIZER, EXTRACTOR, LANGUAGE_MODEL)
    if bundle.kind is LANGUAGE_MODEL:
        return _language_model(bundle)
    return _summarizer(bundle) if bundle.kind is SUMMARIZER else _extractor(bundle)


def _summarizer(bundle: Bundle) -> SavedModel:
    tokenizer, settings = bundle.tokenizer, bundle.settings
    assert tokenizer is not None  # who reads the bundle of a model of documents reads one
    source: Any = settings.get("max_source_positions")
    target: Any = settings.get("max_target_positions")
    queries, prefix = settings.get("queries", False), settings.get("source_prefix", "")
    with _building(bundle.name):
        check_lengths(source, target)
        check({"queries": queries, "source_prefix": prefix}, {"queries": bool, "source_prefix": str})
        config = described_config(PyramidionConfig, bundle.config, source)
        transformer = summarizer_of(config, tokenizer, target)
    if OWN_EMBEDDING in bundle.weights:
        bundle.weights.setdefault(SHARED_EMBEDDING, bundle.weights[OWN_EMBEDDING])
    _fill(transformer, bundle)
    origin = origin_of(settings.get("source"))
    return SavedModel(transformer, config, tokenizer, source, target, origin, queries, prefix)


def summarizer_of(config: PyramidionConfig, tokenizer: Tokenizer, max_target_positions: int) -> Transformer:
    """Build a model for the texts of a tokenizer, with freshly initialised weights; errors as in `build`."""
    return build(
        config,
        tokenizer.vocab_size,
        tokenizer.pad,
        marker_idx=tokenizer.marker_id,
        max_target_positions=max_target_positions,
        separator_idx=tokenizer.eos,
        name_end_idx=tokenizer.name_end_id,
        document_separator_idx=tokenizer.document_separator_id,
    )


def _extractor(bundle: Bundle) -> SavedExtractor:
    tokenizer = bundle.tokenizer
    assert tokenizer is not None  # likewise
    source: Any = bundle.settings.get("max_source_positions")
    selection = {name: bundle.settings[name] for name in SELECTION if name in bundle.settings}
    with _building(bundle.name):
        check_lengths(source, LONGEST_TEXT)
        check(selection, get_type_hints(SavedExtractor, include_extras=True))
        config = described_config(ExtractorConfig, bundle.config, source)
        ranker = build_extractor(config, tokenizer.vocab_size, tokenizer.marker_id, PAD)
    _fill(ranker, bundle)
    return SavedExtractor(ranker, config, tokenizer, source, **selection)


def _language_model(bundle: Bundle) -> SavedLanguageModel:
    if bundle.arch is not None and "boundaries" not in bundle.config:
        raise UserError(f"{bundle.name} must be of --arch hourglass_..., but is of --arch {shown(bundle.arch)}.")
    language, window = (bundle.settings.get(name) for name in (LANGUAGE_MODEL.vocabulary, WINDOW))
    with _building(bundle.name):
        if not isinstance(language, str):
            raise UserError(f"`{LANGUAGE_MODEL.vocabulary}` must be a language, but is {shown(language)}.")
        check({WINDOW: window}, {WINDOW: Annotated[int, Range(1, LONGEST_TEXT)]})
        alphabet = recorded_alphabet(language)
        config = config_as(LanguageModelConfig, bundle.config)
        network = build_language_model(config, alphabet.vocab_size, PAD, alphabet.encode(" ").item())
    _fill(network, bundle)
    return SavedLanguageModel(network, config, alphabet, int(window or 0))


def described_config(kind: type[Encoding], fields: Mapping[str, Any], source: int) -> Encoding:
    """Return the config that a file describes; ``source`` is the most tokens of a document, as the task tells it."""
    config = config_as(kind, fields)
    if config.max_source_positions is not None:
        check_lengths(config.max_source_positions, LONGEST_TEXT)
    return replace(config, max_source_positions=source)


@contextmanager
def _building(name: str) -> Iterator[None]:
    """Build a model without memory, since damaged settings may ask for any amount of it."""
    try:
        with shapes_alone():
            yield
    except MissingPartError as error:
        raise MissingPartError(f"{name}: {error}") from None
    except UserError as error:
        raise UserError(f"The settings of {name} are damaged: {error}") from None


def _fill(network: nn.Module, bundle: Bundle) -> None:
    """Give a model its weights, in evaluation mode and in float32, or refuse those that do not fit."""
    weights, expected = bundle.weights, network.state_dict(keep_vars=True)
    # What parts of a model share may have one name in a file.
    known = {id(value): weights[name] for name, value in expected.items() if name in weights}
    weights = {name: known[id(value)] for name, value in expected.items() if id(value) in known} | weights
    check_fits(f"The weights of {bundle.name} do not fit its settings", weights, expected)
    network.load_state_dict(weights, assign=True)
    # A part that keeps values which are no weights would compute with none: a mistake of the part, not of the file.
    for name, values in network.named_buffers():
        if values.is_meta:
            raise RuntimeError(f"{name} must be saved with the weights or computed when it is needed, but is neither.")
    network.float().eval()


def description(model: SavedModel | SavedExtractor | SavedLanguageModel) -> dict[str, Any]:
    """Return what config.json of an export of ours says of a model, but for the hashes of files."""
    theirs = config_fields(model) if isinstance(model, SavedModel) else {}
    # Kernels are for the machine of who uses the model to choose.
    fields = {name: value for name, value in asdict(model.config).items() if name != "kernels"}
    about = {"format": FORMAT, "kind": model.kind.name, "model": fields, **model.settings()}
    return {**theirs, **about}

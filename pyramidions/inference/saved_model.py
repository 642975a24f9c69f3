"""Trained models from disk, ready to compute, and their export."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from safetensors.torch import save
from torch import nn

from pyramidions.base.arguments import Count, Share, check, checked, fits, shown
from pyramidions.base.errors import UserError
from pyramidions.base.results import brief_model
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.extract.selection import MMR_WEIGHT, Redundancy
from pyramidions.files.atomic import atomic_folder, sync
from pyramidions.inference.export_folder import CARD, WEIGHTS, refuse_foreign
from pyramidions.inference.filling import building, fill
from pyramidions.inference.for_transformers import config_fields
from pyramidions.inference.for_transformers import files as files_for_transformers
from pyramidions.inference.model_files import WINDOW, FoundFile, find_file
from pyramidions.inference.model_kinds import EXTRACTOR, LANGUAGE_MODEL, SUMMARIZER, ModelKind
from pyramidions.models import (
    ExtractorConfig,
    LanguageModelConfig,
    PyramidionConfig,
    build,
    build_extractor,
    build_language_model,
)
from pyramidions.models.config import LONGEST_TEXT, EncoderConfig, check_lengths, config_as
from pyramidions.models.file_format import FORMAT
from pyramidions.nn import LanguageModel, SentenceRanker, Transformer
from pyramidions.pretrained.origin import Origin, origin_of
from pyramidions.pretrained.places import CONFIG
from pyramidions.text.alphabets import Alphabet, recorded_alphabet
from pyramidions.text.tokenizer import PAD, Tokenizer

Encoding = TypeVar("Encoding", bound=EncoderConfig)
#: How an extractor selects sentences; checkpoints and exports may lack it.
SELECTION = ("extract_words", "redundancy", "mmr_weight")

# Encoder and decoder share their embeddings; a file of weights holds each tensor once.
_SHARED, _OWNER = "encoder.embedder.tokens.weight", "decoder.embedder.tokens.weight"


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
        """Return the ids of a document as training has it: framed, behind the prefix of sources, and truncated.

        Raises:
            UserError: the frame alone is longer than the model reads.
        """
        front = self.tokenizer.encode(self.source_prefix)
        room = self.tokenizer.room(self.max_source_positions - len(front), "max_source_positions")
        return self.tokenizer.framed(self.tokenizer.head(self.tokenizer.encode_documents(text), room), front)

    def target_ids(self, text: str) -> list[int]:
        """Return the ids of a summary as training has it: framed and truncated; errors as in `source_ids`."""
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
    return _summarizer(find_file(path, SUMMARIZER))


@checked
def load_extractor(path: str | Path) -> SavedExtractor:
    """Read a model that extracts sentences; arguments and errors are those of `load_model`."""
    return _extractor(find_file(path, EXTRACTOR))


@checked
def load_language_model(path: str | Path) -> SavedLanguageModel:
    """Read a language model of characters: a checkpoint of fairseq-train, the best in a folder of them, or an export.

    An export may lie on the Hugging Face hub: OWNER/NAME, or OWNER/NAME@REVISION.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another task or architecture.
    """
    return _language_model(find_file(path, LANGUAGE_MODEL))


@checked
def load_any(path: str | Path) -> SavedModel | SavedExtractor | SavedLanguageModel:
    """Read a model of any kind; arguments and errors are those of `load_model`."""
    found = find_file(path, SUMMARIZER, EXTRACTOR, LANGUAGE_MODEL)
    if found.kind is LANGUAGE_MODEL:
        return _language_model(found)
    return _summarizer(found) if found.kind is SUMMARIZER else _extractor(found)


def _summarizer(found: FoundFile) -> SavedModel:
    tokenizer, settings = found.tokenizer(), found.settings
    source: Any = settings.get("max_source_positions")
    target: Any = settings.get("max_target_positions")
    queries, prefix = settings.get("queries", False), settings.get("source_prefix", "")
    with building(found.path):
        check_lengths(source, target)
        if not isinstance(queries, bool):
            raise UserError(f"`queries` must be true or false, but is {shown(queries)}.")
        if not isinstance(prefix, str):
            raise UserError(f"`source_prefix` must be a text, but is {shown(prefix)}.")
        config = described_config(PyramidionConfig, found.config, source)
        markers = {
            "marker_idx": tokenizer.marker_id,
            "name_end_idx": tokenizer.name_end_id,
            "document_separator_idx": tokenizer.document_separator_id,
            "separator_idx": tokenizer.eos,
        }
        transformer = build(config, tokenizer.vocab_size, tokenizer.pad, max_target_positions=target, **markers)
    if _OWNER in found.weights:
        found.weights.setdefault(_SHARED, found.weights[_OWNER])
    fill(transformer, found.weights, found.path)
    origin = origin_of(settings.get("source"))
    return SavedModel(transformer, config, tokenizer, source, target, origin, queries, prefix)


def _extractor(found: FoundFile) -> SavedExtractor:
    tokenizer = found.tokenizer()
    source: Any = found.settings.get("max_source_positions")
    selection = {name: found.settings[name] for name in SELECTION if name in found.settings}
    with building(found.path):
        check_lengths(source, LONGEST_TEXT)
        check(selection, get_type_hints(SavedExtractor, include_extras=True))
        config = described_config(ExtractorConfig, found.config, source)
        ranker = build_extractor(config, tokenizer.vocab_size, tokenizer.marker_id, PAD)
    fill(ranker, found.weights, found.path)
    return SavedExtractor(ranker, config, tokenizer, source, **selection)


def described_config(kind: type[Encoding], fields: Mapping[str, Any], source: int) -> Encoding:
    """Return the config that a file describes.

    Args:
        kind: of the config.
        fields: by name.
        source: most tokens of a document, as the task tells the model in training.

    Raises:
        UserError: a field breaks a rule.
    """
    config = config_as(kind, fields)
    if config.max_source_positions is not None:
        check_lengths(config.max_source_positions, LONGEST_TEXT)
    return replace(config, max_source_positions=source)


def _language_model(found: FoundFile) -> SavedLanguageModel:
    if found.arch is not None and "boundaries" not in found.config:
        raise UserError(f"{found.path} must be of --arch hourglass_..., but is of --arch {shown(found.arch)}.")
    with building(found.path):
        alphabet, window = _alphabet(found), _window(found)
        config = config_as(LanguageModelConfig, found.config)
        network = build_language_model(config, alphabet.vocab_size, PAD, alphabet.encode(" ").item())
    fill(network, found.weights, found.path)
    return SavedLanguageModel(network, config, alphabet, window)


def _alphabet(found: FoundFile) -> Alphabet:
    language = found.settings.get(LANGUAGE_MODEL.vocabulary)
    if not isinstance(language, str):
        raise UserError(f"`{LANGUAGE_MODEL.vocabulary}` must be a language, but is {shown(language)}.")
    return recorded_alphabet(language)


def _window(found: FoundFile) -> int:
    window: Any = found.settings.get(WINDOW)
    if not fits(window, int) or not 1 <= window <= LONGEST_TEXT:
        raise UserError(f"`{WINDOW}` must be from 1 to {LONGEST_TEXT:,}, but is {shown(window)}.")
    return int(window)


def description(model: SavedModel | SavedExtractor | SavedLanguageModel) -> dict[str, Any]:
    """Return what config.json of an export says of a model, but for the hashes of files."""
    theirs = config_fields(model) if isinstance(model, SavedModel) else {}
    about = {"format": FORMAT, "kind": model.kind.name, "model": asdict(model.config), **model.settings()}
    return {**theirs, **about}


@checked
def export_model(model: SavedModel | SavedExtractor | SavedLanguageModel, folder: str | Path, card: str) -> None:
    """Write a model as a folder of files that need no pickle; it appears whole or not at all.

    Args:
        model: the model.
        folder: to be made, or replaced where it is an older export.
        card: what its README.md says.

    Raises:
        UserError: the folder holds something else.
        OSError: it cannot be written; `filename` is the folder.
    """
    # Of a model that extracts, no decoder owns the embeddings.
    weights = {name: value.contiguous() for name, value in model.network.state_dict().items()}
    if _OWNER in weights:
        del weights[_SHARED]
    # Of the names of one weight, as all layers share one of relative attention, the last stays.
    names = {weight.data_ptr() or name: name for name, weight in weights.items()}
    # The library's own writing would leave a file that only its owner may read.
    files = {WEIGHTS: save({name: weights[name] for name in names.values()})}
    if not isinstance(model, SavedLanguageModel):
        files[model.tokenizer.file_name] = model.tokenizer.model_bytes
    about = {
        **description(model),
        "sha256": {name: sha256(content).hexdigest() for name, content in files.items()},
    }
    if isinstance(model, SavedModel):
        files |= files_for_transformers(model)
    files |= {CONFIG: as_json_bytes(about), CARD: card.encode()}
    write_export(folder, files)


def write_export(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write the files of an export; the folder appears whole or not at all.

    Args:
        folder: to be made, or replaced where it is an older export.
        files: by name.

    Raises:
        UserError: the folder holds something else.
        OSError: it cannot be written; `filename` is the folder.
    """
    # A link stays one: the folder that it names is replaced.
    folder = Path(folder).resolve()
    refuse_foreign(folder)
    try:
        with atomic_folder(folder) as partial:
            for name, content in files.items():
                with (partial / name).open("wb") as file:
                    file.write(content)
                    sync(file)
    except OSError as error:
        # Nobody asked for the hidden folder beside it.
        error.filename, error.filename2 = str(folder), None
        raise

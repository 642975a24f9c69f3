"""Finds trained models on disk: checkpoints of fairseq-train, and exported folders that need neither it nor pickle."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pyramidions.data.manifest import file_hash
from pyramidions.errors import UserError
from pyramidions.inference.checkpoint_file import check_weights, read_checkpoint
from pyramidions.models import ExtractorConfig, PyramidionConfig
from pyramidions.models.config import EncoderConfig, shown
from pyramidions.strict_json import parse_json
from pyramidions.text.tokenizer import ByteLevelTokenizer, SentencePieceTokenizer, Tokenizer

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
#: In an export of 0.1.0, which lists no files, the first.
TOKENIZERS = (SentencePieceTokenizer.file_name, ByteLevelTokenizer.file_name)
FORMAT = 2
#: How an extractor selects sentences; checkpoints and exports may lack it.
SELECTION = ("extract_words", "redundancy", "mmr_weight")
#: In this order a folder's checkpoint is chosen.
CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")


class ModelKind(NamedTuple):
    """A kind of model.

    Attributes:
        name: as config.json of an export says.
        task: of fairseq, that trains it.
        config: has its fields.
        purpose: what it does, and how to use it, as an error says of the model ``path``.
    """

    name: str
    task: str
    config: type[EncoderConfig]
    purpose: str


SUMMARIZER = ModelKind(
    "summarizer",
    "long_document_summarization",
    PyramidionConfig,
    "writes summaries: use `pyramidions summarize {path}`, or Summarizer in Python",
)
EXTRACTOR = ModelKind(
    "extractor",
    "extractive_summarization",
    ExtractorConfig,
    "extracts sentences: use `pyramidions extract --method {path}`, or Extractor in Python",
)
_KINDS = {kind.name: kind for kind in (SUMMARIZER, EXTRACTOR)}


class FoundModel(NamedTuple):
    """What a file says about a model, as it was found: none of the settings has been checked.

    Attributes:
        path: of the file or folder.
        kind: of the model.
        config: its fields by name.
        source: most tokens of a document.
        target: most tokens of a summary.
        weights: by name.
        tokenizer: of its texts.
        selection: what there is of `SELECTION`, by name.
    """

    path: Path
    kind: ModelKind
    config: dict[str, Any]
    source: Any
    target: Any
    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    selection: dict[str, Any]


def find_model(path: str | Path, *wanted: ModelKind) -> FoundModel:
    """Read a checkpoint of fairseq-train, the best in a folder of them, or an exported folder.

    Args:
        path: of the checkpoint or the folder.
        wanted: kinds of models that will do.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another kind or architecture.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"The model {path} does not exist.")
    if path.is_file():
        return _from_checkpoint(path, wanted)
    if (path / CONFIG).exists():
        return _from_export(path, wanted)
    for name in CHECKPOINTS:
        if (path / name).exists():
            return _from_checkpoint(path / name, wanted)
    raise UserError(
        f"{path} must hold an exported model ({CONFIG}), {' or '.join(CHECKPOINTS)}, but holds none of them."
    )


def _from_checkpoint(path: Path, wanted: tuple[ModelKind, ...]) -> FoundModel:
    state = read_checkpoint(path)
    task, settings = state.get("task_state"), state.get("cfg") or {}
    config = settings.get("model")
    if not isinstance(task, dict) or "tokenizer" not in task or not config:
        tasks = " or ".join(kind.task for kind in wanted)
        raise UserError(f"{path} must be a checkpoint of --task {tasks}, but is none.")
    trained = settings.get("task")
    is_extractor = isinstance(trained, Mapping) and trained.get("_name") == EXTRACTOR.task
    kind = EXTRACTOR if is_extractor else SUMMARIZER
    _refuse_other(path, kind, wanted)
    # fairseq's own fields stand among the model's.
    known = {field.name for field in fields(kind.config)}
    # What fairseq's face calls encoder.core.x is encoder.x of the model itself; of an extractor core.x is x.
    weights = {
        name.replace(".core.", ".", 1).removeprefix("core."): value
        for name, value in state["model"].items()
        if name != "vocabulary"
    }
    return FoundModel(
        path,
        kind,
        {name: value for name, value in config.items() if name in known},
        task.get("max_source_positions"),
        task.get("max_target_positions"),
        weights,
        _tokenizer(path, task["tokenizer"]),
        _selection(task),
    )


def _from_export(folder: Path, wanted: tuple[ModelKind, ...]) -> FoundModel:
    _require(folder, CONFIG)
    about = read_config(folder / CONFIG)
    vocabulary = next((name for name in TOKENIZERS if name in about.get("sha256", {})), TOKENIZERS[0])
    _require(folder, WEIGHTS, vocabulary)
    kind = _KINDS[about.get("kind", SUMMARIZER.name)]
    _refuse_other(folder, kind, wanted)
    for name, expected in about.get("sha256", {}).items():
        if file_hash(folder / name) != expected:
            raise UserError(f"{folder / name} is damaged: its SHA-256 is not the one in {CONFIG}.")
    try:
        weights = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise UserError(f"{folder / WEIGHTS} is damaged ({error}).") from None
    check_weights(weights, folder / WEIGHTS)
    tokenizer = Tokenizer.from_file(folder / vocabulary)
    lengths = (about.get("max_source_positions"), about.get("max_target_positions"))
    return FoundModel(folder, kind, about["model"], *lengths, weights, tokenizer, _selection(about))


def _require(folder: Path, *names: str) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise UserError(f"The exported model {folder} lacks {name}.")


def _selection(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in SELECTION if name in settings}


def _refuse_other(path: Path, kind: ModelKind, wanted: tuple[ModelKind, ...]) -> None:
    if kind not in wanted:
        raise UserError(f"The model {path} {kind.purpose.format(path=path)}.")


def read_config(path: Path) -> dict[str, Any]:
    """Read config.json of an export; it has `model`, and maybe `kind` and `sha256` (neither in exports of 0.1.0).

    Raises:
        UserError: it is damaged, or of something else.
    """
    try:
        about = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}.") from None
    if not isinstance(about, dict) or "format" not in about:
        raise UserError(f"{path} must be as written by `pyramidions export`.")
    if about["format"] is True or about["format"] not in (1, FORMAT):
        raise UserError(f"{path} must be of format 1 or {FORMAT}, but is of {shown(about['format'])}.")
    config, hashes, kind = about.get("model"), about.get("sha256", {}), about.get("kind", SUMMARIZER.name)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UserError(f"{path} is damaged: `kind` must be {' or '.join(_KINDS)}, but is {shown(kind)}.")
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: `model` must hold the model's settings.")
    if hashes != {} and not (isinstance(hashes, dict) and any(hashes.keys() == {WEIGHTS, t} for t in TOKENIZERS)):
        raise UserError(f"{path} is damaged: `sha256` must hold the hashes of {WEIGHTS} and {TOKENIZERS[0]}.")
    if about["format"] == 1:
        # An axis of one kind in 0.1.0; it is called `stack` today.
        config.pop("residual", None)
    return about


def _tokenizer(path: Path, model_bytes: Any) -> Tokenizer:
    if not isinstance(model_bytes, bytes):
        raise UserError(f"The tokenizer in {path} must be bytes, but is {shown(model_bytes)}.")
    try:
        return Tokenizer.from_bytes(model_bytes)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace what is no export.

    Raises:
        UserError: there is a file, or a folder that holds anything else.
    """
    if file := next((parent for parent in folder.parents if parent.exists() and not parent.is_dir()), None):
        raise UserError(f"The folder of an export must lie in a folder, but {file} is a file.")
    rule = f"The folder of an export must be new, empty or an older export, but {folder}"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{rule} is {'a file' if folder.is_file() else 'no folder'}.")
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if others := found - {WEIGHTS, CONFIG, CARD, *TOKENIZERS} if CONFIG in found else found:
        raise UserError(f"{rule} holds {min(others)}.")
    if found:
        try:
            read_config(folder / CONFIG)
        except (OSError, UserError):
            raise UserError(f"{rule} holds a {CONFIG} of something else.") from None

"""Loads pretrained encoders by the library transformers: from safetensors only, and never code that comes with them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError

from pyramidions.base.device import found_device
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.files.hub import fetch, hub_name
from pyramidions.scoring.encoders.checks import check_folder, check_kind, fingerprint, longest_input
from pyramidions.scoring.encoders.depth import keep_layers
from pyramidions.scoring.encoders.heads import Head

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors")
_TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"),
)
# Lengths above this mean that a tokenizer knows of none.
_NO_LENGTH = 10**9


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
    library = transformers(f"`{head.option}`")
    name, folder = _located(place, head, library)
    check_folder(folder, place, head, library)
    config = _read(library.AutoConfig, folder, place, head)
    check_kind(config, place, head, library)
    if layers is not None:
        keep_layers(config, layers, place)
    if config.model_type == "big_bird":
        # It switches to full attention at the first short batch and stays there; texts must not depend on each other.
        config.attention_type = "original_full"
    # BERTScore is defined with a space in front of the first word, where pieces hold spaces.
    settings = {"add_prefix_space": True} if head.is_encoder else {}
    tokenizer = _read(library.AutoTokenizer, folder, place, head, **settings)
    if not tokenizer.is_fast:
        raise UserError(
            f"`{head.option}` must have a tokenizer that tells where its pieces stand (tokenizer.json), "
            f"but {place} has none."
        )
    model = _weights(library, folder, place, head, config)
    pieces, rows = len(tokenizer), model.get_input_embeddings().num_embeddings
    if pieces > rows:
        raise UserError(
            f"`{head.option}` must have one vector a piece, but the tokenizer of {place} has {pieces} pieces and its "
            f"weights have {rows} vectors."
        )
    limits = [longest_input(model, config), tokenizer.model_max_length]
    length = min((limit for limit in limits if limit is not None and limit < _NO_LENGTH), default=None)
    return Loaded(model.eval().to(found), tokenizer, name, length)


def transformers(user: str) -> Any:
    """Return the library.

    Args:
        user: what needs it, for the error.

    Raises:
        UserError: it is not installed.
    """
    # It imports torchaudio wherever that is installed, though no text needs it, and fails where that was built for
    # another torch.
    if "torchaudio" not in sys.modules and find_spec("torchaudio") is not None:
        try:
            import torchaudio  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
        except (ImportError, OSError):
            sys.modules["torchaudio"] = None  # type: ignore[assignment]
    return optional_library("transformers", user, extra="metrics")


def library_version() -> str:
    """Return what signatures call the library."""
    return f"transformers {version('transformers')}"


def _located(place: str, head: Head, library: Any) -> tuple[str, Path]:
    """Return the name and the folder of a model; one on the hub is judged by its config before it is downloaded."""
    if hub := hub_name(place):
        about = fetch(hub, ["config.json"])
        check_kind(_read(library.AutoConfig, about.path, place, head), place, head, library)
        whole = fetch(hub, ["config.json", *_WEIGHTS, *_TOKENIZER], about.commit)
        return f"{hub.name}@{whole.commit[:10]}", whole.path
    folder = Path(place)
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "does not exist"
        raise UserError(f"`{head.option}` must be a folder or a name on the hub, but {place} {state}.")
    return f"{folder.resolve().name} {fingerprint(folder)}", folder


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
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(f"`{head.option}` must be a model with whole weights, but {place}: {reason}.") from None
    # A pooler is a head that vectors of tokens do not go through.
    missing = sorted(name for name in about["missing_keys"] if "pooler" not in name)
    if missing:
        raise UserError(f"`{head.option}` must be a model with whole weights, but {place} lacks {missing[0]}.")
    return model.get_encoder() if head.is_encoder and config.is_encoder_decoder else model


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library, whose warnings speak of what is checked here; it is put back as it was."""
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

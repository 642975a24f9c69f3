"""Trained language models of characters from disk, ready to compute."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pyramidions.base.arguments import checked, fits, shown
from pyramidions.base.errors import UserError
from pyramidions.base.results import brief_model
from pyramidions.inference.filling import building, fill
from pyramidions.inference.model_files import WINDOW, FoundFile, find_file
from pyramidions.inference.model_kinds import LANGUAGE_MODEL, ModelKind
from pyramidions.models import LanguageModelConfig, build_language_model
from pyramidions.models.config import LONGEST_TEXT
from pyramidions.models.older_releases import config_as_written
from pyramidions.nn import LanguageModel
from pyramidions.text.alphabets import Alphabet, recorded_alphabet
from pyramidions.text.tokenizer import PAD


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


@checked
def load_language_model(path: str | Path) -> SavedLanguageModel:
    """Read a language model of characters: a checkpoint of fairseq-train, the best in a folder of them, or an export.

    An export may lie on the Hugging Face hub: OWNER/NAME, or OWNER/NAME@REVISION.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another task or architecture.
    """
    return language_model_of(find_file(path, LANGUAGE_MODEL))


def language_model_of(found: FoundFile) -> SavedLanguageModel:
    """Build a language model from what a file says; errors are those of `load_language_model`."""
    if found.arch is not None and "boundaries" not in found.config:
        raise UserError(f"{found.path} must be of --arch hourglass_..., but is of --arch {shown(found.arch)}.")
    with building(found.path):
        alphabet, window = _alphabet(found), _window(found)
        config = config_as_written(LanguageModelConfig, found.config, found.written)
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

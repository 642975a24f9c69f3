"""How texts become tokens: the tokenizer and the lengths, which travel in the checkpoint."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from fairseq.data import Dictionary

from pyramidions.data.folder import DataFolder
from pyramidions.data.verify import verify_tokenizer
from pyramidions.errors import UserError
from pyramidions.text.tokenizer import SPECIALS, Tokenizer


class Length(NamedTuple):
    """How long something may be.

    Attributes:
        asked: what the user says; None for what the checkpoint says, or else the default.
        default: None where there is none.
        least: the smallest allowed.
        reason: what makes it the smallest, for the error.
    """

    asked: Optional[int]
    default: Optional[int]
    least: int = 2
    reason: str = "a token and the end of the text"


class Preprocessing:
    """The tokenizer of the data folder or the checkpoint, and how much of a text is read or written.

    Args:
        folder: the data; may be empty where a checkpoint will say what it lacks.
        task: fairseq's name of the task.
        lengths: by the names of their options.

    Attributes:
        task: its name.
        dictionary: fairseq's; its ids are the tokenizer's.

    Raises:
        UserError: a length below its least, or a damaged tokenizer.
    """

    def __init__(self, folder: DataFolder, task: str, lengths: Mapping[str, Length]) -> None:
        self.folder = folder
        self.dictionary = Dictionary()
        self.task = task
        self._asked = {name: length.asked for name, length in lengths.items()}
        self._lengths = {name: length.default for name, length in lengths.items()}
        self._tokenizer: Optional[Tokenizer] = None
        self._is_from_checkpoint = False
        for name, (asked, _, least, reason) in lengths.items():
            if asked is not None and asked < least:
                raise UserError(f"`{name}` must be at least {least}, {reason}, but is {asked}.")
        if folder.sentencepiece_path.exists():
            verify_tokenizer(folder)
            self._use(folder.tokenizer())

    def _use(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        for piece in tokenizer.pieces()[len(SPECIALS) :]:
            self.dictionary.add_symbol(piece)

    def need_tokenizer(self) -> Tokenizer:
        """Return the tokenizer.

        Raises:
            UserError: there is neither a checkpoint nor data; it says what the folder lacks.
        """
        return self._tokenizer or self.folder.tokenizer()

    def length(self, name: str) -> int:
        """Return a length: what the user asked for, else the checkpoint's, else the default.

        Raises:
            UserError: there is none of them.
        """
        found = self._asked[name] or self._lengths[name]
        if found is None:
            raise UserError(f"Give {_flag(name)}: neither a checkpoint nor the data says what it is.")
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return what travels in the checkpoint."""
        lengths = {name: self.length(name) for name in self._lengths}
        return {**lengths, "tokenizer": self.need_tokenizer().model_bytes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take tokenizer and lengths from a checkpoint, or compare them with those of the others of an ensemble.

        Raises:
            UserError: it is no checkpoint of this task; or its tokenizer is not that of the data folder or of the
                ensemble's other models; or its lengths are not theirs, and the user gives none.
        """
        if not {"tokenizer", *self._lengths} <= state.keys():
            raise UserError(f"The checkpoint was not trained with --task {self.task}.")
        if self._tokenizer is None:
            self._use(Tokenizer(state["tokenizer"]))
        elif self._tokenizer.model_bytes != state["tokenizer"]:
            folder = f"the data folder {self.folder.path}"
            other = "the ensemble's other models" if self._is_from_checkpoint else folder
            raise UserError(f"The checkpoint was trained with another tokenizer than that of {other}.")
        for name, length in self._lengths.items():
            if self._is_from_checkpoint and self._asked[name] is None and state[name] != length:
                raise UserError(
                    f"The models of the ensemble were trained with `{name}` {length} and {state[name]}: "
                    f"give the flag {_flag(name)}."
                )
            self._lengths[name] = state[name]
        self._is_from_checkpoint = True


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"

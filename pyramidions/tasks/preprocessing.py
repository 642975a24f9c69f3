"""How texts become tokens: the tokenizer and the two lengths, which travel in the checkpoint."""

from typing import Any, Optional

from fairseq.data import Dictionary

from pyramidions.data.folder import DataFolder
from pyramidions.data.verify import verify_tokenizer
from pyramidions.errors import UserError
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS
from pyramidions.text.tokenizer import SPECIALS, Tokenizer


class Preprocessing:
    """The tokenizer of the data folder or the checkpoint, and how many tokens of a text are read.

    Args:
        folder: the data; may be empty where a checkpoint will say what it lacks.
        max_source_positions: tokens of a document; None for what the checkpoint says, or else the default.
        max_target_positions: tokens of a summary, likewise.

    Attributes:
        dictionary: fairseq's; its ids are the tokenizer's.

    Raises:
        UserError: a length below 2, or a damaged tokenizer.
    """

    def __init__(
        self, folder: DataFolder, max_source_positions: Optional[int], max_target_positions: Optional[int]
    ) -> None:
        self.folder = folder
        self.dictionary = Dictionary()
        self._asked = {"max_source_positions": max_source_positions, "max_target_positions": max_target_positions}
        self._lengths = {"max_source_positions": MAX_SOURCE_POSITIONS, "max_target_positions": MAX_TARGET_POSITIONS}
        self._tokenizer: Optional[Tokenizer] = None
        self._is_from_checkpoint = False
        for name, value in self._asked.items():
            if value is not None and value < 2:
                raise UserError(f"`{name}` must be at least 2, a token and the end of the text, but is {value}.")
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

    @property
    def max_positions(self) -> tuple[int, int]:
        """Tokens of a document and of a summary: what the user asked for, else the checkpoint's, else the default."""
        source, target = (self._asked[name] or self._lengths[name] for name in self._lengths)
        return source, target

    def state_dict(self) -> dict[str, Any]:
        """Return what travels in the checkpoint."""
        source, target = self.max_positions
        tokenizer = self.need_tokenizer().model_bytes
        return {"max_source_positions": source, "max_target_positions": target, "tokenizer": tokenizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take tokenizer and lengths from a checkpoint, or compare them with those of the others of an ensemble.

        Raises:
            UserError: it is no checkpoint of this task; or its tokenizer is not that of the data folder or of the
                ensemble's other models; or its lengths are not theirs, and the user gives none.
        """
        if "tokenizer" not in state:
            raise UserError("The checkpoint was not trained with --task long_document_summarization.")
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
                    f"give the flag --{name.replace('_', '-')}."
                )
            self._lengths[name] = state[name]
        self._is_from_checkpoint = True

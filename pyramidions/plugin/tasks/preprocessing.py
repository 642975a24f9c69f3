"""What travels in the checkpoint: the tokenizer, the lengths of texts, and a task's own settings."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from fairseq.data import Dictionary

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.text.tokenizer import RECORDED, Tokenizer

#: The setting that documents have queries. No flag sets it: the data does, or the checkpoint.
QUERIES = "queries"
#: The setting that the words of documents are tagged, likewise.
TAGS = "tags"
#: The setting with the text before each document.
SOURCE_PREFIX = "source_prefix"
_SHOWN = 60  # characters of a wrong line


class Setting(NamedTuple):
    """A length or another setting of the task."""

    asked: Any  # what the user says; None for what the checkpoint says, or else the default
    default: Any = None  # also what a checkpoint without the setting means; None where there is none
    is_needed: bool = False  # every checkpoint of the task has it


class _Dictionary(Dictionary):
    """A dictionary that names a token whatever its tag, which is added as a multiple of the number of symbols."""

    #: says whether words have tags; None where a dictionary is loaded by itself
    preprocessing: "Optional[Preprocessing]" = None

    def take(self, tokenizer: Tokenizer) -> None:
        """Take the pieces of a tokenizer, with its ids."""
        names = tokenizer.pieces()
        for known in (self.symbols, self.count, self.indices):
            known.clear()
        for number, piece in enumerate(names):
            # fairseq joins the names by spaces, and merges equal ones.
            if piece.split() != [piece] or self.add_symbol(piece) != number:
                raise UserError(f"The tokenizer must name each piece once and without spaces, unlike {piece!r}.")
        bos = tokenizer.eos if tokenizer.bos is None else tokenizer.bos
        special = bos, tokenizer.pad, tokenizer.eos, tokenizer.unk
        self.bos_index, self.pad_index, self.eos_index, self.unk_index = special
        self.bos_word, self.pad_word, self.eos_word, self.unk_word = (names[i] for i in special)

    def __getitem__(self, index: int) -> str:
        has_tags = self.preprocessing is not None and self.preprocessing.has_tags
        return str(super().__getitem__(index % len(self) if has_tags else index))


class Preprocessing:
    """The tokenizer of the data folder or the checkpoint, how much of a text is read or written, and other settings.

    The folder may be empty where a checkpoint will say what it lacks.
    """

    def __init__(self, folder: DataFolder, task: str, settings: Mapping[str, Setting]) -> None:
        self.folder = folder
        self.dictionary = _Dictionary()
        self.dictionary.preprocessing = self
        self.task = task
        self._settings = settings
        self._asked = {name: setting.asked for name, setting in settings.items()}
        self._known = {name: setting.default for name, setting in settings.items()}
        self._tokenizer: Optional[Tokenizer] = None
        self._is_from_checkpoint = False
        if folder.tokenizer_path.exists():
            folder.verify_tokenizer()
            self._use(folder.tokenizer())

    def _use(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.dictionary.take(tokenizer)

    def learn_queries(self) -> None:
        """Take from the data of a training whether documents have queries or tags, whatever a checkpoint says."""
        if QUERIES in self._known:
            self._asked |= {QUERIES: self.folder.has_queries, TAGS: self.folder.has_tags}

    @property
    def has_tags(self) -> bool:
        return TAGS in self._known and bool(self.setting(TAGS))

    @property
    def has_queries(self) -> bool:
        return QUERIES in self._known and bool(self.setting(QUERIES))

    @property
    def front(self) -> tuple[int, ...]:
        """The ids in front of each document: the tokenizer's prefix, and that which the task asks for."""
        tokenizer = self.need_tokenizer()
        asked = tokenizer.encode(self.setting(SOURCE_PREFIX)) if SOURCE_PREFIX in self._known else ()
        return (*tokenizer.prefix, *asked)

    def need_tokenizer(self) -> Tokenizer:
        return self._tokenizer or self.folder.tokenizer()

    def setting(self, name: str) -> Any:
        """Return a length or a setting: what the user asked for, else the checkpoint's, else the default."""
        found = self._known[name] if self._asked[name] is None else self._asked[name]
        if found is None:
            raise UserError(f"Give {flag_of(name)}: neither a checkpoint nor the data says what it is.")
        return found

    def length(self, name: str) -> int:
        return int(self.setting(name))

    def state_dict(self) -> dict[str, Any]:
        settings = {name: self.setting(name) for name in self._known}
        return {**settings, **self.need_tokenizer().as_recorded()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take tokenizer and settings from a checkpoint, or compare them with those of the others of an ensemble."""
        needed = {"tokenizer", *(name for name, setting in self._settings.items() if setting.is_needed)}
        if not needed <= state.keys():
            raise UserError(f"The checkpoint was not trained with --task {self.task}.")
        if self._tokenizer is None:
            self._use(Tokenizer.from_recorded(state))
        elif self._tokenizer.as_recorded() != {name: state[name] for name in RECORDED if name in state}:
            folder = f"the data folder {self.folder.path}"
            other = "the ensemble's other models" if self._is_from_checkpoint else folder
            raise UserError(f"The checkpoint was trained with another tokenizer than that of {other}.")
        for name, known in self._known.items():
            found = state.get(name, self._settings[name].default)
            if self._is_from_checkpoint and self._asked[name] is None and found != known:
                if name == QUERIES:
                    raise UserError("Models that answer queries and models that do not cannot be an ensemble.")
                raise UserError(
                    f"The models of the ensemble were trained with `{name}` {known} and {found}: "
                    f"give the flag {flag_of(name)}."
                )
            self._known[name] = found
        self._is_from_checkpoint = True


class PieceCodec:
    """A tokenizer behind fairseq's interface for subword units."""

    def __init__(self, tokenizer: Tokenizer, has_queries: bool = False) -> None:
        self.tokenizer = tokenizer
        self.has_queries = has_queries

    def encode(self, text: str) -> str:
        """Return the pieces of a text, joined by spaces; those of a query, and `</s>`, before those of its document."""
        if not self.has_queries:
            return " ".join(self._pieces(text))
        query, _, document = text.partition("\t")
        if not self.tokenizer.normalize(query) or not self.tokenizer.normalize(document):
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            raise UserError(
                "The model answers queries, so each line must hold a query, a tab and a document, but one is "
                f"{shown!r}."
            )
        asked = self.tokenizer.names(self.tokenizer.asked(query))
        return " ".join([*asked, *self._pieces(document)])

    def _pieces(self, document: str) -> list[str]:
        return self.tokenizer.names(self.tokenizer.encode_documents(document))

    def decode(self, pieces: str) -> str:
        return self.tokenizer.decode_pieces(pieces.split())

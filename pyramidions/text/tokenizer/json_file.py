"""Any `tokenizer.json`, run by the library tokenizers as it is."""

import json
import math
import os
import re
import threading
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar, cast

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.strict_json import parse_json
from pyramidions.text.normalization import one_line
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer.core import (
    DOCUMENT_SEPARATOR,
    MOST_UNUSED,
    SPECIALS,
    UNK,
    UNKNOWN,
    Numbering,
    Tokenizer,
)

_Result = TypeVar("_Result")
_WHITE = re.compile(r"\s")
# Special tokens of families, which a text may spell without meaning them.
_BUILT_IN = re.compile(
    r"</?s>|<(?:pad|unk|mask|extra_id|cls|sep)[_\d]*>|\[(?:CLS|SEP|PAD|UNK|MASK)\]|<\|.*\|>|<doc-sep>|"
    r"[a-z]{2,3}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3}"
)
_one_at_a_time = threading.RLock()  # threads that share the terminal
_MOST_GROWTH = 64  # characters that a file may make of one


class _Surface(str):
    """The text of a token, which does not say what its id is: a character may span several tokens."""

    __slots__ = ("id",)
    id: int

    @classmethod
    def of(cls, text: str, token: int) -> "_Surface":
        surface = cls(text)
        surface.id = token
        return surface


class JsonTokenizer(Tokenizer):
    """A `tokenizer.json` of any kind, with its own ids: those of BART, T5, PEGASUS and mBART, WordPiece, and others.

    Its texts are on one line, and else as they stand (`one_line`): it normalises them itself. Where a word has the
    space before it in its first piece, the first word of a text has none.

    The prefix is what the file's post-processor puts in front of a text. There are no sentence markers.
    """

    file_name = "tokenizer.json"
    library = "tokenizers"

    def __init__(self, model_bytes: bytes, numbering: Numbering | None = None) -> None:
        model, about = load(model_bytes)
        self._model = model
        # A text that spells a special token does not mean it.
        model.encode_special_tokens = True
        self._ids: dict[str, int] = model.get_vocab()
        numbering = numbering or Numbering.of_names(self._ids)
        if numbering.unk is None:
            unknown = about.get("unk_id", self._ids.get(str(about.get("unk_token"))))
            numbering = numbering._replace(unk=unknown if isinstance(unknown, int) else self._ids.get(SPECIALS[UNK]))
        super().__init__(model_bytes, numbering, 1 + max(self._ids.values(), default=0))
        self._special = {i for i, token in model.get_added_tokens_decoder().items() if token.special}
        self._special |= {self.bos, self.pad, *self.ends}
        self.prefix = self._prefix()
        if (separator := self._ids.get(DOCUMENT_SEPARATOR)) is not None:
            self.document_separator = _Surface.of("", separator)
            self._special.add(separator)
        ordinary = (i for i in self._ids.values() if i not in self._special)
        self._unknown = next(ordinary, self.pad) if self.unk == self.pad else self.unk
        normalizer = model.normalizer
        self.folds_case = normalizer is not None and run(lambda: str(normalizer.normalize_str("A"))) == "a"
        # Where pieces begin with the space before a word, that space stands between windows.
        words = run(lambda: [model.encode(text, add_special_tokens=False).ids for text in ("a", "b", "a b")])
        self._between = "" if words[0] + words[1] == words[2] else " "

    @classmethod
    def wrote(cls, model_bytes: bytes) -> bool:
        return model_bytes.lstrip().startswith(b"{")

    def _prefix(self) -> tuple[int, ...]:
        """Return what the post-processor puts before a text, and remove the post-processor."""
        framed: list[int] = run(lambda: self._model.encode("a")).ids
        # In training, too, the end follows a text without it.
        self._model.post_processor = None
        bare: list[int] = run(lambda: self._model.encode("a")).ids
        places = range(len(framed) - len(bare) + 1)
        begin = next((place for place in places if framed[place : place + len(bare)] == bare), None)
        if begin is None:
            raise UserError("The tokenizer must put tokens around a text alone, but changes those of the text.")
        behind = framed[begin + len(bare) :] if bare else framed[-1:]
        if behind not in ([], [self.eos]):
            names = ", ".join(str(self.token(i)) for i in behind)
            raise UserError(f"The tokenizer must put nothing but its end behind a text, but puts {names}.")
        return tuple(framed[:begin] if bare else framed[:-1])

    def normalize(self, text: str) -> str:
        return one_line(text)

    def pieces(self) -> list[str]:
        """All pieces in the order of their ids, the special ones included; rows without one are `<unused_ID>`."""
        names = [f"<unused_{i}>" for i in range(self.vocab_size)]
        for piece, i in self._ids.items():
            # fairseq joins names by spaces.
            names[i] = _WHITE.sub(lambda space: f"<U+{ord(space[0]):04X}>", piece) or "<empty>"
        return names

    def token(self, i: int) -> str | None:
        """Return what the file calls an id; None for a row without a piece."""
        return next((piece for piece, each in self._ids.items() if each == i), None)

    def encode(self, text: str) -> list[int]:
        return [i for _, ids, _ in self._windows(windows(text)) for i in ids]

    def counts(self, texts: Iterable[str]) -> list[int]:
        lines = [f"{self._between}{line}" if (line := one_line(text)) else "" for text in texts]
        return [len(each.ids) for each in run(lambda: self._model.encode_batch(lines, add_special_tokens=False))]

    def ids_of(self, surfaces: Sequence[str]) -> list[int]:
        return [cast(_Surface, surface).id for surface in surfaces]

    def spellings(self, ids: Iterable[int]) -> list[str]:
        # A character's text stands at the last of its pieces.
        spelt = list[str]()
        for is_text, group in groupby(ids, self._is_text):
            part = list(group)
            spelt += self._spelt(part) if is_text else map(self._sign, part)
        return spelt

    def _spelt(self, ids: list[int]) -> list[str]:
        stream = library().decoders.DecodeStream(skip_special_tokens=True)
        texts = ["" if i in self._special else run(lambda: stream.step(self._model, i)) or "" for i in ids]  # noqa: B023
        # A model may write half a character, which the stream holds back.
        texts[-1] += self._text(ids)[len("".join(texts)) :]
        return texts

    def _is_text(self, i: int) -> bool:
        return (i != self.unk or i == self.pad) and i not in (self.document_separator_id, self._line_break)

    def _sign(self, i: int) -> str:
        return UNKNOWN if i == self.unk else " " if i == self._line_break else ""

    def surfaces(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        for line, ids, ends in self._windows(of_windows):
            surfaces, begin = list[str](), 0
            for i, end, following in zip(ids, ends, [*ends, -1][1:], strict=True):
                # Of pieces that end at one character, the last has its text; what a normaliser drops is theirs, too.
                end = begin if end == following else len(line) if following < 0 else max(begin, end)
                surfaces.append(_Surface.of(line[begin:end], i))
                begin = end
            yield surfaces

    def _windows(self, of_windows: Iterable[str]) -> Iterator[tuple[str, list[int], list[int]]]:
        """Yield the lines that were encoded, one a window, with their ids, and where in the line each ends."""
        begun = apart = False
        for window in of_windows:
            apart = apart or window[:1].isspace()
            if line := one_line(window):
                line = f"{self._between}{line}" if begun and apart else line
                encoding = run(lambda: self._model.encode(line, add_special_tokens=False))  # noqa: B023
                yield line, [self._of_text(i) for i in encoding.ids], [end for _, end in encoding.offsets]
                begun, apart = True, False
            apart = apart or window[-1:].isspace()

    def _of_text(self, i: int) -> int:
        """Return an id of a text: its vocabulary may spell a special token by what a text holds."""
        return self._unknown if i in self._special else i

    def _decode(self, ids: list[int]) -> str:
        parts = groupby(ids, self._is_text)
        # A document begins without a space.
        return "".join(
            self._text(list(part)) if is_text else f" {' '.join(map(self._sign, part))} " for is_text, part in parts
        )

    def _text(self, ids: list[int]) -> str:
        return run(lambda: str(self._model.decode([i for i in ids if i not in self._special])))

    def _id_of(self, piece: str) -> int:
        return self._by_name.get(piece, self.unk)

    @cached_property
    def _line_break(self) -> int | None:
        """The id of PEGASUS's piece for the end of a line (Zhang et al. 2020)."""
        return self._ids.get("<n>")

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.pieces())}


def library() -> Any:
    return optional_library("tokenizers", "The tokenizer")


def load(model_bytes: bytes) -> tuple[Any, dict[str, Any]]:
    """Return the library's tokenizer, which neither truncates nor pads, and what its file says of the model."""
    about = checked_file(model_bytes)
    if separators := _separators(about):
        for token in separators:
            token["special"] = False
        model_bytes = json.dumps(about).encode()
    with silent():
        model = run(lambda: _tried(model_bytes))
    return model, about["model"]


def _tried(model_bytes: bytes) -> Any:
    """Load a tokenizer and encode a sample, so that a broken file fails here."""
    model = library().Tokenizer.from_buffer(model_bytes)
    model.no_truncation()
    model.no_padding()
    with suppress(Exception):
        model.encode("a b")
    return model


@contextmanager
def silent() -> Iterator[None]:
    """Keep what the library writes of a panic off the terminal: an error of ours says it."""
    with _one_at_a_time, Path(os.devnull).open("wb") as nothing:
        try:
            kept = os.dup(2)
        except OSError:  # a shell has closed it
            yield
            return
        os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _separators(about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the special tokens that a user added to a vocabulary, and means where a text has them.

    Others a text may spell without meaning them: those of the vocabulary, of the frame around texts, and of families.
    """
    added = [each for each in about.get("added_tokens") or () if isinstance(each, dict) and each.get("special")]
    added = [each for each in added if not _BUILT_IN.fullmatch(str(each.get("content")))]
    if not added:
        return []
    vocabulary, frame = about["model"].get("vocab") or {}, json.dumps(about.get("post_processor"))
    pieces = vocabulary if isinstance(vocabulary, dict) else {piece[0] for piece in vocabulary}
    return [each for each in added if each["content"] not in pieces and json.dumps(each["content"]) not in frame]


def run(call: Callable[[], _Result]) -> _Result:
    """Call the library; a UserError says that it fails or panics: a pattern may backtrack, or parts may not fit."""
    try:
        return call()
    except UserError:
        raise
    except BaseException as error:
        # The library raises nothing narrower, and what it panics with is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"The tokenizer must be a tokenizer.json that reads any text, but fails ({reason}).") from None


def checked_file(model_bytes: bytes) -> dict[str, Any]:
    """Look at a file before the library takes memory for it, and return what it says."""
    try:
        about = parse_json(model_bytes)
    except ValueError as error:
        raise UserError(f"The tokenizer must be a tokenizer.json, but {error}.") from None
    if not isinstance(about, dict) or not isinstance(about.get("model"), dict):
        raise UserError("The tokenizer must be a tokenizer.json, but has no `model`.")
    vocabulary, added = about["model"].get("vocab"), about.get("added_tokens")
    if not isinstance(added or [], list):
        raise UserError(f"The tokenizer must have a list of `added_tokens`, but they are {shown(added)}.")
    pieces = [vocabulary or (), added or ()]
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    ids += [token.get("id") for token in pieces[1] if isinstance(token, dict)]
    check_ids(ids, sum(map(len, pieces)))
    for pattern in _patterns(about):
        # Only such a pattern can try exponentially many ways to match.
        if re.search(r"(?<!\\)\)(\*|\+|\{\d*,)", pattern):
            raise UserError(f"The tokenizer must repeat no group in its pattern, but has {shown(pattern)}.")
    if (growth := max(_growth(about.get(step)) for step in ("normalizer", "decoder"))) > _MOST_GROWTH:
        raise UserError(
            f"The tokenizer must make at most {_MOST_GROWTH} characters of one, but may make {shown(growth)}."
        )
    return about


def check_ids(ids: Iterable[Any], pieces: int) -> None:
    """Refuse ids for which a library would take much memory: far above the number of pieces."""
    most = pieces + MOST_UNUSED
    for i in ids:
        if type(i) is not int or not 0 <= i < most:
            raise UserError(
                f"The tokenizer must have ids below {most:,}, {MOST_UNUSED:,} more than pieces, but has {shown(i)}."
            )


def _patterns(step: Any) -> Iterator[str]:
    """Yield the regular expressions of a step and its inner steps; those of a model are text."""
    if isinstance(step, dict):
        if isinstance(pattern := step.get("Regex"), str):
            yield pattern
        step = [inner for name, inner in step.items() if name != "model"]
    for inner in step if isinstance(step, list) else ():
        yield from _patterns(inner)


def _growth(step: Any) -> int:
    """Return how many characters a step makes of one at most, its inner steps one after another."""
    if not isinstance(step, dict):
        return 1
    if isinstance(steps := step.get("normalizers", step.get("decoders")), list):
        return math.prod(map(_growth, steps))
    if isinstance(table := step.get("precompiled_charsmap"), str):
        try:
            data = b64decode(table)
        except ValueError:
            return 1  # the library refuses it
        # A table, its size before it, and the texts that it points to, each with a zero behind it.
        texts = data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")
        return max(1, *(len(text.decode(errors="replace")) for text in texts), 1)
    return max(1, *(len(said) for name, said in step.items() if isinstance(said, str) and name != "type"), 1)

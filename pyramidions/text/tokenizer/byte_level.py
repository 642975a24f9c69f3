"""Byte-level BPE of the library tokenizers, as BART and LED have it."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.strict_json import parse_json
from pyramidions.text.normalization import one_line
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer.core import DOCUMENT_SEPARATOR, EOS, SPECIALS, UNK, UNKNOWN, Tokenizer

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
#: how pieces spell bytes: those of printable characters as these, the others in order from U+0100 (GPT-2)
BYTES = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + place): byte for place, byte in enumerate(_OTHERS)}


class _Surface(str):
    """The text of a token, which does not say what its id is: a character may span several tokens."""

    __slots__ = ("id",)
    id: int

    @classmethod
    def of(cls, text: str, token: int) -> "_Surface":
        surface = cls(text)
        surface.id = token
        return surface


class ByteLevelTokenizer(Tokenizer):
    """A `tokenizer.json` of byte-level BPE whose ids are fairseq's dictionary ids.

    Sennrich et al., 2016, "Neural Machine Translation of Rare Words with Subword Units"; on bytes: Radford et al.,
    2019, "Language Models are Unsupervised Multitask Learners". Its texts are on one line, and else as they stand
    (`one_line`). A word has the space before it in its first piece; the first word of a text has none.

    The prefix is what the file's post-processor puts in front of a text. There are no sentence markers.

    Args:
        model_bytes: the file.

    Raises:
        UserError: the bytes are no such file; or special pieces have other ids; or the library is not installed.
    """

    file_name = "tokenizer.json"
    library = "tokenizers"

    def __init__(self, model_bytes: bytes) -> None:
        super().__init__(model_bytes)
        self._model, _ = load(model_bytes)
        vocabulary = self._model.get_vocab()
        self._ids = dict(sorted(vocabulary.items(), key=lambda item: item[1]))
        found = tuple(self._ids.get(name, -1) for name in SPECIALS)
        if found != tuple(range(len(SPECIALS))):
            raise UserError(
                "The tokenizer must have the ids <s>=0, <pad>=1, </s>=2, <unk>=3, "
                f"but it has {', '.join(f'{name}={i}' for name, i in zip(SPECIALS, found, strict=True))}."
            )
        if list(self._ids.values()) != list(range(len(self._ids))):
            raise UserError(f"The tokenizer must number its {len(self._ids)} pieces without gaps, but does not.")
        if missing := BYTES.keys() - self._ids.keys():
            raise UserError(f"The tokenizer must have a piece for each byte, but has none for {len(missing)} of them.")
        special = {i for i, token in self._model.get_added_tokens_decoder().items() if token.special}
        special |= set(range(len(SPECIALS)))
        self._bytes = [b"" if i in special else _spelt(name) for name, i in self._ids.items()]
        self._bytes[UNK] = UNKNOWN.encode()
        self.prefix = self._prefix()
        if self._ids.get(DOCUMENT_SEPARATOR) in special:
            self.document_separator = _Surface.of("", self._ids[DOCUMENT_SEPARATOR])

    @classmethod
    def wrote(cls, model_bytes: bytes) -> bool:
        """Return whether it is a JSON object."""
        return model_bytes.startswith(b"{")

    def _prefix(self) -> tuple[int, ...]:
        """Keep what the post-processor puts around an empty text, and remove the post-processor."""
        around = self._model.encode("").ids
        # In training, too, the end follows a text without it.
        self._model.post_processor = None
        if around and around[-1] == EOS:
            around.pop()
        if EOS in around[1:]:
            raise UserError("The tokenizer must put at most one </s> behind a text, but puts more.")
        return tuple(around)

    def normalize(self, text: str) -> str:
        """Return the text on one line."""
        return one_line(text)

    def pieces(self) -> list[str]:
        """All pieces in the order of their ids, the special ones included."""
        return list(self._ids)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids, without prefix and `</s>`."""
        return [i for ids in self._windows(windows(text)) for i in ids]

    def counts(self, texts: Iterable[str]) -> list[int]:
        """Return the number of tokens of each text with a space in front."""
        return [len(self._encoded(f" {line}")) if (line := one_line(text)) else 0 for text in texts]

    def ids_of(self, surfaces: Sequence[str]) -> list[int]:
        """Return the ids of tokens that `surfaces` gave."""
        return [cast(_Surface, surface).id for surface in surfaces]

    def spellings(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each id; a character's text stands at the last of its pieces."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        found = [decoder.decode(self._bytes[i]) for i in ids]
        if found:
            # A model may write half a character.
            found[-1] += decoder.decode(b"", final=True)
        return found

    def _surfaces(self, of_windows: Iterable[str]) -> Iterator[list[str]]:
        for ids in self._windows(of_windows):
            yield [_Surface.of(text, i) for text, i in zip(self.spellings(ids), ids, strict=True)]

    def _windows(self, of_windows: Iterable[str]) -> Iterator[list[int]]:
        begun = apart = False
        for window in of_windows:
            apart = apart or window[:1].isspace()
            if line := one_line(window):
                yield self._encoded(f" {line}" if begun and apart else line)
                begun, apart = True, False
            apart = apart or window[-1:].isspace()

    def _encoded(self, line: str) -> list[int]:
        try:
            ids: list[int] = self._model.encode(line, add_special_tokens=False).ids
        except BaseException as error:
            # The library panics where a pattern of the file backtracks too often.
            if type(error).__name__ != "PanicException":
                raise
            raise UserError("The tokenizer must cut any text, but its pattern fails on one.") from None
        return ids

    def _decode(self, ids: list[int]) -> str:
        spelt = zip(ids, self.spellings(ids), strict=True)
        # A document begins without a space.
        separator = self.document_separator_id
        return "".join(" " if i == separator else text for i, text in spelt)

    def _id_of(self, piece: str) -> int:
        return self._ids.get(piece, UNK)


def library() -> Any:
    """Return the library.

    Raises:
        UserError: it is not installed.
    """
    return optional_library("tokenizers", "The tokenizer")


def load(model_bytes: bytes) -> tuple[Any, dict[str, Any]]:
    """Read a tokenizer.json of byte-level BPE.

    Returns:
        The library's tokenizer, which finds no special pieces in texts, and the file as the library writes it.

    Raises:
        UserError: it is none.
    """
    try:
        about = parse_json(model_bytes)
    except ValueError as error:
        raise UserError(f"The tokenizer must be a tokenizer.json, but {error}.") from None
    if not isinstance(about, dict) or "model" not in about:
        raise UserError("The tokenizer must be a tokenizer.json, but has no `model`.")
    try:
        model = library().Tokenizer.from_buffer(model_bytes)
    except UserError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UserError(f"The tokenizer must be a tokenizer.json, but is none ({error}).") from None
    about = parse_json(model.to_str())
    _refuse_others(about)
    # A text that spells a special token does not mean it.
    model.encode_special_tokens = True
    model.no_truncation()
    model.no_padding()
    return model, about


def _refuse_others(about: dict[str, Any]) -> None:
    """Refuse what is no byte-level BPE, or may change a text or make special pieces of it.

    Args:
        about: the file as the library writes it.
    """
    model, steps = about["model"], about["pre_tokenizer"] or {}
    last = (steps.get("pretokenizers") or [steps])[-1]
    for name, found, wanted in (("model", model, "BPE"), ("pre_tokenizer", last, "ByteLevel")):
        if found.get("type") != wanted:
            raise UserError(f"The tokenizer must be byte-level BPE, but its `{name}` is {found.get('type')}.")
    for step in steps.get("pretokenizers", [steps]):
        pattern = (step.get("pattern") or {}).get("Regex", "")
        # Only such a pattern can try exponentially many ways to match.
        if re.search(r"(?<!\\)\)(\*|\+|\{\d*,)", pattern):
            raise UserError(f"The tokenizer must repeat no group in its pattern, but has {json.dumps(pattern)[:80]}.")
    changes = {name: model[name] for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")}
    for name, value in {"normalizer": about["normalizer"], **changes}.items():
        if value:
            raise UserError(f"The tokenizer must have no `{name}`, but has {json.dumps(value)[:80]}.")
    added = {token["content"]: token["special"] for token in about["added_tokens"]}
    specials = {*SPECIALS, *(name for name, is_special in added.items() if is_special)}
    made = {name for name in SPECIALS if not added.get(name, True)} | {"".join(merge) for merge in model["merges"]}
    if found := sorted(made & specials):
        raise UserError(f"The tokenizer must not find the special piece {found[0]} in texts, but would.")


def _spelt(piece: str) -> bytes:
    """Return the bytes of a piece; one that spells no bytes, as unused ones may, is taken as it stands."""
    return bytes(BYTES[letter] for letter in piece) if BYTES.keys() >= set(piece) else piece.encode()

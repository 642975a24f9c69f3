"""Takes the file of a sentencepiece model apart and writes one, to give its pieces other ids.

The file is a protocol buffer, `ModelProto` of sentencepiece_model.proto: a list of fields, each with its number. The
pieces stand in the order of their ids, so that another order is another numbering. Of several fields of one number
that hold settings, the later ones win.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.text.tokenizer import SPECIALS

# Numbers of fields: of a model, of a piece, of the settings that name the special pieces, and of the normalisation.
_PIECES, _SETTINGS, _NORMALISATION = 1, 2, 3
_CHARACTERS = 2
_TEXT, _SCORE, _TYPE = 1, 2, 3
_SPECIAL_IDS, _SPECIAL_NAMES = (41, 43, 42, 40), (46, 48, 47, 45)
# Types of pieces.
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
# How a field is stored.
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


class ModelPiece(NamedTuple):
    """A piece of a model.

    Attributes:
        text: its name.
        kind: `NORMAL`, `UNKNOWN`, `CONTROL` or another type.
        score: as it is stored; empty for 0.
    """

    text: str
    kind: int = CONTROL
    score: bytes = b""


class ModelFile(NamedTuple):
    """A sentencepiece model.

    Attributes:
        pieces: in the order of their ids.
        others: all other fields, as they are stored.
    """

    pieces: list[ModelPiece]
    others: bytes


def read_model(data: bytes, name: object) -> ModelFile:
    """Take a model apart.

    Raises:
        UserError: it is none; ``name`` is what the error calls it.
    """
    pieces, others = [], bytearray()
    try:
        for number, value, stored in _fields(data):
            if number == _PIECES:
                pieces.append(_piece(value))
            else:
                others += stored
    except (IndexError, ValueError):
        pieces = []
    if not pieces:
        raise UserError(f"{name} must be a sentencepiece model, but is none.")
    return ModelFile(pieces, bytes(others))


def write_model(pieces: Iterable[ModelPiece], others: bytes, ids: Sequence[int] = range(len(SPECIALS))) -> bytes:
    """Return a model.

    Args:
        pieces: in the order of their ids.
        others: all other fields, as they are stored.
        ids: of `<s>`, `<pad>`, `</s>` and `<unk>`; -1 for one that the model has not.
    """
    data = bytearray()
    for piece in pieces:
        score = bytes([_SCORE << 3 | _FOUR_BYTES]) + piece.score if piece.score else b""
        data += _bytes(_PIECES, _bytes(_TEXT, piece.text.encode()) + score + _number(_TYPE, piece.kind))
    settings = b"".join(_number(number, i) for i, number in zip(ids, _SPECIAL_IDS, strict=True))
    settings += b"".join(_bytes(number, name.encode()) for number, name in zip(_SPECIAL_NAMES, SPECIALS, strict=True))
    return bytes(data) + others + _bytes(_SETTINGS, settings)


def normalisation(characters: bytes) -> bytes:
    """Return the field of a model that says how texts are normalised.

    Args:
        characters: what becomes of characters, as sentencepiece compiles it.
    """
    return _bytes(_NORMALISATION, _bytes(_CHARACTERS, characters))


def _piece(data: bytes) -> ModelPiece:
    found = {number: value for number, value, _ in _fields(data)}
    kind = _varint(found[_TYPE], 0)[0] if _TYPE in found else NORMAL
    return ModelPiece(found.get(_TEXT, b"").decode(), kind, found.get(_SCORE, b""))


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the number of each field, its value, and all that is stored of it."""
    start = 0
    while start < len(data):
        tag, begin = _varint(data, start)
        how = tag & 7
        if how == _VARINT:
            end = _varint(data, begin)[1]
        elif how == _BYTES:
            length, begin = _varint(data, begin)
            end = begin + length
        elif how in _FIXED:
            end = begin + _FIXED[how]
        else:
            raise ValueError(how)
        if end > len(data):
            raise IndexError(end)
        yield tag >> 3, data[begin:end], data[start:end]
        start = end


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while data[start] & 0x80:
        value |= (data[start] & 0x7F) << shift
        start, shift = start + 1, shift + 7
    return value | data[start] << shift, start + 1


def _as_varint(value: int) -> bytes:
    data = bytearray()
    # Negative numbers are stored as 64 bits.
    value %= 1 << 64
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _number(number: int, value: int) -> bytes:
    return _as_varint(number << 3 | _VARINT) + _as_varint(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(value)) + value

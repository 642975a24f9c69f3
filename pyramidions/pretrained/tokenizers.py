"""Tokenizers of pretrained models, with our ids.

fairseq's dictionary has `<s>`, `<pad>`, `</s>` and `<unk>` at 0 to 3. A model that has them elsewhere gets its
embeddings in another order, and its tokenizer gets the same ids: no table has to travel with a model.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.strict_json import parse_json
from pyramidions.files.bounded import read_regular
from pyramidions.text.tokenizer import SPECIALS, Tokenizer
from pyramidions.text.tokenizer.byte_level import library, load
from pyramidions.text.tokenizer.sentencepiece import WITHOUT_LANGUAGE

SENTENCEPIECE, JSON, VOCABULARY, MERGES = "spiece.model", "tokenizer.json", "vocab.json", "merges.txt"
#: of mBART-50: its own special pieces and languages are not in it
LANGUAGES = "sentencepiece.bpe.model"
SETTINGS = "tokenizer_config.json"
#: pieces that vocab.json lacks, with their ids
ADDED = "added_tokens.json"
#: of PEGASUS: reserved ids, behind the first two pieces, that spiece.model does not list
OFFSET = 103
_SENTINELS = 100  # of T5
#: languages of mBART-50, in the order of their ids
OF_MBART = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN "
    "pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)
_LANGUAGE = "en_XX"  # where its files say none
#: how the names of rows begin that no piece has
UNUSED = "<unused_"
_LONGEST = 2**20  # tokens of a text
_LONG_NUMBER = re.compile(rb"(?<=\"model_max_length\": )\d{19,}")
#: Embeddings may have so many rows more than there are pieces; fairseq's BART has 936.
_MOST_UNUSED = 1024


#: "byte_level", or whose sentencepiece models these are: each leaves other pieces out of its file
TokenizerKind = Literal["byte_level", "pegasus", "t5", "mbart"]


class SpecialIds(NamedTuple):
    """Ids as a config says, None where it does not."""

    bos: int | None = None
    pad: int | None = None
    eos: int | None = None
    unk: int | None = None
    start: int | None = None  # of the decoder
    forced: int | None = None  # the first token of each summary


class Vocabulary(NamedTuple):
    """Byte-level BPE: pieces with their ids, and pairs of pieces in the order in which they are merged."""

    pieces: dict[str, int]
    merges: list[tuple[str, str]]


class ImportedTokenizer(NamedTuple):
    """A tokenizer with our ids.

    Attributes:
        tokenizer: with as many pieces as the embeddings have rows.
        rows: for each of our ids the row of the source's embeddings, each row once.
        unused: how many rows no piece of the source had.
    """

    tokenizer: Tokenizer
    rows: list[int]
    unused: int

    def id_of(self, old: int) -> int:
        """Return our id for one of the source, such as its decoder's start.

        Raises:
            UserError: the source has no such id.
        """
        if old not in self.rows:
            raise UserError(f"The ids in the model's config must be below {len(self.rows):,}, but one is {old}.")
        return self.rows.index(old)


def import_tokenizer(
    folder: Path, vocab_size: int, said: SpecialIds, family: TokenizerKind = "pegasus"
) -> ImportedTokenizer:
    """Read the tokenizer of a model's folder.

    It is spiece.model, sentencepiece.bpe.model, tokenizer.json, or vocab.json and merges.txt.

    Args:
        folder: as the Hugging Face hub has it.
        vocab_size: rows of the embeddings.
        said: ids of special tokens, by the model's config.
        family: whose pieces a sentencepiece model lacks: those of PEGASUS, T5's such as <extra_id_0>, or languages.

    Raises:
        UserError: there is none, it is of another kind, or it does not fit the embeddings or the config.
    """
    known: list[tuple[tuple[str, ...], Callable[[Path, int, SpecialIds], ImportedTokenizer]]] = [
        ((SENTENCEPIECE,), partial(_from_sentencepiece, sentinels=family == "t5")),
        *([((LANGUAGES,), _from_languages)] if family == "mbart" else []),
        ((JSON,), _from_json),
        ((VOCABULARY, MERGES), _from_vocabulary),
    ]
    for names, read in known:
        if all((folder / name).is_file() for name in names):
            try:
                return read(folder, vocab_size, said)
            except UserError as error:
                raise UserError(f"{folder}: {error}") from None
    raise UserError(
        f"{folder} must hold a tokenizer ({SENTENCEPIECE}, {LANGUAGES}, {JSON}, or {VOCABULARY} and {MERGES}), but "
        "holds none."
    )


def read_sentencepiece(data: bytes = b"", name: object = "") -> Any:
    """Return a sentencepiece model as its protocol buffer; an empty one without data.

    Raises:
        UserError: it is none, where ``name`` is what the error calls it; or a library is missing.
    """
    protobuf = optional_library("google.protobuf", "A tokenizer of PEGASUS", "message")
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    try:
        model = ModelProto.FromString(data)
    except protobuf.message.DecodeError:
        model = ModelProto()
    if name and not model.pieces:
        raise UserError(f"{name} must be a sentencepiece model, but is none.")
    return model


def control_pieces(model: Any, names: Iterable[str]) -> list[Any]:
    """Return new pieces, for a model, that no text has."""
    kind = type(model).SentencePiece
    return [kind(piece=name, type=kind.CONTROL) for name in names]


def written_sentencepiece(model: Any, pieces: Sequence[Any]) -> bytes:
    """Return a model as bytes, with other pieces in the order of their ids; the special ones come first."""
    made = type(model)()
    made.CopyFrom(model)
    del made.pieces[:]
    made.pieces.extend(pieces)
    for i, role in enumerate(("bos", "pad", "eos", "unk")):
        setattr(made.trainer_spec, f"{role}_id", i)
        setattr(made.trainer_spec, f"{role}_piece", pieces[i].piece)
    return bytes(made.SerializeToString(deterministic=True))


def _from_sentencepiece(folder: Path, vocab_size: int, said: SpecialIds, sentinels: bool) -> ImportedTokenizer:
    model = read_sentencepiece((folder / SENTENCEPIECE).read_bytes(), SENTENCEPIECE)
    if sentinels:
        number = _setting(folder, "extra_ids", min(_SENTINELS, vocab_size - len(model.pieces)))
        behind = control_pieces(model, (f"<extra_id_{n}>" for n in reversed(range(number))))
        return _sentencepiece(model, [*model.pieces, *behind], vocab_size, said)
    hidden = control_pieces(model, reserved(_setting(folder, "offset", OFFSET)))
    return _sentencepiece(model, [*model.pieces[:2], *hidden, *model.pieces[2:]], vocab_size, said)


def _from_languages(folder: Path, vocab_size: int, said: SpecialIds) -> ImportedTokenizer:
    """Read that of mBART-50, whose ids are fairseq's: special pieces, those of the file, languages, and `<mask>`."""
    model = read_sentencepiece((folder / LANGUAGES).read_bytes(), LANGUAGES)
    front, behind = (control_pieces(model, names) for names in (SPECIALS, (*OF_MBART.split(), "<mask>")))
    front[-1].type = type(model).SentencePiece.UNKNOWN
    settings = _settings(folder)
    language = settings.get("src_lang") if isinstance(settings, dict) else None
    pieces = [*front, *model.pieces[3:], *behind]
    if len(pieces) > vocab_size:
        raise UserError(
            f"{LANGUAGES} must be of mBART-50, with {len(pieces)} pieces and languages, but the embeddings have "
            f"{vocab_size} rows."
        )
    return _sentencepiece(model, pieces, vocab_size, said, _LANGUAGE if language is None else language)


def _sentencepiece(
    model: Any, pieces: list[Any], vocab_size: int, said: SpecialIds, language: str | None = None
) -> ImportedTokenizer:
    """Return a sentencepiece tokenizer.

    Args:
        model: as of `read_sentencepiece`.
        pieces: by their old ids.
        vocab_size: as in `import_tokenizer`.
        said: likewise.
        language: the piece in front of each text. It becomes our `<s>`, which such a model does not read.
    """
    kind = type(model).SentencePiece
    unused = _unused(len(pieces), vocab_size)
    pieces = [*pieces, *control_pieces(model, unused)]
    # The unknown piece may have any name.
    found = {SPECIALS[3] if piece.type == kind.UNKNOWN else piece.piece: i for i, piece in enumerate(pieces)}
    # PEGASUS and T5 have no <s>: what the decoder starts from stands in, or a row that no text has.
    spare = said.start if said.start not in (said.pad, said.eos) else None
    if spare is None:
        # Of PEGASUS the last before <unk>.
        of_no_text = (i for i, piece in enumerate(pieces) if piece.type == kind.CONTROL and i > max(map(_id, said[:3])))
        spare = found.get(f"<unk_{OFFSET - 1}>", max(of_no_text, default=None))
    if language is not None:
        begins = found.get(language) if language in OF_MBART.split() else None
        if begins is None or pieces[begins].type != kind.CONTROL:
            raise UserError(f"`src_lang` must be a language of mBART-50, but is {shown(language)}.")
        if said.start == begins:
            raise UserError(
                f"The decoder of mBART-50 must start from </s>, but `decoder_start_token_id` is {begins}, {language}."
            )
        if said.forced not in (None, begins):
            raise UserError(
                f"The model must write in the language that it reads, {language}, but `forced_bos_token_id` is "
                f"{said.forced}: {pieces[said.forced].piece if 0 <= said.forced < len(pieces) else 'no piece'}."
            )
        pieces[found[SPECIALS[0]]].piece, found[SPECIALS[0]], said = WITHOUT_LANGUAGE, begins, said._replace(bos=None)
    rows = _order(found, said, vocab_size, spare)
    special = control_pieces(model, SPECIALS if language is None else (language, *SPECIALS[1:]))
    special[3].type = kind.UNKNOWN
    for row, piece in zip(rows, special, strict=False):
        piece.score = pieces[row].score
    data = written_sentencepiece(model, [*special, *(pieces[row] for row in rows[len(SPECIALS) :])])
    return ImportedTokenizer(Tokenizer.from_bytes(data), rows, len(unused))


def _id(said: int | None) -> int:
    return -1 if said is None else said


def reserved(offset: int) -> list[str]:
    """Return the names of so many pieces that spiece.model does not list; they stand behind its first two."""
    return ["<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, offset))] if offset else []


def tokenizer_length(folder: Path) -> int:
    """Return how many tokens a text may have, as tokenizer_config.json says; 0 where it does not."""
    found = _settings(folder)
    most = found.get("model_max_length") if isinstance(found, dict) else None
    return most if isinstance(most, int) and 0 < most <= _LONGEST else 0


def _settings(folder: Path) -> Any:
    return _json(folder / SETTINGS)


def _json(file: Path) -> Any:
    """Return what a file holds; an empty object if there is none."""
    try:
        # transformers writes 1e30 in digits for a length that nobody said.
        return parse_json(_LONG_NUMBER.sub(b"0", read_regular(file))) if file.exists() else {}
    except ValueError as error:
        raise UserError(f"{file.name} is damaged: {error}.") from None


def _setting(folder: Path, name: str, default: int) -> int:
    """Return a number that tokenizer_config.json says."""
    settings, found = folder / SETTINGS, _settings(folder)
    number = found.get(name, default) if isinstance(found, dict) else None
    if not isinstance(number, int) or not 0 <= number <= _MOST_UNUSED:
        raise UserError(f"{settings.name} must have a whole number from 0 to {_MOST_UNUSED} as `{name}`.")
    return number


def _from_json(folder: Path, vocab_size: int, said: SpecialIds) -> ImportedTokenizer:
    data = (folder / JSON).read_bytes()
    try:
        about = parse_json(data)
    except ValueError:
        about = None
    model = about.get("model") if isinstance(about, dict) else None
    if isinstance(model, dict) and model.get("type") == "Unigram":
        return _from_unigram(data, vocab_size, said)
    return _byte_level(data, vocab_size, said)


def _from_unigram(data: bytes, vocab_size: int, said: SpecialIds) -> ImportedTokenizer:
    """Read what transformers makes of a sentencepiece model when it saves one."""
    try:
        tokenizer = library().Tokenizer.from_buffer(data)
    except UserError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UserError(f"{JSON} is damaged ({error}).") from None
    about = parse_json(tokenizer.to_str())
    model, steps = about["model"], about["normalizer"] or {}
    steps = steps.get("normalizers", [steps] if steps else [])
    kinds = {step["type"] for step in steps} - {"Precompiled", "Replace"}
    before = about["pre_tokenizer"] or {}
    cuts = [step["type"] for step in before.get("pretokenizers", [before] if before else [])]
    around = [tokenizer.id_to_token(i) for i in tokenizer.encode("").ids]
    # That of T5 cuts at white space first, which a normalised text has nowhere else.
    if (
        kinds
        or cuts not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"])
        or model["byte_fallback"]
        or around[-1:] != [SPECIALS[2]]
        or not set(around[:-1]) <= set(OF_MBART.split())
        or len(around) > 2
    ):
        raise UserError(
            f"{JSON} of Unigram must be as that of PEGASUS, T5 or mBART-50 is, but does other things to a text."
        )
    special = {token["content"] for token in about["added_tokens"] if token["special"]}
    proto = read_sentencepiece()
    for step in steps:
        if step["type"] == "Precompiled":
            proto.normalizer_spec.precompiled_charsmap = b64decode(step["precompiled_charsmap"])
    kind = type(proto).SentencePiece
    for i, (text, score) in enumerate(model["vocab"]):
        is_a = kind.UNKNOWN if i == model["unk_id"] else kind.CONTROL if text in special else kind.NORMAL
        proto.pieces.add(piece=text, score=score, type=is_a)
    return _sentencepiece(proto, list(proto.pieces), vocab_size, said, around[0] if around[1:] else None)


def _from_vocabulary(folder: Path, vocab_size: int, said: SpecialIds) -> ImportedTokenizer:
    return _of_bpe(
        lambda bpe: bpe.from_file(str(folder / VOCABULARY), str(folder / MERGES)), vocab_size, said, _added(folder)
    )


def _added(folder: Path) -> dict[str, int]:
    """Return the pieces behind those of vocab.json, with their ids, in the order of these."""
    added = _json(folder / ADDED)
    if not isinstance(added, dict) or not all(type(i) is int for i in added.values()):
        raise UserError(f"{ADDED} must have an id for each piece.")
    return dict(sorted(added.items(), key=lambda piece: piece[1]))


def from_vocabulary(vocabulary: Vocabulary, vocab_size: int, said: SpecialIds) -> ImportedTokenizer:
    """Make BART's tokenizer of its vocabulary; other arguments and errors are those of `import_tokenizer`."""
    return _of_bpe(lambda bpe: bpe(vocab=vocabulary.pieces, merges=vocabulary.merges), vocab_size, said)


def _of_bpe(
    make: Callable[[Any], Any], vocab_size: int, said: SpecialIds, added: Mapping[str, int] = MappingProxyType({})
) -> ImportedTokenizer:
    """Make BART's tokenizer, which a function builds with the library's class; `added` are further pieces."""
    tokenizers = library()
    try:
        model = make(tokenizers.models.BPE)
    except Exception as error:  # the library raises nothing narrower
        raise UserError(f"{VOCABULARY} and {MERGES} must be those of byte-level BPE, but are not ({error}).") from None
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    known = [name for name in (*SPECIALS, "<mask>") if tokenizer.token_to_id(name) is not None]
    tokenizer.add_special_tokens(known)
    for name, i in added.items():
        # Others stand for text.
        is_special = name.startswith("<") and name.endswith(">")
        (tokenizer.add_special_tokens if is_special else tokenizer.add_tokens)([name])
        if (number := tokenizer.token_to_id(name)) != i:
            raise UserError(f"{ADDED} must give {name} the id {number}, behind those of {VOCABULARY}, but gives {i}.")
    ids = [(name, i) for name in (SPECIALS[0], SPECIALS[2]) if (i := tokenizer.token_to_id(name)) is not None]
    if len(ids) == 2:
        # BART's own; these files do not say it.
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing("<s> $A </s>", special_tokens=ids)
    return _byte_level(tokenizer.to_str().encode(), vocab_size, said)


def _byte_level(data: bytes, vocab_size: int, said: SpecialIds) -> ImportedTokenizer:
    model, about = load(data)
    found: dict[str, int] = model.get_vocab()
    unused = _unused(len(found), vocab_size)
    taken = set(found.values())
    free = [i for i in range(vocab_size) if i not in taken]
    rows = _order(found, said, vocab_size)
    if len(free) != len(unused):
        raise UserError(f"The tokenizer has an id from {vocab_size}, the rows of the embeddings.")
    if unused or rows != list(range(vocab_size)):
        names = {i: name for name, i in [*found.items(), *zip(unused, free, strict=True)]}
        data = json.dumps(_renumbered(about, [names[row] for row in rows], model.encode("").ids, names)).encode()
    return ImportedTokenizer(Tokenizer.from_bytes(data), rows, len(unused))


def _renumbered(about: dict[str, Any], names: list[str], around: list[int], old: Mapping[int, str]) -> dict[str, Any]:
    """Return a tokenizer.json with other ids.

    Args:
        about: the file.
        names: of its pieces, by their new ids.
        around: what stands around a text, in old ids: the prefix and the end.
        old: names by old ids.
    """
    ids = {name: i for i, name in enumerate(names)}
    added = [{**token, "id": ids[token["content"]]} for token in about["added_tokens"]]
    special = [old[i] for i in around]
    template = [{"SpecialToken": {"id": name, "type_id": 0}} for name in special]
    end = len(template) - (special[-1:] == [SPECIALS[2]])
    text: list[dict[str, Any]] = [{"Sequence": {"id": side, "type_id": 0}} for side in "AB"]
    return {
        **about,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "model": {**about["model"], "vocab": ids},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [*template[:end], text[0], *template[end:]],
            "pair": [*template[:end], *text, *template[end:]],
            "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in special},
        },
    }


def _unused(pieces: int, vocab_size: int) -> list[str]:
    """Return names of the embeddings that no piece has."""
    if not 0 <= vocab_size - pieces <= _MOST_UNUSED:
        raise UserError(f"The tokenizer has {pieces} pieces, but the embeddings have {vocab_size} rows.")
    return [f"{UNUSED}{number}>" for number in range(pieces, vocab_size)]


def _order(found: Mapping[str, int], said: SpecialIds, vocab_size: int, spare: int | None = None) -> list[int]:
    """Return old ids in our order: those of `SPECIALS`, then all others as they were.

    Args:
        found: the tokenizer's ids by the names of pieces.
        said: the config's.
        vocab_size: the number of ids.
        spare: what may stand for `<s>` where there is none.
    """
    first: list[int] = []
    for name, of_config in zip(SPECIALS, said, strict=False):
        i = found.get(name)
        if i is None and name == SPECIALS[0]:
            i = spare
        elif of_config is not None and i != of_config:
            raise UserError(f"The tokenizer's {name} has the id {i}, but the model's config says {of_config}.")
        if i is None:
            raise UserError(f"The tokenizer has no {name}.")
        first.append(i)
    if SPECIALS[0] not in found and said.start == first[1]:
        # PEGASUS starts from its padding, but our padding has no gradient. So the start becomes `<s>`, and the piece
        # that stood for `<s>` becomes the padding, which is never read.
        first[:2] = first[1], first[0]
    return [*first, *(i for i in range(vocab_size) if i not in first)]

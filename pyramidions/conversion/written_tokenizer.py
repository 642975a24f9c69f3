"""Writes a tokenizer as transformers reads that of a family: the import, backwards."""

from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.pretrained.families import Family
from pyramidions.pretrained.tokenizers import (
    JSON,
    OF_MBART,
    OFFSET,
    SETTINGS,
    UNUSED,
    read_sentencepiece,
    reserved,
)
from pyramidions.text.tokenizer import BOS, EOS, PAD, SPACE, SPECIALS, UNK, ByteLevelTokenizer, Tokenizer
from pyramidions.text.tokenizer.byte_level import library
from pyramidions.text.tokenizer.sentencepiece import WITHOUT_LANGUAGE

_MASK = "<mask>"
# What the error about another kind calls each.
_KINDS = {
    "byte_level": "a byte-level BPE",
    "pegasus": "a sentencepiece model with the reserved pieces of PEGASUS",
    "t5": "a sentencepiece model that normalises by itself and has no markers",
    "mbart": "a sentencepiece model with the languages of mBART-50",
}


class WrittenTokenizer(NamedTuple):
    """A tokenizer as transformers reads it.

    Attributes:
        files: by name.
        order: our id of each of its ids.
    """

    files: dict[str, bytes]
    order: list[int]


def written_tokenizer(tokenizer: Tokenizer, family: Family, decoder_start: str, longest: int) -> WrittenTokenizer:
    """Write the tokenizer of a model of a family: tokenizer.json, and its settings.

    Args:
        tokenizer: of ours.
        family: of the model.
        decoder_start: of the model; PEGASUS and T5 may start from their padding, which is our `<s>` then.
        longest: tokens of the longest document.

    Raises:
        UserError: the family has tokenizers of another kind.
    """
    byte_level = isinstance(tokenizer, ByteLevelTokenizer)
    if byte_level != (family.tokenizer == "byte_level"):
        found = _KINDS["byte_level"] if byte_level else "a sentencepiece model"
        raise _refusal(f"{_KINDS[family.tokenizer]} in {family.class_name} of transformers, but is {found}")
    order, file = list(range(tokenizer.vocab_size)), tokenizer.model_bytes
    settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    settings |= {"pad_token": SPECIALS[PAD], "eos_token": SPECIALS[EOS], "unk_token": SPECIALS[UNK]}
    if byte_level:
        # The file says all, its ids and what stands around a text among it.
        settings |= {"bos_token": SPECIALS[BOS], "cls_token": SPECIALS[BOS], "sep_token": SPECIALS[EOS]}
    else:
        if family.tokenizer == "mbart":
            order, names = _of_mbart(tokenizer)
        else:
            # Theirs pad with the first, from which the decoder may start; the other of the two has a row of no text.
            first, last = (BOS, PAD) if decoder_start == SPECIALS[BOS] else (PAD, BOS)
            order = (_of_pegasus if family.tokenizer == "pegasus" else _of_t5)(tokenizer, first, last)
            names = {first: SPECIALS[PAD], last: f"{UNUSED}{order.index(last)}>"}
        if sorted(order) != list(range(tokenizer.vocab_size)):
            raise _refusal(f"{_KINDS[family.tokenizer]} in their usual order, but has another")
        file = _unigram(tokenizer, order, names)
    if _MASK in tokenizer.pieces():
        settings["mask_token"] = _MASK
    settings["model_max_length"] = longest
    return WrittenTokenizer({JSON: file, SETTINGS: as_json_bytes(settings)}, order)


def _of_pegasus(tokenizer: Tokenizer, first: int, last: int) -> list[int]:
    names, start = reserved(OFFSET), len(SPECIALS)
    if tokenizer.pieces()[start : start + len(names) - 1] != names[:-1]:
        raise _refusal(f"{_KINDS['pegasus']}, but has none of them")
    rest = start + len(names) - 1
    return [first, EOS, *range(start, rest), last, UNK, *range(rest, tokenizer.vocab_size)]


def _of_t5(tokenizer: Tokenizer, first: int, last: int) -> list[int]:
    if tokenizer.marker_id is not None or tokenizer.prefix:
        raise _refusal(f"{_KINDS['t5']}, but has {tokenizer.names([tokenizer.marker_id or BOS])[0]}")
    return [first, EOS, UNK, *range(len(SPECIALS), tokenizer.vocab_size), last]


def _of_mbart(tokenizer: Tokenizer) -> tuple[list[int], dict[int, str]]:
    names, behind = tokenizer.pieces(), [*OF_MBART.split(), _MASK]
    places = {name: i for i, name in enumerate(names)}
    if names[len(SPECIALS)] != WITHOUT_LANGUAGE or not places.keys() >= set(behind):
        raise _refusal(f"{_KINDS['mbart']}, but has none of them")
    own = range(len(SPECIALS) + 1, min(places[name] for name in behind if places[name]))
    rest = range(places[_MASK] + 1, len(names))
    order = [len(SPECIALS), PAD, EOS, UNK, *own, *(places[name] for name in behind), *rest]
    return order, {len(SPECIALS): SPECIALS[BOS]}


def _unigram(tokenizer: Tokenizer, order: list[int], names: dict[int, str]) -> bytes:
    """Return what transformers makes of a sentencepiece model.

    Args:
        tokenizer: of ours.
        order: our id of each of its ids.
        names: of pieces that have other names there, by our ids.
    """
    model = read_sentencepiece(tokenizer.model_bytes, "The tokenizer")
    normalises, trained = model.normalizer_spec.precompiled_charsmap, model.trainer_spec
    if (
        not normalises
        or not model.normalizer_spec.add_dummy_prefix
        or trained.model_type != trained.UNIGRAM
        or trained.byte_fallback
        or trained.treat_whitespace_as_suffix
        or not trained.split_by_whitespace
    ):
        raise _refusal("a sentencepiece model that normalises and cuts as that of PEGASUS does, but is another")
    vocabulary = [(names.get(i, model.pieces[i].piece), model.pieces[i].score) for i in order]
    made = library()
    written = made.Tokenizer(made.models.Unigram(vocabulary, unk_id=order.index(UNK), byte_fallback=False))
    written.normalizer = made.normalizers.Sequence(
        [made.normalizers.Precompiled(normalises), made.normalizers.Replace(made.Regex(" {2,}"), " ")]
    )
    space = {"replacement": SPACE, "prepend_scheme": "always", "split": True}
    written.pre_tokenizer, written.decoder = made.pre_tokenizers.Metaspace(**space), made.decoders.Metaspace(**space)
    front = [vocabulary[order.index(i)][0] for i in tokenizer.prefix]
    around = [(name, written.token_to_id(name)) for name in (*front, SPECIALS[EOS])]
    written.post_processor = made.processors.TemplateProcessing(
        single=[*front, "$A", SPECIALS[EOS]], pair=[*front, "$A", "$B", SPECIALS[EOS]], special_tokens=around
    )
    kind = type(model).SentencePiece
    hidden = (kind.CONTROL, kind.UNKNOWN)
    special = [name for i, (name, _) in zip(order, vocabulary, strict=True) if model.pieces[i].type in hidden]
    written.add_special_tokens(special)
    return str(written.to_str()).encode()


def _refusal(rule: str) -> UserError:
    return UserError(f"The tokenizer must be {rule}; --to pyramidions, the default, holds it.")

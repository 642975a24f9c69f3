"""Byte-level BPE: ids as transformers has them, and a text that comes back whatever it holds."""

import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_tokenizers import bart, bart_bytes, save_vocabulary
from transformers import BartTokenizer

from pyramidions.text.normalization import one_line
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import BOS, EOS, PAD, UNK, ByteLevelTokenizer, Tokenizer
from pyramidions.text.tokenizer.byte_level import load

FILE = bart_bytes()
BART = Tokenizer.from_bytes(FILE)
ANY = st.text(st.characters(exclude_categories=[]), max_size=60) | st.text("aé 漢😀\n\t<s>/_'", max_size=60)
ANY |= st.sampled_from(["the <s> fox", "</s>", "<pad><unk>", "a <mask>.", "<n>"])


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return transformers' tokenizer of the same pieces."""
    folder = tmp_path_factory.mktemp("theirs")
    save_vocabulary(bart(), folder)
    return BartTokenizer.from_pretrained(folder)


def surfaces(text: str, most: int = 100) -> list[str]:
    return [surface for some in BART.surfaces(windows(text, most)) for surface in some]


def test_the_content_of_a_file_tells_its_kind_and_its_prefix() -> None:
    assert isinstance(BART, ByteLevelTokenizer)
    assert (BART.file_name, BART.vocab_size, BART.marker_id, BART.prefix) == ("tokenizer.json", 340, None, (BOS,))
    assert BART.pieces()[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert changed(lambda about: about.update(post_processor=None)).prefix == ()


@pytest.mark.parametrize(
    "text", ["The fox isn't lazy.", "It's 1,024 résumés – “naïve” 😀!", "A 漢字 e\u0301 \u00ad ½ ﬁ.", "x"]
)
def test_a_line_of_text_has_the_ids_that_transformers_gives_it(theirs: Any, text: str) -> None:
    assert BART.framed(BART.encode(text)) == theirs(text)["input_ids"]
    assert BART.decode(theirs(text)["input_ids"]) == text


@given(text=st.text("afé,.' 19\u00a0\n\u3000😀", max_size=60))
def test_line_breaks_and_runs_of_spaces_are_one_space_to_us(theirs: Any, text: str) -> None:
    assert BART.framed(BART.encode(text)) == theirs(" ".join(text.split()))["input_ids"]


@given(ANY)
def test_any_text_comes_back_on_one_line(text: str) -> None:
    assert BART.decode(BART.encode(text)) == one_line(text) == BART.normalize(text)
    assert BART.decode_pieces(" ".join(BART.encode_as_pieces(text)).split()) == one_line(text)


@given(ANY)
def test_no_text_has_a_special_piece(text: str) -> None:
    ids = BART.encode(text)
    assert not {BOS, PAD, EOS, UNK, BART.pieces().index("<mask>")} & set(ids)


@given(text=ANY, most=st.integers(1, 20))
def test_the_surfaces_of_windows_are_the_text(text: str, most: int) -> None:
    found = surfaces(text, most)
    assert "".join(found) == one_line(text)
    assert BART.decode(BART.ids_of(found)) == one_line(text)


@given(st.lists(st.sampled_from(["fox", "it's", "é", "😀", "\n", "  ", ".", "1,024"]), max_size=30).map(" ".join))
def test_windows_encode_as_the_whole_text_does(text: str) -> None:
    # No word is as long as a window.
    assert BART.ids_of(surfaces(text, 12)) == BART.encode(text)


def test_only_the_first_word_of_a_text_has_no_space_in_front() -> None:
    assert surfaces("the the", 4) == ["t", "he", " the"]
    assert surfaces(" \nthe the") == ["t", "he", " the"]
    assert BART.counts(["the", "", " the the\n"]) == [1, 0, 2]


def test_a_character_of_several_tokens_is_the_text_of_the_last() -> None:
    assert surfaces("é漢 x") == ["é", "", "", "漢", " ", "x"]
    ids = BART.encode("é漢")
    assert BART.spellings([BOS, *ids, EOS]) == ["", "é", "", "", "漢", ""]


def test_half_a_character_and_an_unknown_piece_can_be_read() -> None:
    half = BART.encode("漢")[:-1]
    assert BART.decode(half) == "�"
    assert BART.decode([*half, UNK, *BART.encode("fox")]) == "� ⁇ fox"
    assert BART.decode_pieces(["Ġthe", "no piece"]) == "the ⁇"


def changed(change: Callable[[dict[str, Any]], None]) -> Tokenizer:
    about = json.loads(FILE)
    change(about)
    return Tokenizer.from_bytes(json.dumps(about).encode())


def cut_by(pattern: str) -> Tokenizer:
    def change(about: dict[str, Any]) -> None:
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        about["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, about["pre_tokenizer"]]}

    return changed(change)


@pytest.mark.parametrize(
    "pattern", [r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+", r"\)+|[^\r\n]?\p{L}+(?:'s)?"]
)
def test_a_pattern_that_repeats_characters_is_taken(pattern: str) -> None:
    assert cut_by(pattern).encode("the fox")


@pytest.mark.parametrize("pattern", ["(a|aa|a+)+$", "(?:a*)*b", r"((a+)\s?){2,}", "(a|a){,60}b"])
def test_a_pattern_that_repeats_a_group_is_refused(pattern: str) -> None:
    with refused("repeat no group"):
        cut_by(pattern)


def without_library() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tokenizers", None)
        Tokenizer.from_bytes(FILE)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: BART.room(2, "max_source_positions"), "`max_source_positions` must be at least 3, <s>, a token and "),
        (lambda: BART.decode([4, 340]), "An id must be below 340, the number of pieces, but is 340"),
        (lambda: cut_by("a*" * 20 + "(?!.)").encode("a" * 60 + "b"), "must cut any text, but its pattern fails on one"),
        (lambda: BART.encode_units(["the fox"]), "must have the piece <sentence>"),
        (lambda: load(b"null"), "must be a tokenizer.json, but has no `model`"),
        (lambda: Tokenizer.from_bytes(FILE[:2000]), "but it is not JSON"),
        (lambda: Tokenizer.from_bytes(b'{"text": "A paper."}'), "but has no `model`"),
        (lambda: Tokenizer.from_bytes(b'{"model": [1]}'), "but is none"),
        (without_library, "'tokenizers<"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_sentence(call: Callable[[], object], said: str) -> None:
    assert BART.room(3, "max_source_positions") == 1
    with refused(said) as error:
        call()
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


def test_a_tokenizer_pickles() -> None:
    copied = pickle.loads(pickle.dumps(BART))  # noqa: S301
    assert (copied.prefix, copied.encode("The fox")) == ((BOS,), BART.encode("The fox"))


def wordpiece(about: dict[str, Any]) -> None:
    model = {"type": "WordPiece", "unk_token": "<unk>", "vocab": {"<unk>": 0}}
    about["model"] = model | {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    about["added_tokens"] = []


def plain(about: dict[str, Any]) -> None:
    about["added_tokens"][2]["special"] = False


def merged(about: dict[str, Any]) -> None:
    about["model"]["vocab"] |= {"<s": 340}
    about["model"]["merges"] += [["<", "s"], ["<s", ">"]]


def without_byte(about: dict[str, Any]) -> None:
    vocabulary = about["model"]["vocab"]
    vocabulary["Gap"] = vocabulary.pop("\u00ff")


def moved(about: dict[str, Any]) -> None:
    about["model"]["vocab"] |= {"<pad>": 0, "<s>": 1}
    for token in about["added_tokens"][:2]:
        token["id"] = 1 - token["id"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (wordpiece, "byte-level BPE, but its `model` is WordPiece"),
        (lambda about: about.update(pre_tokenizer={"type": "Whitespace"}), "`pre_tokenizer` is Whitespace"),
        (lambda about: about.update(normalizer={"type": "NFC"}), "no `normalizer`"),
        (lambda about: about["model"].update(dropout=0.1), "no `dropout`, but has 0.1"),
        (plain, "special piece </s>"),
        (merged, "special piece <s>"),
        (without_byte, "has none for 1 of them"),
        (moved, "<s>=1, <pad>=0, </s>=2, <unk>=3"),
        (lambda about: about["model"]["vocab"].update(far=999), "341 pieces without gaps"),
    ],
)
def test_another_kind_of_file_is_refused(change: Callable[[dict[str, Any]], None], said: str) -> None:
    with refused(said):
        changed(change)

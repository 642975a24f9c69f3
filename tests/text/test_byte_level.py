"""Byte-level BPE: ids as transformers has them, and a text that comes back whatever it holds."""

import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import bart, bart_bytes, save_vocabulary
from tables import for_each
from transformers import BartTokenizer

from pyramidions.base.errors import UserError
from pyramidions.text.normalization import one_line
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import BOS, EOS, PAD, UNK, ByteLevelTokenizer, Tokenizer
from pyramidions.text.tokenizer.byte_level import load

FILE = bart_bytes()
BART = Tokenizer.from_bytes(FILE)
ANY = st.text(st.characters(exclude_categories=[]), max_size=60) | st.text("aé 漢😀\n\t<s>/_'", max_size=60)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return transformers' tokenizer of the same pieces."""
    folder = tmp_path_factory.mktemp("theirs")
    save_vocabulary(bart(), folder)
    return BartTokenizer.from_pretrained(folder)


def surfaces(text: str, most: int = 100) -> list[str]:
    return [surface for some in BART.surfaces(windows(text, most)) for surface in some]


def test_the_content_of_a_file_tells_its_kind() -> None:
    assert isinstance(BART, ByteLevelTokenizer)
    assert (BART.file_name, BART.vocab_size, BART.marker_id) == ("tokenizer.json", 340, None)
    assert BART.pieces()[:4] == ["<s>", "<pad>", "</s>", "<unk>"]


def test_a_text_stands_between_the_prefix_and_the_end() -> None:
    assert BART.prefix == (BOS,)
    assert BART.framed(BART.encode("fox")) == [BOS, *BART.encode("fox"), EOS]


def test_the_prefix_counts_in_the_room_for_a_text() -> None:
    assert BART.room(3, "max_source_positions") == 1
    with pytest.raises(UserError) as error:
        BART.room(2, "max_source_positions")
    assert str(error.value) == (
        "`max_source_positions` must be at least 3, <s>, a token and the end of the text, but is 2."
    )


@for_each("text", ["The fox isn't lazy.", "It's 1,024 résumés – “naïve” 😀!", "A 漢字 e\u0301 \u00ad ½ ﬁ.", "x"])
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
    mask = BART.pieces().index("<mask>")
    assert not {BOS, PAD, EOS, UNK, mask} & set(BART.encode(text))


@for_each("name", ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<n>"])
def test_the_name_of_a_special_piece_is_ordinary_text(name: str) -> None:
    assert BART.decode(BART.encode(f"the {name} fox")) == f"the {name} fox"
    assert name not in BART.encode_as_pieces(f"the {name} fox")


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


def test_an_id_that_no_piece_has_is_refused() -> None:
    with pytest.raises(UserError, match="An id must be below 340, the number of pieces, but is 340"):
        BART.decode([4, 340])


def cut_by(pattern: str) -> Tokenizer:
    about = json.loads(FILE)
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    about["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, about["pre_tokenizer"]]}
    return Tokenizer.from_bytes(json.dumps(about).encode())


@for_each("pattern", ["(a|aa|a+)+$", "(?:a*)*b", r"((a+)\s?){2,}", "(a|a){,60}b"])
def test_a_pattern_that_repeats_a_group_is_refused(pattern: str) -> None:
    with pytest.raises(UserError, match="The tokenizer must repeat no group in its pattern, but has "):
        cut_by(pattern)


@pytest.mark.parametrize(
    "pattern", [r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+", r"\)+|[^\r\n]?\p{L}+(?:'s)?"]
)
def test_a_pattern_that_repeats_characters_is_taken(pattern: str) -> None:
    assert cut_by(pattern).encode("the fox")


def test_a_pattern_that_fails_on_a_text_is_told_in_one_sentence() -> None:
    with pytest.raises(UserError, match="The tokenizer must cut any text, but its pattern fails on one."):
        cut_by("a*" * 20 + "(?!.)").encode("a" * 60 + "b")


def test_a_file_of_null_is_refused() -> None:
    with pytest.raises(UserError, match=r"must be a tokenizer\.json, but has no `model`\."):
        load(b"null")


def test_a_tokenizer_pickles() -> None:
    copied = pickle.loads(pickle.dumps(BART))  # noqa: S301
    assert (copied.prefix, copied.encode("The fox")) == ((BOS,), BART.encode("The fox"))


def test_there_is_no_marker_between_sentences() -> None:
    with pytest.raises(UserError, match="must have the piece <sentence> to keep sentences apart, but has none"):
        BART.encode_units(["the fox"])


def without_end(about: dict[str, Any]) -> None:
    about["post_processor"] = None


def test_without_a_post_processor_there_is_no_prefix() -> None:
    about = json.loads(FILE)
    without_end(about)
    assert Tokenizer.from_bytes(json.dumps(about).encode()).prefix == ()


def wordpiece(about: dict[str, Any]) -> None:
    about["model"] = {
        "type": "WordPiece",
        "unk_token": "<unk>",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"<unk>": 0},
    }
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


@for_each(
    ("change", "sentence"),
    [
        (wordpiece, "The tokenizer must be byte-level BPE, but its `model` is WordPiece."),
        (
            lambda about: about.update(pre_tokenizer={"type": "Whitespace"}),
            "The tokenizer must be byte-level BPE, but its `pre_tokenizer` is Whitespace.",
        ),
        (
            lambda about: about.update(normalizer={"type": "NFC"}),
            'The tokenizer must have no `normalizer`, but has {"type": "NFC"}.',
        ),
        (lambda about: about["model"].update(dropout=0.1), "The tokenizer must have no `dropout`, but has 0.1."),
        (plain, "The tokenizer must not find the special piece </s> in texts, but would."),
        (merged, "The tokenizer must not find the special piece <s> in texts, but would."),
        (without_byte, "The tokenizer must have a piece for each byte, but has none for 1 of them."),
        (
            moved,
            "The tokenizer must have the ids <s>=0, <pad>=1, </s>=2, <unk>=3, but it has <s>=1, <pad>=0, </s>=2, "
            "<unk>=3.",
        ),
        (
            lambda about: about["model"]["vocab"].update(far=999),
            "The tokenizer must number its 341 pieces without gaps, but does not.",
        ),
    ],
)
def test_another_kind_of_file_is_refused(change: Callable[[dict[str, Any]], None], sentence: str) -> None:
    about = json.loads(FILE)
    change(about)
    with pytest.raises(UserError) as error:
        Tokenizer.from_bytes(json.dumps(about).encode())
    assert str(error.value) == sentence


@for_each(
    ("content", "reason"),
    [
        (FILE[:2000], r"must be a tokenizer\.json, but it is not JSON \("),
        (b'{"text": "A paper."}', r"must be a tokenizer\.json, but has no `model`\."),
        (b'{"model": [1]}', r"must be a tokenizer\.json, but is none \("),
        (b'{"model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}', r"must be a tokenizer\.json, but is none"),
    ],
)
def test_a_damaged_file_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Tokenizer.from_bytes(content)


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    said = "^The tokenizer needs the library tokenizers, which is not installed: `pip .*'tokenizers<.*` brings it[.]$"
    with pytest.raises(UserError, match=said):
        Tokenizer.from_bytes(FILE)

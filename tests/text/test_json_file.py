"""A tokenizer.json is run as it is: ids as transformers has them, and a text that comes back."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import bart, bart_bytes, byte_fallback, save_vocabulary, wordpiece
from transformers import BartTokenizer

from pyramidions.base.errors import UserError
from pyramidions.text.normalization import one_line
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import BOS, EOS, PAD, UNK, JsonTokenizer, Numbering, Tokenizer

FILE = bart_bytes()
BART = Tokenizer.from_bytes(FILE)
ANY = st.text(st.characters(exclude_categories=[]), max_size=60) | st.text("aé 漢😀\n\t<s>/_'", max_size=60)
ANY |= st.sampled_from(["the <s> fox", "</s>", "<pad><unk>", "a <mask>.", "<n>"])
#: of WordPiece, small letters alone, with [PAD], [UNK], [CLS], [SEP] at 0 to 3
WORDS = Tokenizer.from_bytes(wordpiece(), Numbering(bos=2, pad=0, eos=3, unk=None))
#: of Unigram, which spells what it does not know by bytes; without `<s>`, and with rows that no piece has
BYTES = Tokenizer.from_bytes(byte_fallback(), Numbering(bos=None, pad=0, eos=1, unk=None, rows=400))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return transformers' tokenizer of the same pieces."""
    folder = tmp_path_factory.mktemp("theirs")
    save_vocabulary(bart(), folder)
    return BartTokenizer.from_pretrained(folder)


def surfaces(text: str, most: int = 100, tokenizer: Tokenizer = BART) -> list[str]:
    return [surface for some in tokenizer.surfaces(windows(text, most)) for surface in some]


def test_the_content_of_a_file_tells_its_kind_and_its_prefix() -> None:
    assert isinstance(BART, JsonTokenizer)
    assert (BART.file_name, BART.vocab_size, BART.marker_id, BART.prefix) == ("tokenizer.json", 340, None, (BOS,))
    assert WORDS.folds_case and not BART.folds_case and not BYTES.folds_case
    assert BART.pieces()[:4] == ["<s>", "<pad>", "</s>", "<unk>"] and BART.special_tokens == {}
    assert changed(lambda about: about.update(post_processor=None)).prefix == ()


def test_any_ids_may_be_those_of_special_tokens_and_rows_may_have_no_piece() -> None:
    assert (WORDS.bos, WORDS.pad, WORDS.eos, WORDS.unk, WORDS.prefix) == (2, 0, 3, 1, (2,))
    assert (BYTES.bos, BYTES.pad, BYTES.eos, BYTES.unk, BYTES.prefix) == (None, 0, 1, 2, ())
    assert BYTES.vocab_size == 400 and BYTES.pieces()[-1] == "<unused_399>" and BYTES.decode([399]) == ""
    assert BYTES.special_tokens == {"pad": 0, "eos": 1, "unk": 2, "rows": 400}
    # The usual ids, and rows that no piece has.
    assert Tokenizer.from_recorded(Tokenizer.from_bytes(FILE, Numbering(rows=384)).as_recorded()).vocab_size == 384


def test_padding_is_no_text_where_nothing_is_unknown_and_a_further_end_has_none() -> None:
    def without_unknown(about: dict[str, Any]) -> None:
        about["model"]["vocab"]["Unk"] = about["model"]["vocab"].pop("<unk>")
        about["added_tokens"] = [token for token in about["added_tokens"] if token["content"] != "<unk>"]

    tokenizer = changed(without_unknown)
    assert tokenizer.decode([*tokenizer.encode("The fox"), PAD, PAD]) == "The fox"
    fox = BART.encode("fox")
    ends = Tokenizer.from_bytes(FILE, Numbering(ends=(fox[-1],)))
    assert ends.spellings(fox)[-1] == "" and ends.decode(fox) == "fo"


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


@pytest.mark.parametrize("tokenizer", [BART, BYTES], ids=["bart", "bytes"])
@given(text=ANY, most=st.integers(1, 20))
def test_the_surfaces_of_windows_are_the_text(tokenizer: Tokenizer, text: str, most: int) -> None:
    found = "".join(surfaces(text, most, tokenizer))
    # Only pieces that begin with a space have one in front.
    without = " " * (tokenizer is BYTES)
    assert found.replace(without, "") == one_line(text).replace(without, "") if without else found == one_line(text)


def test_the_text_of_tokens_and_ids() -> None:
    # Only the first word of a text has no space in front.
    assert surfaces("the the", 4) == surfaces(" \nthe the") == ["t", "he", " the"]
    assert BART.counts(["the", "", " the the\n"]) == [1, 0, 2]
    # A character of several tokens is the text of the last.
    assert surfaces("é漢 x") == ["é", "", "", "漢", " ", "x"]
    ids = BART.encode("é漢")
    assert BART.spellings([BOS, *ids, EOS]) == ["", "é", "", "", "漢", ""]
    assert "".join(BYTES.spellings(BYTES.encode("The 漢 fox"))) == "The 漢 fox"
    assert WORDS.spellings(WORDS.encode("The Documents.")) == ["the", " documents", "."]
    # What a normaliser drops belongs to the token before it.
    assert surfaces("The\u0000 FOX \u0301", tokenizer=WORDS) == ["The", "\u0000 F", "O", "X \u0301"]
    # Half a character and an unknown piece can be read.
    assert BART.decode(ids[:-1]) == "é�"
    assert BART.decode([*ids[:-1], UNK, *BART.encode("fox")]) == "é� ⁇ fox"
    assert BART.decode_pieces(["Ġthe", "no piece"]) == "the ⁇"
    assert WORDS.decode(WORDS.encode("the 漢 fox")) == "the ⁇ fox"


def test_a_name_with_a_space_has_none_for_fairseq() -> None:
    (file := bart()).add_tokens(["my mask"])
    tokenizer = Tokenizer.from_bytes(file.to_str().encode())
    assert tokenizer.pieces()[-1] == "my<U+0020>mask"
    ids = tokenizer.encode("see my mask")
    assert ids[-1] == 340 and tokenizer.decode_pieces(tokenizer.names(ids)) == "see my mask"


def changed(change: Callable[[dict[str, Any]], object]) -> Tokenizer:
    about = json.loads(FILE)
    change(about)
    return Tokenizer.from_bytes(json.dumps(about).encode())


def cut_by(pattern: str) -> Tokenizer:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return changed(
        lambda about: about.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [split, about["pre_tokenizer"]]})
    )


@pytest.mark.parametrize(
    "pattern", [r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+", r"\)+|[^\r\n]?\p{L}+(?:'s)?"]
)
def test_a_pattern_that_repeats_characters_is_taken(pattern: str) -> None:
    assert cut_by(pattern).encode("the fox")


def test_a_special_token_that_its_merges_spell_is_unknown_in_a_text() -> None:
    def merged(about: dict[str, Any]) -> None:
        about["model"]["vocab"] |= {"<s": 340}
        about["pre_tokenizer"]["use_regex"] = False
        about["model"]["merges"][:0] = [["<", "s"], ["<s", ">"]]

    assert changed(merged).encode("<s>") == [UNK]


def behind(*names: str) -> Tokenizer:
    def template(about: dict[str, Any]) -> None:
        pieces = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("</s>", *names)]
        special = {
            name: {"id": name, "ids": [BART.pieces().index(name)], "tokens": [name]} for name in ("</s>", *names)
        }
        text = [{"Sequence": {"id": side, "type_id": 0}} for side in "AB"]
        both = {"single": [text[0], *pieces], "pair": [*text, *pieces]}
        about["post_processor"] = {"type": "TemplateProcessing", **both, "special_tokens": special}

    return changed(template)


def without_library() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tokenizers", None)
        Tokenizer.from_bytes(FILE)


#: puts `</s>` in place of a text
NO_TEXT: dict[str, Any] = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "pair": [{"Sequence": {"id": side, "type_id": 0}} for side in "AB"],
    "special_tokens": {"</s>": {"id": "</s>", "ids": [EOS], "tokens": ["</s>"]}},
}
LONGER = {"type": "Prepend", "prepend": 9 * "x"}
GARBAGE = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}


def grown(text: str) -> Callable[[], object]:
    step = {"type": "Replace", "pattern": {"Regex": "."}, "content": text}
    return lambda: changed(lambda about: about.update(normalizer={"type": "Sequence", "normalizers": [step, step]}))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: BART.room(2, "max_source_positions"), "`max_source_positions` must be at least 3, <s>, a token and "),
        (lambda: changed(lambda about: about.update(post_processor=NO_TEXT)), "but changes those of the text"),
        (lambda: behind("<s>"), "must put nothing but its end behind a text, but puts </s>, <s>"),
        (lambda: BART.decode([4, 340]), "An id must be below 340, the number of pieces, but is 340"),
        (lambda: cut_by("a*" * 20 + "(?!.)").encode("a" * 60 + "b"), "must be a tokenizer.json that reads any text"),
        *(
            (lambda pattern=pattern: cut_by(pattern), "repeat no group in its pattern")
            for pattern in ["(a|aa|a+)+$", "(?:a*)*b", r"((a+)\s?){2,}", "(a|a){,60}b"]
        ),
        (lambda: BART.encode_units(["the fox"]), "must have the piece <sentence>"),
        (lambda: Tokenizer.from_bytes(b'{"model": [1]}'), "but has no `model`"),
        (without_library, "needs the library tokenizers, .*: `pip .*'tokenizers<.*` brings it"),
        (lambda: changed(lambda about: about["model"]["vocab"].update(far=2**31)), "ids below 1,370, .* has 2147"),
        (lambda: changed(lambda about: about["added_tokens"][0].update(id=-1)), "ids below 1,369, .* has -1"),
        (grown("x" * 9), "at most 64 characters of one, but may make 81"),
        (lambda: changed(lambda about: about.update(added_tokens=7)), "a list of `added_tokens`, but they are 7"),
        (
            lambda: changed(
                lambda about: about.update(normalizer={"type": "Sequence", "normalizers": 9**4 * [LONGER]})
            ),
            "but may make a number of thousands of digits",
        ),
        (lambda: Tokenizer.from_bytes(FILE, Numbering(pad=2)), "padding must be another token than the end .* are 2"),
        (lambda: Tokenizer.from_bytes(FILE, Numbering(eos=340)), "id of `eos` must be below 340, .*, but is 340"),
        (lambda: Tokenizer.from_bytes(FILE, Numbering(rows=339)), "ids below 339, .* has 339"),
        (lambda: Tokenizer.from_bytes(FILE, Numbering(rows=1400)), "at most 1,024 rows more .* 340, but have 1,400"),
        (
            lambda: Tokenizer.from_recorded({"tokenizer": FILE, "special_tokens": {"pad": "1", "eos": 2}}),
            "`pad` of the ",
        ),
        (lambda: Tokenizer.from_recorded({"tokenizer": "bart"}), "must be bytes, but is 'bart'"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_sentence(call: Callable[[], object], said: str) -> None:
    assert BART.room(3, "max_source_positions") == 1
    with pytest.raises(UserError, match=said) as error:
        call()
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


def test_padding_of_any_length_is_not_made() -> None:
    padding = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"}
    found = changed(lambda about: about.update(padding={**padding, "strategy": {"Fixed": 2**33}}))
    assert found.encode("the fox") == BART.encode("the fox")


@pytest.mark.parametrize("step", [{"normalizer": GARBAGE}, {"pre_tokenizer": {"type": "FixedLength", "length": 0}}])
def test_a_file_that_panics_is_refused_without_what_the_library_prints(
    step: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match="reads any text, but fails"):
        changed(lambda about: about.update(step))
    assert capfd.readouterr().err == ""

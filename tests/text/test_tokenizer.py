import pickle
from unittest.mock import patch

import pytest
import sentencepiece
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from pyramidions.base.errors import UserError
from pyramidions.data import vocabulary
from pyramidions.data.vocabulary import Settings, dictionary_lines, train_tokenizer
from pyramidions.text.normalization import normalize, split_sentences
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import BOS, EOS, PAD, SENTENCE_MARKER, UNK, Tokenizer

SENTENCES = ["the quick brown fox jumps < over / it > now.", "pack my box with five dozen jugs!"] * 5
PLAIN = train_tokenizer(SENTENCES, Settings(60, model_type="bpe", character_coverage=1.0))
MARKED = train_tokenizer(SENTENCES, Settings(60, model_type="bpe", character_coverage=1.0, sentence_markers=True))

with patch.object(vocabulary, "SENTENCE_MARKER", "<n>"):
    OLD = train_tokenizer(SENTENCES, Settings(60, model_type="bpe", character_coverage=1.0, sentence_markers=True))

ALL = [
    OLD,
    *(
        train_tokenizer(SENTENCES, Settings(size, model_type=kind, character_coverage=1.0, sentence_markers=markers))
        for kind, size in (("bpe", 60), ("unigram", 42))
        for markers in (False, True)
    ),
]


@pytest.mark.parametrize("tokenizer", [PLAIN, MARKED])
def test_ids_are_those_of_the_fairseq_dictionary(tokenizer, tmp_path):
    assert tokenizer.pieces()[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    (tmp_path / "dict.txt").write_text(dictionary_lines(tokenizer), encoding="utf-8")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert dictionary.symbols == tokenizer.pieces() and tokenizer.vocab_size == 60
    pieces = " ".join(tokenizer.encode_as_pieces("The fox jumps. it is five"))
    ids = dictionary.encode_line(pieces, add_if_not_exist=False, append_eos=False)
    assert ids.tolist() == tokenizer.encode("The fox jumps. it is five")


def test_known_text_comes_back_and_unknown_is_seen_as_unknown():
    assert PLAIN.decode([BOS, *PLAIN.encode("the five\n brown  jugs."), EOS, PAD]) == "the five brown jugs."
    assert UNK in PLAIN.encode("the 中 fox")
    assert PLAIN.decode(PLAIN.encode("the 中 fox")) == "the ⁇ fox"


def test_a_tokenizer_that_folds_case_reads_capitals_as_small_letters():
    folding = train_tokenizer(SENTENCES, Settings(60, model_type="bpe", character_coverage=1.0, fold_case=True))
    assert folding.folds_case and not PLAIN.folds_case
    assert folding.encode("The FOX jumps.") == folding.encode("the fox jumps.") == PLAIN.encode("the fox jumps.")
    assert folding.normalize("ÄÖÉ İ Σ ß") == "äöé İ σ ß"
    assert "".join(*folding.surfaces(["The FOX"])) == " the fox"


@pytest.mark.parametrize("name", ["<s>", "<pad>", "</s>", "<unk>", "<n>"])
def test_special_names_in_a_text_are_ordinary_text(name):
    for tokenizer in (PLAIN, MARKED):
        ids = tokenizer.encode(f"the {name} fox")
        assert not {BOS, PAD, EOS, UNK, tokenizer.marker_id} & set(ids[1:])
        assert tokenizer.decode(ids) == f"the {name} fox"


@given(st.text("abcfox.!? <n>/s中", max_size=80))
def test_a_marker_stands_before_each_sentence_and_of_0_2_0_between_them(text):
    ids, old = MARKED.encode(text), OLD.encode(text)
    assert ids.count(MARKED.marker_id) == len(split_sentences(text)) and ids[:1] in ([], [MARKED.marker_id])
    # Both vocabularies were trained on the same sentences, and the marker is their first piece.
    assert old == ids[1:] and OLD.pieces()[OLD.marker_id] == "<n>"
    assert [i for some in OLD.surfaces([text]) for i in OLD.ids_of(some)] == old


def test_markers_leave_a_single_space_behind_and_a_tokenizer_pickles():
    text = "the fox jumps. pack my box! five jugs."
    assert MARKED.encode_as_pieces(text).count(SENTENCE_MARKER) == 3
    assert MARKED.decode(MARKED.encode(text)) == text
    assert MARKED.decode_pieces(MARKED.encode_as_pieces(text)) == text
    assert pickle.loads(pickle.dumps(MARKED)).encode(text) == MARKED.encode(text)  # noqa: S301


@given(st.text() | st.text("abcdefghijklmnopqrstuvwxyz <>/!.", max_size=60))
def test_encoding_normalises_and_pieces_and_ids_say_the_same(text):
    ids = PLAIN.encode(text)
    assert PLAIN.encode(normalize(text)) == ids
    assert not text.isascii() or PLAIN.encode(f" \x00{text}\n") == ids
    assert PLAIN.decode_pieces(PLAIN.encode_as_pieces(text)) == PLAIN.decode(ids)
    assert not {BOS, PAD, EOS} & set(ids)


def test_a_file_that_is_no_model_or_has_other_ids_is_refused(tmp_path):
    path, prefix = tmp_path / "sentencepiece.model", str(tmp_path / "other")
    with pytest.raises(UserError, match="does not exist"):
        Tokenizer.from_file(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(UserError, match="must be a sentencepiece model"):
        Tokenizer.from_file(path)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_prefix=prefix, vocab_size=40, minloglevel=2
    )
    with pytest.raises(UserError, match=r"ids <s>=0, <pad>=1, </s>=2, <unk>=3, but it has <s>=1, <pad>=-1"):
        Tokenizer.from_file(f"{prefix}.model")


# A bracket that a window's end cuts is no bracket to the sentence splitter, which needs both.
UNBRACKETED = ["the", "quick", "fox", "over", "my", "box", "jugs.", "中", "now.\n", "\x00the"]


def ids_of(tokenizer, of_windows):
    return [i for some in tokenizer.surfaces(of_windows) for i in tokenizer.ids_of(some)]


@pytest.mark.parametrize("tokenizer", ALL)
@given(words=st.lists(st.sampled_from(UNBRACKETED), max_size=60))
def test_windows_encode_as_the_whole_text_does(tokenizer, words):
    text = " ".join(words)
    assert ids_of(tokenizer, windows(text, 40)) == tokenizer.encode(text)


@pytest.mark.parametrize("tokenizer", ALL)
@given(text=st.text("aefox .!\n\"'(中🙂▁", max_size=200) | st.text("<s>/nuk中▁ ", max_size=20))
def test_a_text_of_one_window_encodes_as_it_does_at_once_and_is_its_surfaces(tokenizer, text):
    ids = tokenizer.encode(text)
    assert ids_of(tokenizer, windows(text)) == ids
    found = [surface for some in tokenizer.surfaces(windows(text)) for surface in some]
    # A piece spells a space as ▁, so that nobody can tell the two apart.
    assert "".join(found).split() == normalize(text).replace("▁", " ").split()
    markers = [place for place, i in enumerate(ids) if i == tokenizer.marker_id]
    assert markers == [place for place, surface in enumerate(found) if not surface]
    spelt = tokenizer.spellings([*ids, EOS])
    assert len(spelt) == len(ids) + 1 and spelt[-1] == ""
    assert "".join(spelt).split() == tokenizer.decode(ids).split()


@pytest.mark.parametrize("tokenizer", [each for each in ALL if each.marker_id is None])
@given(text=st.text("aefox .!\n\"'(中", max_size=200))
def test_the_first_window_is_encoded_as_the_beginning_of_the_whole(tokenizer, text):
    long = f"{text} " + "the fox " * 50
    first = tokenizer.ids_of(next(tokenizer.surfaces(windows(long, len(text) + 40))))
    assert tokenizer.encode(long)[: len(first)] == first


@pytest.mark.parametrize("text", ["dog </s></s> dog", "<s>", "dog <n> <unk> <pad>"])
def test_an_unknown_stretch_that_spells_a_special_piece_is_unknown(text):
    unaware = train_tokenizer(["the lazy dog", "a quick bird"] * 5, Settings(24, sentence_markers=True))
    (surfaces,) = unaware.surfaces([text])
    assert unaware.ids_of(surfaces) == unaware.encode(text)
    assert UNK in unaware.encode(text)


def test_each_unit_starts_with_a_marker():
    ids = MARKED.encode_units(["the fox", "pack my jugs", "a <n> now."])
    marker = MARKED.marker_id
    assert OLD.encode_units(["the fox", "pack my jugs", "a <n> now."]) == ids[1:]
    start, first, second = (i for i, each in enumerate(ids) if each == marker)
    assert start == 0 and ids[-1] != marker
    assert [MARKED.decode(part) for part in (ids[:first], ids[first:second], ids[second:])] == [
        "the fox",
        "pack my jugs",
        "a <n> now.",
    ]
    assert MARKED.encode_units(["the fox"]) == MARKED.encode("the fox")
    assert MARKED.encode_units(["▁", "▁"]) == [marker, UNK, marker, UNK] and MARKED.encode_units([]) == []


def test_units_need_a_marker():
    with pytest.raises(UserError, match="<sentence>"):
        PLAIN.encode_units(["the fox"])

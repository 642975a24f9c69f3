"""What all tokenizers have in common, and the markers and ids of those that `prepare` trains."""

import pickle
from unittest.mock import patch

import pytest
import sentencepiece
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from small_tokenizers import bart_bytes, byte_fallback, wordpiece

from pyramidions.data import vocabulary
from pyramidions.data.vocabulary import Settings, dictionary_lines, train_tokenizer
from pyramidions.text.normalization import normalize, split_sentences
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import BOS, EOS, NAME_END, PAD, SENTENCE_MARKER, TURN_MARKER, UNK, Numbering, Tokenizer
from pyramidions.text.tokenizer.sentencepiece import NAME_END_SURFACE

SENTENCES = ["the quick brown fox jumps < over / it > now.", "pack my box with five dozen jugs!"] * 5
MEETING = "Ann: We start. Is Bob here?\nBob: Yes, I am.\r\n\n  Ann: Good. \nBob: Fine!"
TURNS = ["Ann: We start. Is Bob here?", "Bob: Yes, I am.", "Ann: Good.", "Bob: Fine!"]


def trained(size: int = 60, kind: str = "bpe", **settings: bool) -> Tokenizer:
    return train_tokenizer(SENTENCES, Settings(size, model_type=kind, character_coverage=1.0, **settings))


PLAIN, MARKED = trained(), trained(sentence_markers=True)
with patch.object(vocabulary, "SENTENCE_MARKER", "<n>"):
    OLD = trained(sentence_markers=True)
MEETINGS = train_tokenizer(TURNS * 20, Settings(vocab_size=31, turn_markers=True))
KINDS = {
    "bpe": PLAIN,
    "unigram": trained(42, "unigram"),
    "bpe with markers": MARKED,
    "unigram with markers": trained(42, "unigram", sentence_markers=True),
    "markers of 0.2.0": OLD,
    "turns": MEETINGS,
    "bytes of BART": Tokenizer.from_bytes(bart_bytes()),
    "WordPiece": Tokenizer.from_bytes(wordpiece(), Numbering(bos=2, pad=0, eos=3, unk=None)),
    "Unigram of JSON": Tokenizer.from_bytes(byte_fallback(), Numbering(bos=None, pad=0, eos=1, unk=None, rows=400)),
}
ANY = st.text(st.characters(exclude_categories=[]), max_size=60) | st.text("aéfox .!\n\"'(中🙂▁<s>/nuk", max_size=100)
ANY |= st.sampled_from(["the <s> fox", "</s>", "<pad><unk>", "a <mask>.", "[MASK]", "<n>", MEETING])
# A bracket that a window's end cuts is no bracket to the sentence splitter, which needs both.
WORDS = [
    "the",
    "quick",
    "fox",
    "over",
    "my",
    "box",
    "jugs.",
    "中",
    "now.\n",
    "\x00the",
    "it's",
    "é",
    "\nAnn: a",
    "1,024",
]
every = pytest.mark.parametrize("tokenizer", KINDS.values(), ids=KINDS)


def ids_of(tokenizer: Tokenizer, text: str, most: int) -> list[int]:
    return [i for some in tokenizer.surfaces(windows(text, most)) for i in tokenizer.ids_of(some)]


@every
@given(words=st.lists(st.sampled_from(WORDS), max_size=40))
def test_windows_encode_as_the_whole_text_does(tokenizer: Tokenizer, words: list[str]) -> None:
    text = " ".join(words)
    assert ids_of(tokenizer, text, 40) == ids_of(tokenizer, text, 12) == tokenizer.encode(text)


@every
@given(text=ANY)
def test_the_surfaces_of_a_text_are_the_text_and_its_ids_no_special_ones(tokenizer: Tokenizer, text: str) -> None:
    ids, found = tokenizer.encode(text), [each for some in tokenizer.surfaces(windows(text)) for each in some]
    assert tokenizer.ids_of(found) == ids
    if tokenizer.library == "sentencepiece":
        # A piece spells a space as ▁, so that nobody can tell the two apart.
        joined = "".join(found).replace(NAME_END_SURFACE, " ")
        assert joined.split() == normalize(text).replace("▁", " ").split()
        markers = [place for place, i in enumerate(ids) if i == tokenizer.marker_id]
        assert markers == [place for place, surface in enumerate(found) if not surface]
    masks = [place for place, name in enumerate(tokenizer.pieces()) if name in ("<mask>", "[MASK]")]
    assert not {tokenizer.bos, tokenizer.pad, tokenizer.eos, *masks} & set(ids)
    spelt = tokenizer.spellings([*ids, tokenizer.eos])
    assert len(spelt) == len(ids) + 1 and spelt[-1] == ""
    assert "".join(spelt).split() == tokenizer.decode(ids).split()


@every
def test_a_recorded_or_a_pickled_tokenizer_is_the_same(tokenizer: Tokenizer) -> None:
    for again in (pickle.loads(pickle.dumps(tokenizer)), Tokenizer.from_recorded(tokenizer.as_recorded())):  # noqa: S301
        assert again == tokenizer and again.numbering == tokenizer.numbering
        assert (again.prefix, again.encode("The fox")) == (tokenizer.prefix, tokenizer.encode("The fox"))


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
    assert UNK in PLAIN.encode("the 中 fox") and PLAIN.decode(PLAIN.encode("the 中 fox")) == "the ⁇ fox"


def test_a_tokenizer_that_folds_case_reads_capitals_as_small_letters():
    folding = trained(fold_case=True)
    assert folding.folds_case and not PLAIN.folds_case
    assert folding.encode("The FOX jumps.") == folding.encode("the fox jumps.") == PLAIN.encode("the fox jumps.")
    assert folding.normalize("ÄÖÉ İ Σ ß") == "äöé İ σ ß"
    assert "".join(*folding.surfaces(["The FOX"])) == " the fox"


@pytest.mark.parametrize("name", ["<s>", "<pad>", "</s>", "<unk>", "<n>"])
def test_special_names_in_a_text_are_ordinary_text(name):
    for tokenizer in (PLAIN, MARKED):
        ids = tokenizer.encode(f"the {name} fox")
        assert not {UNK, tokenizer.marker_id} & set(ids[1:]) and tokenizer.decode(ids) == f"the {name} fox"


@pytest.mark.parametrize("text", ["dog </s></s> dog", "<s>", "dog <n> <unk> <pad>"])
def test_an_unknown_stretch_that_spells_a_special_piece_is_unknown(text):
    unaware = train_tokenizer(["the lazy dog", "a quick bird"] * 5, Settings(24, sentence_markers=True))
    (surfaces,) = unaware.surfaces([text])
    assert unaware.ids_of(surfaces) == unaware.encode(text) and UNK in unaware.encode(text)


@given(st.text("abcfox.!? <n>/s中", max_size=80))
def test_a_marker_stands_before_each_sentence_and_of_0_2_0_between_them(text):
    ids = MARKED.encode(text)
    assert ids.count(MARKED.marker_id) == len(split_sentences(text)) and ids[:1] in ([], [MARKED.marker_id])
    # Both vocabularies were trained on the same sentences, and the marker is their first piece.
    assert OLD.encode(text) == ids[1:] and OLD.pieces()[OLD.marker_id] == "<n>"


def test_markers_leave_a_single_space_behind():
    text = "the fox jumps. pack my box! five jugs."
    assert MARKED.encode_as_pieces(text).count(SENTENCE_MARKER) == 3
    assert MARKED.decode(MARKED.encode(text)) == MARKED.decode_pieces(MARKED.encode_as_pieces(text)) == text


@given(st.text() | st.text("abcdefghijklmnopqrstuvwxyz <>/!.", max_size=60))
def test_encoding_normalises_and_pieces_and_ids_say_the_same(text):
    ids = PLAIN.encode(text)
    assert PLAIN.encode(normalize(text)) == ids
    assert not text.isascii() or PLAIN.encode(f" \x00{text}\n") == ids
    assert PLAIN.decode_pieces(PLAIN.encode_as_pieces(text)) == PLAIN.decode(ids)


def test_a_model_with_other_ids_is_refused(tmp_path):
    prefix = str(tmp_path / "other")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_prefix=prefix, vocab_size=40, minloglevel=2
    )
    with refused("ids <s>=0, <pad>=1, </s>=2, <unk>=3, but it has <s>=1, <pad>=-1"):
        Tokenizer.from_file(f"{prefix}.model")
    with refused("`turn_markers`"):
        Settings(sentence_markers=True, turn_markers=True)


@pytest.mark.parametrize("tokenizer", [PLAIN, KINDS["unigram"]])
@given(text=st.text("aefox .!\n\"'(中", max_size=200))
def test_the_first_window_is_encoded_as_the_beginning_of_the_whole(tokenizer, text):
    long = f"{text} " + "the fox " * 50
    first = tokenizer.ids_of(next(tokenizer.surfaces(windows(long, len(text) + 40))))
    assert tokenizer.encode(long)[: len(first)] == first


def test_each_unit_starts_with_a_marker():
    units = ["the fox", "pack my jugs", "a <n> now."]
    ids, marker = MARKED.encode_units(units), MARKED.marker_id
    assert OLD.encode_units(units) == ids[1:]
    start, first, second = (i for i, each in enumerate(ids) if each == marker)
    assert start == 0 and ids[-1] != marker
    assert [MARKED.decode(part) for part in (ids[:first], ids[first:second], ids[second:])] == units
    assert MARKED.encode_units(["the fox"]) == MARKED.encode("the fox")
    assert MARKED.encode_units(["▁", "▁"]) == [marker, UNK, marker, UNK] and MARKED.encode_units([]) == []
    with refused("<sentence>"):
        PLAIN.encode_units(["the fox"])


def test_a_marker_stands_before_each_turn_and_another_behind_its_name() -> None:
    pieces = MEETINGS.encode_as_pieces(f"{MEETING}\nNobody speaks.\nAnn:")
    _, *cut = " ".join(pieces).split(TURN_MARKER)
    names = [MEETINGS.decode_pieces(turn.split(NAME_END)[0].split()) for turn in cut if NAME_END in turn]
    assert names == ["Ann:", "Bob:", "Ann:", "Bob:"] and len(cut) == 6
    assert [MEETINGS.decode_pieces(turn.split()) for turn in cut[:4]] == TURNS
    assert MEETINGS.decode(MEETINGS.encode(MEETING)) == normalize(MEETING)
    assert ids_of(MEETINGS, MEETING, 8) == ids_of(MEETINGS, MEETING, 20) == MEETINGS.encode(MEETING)

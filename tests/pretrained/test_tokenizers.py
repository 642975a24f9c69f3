"""Tokenizers of pretrained models get our ids, and nothing else changes."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_tokenizers import SENTENCES, bart, bart_bytes, mbart, pegasus, save_vocabulary
from transformers import BartTokenizer, MBart50Tokenizer, PegasusTokenizer, T5Tokenizer

from pyramidions.base.errors import UserError
from pyramidions.pretrained.tokenizers import ImportedTokenizer, SpecialIds, import_tokenizer
from pyramidions.text.normalization import normalize
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer

BART_IDS = SpecialIds(bos=0, pad=1, eos=2)
PEGASUS_IDS = SpecialIds(pad=0, eos=1)
MBART_IDS = SpecialIds(bos=0, pad=1, eos=2, start=2)
T5_IDS = SpecialIds(pad=0, eos=1, start=0)
OFFSET = "tokenizer_config.json"


@pytest.fixture(scope="module")
def of_pegasus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pegasus")
    (folder / "spiece.model").write_bytes(pegasus())
    return folder


@pytest.fixture(scope="module")
def imported(of_pegasus: Path) -> ImportedTokenizer:
    return import_tokenizer(of_pegasus, 80 + 103, PEGASUS_IDS)


def of_theirs(found: ImportedTokenizer, ids: list[int]) -> list[int]:
    """Return what our ids were in the source."""
    return [found.rows[i] for i in ids]


def test_a_tokenizer_that_has_our_ids_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(bart_bytes())
    found = import_tokenizer(tmp_path, 340, BART_IDS)
    assert found.tokenizer.model_bytes == bart_bytes()
    assert (found.rows, found.unused) == (list(range(340)), 0)


def test_vocabulary_and_merges_make_the_same_tokenizer(tmp_path: Path) -> None:
    save_vocabulary(bart(), tmp_path)
    found = import_tokenizer(tmp_path, 340, BART_IDS)
    assert found.rows == list(range(340)) and found.tokenizer.prefix == (BOS,)
    for text in SENTENCES:
        ids = found.tokenizer.framed(found.tokenizer.encode(text))
        assert ids == bart().encode(text).ids == BartTokenizer.from_pretrained(tmp_path)(text)["input_ids"]


def test_other_ids_of_byte_level_bpe_are_exchanged(tmp_path: Path) -> None:
    theirs = bart(("<pad>", "</s>", "<mask>", "<unk>", "<s>"))
    (tmp_path / "tokenizer.json").write_text(theirs.to_str())
    found = import_tokenizer(tmp_path, 342, SpecialIds(bos=4, pad=0, eos=1, unk=3))
    assert found.rows[:6] == [4, 0, 1, 3, 2, 5] and sorted(found.rows) == list(range(342))
    assert found.unused == 2 and found.tokenizer.pieces()[-2:] == ["<unused_340>", "<unused_341>"]
    assert found.id_of(0) == PAD and found.tokenizer.prefix == (BOS,)
    for text in [*SENTENCES, "</s> <mask> 漢"]:
        ids = found.tokenizer.framed(found.tokenizer.encode(text))
        theirs.encode_special_tokens = True
        assert of_theirs(found, ids) == theirs.encode(text).ids
        assert found.tokenizer.decode(ids) == text


def test_the_first_four_ids_of_pegasus_are_ours(imported: ImportedTokenizer) -> None:
    assert imported.rows[:6] == [104, 0, 1, 105, 2, 3] and sorted(imported.rows) == list(range(183))
    pieces = imported.tokenizer.pieces()
    assert pieces[:6] == ["<s>", "<pad>", "</s>", "<unk>", "<mask_1>", "<mask_2>"]
    assert len(set(pieces)) == 183 and imported.unused == 0
    assert imported.id_of(0) == PAD and imported.id_of(1) == EOS
    assert imported.tokenizer.prefix == ()


@pytest.fixture(scope="module")
def theirs(of_pegasus: Path, tmp_path_factory: pytest.TempPathFactory) -> PegasusTokenizer:
    folder = tmp_path_factory.mktemp("theirs")
    shutil.copy(of_pegasus / "spiece.model", folder)
    return PegasusTokenizer.from_pretrained(folder)


def test_what_transformers_saves_of_pegasus_is_the_same_tokenizer(
    imported: ImportedTokenizer, theirs: PegasusTokenizer, tmp_path: Path
) -> None:
    theirs.save_pretrained(tmp_path)
    found = import_tokenizer(tmp_path, 183, PEGASUS_IDS)
    assert (found.rows, found.tokenizer.pieces()) == (imported.rows, imported.tokenizer.pieces())
    for text in [*SENTENCES, "½ ﬁsh… <mask_1> 漢 </s>"]:
        assert found.tokenizer.encode(text) == imported.tokenizer.encode(text)
    about = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**about, "normalizer": {"type": "Lowercase"}}))
    with pytest.raises(UserError, match="must be as that of PEGASUS, T5 or mBART-50 is"):
        import_tokenizer(tmp_path, 183, PEGASUS_IDS)


@pytest.mark.parametrize("text", [SENTENCES[0], "It\u2019s  half:\n\u00bd \ufb01sh.", "caf\u00e9 cafe\u0301 bees"])
def test_a_text_has_the_ids_that_transformers_gives_it(
    imported: ImportedTokenizer, theirs: PegasusTokenizer, text: str
) -> None:
    ids = imported.tokenizer.framed(imported.tokenizer.encode(text))
    assert of_theirs(imported, ids) == theirs(text)["input_ids"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text("abfox .é\n\u00a0𝕏ﬁ…", max_size=60))
def test_any_text_has_the_pieces_of_the_old_model(imported: ImportedTokenizer, of_pegasus: Path, text: str) -> None:
    old = sentencepiece.SentencePieceProcessor(model_file=str(of_pegasus / "spiece.model"))
    assert of_theirs(imported, imported.tokenizer.encode(text)) == [i + 103 for i in old.encode(normalize(text))]


@pytest.fixture
def of_mbart(tmp_path: Path) -> Path:
    """A folder as the hub has an mBART-50, for German."""
    (tmp_path / "sentencepiece.bpe.model").write_bytes(mbart())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"src_lang": "de_DE", "tgt_lang": None}))
    return tmp_path


def test_a_text_of_mbart_has_the_ids_that_transformers_gives_it_behind_its_language(of_mbart: Path) -> None:
    theirs = MBart50Tokenizer.from_pretrained(of_mbart)
    theirs.save_pretrained(of_mbart / "saved")
    for folder in (of_mbart, of_mbart / "saved"):
        found = import_tokenizer(folder, 134, MBART_IDS, "mbart")
        assert found.rows[:5] == [83, 1, 2, 3, 0] and sorted(found.rows) == list(range(134))
        assert found.tokenizer.prefix == (BOS,) and found.tokenizer.pieces()[:5] == ["de_DE", *SPECIALS[1:], "<bos>"]
        for text in [*SENTENCES, "½ ﬁsh… <mask> en_XX 漢 </s>"]:
            ids = found.tokenizer.framed(found.tokenizer.encode(text))
            assert "<" in text or of_theirs(found, ids) == theirs(text)["input_ids"]
            assert not {BOS, PAD, EOS} & set(ids[1:-1]) and max(ids) < 82
        assert found.tokenizer.decode(found.tokenizer.framed(found.tokenizer.encode("Bees fly."))) == "Bees fly."


@pytest.mark.parametrize(
    ("language", "said", "vocab_size", "word"),
    [
        ("de_DE", {"forced": 84}, 134, "forced_bos_token_id"),
        (None, {"forced": 83}, 134, "forced_bos_token_id"),
        ("de_DE", {"start": 83}, 134, "decoder_start_token_id"),
        ("de_DE", {}, 107, "107 rows"),
        *((name, {}, 134, "src_lang") for name in ("xx", "<mask>", "<pad>", "</s>", "", ["de"])),
    ],
)
def test_a_translator_and_an_unknown_language_are_refused(
    of_mbart: Path, language: Any, said: dict[str, int], vocab_size: int, word: str
) -> None:
    (of_mbart / "tokenizer_config.json").write_text(json.dumps({"src_lang": language}))
    with pytest.raises(UserError, match=word):
        import_tokenizer(of_mbart, vocab_size, MBART_IDS._replace(**said), "mbart")


def test_a_piece_in_front_that_is_no_language_is_refused(of_mbart: Path) -> None:
    MBart50Tokenizer.from_pretrained(of_mbart).save_pretrained(of_mbart / "saved")
    path = of_mbart / "saved" / "tokenizer.json"
    about = json.loads(path.read_text())
    about["post_processor"]["single"][0]["SpecialToken"]["id"] = "<s>"
    about["post_processor"]["special_tokens"]["<s>"] = {"id": "<s>", "ids": [0], "tokens": ["<s>"]}
    path.write_text(json.dumps(about))
    with pytest.raises(UserError, match="must be as that of PEGASUS, T5 or mBART-50 is"):
        import_tokenizer(of_mbart / "saved", 134, MBART_IDS, "mbart")


def test_a_first_piece_of_another_name_stands_before_no_text() -> None:
    model = io.BytesIO()
    special = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3, "bos_piece": "[BOS]"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=80, minloglevel=2, **special
    )
    assert Tokenizer.from_bytes(model.getvalue()).prefix == ()


def test_names_of_special_pieces_are_ordinary_text(imported: ImportedTokenizer) -> None:
    for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask_1>", "<unk_7>"):
        ids = imported.tokenizer.encode(f"fox {name}")
        assert not {BOS, PAD, EOS, *range(4, 4 + 102)} & set(ids) and UNK in ids, name
    text = "A “fox”…\nbees"
    (surfaces,) = imported.tokenizer.surfaces(windows(text))
    assert "".join(surfaces).strip() == imported.tokenizer.normalize(text) == "A “fox”... bees"


@pytest.fixture(scope="module")
def of_t5(of_pegasus: Path, tmp_path_factory: pytest.TempPathFactory) -> T5Tokenizer:
    folder = tmp_path_factory.mktemp("t5")
    shutil.copy(of_pegasus / "spiece.model", folder)
    return T5Tokenizer.from_pretrained(folder, extra_ids=100)


def test_a_text_has_the_ids_that_t5_gives_it_from_either_file(
    of_pegasus: Path, of_t5: T5Tokenizer, tmp_path: Path
) -> None:
    # The embeddings have four rows more than there are pieces.
    found = import_tokenizer(of_pegasus, 184, T5_IDS, family="t5")
    of_t5.save_pretrained(tmp_path)
    again = import_tokenizer(tmp_path, 184, T5_IDS, family="t5")
    assert sorted(found.rows) == list(range(184)) and found.unused == 4
    assert found.id_of(0) == BOS and (found.id_of(1), found.id_of(2)) == (EOS, UNK)
    for text in [*SENTENCES, "summarize: It’s  half:\n½ ﬁsh."]:
        for each in (found, again):
            ids = each.tokenizer.framed(each.tokenizer.encode(text))
            assert of_theirs(each, ids) == of_t5(text)["input_ids"]
    # The last sentinel is the first behind the pieces of text.
    assert found.tokenizer.pieces()[found.id_of(80)] == "<extra_id_99>"
    assert UNK in found.tokenizer.encode("<extra_id_99>")


def test_bigbird_has_every_piece_in_its_model(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"offset": 0}')
    (tmp_path / "spiece.model").write_bytes(pegasus(bos=2, unk=3))
    found = import_tokenizer(tmp_path, 82, SpecialIds(bos=2, pad=0, eos=1))
    assert found.rows == [2, 0, 1, *range(3, 82)] and found.unused == 2
    assert of_theirs(found, found.tokenizer.encode("The fox")) == found.tokenizer.encode("The fox")


@pytest.mark.parametrize(
    ("files", "vocab_size", "said", "sentence"),
    [
        ({"tokenizer.json": bart_bytes()}, 339, BART_IDS, "has 340 pieces, but the embeddings have 339 rows."),
        ({"tokenizer.json": bart_bytes()}, 50265, BART_IDS, "has 340 pieces, but the embeddings have 50265 rows."),
        ({"tokenizer.json": bart_bytes()}, 340, SpecialIds(0, 1, 3), "'s </s> has the id 2, but the model's config"),
        ({}, 340, BART_IDS, "must hold a tokenizer (spiece.model, sentencepiece.bpe.model, tokenizer.json, or vocab."),
        ({"vocab.json": b"{}", "merges.txt": b"no pair\n"}, 340, BART_IDS, "must be those of byte-level BPE, but are"),
        ({"spiece.model": b""}, 183, PEGASUS_IDS, "spiece.model must be a sentencepiece model, but is"),
        ({"spiece.model": pegasus()[:100]}, 183, PEGASUS_IDS, "spiece.model must be a sentencepiece model, but is"),
        ({"spiece.model": pegasus()[:-1]}, 183, PEGASUS_IDS, "spiece.model must be a sentencepiece model, but is"),
        ({"spiece.model": pegasus(), OFFSET: b"{"}, 183, PEGASUS_IDS, "_config.json is damaged: it is not JSON"),
        ({"spiece.model": pegasus(), OFFSET: b'{"offset": -1}'}, 183, PEGASUS_IDS, "must have a whole number"),
        ({"spiece.model": pegasus(), OFFSET: b"[]"}, 183, PEGASUS_IDS, "_config.json must have a whole number"),
        ({"spiece.model": pegasus(), OFFSET: b'{"offset": 0}'}, 80, PEGASUS_IDS, "The tokenizer has no <s>."),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    files: dict[str, bytes], vocab_size: int, said: SpecialIds, sentence: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as refusal:
        import_tokenizer(tmp_path, vocab_size, said)
    assert sentence in str(refusal.value)

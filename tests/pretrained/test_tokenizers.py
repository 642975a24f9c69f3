"""Tokenizers of pretrained models are read as they are: the ids are those of transformers."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_pretrained import save_tokenizer
from small_tokenizers import SENTENCES, bart_bytes, byte_fallback, pegasus, wordpiece
from transformers import AutoTokenizer, MBart50Tokenizer

from pyramidions.base.errors import UserError
from pyramidions.pretrained.families import FAMILIES
from pyramidions.pretrained.tokenizers import read_tokenizer
from pyramidions.text.tokenizer import Numbering, Tokenizer

BART, MBART = Numbering(0, 1, 2, None, 340), Numbering(0, 1, 2, None, 134)
#: of T5 and PEGASUS, without `<s>`; a T5 has four rows that no piece has
PEGASUS, T5 = Numbering(None, 0, 1, None, 183), Numbering(None, 0, 1, None, 184)
ADDED, SETTINGS = "added_tokens.json", "tokenizer_config.json"


def folder_of(kind: str, folder: Path) -> Path:
    """Write a tokenizer as the hub has it, without tokenizer.json."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    return save_tokenizer(kind, folder)


def of_transformers(kind: str, folder: Path) -> Any:
    return (MBart50Tokenizer if kind == "mbart" else AutoTokenizer).from_pretrained(folder)


KINDS = {"bart": BART, "pegasus": PEGASUS, "t5": T5, "mbart": MBART}
CLASSES = {kind: FAMILIES[kind].tokenizer_class for kind in KINDS}


def read(kind: str, folder: Path) -> Tokenizer:
    return read_tokenizer(folder, KINDS[kind], CLASSES[kind])


@pytest.fixture(scope="module", params=KINDS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Tokenizer]]:
    """Return transformers' tokenizer, and ours of the files that it reads and of those that it writes."""
    folder = folder_of(request.param, tmp_path_factory.mktemp(request.param) / "read")
    theirs = of_transformers(request.param, folder)
    theirs.save_pretrained(folder.parent / "saved")
    return theirs, [read(request.param, each) for each in (folder, folder.parent / "saved")]


def test_a_text_has_the_ids_that_transformers_gives_it(both: tuple[Any, list[Tokenizer]]) -> None:
    theirs, ours = both
    for text in [*SENTENCES[:6], "It\u2019s half: \u00bd \ufb01sh.", "caf\u00e9 cafe\u0301 bees", "A 漢字 “fox”…"]:
        for tokenizer in ours:
            ids = tokenizer.framed(tokenizer.encode(text))
            assert ids == theirs(text)["input_ids"]
            assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True) or tokenizer.unk in ids
    assert all(tokenizer.eos == theirs.eos_token_id and tokenizer.pad == theirs.pad_token_id for tokenizer in ours)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text("abfox .é\n\u00a0𝕏ﬁ…", max_size=60))
def test_any_line_has_the_ids_that_transformers_gives_it(both: tuple[Any, list[Tokenizer]], text: str) -> None:
    line = " ".join(text.split())
    assert [each.framed(each.encode(text)) for each in both[1]] == [both[0](line)["input_ids"]] * 2


def test_names_of_special_pieces_are_ordinary_text(both: tuple[Any, list[Tokenizer]]) -> None:
    tokenizer = both[1][0]
    for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<mask_1>", "<extra_id_0>", "en_XX"):
        ids = tokenizer.encode(f"fox {name}")
        assert not {tokenizer.bos, tokenizer.pad, tokenizer.eos} & set(ids)
        assert name not in tokenizer.names(ids) or name == "<unk>"


@pytest.mark.parametrize("special", [False, True], ids=["ordinary", "special"])
@pytest.mark.parametrize("saved", [False, True], ids=["read", "saved"])
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_that_a_user_added_have_their_ids_and_are_written(
    kind: str, saved: bool, special: bool, tmp_path: Path
) -> None:
    folder = folder_of(kind, tmp_path / "read")
    theirs = of_transformers(kind, folder)
    theirs.add_tokens(["[SEC]", "[FIG]"], special_tokens=special)
    theirs.save_pretrained(tmp_path / "saved")
    if saved:
        folder = tmp_path / "saved"
    else:
        added = {name: theirs.convert_tokens_to_ids(name) for name in ("[SEC]", "[FIG]")}
        (folder / ADDED).write_text(json.dumps(added))
    numbering = KINDS[kind]._replace(rows=len(theirs))
    tokenizer = read_tokenizer(folder, numbering, CLASSES[kind])
    ids = tokenizer.encode("The [SEC] the fox [FIG]")
    assert ids == theirs("The [SEC] the fox [FIG]", add_special_tokens=False)["input_ids"]
    assert {len(theirs) - 2, len(theirs) - 1} <= set(ids)
    assert tokenizer.decode(ids) == theirs.decode(ids) and "[SEC]" in tokenizer.decode(ids)


def test_a_tokenizer_json_that_lacks_added_tokens_is_read_with_them(tmp_path: Path) -> None:
    folder = folder_of("t5", tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    settings = json.loads((folder / SETTINGS).read_text())
    token = {"content": "[SEC]", "special": False, "lstrip": False, "rstrip": False, "single_word": False}
    settings["added_tokens_decoder"] = {
        **settings.get("added_tokens_decoder", {}),
        "180": {**token, "normalized": True},
    }
    (folder / SETTINGS).write_text(json.dumps(settings))
    tokenizer = read("t5", folder)
    assert tokenizer.encode("fox [SEC]")[-1] == 180 and tokenizer.decode([180]) == "[SEC]"


@pytest.mark.parametrize(
    ("kind", "rows", "none"),
    [
        ("t5", 80, {"extra_ids": 0}),
        ("t5", 96, {"extra_ids": 0}),
        ("pegasus", 82, {"offset": 0}),
        ("pegasus", 80, {"offset": 0, "mask_token": None, "mask_token_sent": None}),
    ],
)
def test_no_ids_are_added_to_a_vocabulary_of_ones_own_whose_model_has_no_rows_for_them(
    kind: str, rows: int, none: dict[str, int | None], tmp_path: Path
) -> None:
    theirs = getattr(transformers, CLASSES[kind]).from_pretrained(folder_of(kind, tmp_path), **none)
    ours = read_tokenizer(tmp_path, Numbering(None, 0, 1, None, rows), CLASSES[kind])
    assert ours.vocab_size == rows
    assert list(map(ours.encode, SENTENCES)) == [theirs(each, add_special_tokens=False).input_ids for each in SENTENCES]


def test_a_language_stands_before_each_text_of_an_mbart(tmp_path: Path) -> None:
    tokenizer = read("mbart", folder_of("mbart", tmp_path))
    assert tokenizer.names(tokenizer.prefix) == ["de_DE"]
    assert tokenizer.decode(tokenizer.framed(tokenizer.encode("Bees fly."))) == "Bees fly."


@pytest.mark.parametrize(
    ("file", "numbering"),
    [(wordpiece(), Numbering(2, 0, 3, None, 120)), (byte_fallback(), Numbering(None, 0, 1, None, 290))],
    ids=["words", "byte fallback"],
)
def test_a_file_of_any_kind_is_run_byte_for_byte_as_it_is(file: bytes, numbering: Numbering, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(file)
    (tmp_path / SETTINGS).write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path), read_tokenizer(tmp_path, numbering, "PegasusTokenizer")
    assert ours.model_bytes == file and ours.unk in (1, 2)
    for text in [*SENTENCES[:6], "the 漢 fox é"]:
        assert ours.framed(ours.encode(text)) == theirs(text)["input_ids"]


HUGE_ID = b'{"model": {"vocab": {"b": 2147483648}}}'
SPIECE = {"config.json": b'{"model_type": "pegasus"}', "spiece.model": pegasus()}


@pytest.mark.parametrize(
    ("files", "numbering", "said"),
    [
        ({"tokenizer.json": bart_bytes()}, BART._replace(rows=339), "ids below 339, the rows of the embeddings"),
        ({"tokenizer.json": bart_bytes()}, BART._replace(rows=50265), "at most 1,024 rows more than the tokenizer"),
        ({"tokenizer.json": bart_bytes()}, BART._replace(eos=340), "`eos` must be below 340"),
        ({"tokenizer.json": b'{"model": {"vocab": [[]]}}', ADDED: b'{"a": 4}'}, BART, "tokenizer.json is damaged"),
        ({}, BART, "must hold a tokenizer (tokenizer.json, or spiece.model, "),
        ({"vocab.json": b"{", "merges.txt": b"no\n"}, BART, "vocab.json is damaged: "),
        (
            {"vocab.json": b'{"a": 2147483648}', "merges.txt": b""},
            BART,
            "must have ids below 1,025, 1,024 more than pieces",
        ),
        ({"tokenizer.json": HUGE_ID, ADDED: b'{"a": 4}'}, BART, "must have ids below 1,025, 1,024 more than pieces"),
        ({**SPIECE, "spiece.model": b""}, PEGASUS, "must be one that transformers reads, but it says: "),
        ({**SPIECE, "spiece.model": pegasus()[:100]}, PEGASUS, "must be one that transformers reads"),
        ({**SPIECE, SETTINGS: b"{"}, PEGASUS, "tokenizer_config.json is damaged"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    files: dict[str, bytes], numbering: Numbering, said: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as refusal:
        read_tokenizer(tmp_path, numbering, "PegasusTokenizer")
    assert said in str(refusal.value) and str(tmp_path) in str(refusal.value)


def test_code_of_a_folder_is_never_run(tmp_path: Path) -> None:
    folder = folder_of("t5", tmp_path)
    (folder / "evil.py").write_text("raise SystemExit('run')")
    (folder / SETTINGS).write_text(json.dumps({"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}))
    shutil.copy(folder / "evil.py", folder / "tokenization_evil.py")
    try:
        read("t5", folder)
    except UserError as error:
        assert "trust_remote_code" in str(error)


def test_without_transformers_an_error_says_which_extra_makes_a_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install .*'transformers<6,>="):
        read_tokenizer(folder_of("bart", tmp_path), BART, CLASSES["bart"])

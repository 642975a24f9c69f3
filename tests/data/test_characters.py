"""Streams of text become folders of characters."""

import json
import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from folders import contents
from killing import die, die_at_call, run_killed

from pyramidions.base.errors import UserError
from pyramidions.data import characters
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.characters import WHOLE, CharacterSettings, prepare_characters
from pyramidions.data.manifest import InputHash
from pyramidions.data.text_streams import TextStream
from pyramidions.data.unigram_pieces import piece_boundaries

ENGLISH = CharacterSettings("en", valid_characters=4, test_characters=3)


def stream(*parts: str, source: str | None = None) -> TextStream:
    return TextStream("text", lambda: iter(parts), source)


def text_of(folder: Path, split: str) -> str:
    found = CharacterFolder(folder)
    return found.alphabet.decode(found.tokens(split))


def test_the_end_of_one_stream_becomes_valid_and_test(out: Path) -> None:
    assert prepare_characters(out, {WHOLE: stream(" Anarchism – a", " term.\n", "\nUsed 7x")}, ENGLISH)
    assert [text_of(out, split) for split in ("train", "valid", "test")] == [" anarchism a term\nused ", "seve", "n x"]
    assert (out / "dict.txt").read_text() == "▁ 1\n" + "".join(
        f"{letter} 1\n" for letter in "abcdefghijklmnopqrstuvwxyz␤"
    )
    assert CharacterFolder(out).manifest["splits"] == {
        "train": {"characters": 23, "spaces": 4},
        "valid": {"characters": 4, "spaces": 0},
        "test": {"characters": 3, "spaces": 1},
    }


def test_where_parts_meet_a_line_end_wins_over_a_space(out: Path) -> None:
    prepare_characters(out, {"train": stream("one -", "\n(two) ", " \n ", " three")}, ENGLISH)
    assert text_of(out, "train") == "one\ntwo\nthree"


def test_fairseq_reads_the_folder_and_of_bytes_none_is_lost_where_parts_meet(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairseq.data import Dictionary, data_utils

    text = "Ünder  \n <b>ß</b>\r\n \n"
    prepare_characters(out, {"train": stream(text[:7], text[7:9], text[9:])}, CharacterSettings("bytes"))
    folder, dictionary = CharacterFolder(out), Dictionary.load(str(out / "dict.txt"))
    assert (folder.tokens("train") - 4).tolist() == list(text.encode()) and len(dictionary) == 260
    assert folder.alphabet.written(text_of(out, "train")) == text
    (item,) = data_utils.load_indexed_dataset(str(out / "train"), dictionary, "mmap")
    assert dictionary.string(item).replace(" ", "").startswith("ǃƜnder▁▁␤▁<b>")
    monkeypatch.setattr(characters, "_ITEM", 8)
    prepare_characters(out, {"train": stream("äiti ja isä")}, CharacterSettings("fi"), overwrite=True)
    dictionary = Dictionary.load(str(out / "dict.txt"))
    assert len(dictionary) == CharacterFolder(out).alphabet.vocab_size == 35
    items = data_utils.load_indexed_dataset(str(out / "train"), dictionary, "mmap")
    assert [dictionary.string(item).replace(" ", "") for item in items] == ["äiti▁ja▁", "isä"]


def test_a_folder_of_0_2_0_keeps_its_alphabet(out: Path) -> None:
    prepare_characters(out, {"train": stream("some text")}, ENGLISH)
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["settings"]["characters"], CharacterFolder(out).alphabet.vocab_size) == ("en-lines", 32)
    manifest["settings"]["characters"] = "en"
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert CharacterFolder(out).alphabet.vocab_size == 31 and text_of(out, "train") == "some text"


def test_cleaning_ends_with_the_characters_that_are_wanted(out: Path) -> None:
    def parts() -> Iterator[str]:
        yield "one two "
        yield " three four"
        pytest.fail("more was read than is wanted")

    settings = replace(ENGLISH, train_characters=5)
    assert prepare_characters(out, {WHOLE: TextStream("text", parts)}, settings)
    assert "".join(text_of(out, split) for split in ("train", "valid", "test")) == "one two thre"
    about = CharacterFolder(out).manifest["inputs"][WHOLE]
    del about["sha256"]
    assert about == {"parts": 2, "is_last": False, "read": 19, "characters": 12}


def test_splits_that_are_given_keep_their_text_up_to_their_sizes(out: Path) -> None:
    streams = {split: stream(f"the {split} text") for split in ("train", "valid", "test")}
    settings = CharacterSettings("en", train_characters=9, valid_characters=8)
    assert prepare_characters(out, streams, settings)
    assert [text_of(out, split) for split in streams] == ["the train", "the vali", "the test text"]


def long_stream() -> TextStream:
    draw = random.Random(3)
    words = ["".join(draw.choices("aeinrst", k=draw.randint(1, 8))) for _ in range(300)]
    return stream(*(" ".join(draw.choices(words, k=40)) + draw.choice([" ", "\n1", ", "]) for _ in range(30)))


LONG = CharacterSettings("en", valid_characters=500, test_characters=700, pieces=40)


@pytest.fixture
def whole_characters(tmp_path: Path) -> dict[str, bytes]:
    """The files of a folder that was prepared without an interruption."""
    prepare_characters(tmp_path / "whole", {WHOLE: long_stream()}, LONG)
    return contents(tmp_path / "whole")


def test_pieces_are_those_of_whole_words_in_each_split(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(characters, "_BLOCK", 1000)
    prepare_characters(out, {WHOLE: long_stream()}, LONG)
    folder = CharacterFolder(out)
    for split in folder.splits:
        expected = np.concatenate(list(piece_boundaries([text_of(out, split)], folder.pieces_path.read_bytes())))
        assert np.array_equal(folder.boundaries(split, check_hashes=True), expected)
        assert folder.manifest["splits"][split]["pieces"] == expected.sum()


def _while_cleaning() -> None:
    InputHash.add = die_at_call(20, InputHash.add)  # type: ignore[method-assign]


def _while_the_stream_is_finished() -> None:
    Path.replace = die_at_call(2, Path.replace)  # type: ignore[method-assign]


def _while_a_split_is_written() -> None:
    characters._write = die_at_call(2, characters._write)


def _while_pieces_are_trained() -> None:
    characters.train_pieces = lambda *_: os.kill(os.getppid(), signal.SIGKILL)  # type: ignore[assignment,return-value]


def _while_the_manifest_is_written() -> None:
    characters.write_manifest = die


@pytest.mark.parametrize(
    ("place", "taken"),
    [
        (_while_cleaning, []),
        (_while_the_stream_is_finished, []),
        (_while_a_split_is_written, ["text of whole"]),
        (_while_pieces_are_trained, ["text of whole"]),
        (_while_the_manifest_is_written, ["text of whole", "pieces"]),
    ],
)
def test_killed_anywhere_it_goes_on_to_the_same_bytes(
    out: Path,
    whole_characters: dict[str, bytes],
    capfd: pytest.CaptureFixture[str],
    place: Callable[[], None],
    taken: list[str],
) -> None:
    run_killed(place, lambda: prepare_characters(out, {WHOLE: long_stream()}, LONG))
    assert not out.exists()
    capfd.readouterr()
    assert prepare_characters(out, {WHOLE: long_stream()}, LONG, workers=2)
    assert contents(out) == whole_characters
    said = capfd.readouterr().err
    assert re.findall("takes the (text of whole|pieces) that", said) == taken and "damaged" not in said
    assert [path.name for path in out.parent.iterdir()] == ["data"]


def test_what_an_interrupted_run_cleaned_of_another_text_is_not_used(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = CharacterSettings("en", pieces=18)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(characters, "write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        prepare_characters(out, {"train": stream("the first text has some more words ", "than that")}, settings)
    assert prepare_characters(out, {"train": stream("other text has some more letters ", "and words")}, settings)
    assert text_of(out, "train") == "other text has some more letters and words"
    said = capsys.readouterr().err
    assert "text is not what the interrupted run read: train is done anew" in said and "takes" not in said


def test_the_same_text_is_not_prepared_again_and_another_one_only_if_told(out: Path) -> None:
    text = {"train": stream("some text")}
    assert prepare_characters(out, text, CharacterSettings("en"))
    assert not prepare_characters(out, text, CharacterSettings("en"))
    for other, settings in (
        ({"train": stream("some text", " more")}, CharacterSettings("en")),
        ({"train": stream("some texts")}, CharacterSettings("en")),
        (text, CharacterSettings("fi")),
        (text, CharacterSettings("en", pieces=9)),
    ):
        with pytest.raises(UserError):
            prepare_characters(out, other, settings)
    assert prepare_characters(out, {"train": stream("new text")}, CharacterSettings("en"), overwrite=True)
    assert text_of(out, "train") == "new text"
    (out / "train.bin").write_bytes(b"damaged")
    assert prepare_characters(out, {"train": stream("new text")}, CharacterSettings("en"))
    assert text_of(out, "train") == "new text"


def test_what_lies_elsewhere_is_not_fetched_again(out: Path) -> None:
    assert prepare_characters(out, {"train": stream("some text", source="hub/a")}, CharacterSettings("en"))
    unread = TextStream("text", lambda: pytest.fail("was read"), "hub/a")
    assert not prepare_characters(out, {"train": unread}, CharacterSettings("en"))
    with pytest.raises(UserError):
        prepare_characters(out, {"train": unread._replace(source="hub/b")}, CharacterSettings("en"))


def test_a_text_in_another_language_is_told(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare_characters(out, {"train": stream("שלום לכולם and hi")}, CharacterSettings("en"))
    assert "only 41% of the characters of text are left: is its language 'en'?" in capsys.readouterr().err


def test_missing_and_damaged_splits_are_named(out: Path) -> None:
    folder = CharacterFolder(out)

    def refused(ask: Callable[..., object], *arguments: object, **options: object) -> str:
        with pytest.raises(UserError) as error:
            ask(*arguments, **options)
        return str(error.value).removeprefix(str(out))

    assert refused(folder.tokens, "train").endswith("does not exist.")
    prepare_characters(out, {"train": stream("some text")}, CharacterSettings("en"))
    folder = CharacterFolder(out)
    assert isinstance(folder.tokens("train", check_hashes=True), np.memmap)
    assert refused(folder.tokens, "test") == " has no split 'test'; its splits are train."
    assert refused(folder.boundaries, "train").startswith(" has no pieces: make them with `")
    (out / "train.bin").write_bytes(b"\5\0" * 9)
    folder.tokens("train")
    assert "its SHA-256 is not the one in the manifest" in refused(folder.tokens, "train", check_hashes=True)
    (out / "train.bin").write_bytes(b"\5\0")
    assert "train.bin is damaged: it must have 18 bytes" in refused(folder.tokens, "train")

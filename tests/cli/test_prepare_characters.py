"""`pyramidions prepare --characters`."""

import json
import lzma
import re
import zipfile
from pathlib import Path

import pytest
from invoking import run, succeed

from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.corpora import texts
from pyramidions.data.corpora.texts import TEXTS
from pyramidions.data.text_streams import TextStream, fetched_text


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("The 1st text is short. " * 40)
    return path


def text_of(out: Path, split: str) -> str:
    folder = CharacterFolder(out)
    return folder.alphabet.decode(folder.tokens(split))


def test_a_file_becomes_three_splits_with_a_report(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["prepare", text, "--characters", "en", "--valid-characters", 50, "--pieces", 14, "--out", out]
    done = succeed(*command)
    assert done.stdout.startswith(
        f"{out}: 32 symbols, four special ones among them\n  train: 900 characters, 24.0% of them spaces; 1."
    )
    assert re.findall(r"(valid|test): (\d+) characters", done.stdout) == [("valid", "50"), ("test", "50")]
    assert text_of(out, "train").startswith("the one st text is short the one st")
    assert run(*command).stdout.startswith(f"{out} is up to date: ")


def test_files_of_splits_and_a_field_of_records_are_options(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(json.dumps({"body": "Äiti"}) + "\n")
    out = tmp_path / "out"
    succeed("prepare", "--test", tmp_path / "b.jsonl", "--source-field", "body", "--characters", "fi", "--out", out)
    assert text_of(out, "test") == "äiti\n"


@pytest.mark.parametrize(
    ("splits", "made"),
    [
        (["train"], {"train": "the t", "test": "text\n"}),
        (["train", "validation", "test"], {"train": "the train text\n", "test": "the test text\n"}),
    ],
)
def test_a_dataset_keeps_its_splits_or_is_cut(tmp_path: Path, splits: list[str], made: dict[str, str]) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    for split in splits:
        (folder / f"{split}.jsonl").write_text(json.dumps({"text": f"the {split} text"}) + "\n")
    succeed("prepare", folder, "--characters", "en", "--valid-characters", 5, "--out", out)
    assert {split: text_of(out, split) for split in made} == made


@pytest.mark.parametrize(("name", "characters"), [("text8", "en"), ("enwik8", "bytes")])
def test_a_text_of_mahoney_is_fetched_and_cut_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, characters: str
) -> None:
    with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
        archive.writestr(name, " anarchism" * 1_001_000)
    monkeypatch.setattr(texts, "fetched_text", lambda _, name: fetched_text(str(tmp_path / f"{name}.zip"), name))
    monkeypatch.chdir(tmp_path)
    done = succeed("prepare", name, "--characters", characters, "--out", name)
    assert done.stderr.startswith(f"{name} (Mahoney 2006): from http://mattmahoney.net/dc/{name}.zip\n  licence: ")
    manifest = CharacterFolder(tmp_path / name).manifest
    assert {split: numbers["characters"] for split, numbers in manifest["splits"].items()} == {
        "train": 10_000,
        "valid": 5_000_000,
        "test": 5_000_000,
    }
    assert manifest["settings"]["corpus"]["name"] == name
    # The folder is no input.
    again = run("prepare", name, "--characters", characters, "--out", name)
    assert again.stdout.startswith(f"{name} is up to date: "), again.output


def test_cc100_is_streamed_in_its_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vi.txt.xz").write_bytes(lzma.compress("Tiếng Việt\n\nnăm 2\n".encode()))
    monkeypatch.setattr(texts, "_CC100", str(tmp_path))
    command = ["prepare", "cc100", "--characters", "vi", "--valid-characters", 3, "--out", tmp_path / "out"]
    succeed(*command)
    assert "".join(text_of(tmp_path / "out", split) for split in ("train", "valid", "test")) == "tiếng việt\nnăm hai\n"


def test_wiki40b_has_a_configuration_for_each_language() -> None:
    streams: dict[str, TextStream] = TEXTS["wiki40b"].streams("he")
    assert {split: stream.source for split, stream in streams.items()} == {
        "train": "google/wiki40b/he/train",
        "valid": "google/wiki40b/he/validation",
        "test": "google/wiki40b/he/test",
    }

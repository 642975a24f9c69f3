"""Data folders of kinds that few tasks read."""

import json
import random

import pytest

from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.characters import WHOLE, CharacterSettings, prepare_characters
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, known_fields
from pyramidions.data.text_streams import TextStream


@pytest.fixture(scope="session")
def characters(tmp_path_factory: pytest.TempPathFactory) -> CharacterFolder:
    """700 characters of words of a few letters, cut into 500, 100 and 100."""
    draw = random.Random(2)
    words = ["".join(draw.choices("abcd", k=draw.randint(1, 5))) for _ in range(20)]
    text = " ".join(draw.choices(words, k=300))[:700]
    path = tmp_path_factory.mktemp("characters") / "data"
    settings = CharacterSettings("en", train_characters=500, valid_characters=100, pieces=16)
    prepare_characters(path, {WHOLE: TextStream("text", lambda: iter([text]))}, settings)
    return CharacterFolder(path)


@pytest.fixture(scope="session")
def asked(data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Return a folder with two documents for each of two queries, encoded with the tokenizer of ``data``."""
    folder = tmp_path_factory.mktemp("asked")
    records = [
        {"id": f"{number}", "query": query, "article": "We tested the cells again. " * 60, "abstract": "They grew."}
        for number, query in enumerate(["What was tested?", "Why did the cells of the second group grow?"] * 2)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = Corpus(str(folder / "train.jsonl"), fields=known_fields(None, None, None, "query"))
    prepare(folder / "data", {"train": corpus}, tokenizer=data.tokenizer())
    return DataFolder(folder / "data")

"""An extractor is trained on the units that `pyramidions extract` rates: headings and sentences of sections."""

import json
from pathlib import Path

import numpy as np
import pytest
from invoking import succeed

from pyramidions.cli import extracting
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.extract.core import Ranker
from pyramidions.runs.arguments import Arguments
from pyramidions.runs.network_run import NetworkRun
from pyramidions.runs.plan import make_plan
from pyramidions.runs.run import Places
from pyramidions.runs.steps import State
from pyramidions.text.outline import Outline
from pyramidions.text.tokenizer import EOS


@pytest.fixture
def release(papers: Path, tmp_path: Path) -> Path:
    """A file of records of the release, with sections."""
    records = []
    for line in (papers / "train.jsonl").read_text().splitlines():
        paper = json.loads(line)
        sentences = [f"{sentence.strip(' .')} ." for sentence in paper["article"].split(".") if sentence.strip()]
        records.append(
            {
                "article_id": paper["id"],
                "article_text": sentences,
                "abstract_text": [f"<S> {paper['abstract']} </S>"],
                "sections": [sentences[:8], sentences[8:]],
                "section_names": ["ban den", "kin lon"],
            }
        )
    path = tmp_path / "papers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def extracted(release: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Outline]:
    """By the ids of the documents, the outlines that `pyramidions extract` reads."""
    outlines, outlined = [], extracting.document_outline
    monkeypatch.setattr(
        extracting, "document_outline", lambda *given: outlines.append(outlined(*given)) or outlines[-1]
    )
    succeed("extract", release, "--method", "lead", "--field", "article_text", "--json")
    ids = [json.loads(line)["article_id"] for line in release.read_text().splitlines()]
    assert all(found.headings == ("ban den", "kin lon") for found in outlines)
    return dict(zip(ids, outlines, strict=True))


def assert_same_units(folder: DataFolder, split: str, extracted: dict[str, Outline]) -> None:
    tokenizer, sources = folder.tokenizer(), IndexedReader(folder.prefix(split, "source"))
    references = folder.references(split)
    assert len(references) == len(sources) > 0
    for number, reference in enumerate(references):
        units = [unit.text for unit in extracted[reference.id].units]
        assert sources[number] == [*tokenizer.encode_units(units), EOS]


def test_prepare_with_labels_reads_the_units_that_are_extracted(
    release: Path, extracted: dict[str, Outline], tmp_path: Path
) -> None:
    succeed("prepare", "--train", release, "--labels", "--out", tmp_path / "data", "--vocab-size", 60)
    assert_same_units(DataFolder(tmp_path / "data"), "train", extracted)


class Headings(Ranker):
    """Keeps the headings of what it is to rate in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def rank(self, outline: Outline) -> np.ndarray:
        with self._path.open("a") as file:
            file.write(f"{', '.join(outline.headings)}\n")
        return np.zeros(len(outline.sentences))


@pytest.mark.parametrize("kind", ["extractor", "summarizer"])
def test_train_reads_the_same_units(kind: str, release: Path, extracted: dict[str, Outline], tmp_path: Path) -> None:
    places = Places(tmp_path / "model")
    places.work.mkdir()
    arguments = Arguments(str(release), kind, gpus=0, vocab_size=60)
    plan, _ = make_plan(arguments)
    made = NetworkRun(arguments, plan, places, State(places.state, {"done": {}}), print)
    made.divide()
    made.prepare()
    if kind == "extractor":
        for split in ("train", "valid", "test"):
            assert_same_units(DataFolder(places.data), split, extracted)
    else:  # trained on selected sentences
        assert all(document.source.startswith("ban den\n") for document in made.documents("test"))
    made.write_extracts(5, 50, {"headings": Headings(tmp_path / "headings")})
    assert set((tmp_path / "headings").read_text().splitlines()) == {"ban den, kin lon"}

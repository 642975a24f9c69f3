"""Documents held out of a corpus without splits."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from pyramidions.base.errors import UserError
from pyramidions.data.holdout import held_out, survey, write_splits
from pyramidions.data.readers import Corpus
from pyramidions.documents.record_fields import FieldNames


def corpus(path: Path, records: list[dict[str, object]], **options: object) -> Corpus:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return Corpus(str(path), **options)  # type: ignore[arg-type]


def records(number: int) -> list[dict[str, object]]:
    return [{"id": f"paper {i}", "article": f"Text {i} here.", "abstract": "Short."} for i in range(number)]


def divided(documents: Corpus, folder: Path) -> dict[str, list[dict[str, object]]]:
    found = survey(documents)
    write_splits(folder, documents, found.hashes, held_out(found.hashes, ("valid", "test"), documents.name))
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("number", "splits", "sizes"),
    [
        (200, ("valid", "test"), {"train": 170, "test": 20, "valid": 10}),
        (200, ("valid",), {"train": 190, "valid": 10}),
        (10, ("valid", "test"), {"train": 8, "test": 1, "valid": 1}),
        (100_000, ("valid", "test"), {"train": 98_500, "test": 1000, "valid": 500}),
    ],
)
def test_a_tenth_is_held_out_for_testing_and_a_twentieth_for_validation(
    number: int, splits: tuple[str, ...], sizes: dict[str, int]
) -> None:
    assert held_out(np.arange(number), splits, "papers") == sizes


def test_the_splits_hold_every_document_once_and_their_order_decides_nothing(tmp_path: Path) -> None:
    found = []
    for name, given in (("one", records(200)), ("other", random.Random(1).sample(records(200), 200))):
        splits = divided(corpus(tmp_path / f"{name}.jsonl", given), tmp_path / name)
        found.append({split: {record["id"] for record in documents} for split, documents in splits.items()})
        assert {split: len(documents) for split, documents in splits.items()} == {"train": 170, "valid": 10, "test": 20}
    assert found[0] == found[1]
    assert set.union(*found[0].values()) == {f"paper {i}" for i in range(200)}


def kept(documents: Corpus, folder: Path) -> list[dict[str, object]]:
    """The records of all splits, in the order of their ids, which are numbers."""
    found = [record for split in divided(documents, folder).values() for record in split]
    return sorted(found, key=lambda record: int(str(record["id"])))


def test_records_keep_the_fields_that_are_read_and_get_the_id_that_they_lack(tmp_path: Path) -> None:
    given = [{"text": "One.", "summary": "Short.", "sections": [["a."]], "section_names": [str(i)]} for i in range(10)]
    others = [{**record, "year": 2010, "sections_too": {"a": [1]}} for record in given]
    documents = corpus(tmp_path / "papers.jsonl", others, fields=FieldNames("text", "summary", None))
    expected = [{**record, "id": str(place)} for place, record in enumerate(given, 1)]
    assert kept(documents, tmp_path / "splits") == expected


def test_records_of_the_release_keep_their_names(tmp_path: Path) -> None:
    given = [{"article_id": str(i), "article_text": ["A."], "abstract_text": ["<S> B. </S>"]} for i in range(10)]
    found = divided(corpus(tmp_path / "papers.jsonl", given), tmp_path / "splits")
    assert sorted(str(record) for split in found.values() for record in split) == sorted(map(str, given))


def test_a_text_that_sections_stand_for_may_be_no_text(tmp_path: Path) -> None:
    sections = {"sections": [["a b."]], "section_names": ["Methods"]}
    rows = [{"id": str(i), "article": 10**12 * i, "abstract": "c.", **sections} for i in range(10)]
    documents = corpus(tmp_path / "papers.jsonl", rows, sections=True)
    assert kept(documents, tmp_path / "splits") == [{"id": str(i), "abstract": "c.", **sections} for i in range(10)]


@pytest.mark.parametrize("name", ["score", "sections"])
def test_what_a_table_holds_besides_does_not_make_the_splits_unreadable(tmp_path: Path, name: str) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = ("score", "number") if name == "score" else ("sections", "section_names")
    values = (float("nan"), 2**62)
    rows = [{**record, **dict(zip(columns, values, strict=True))} for record in records(10)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "papers.parquet")
    divided(Corpus(str(tmp_path / "papers.parquet")), tmp_path / "splits")
    found = [document for path in (tmp_path / "splits").iterdir() for document in Corpus(str(path))]
    assert {(document.id, document.source) for document in found} == {
        (str(record["id"]), record["article"]) for record in records(10)
    }


def test_what_is_left_out_or_numbered_stays_so(tmp_path: Path) -> None:
    given = [*records(12), {"id": "empty", "article": "", "abstract": "Short."}, records(1)[0]]
    documents = corpus(tmp_path / "papers.jsonl", given, skip_empty=True, number_repeated_ids=True)
    assert survey(documents).skipped == 1
    ids = {str(record["id"]) for split in divided(documents, tmp_path / "splits").values() for record in split}
    assert ids == {*(f"paper {i}" for i in range(12)), "paper 0#2"}


def test_documents_that_change_meanwhile_are_refused(tmp_path: Path) -> None:
    found = survey(corpus(tmp_path / "papers.jsonl", records(12)))
    changed = corpus(tmp_path / "papers.jsonl", records(13))
    with pytest.raises(UserError):
        write_splits(tmp_path / "splits", changed, found.hashes, held_out(found.hashes, ("test",), "papers"))
    assert not (tmp_path / "splits").exists()


@pytest.mark.parametrize(
    ("summaries", "words", "shares"),
    [
        # A heading in capitals is none of them.
        (["RESULTS we Saw", "e"], [3, 1], (2 / 4, 1 / 4)),
        # A script without small letters has neither.
        (["我们研究DNA和 RNA"], [2], (0, 0)),
    ],
)
def test_a_survey_counts_words_and_those_of_the_summaries_with_capitals(
    tmp_path: Path, summaries: list[str], words: list[int], shares: tuple[float, float]
) -> None:
    given = [{"id": str(number), "article": "A b.", "abstract": text} for number, text in enumerate(summaries)]
    found = survey(corpus(tmp_path / "papers.jsonl", given))
    assert (found.small, found.capitalized) == shares and found.documents == len(summaries)
    assert found.target_words.tolist() == words and found.source_words.tolist() == [2] * len(summaries)

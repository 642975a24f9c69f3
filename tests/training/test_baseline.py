"""What a model is compared with."""

import json
from pathlib import Path

from pyramidions.data.readers import Corpus, Document
from pyramidions.training.baseline import advice, with_headings, write_hiporank


def scores(path: Path, ours: float, other: float) -> Path:
    systems = {"extractor": {"rouge1": {"mean": ours}}, "hiporank": {"rouge1": {"mean": other}}}
    path.write_text(json.dumps({"systems": systems}))
    return path


def test_a_model_that_is_worse_than_none_is_said_to_be_so(tmp_path: Path) -> None:
    told = advice(scores(tmp_path / "scores.json", 49.72, 52.87), "extractor")
    assert told is not None and "(ROUGE-1 52.9, the extractor has 49.7)" in told
    assert advice(scores(tmp_path / "scores.json", 53.0, 52.87), "extractor") is None


def test_extracts_are_lines_in_the_order_of_the_documents_within_the_words(tmp_path: Path) -> None:
    texts = ("One two three four. Five six. Seven eight nine.", "Alone here.")
    documents = [Document(str(number), text, "") for number, text in enumerate(texts)]
    write_hiporank(tmp_path / "hiporank", documents, 2, 3)
    first, second = (tmp_path / "hiporank").read_text().splitlines()
    assert first in texts[0] and len(first.split()) <= 3 and second == "Alone here."


def test_the_baseline_reads_sections_of_the_same_documents_as_any_model(tmp_path: Path) -> None:
    path, sections = tmp_path / "papers.jsonl", {"sections": [["One two."]], "section_names": ["Methods"]}
    records = [
        {"id": "a", "article": "One two.", "abstract": "One.", **sections},
        {"id": "empty", "article": "", "abstract": "One.", **sections},
        {"id": "b", "article": "Flat.", "abstract": "One."},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    flat, headed = (list(with_headings(Corpus(str(path), skip_empty=True, sections=each))) for each in (False, True))
    assert [document.id for document in flat] == ["a", "b"] and [d.id for d in headed] == ["a", "empty", "b"]
    assert flat == [document for document in headed if document.id != "empty"]
    assert flat[0].source == "# Methods\nOne two." and flat[1].source == "Flat."

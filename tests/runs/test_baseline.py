"""What a model is compared with."""

import json
from pathlib import Path

import pytest

from pyramidions.data.readers import Corpus, Document
from pyramidions.extract import Budget, HipoRank, SelectionRules
from pyramidions.runs.run import with_headings, write_extracts
from pyramidions.runs.training import advice


@pytest.mark.parametrize(
    ("means", "interval", "told"),
    [
        ((53.0, 53.0, 40.0), (-1.0, 3.0), "Next: ours"),
        ((50.8, 53.4, 40.0), (-4.0, -1.2), "hiporank needs no training, and scored better: ROUGE-1 53.4, "),
        ((50.8, 53.4, 40.0), (-6.0, 0.8), "hiporank needs no training, and scored higher, though that may be chance: "),
        ((15.4, 29.7, 31.8), (-22.3, -11.1), "lead needs no training, and scored better: ROUGE-1 31.8, "),
    ],
)
def test_what_scored_best_is_recommended(
    means: tuple[float, ...], interval: tuple[float, float], told: str, tmp_path: Path
) -> None:
    systems = dict(zip(("extractor", "hiporank", "lead"), means, strict=True))
    low, high = interval
    found = {
        "systems": {name: {"rouge1": {"mean": mean}} for name, mean in systems.items()},
        "comparisons": {
            name: {"rouge1": {"difference": means[0] - systems[name], "low": low, "high": high}}
            for name in ("hiporank", "lead")
        },
    }
    (tmp_path / "scores.json").write_text(json.dumps(found))
    first, *others = advice(tmp_path / "scores.json", "extractor", "ours")
    assert first.startswith(told)
    if others:
        assert others == [f"Next: pyramidions extract --method {told.split()[0]} paper.pdf", "The model: ours"]
        assert f"the extractor has {means[0]} (difference " in first
        assert f"95% interval {-high} to {-low})" in first
    assert bool(others) is (means[0] < max(means))


def test_extracts_are_lines_in_the_order_of_the_documents_within_the_words(tmp_path: Path) -> None:
    texts = ("One two three four. Five six. Seven eight nine.", "Alone here.")
    documents = [Document(str(number), text, "") for number, text in enumerate(texts)]
    write_extracts(tmp_path / "hiporank", documents, 2, HipoRank(), SelectionRules(Budget(words=3)))
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
    assert flat[0].source == "Methods\nOne two." and flat[1].source == "Flat."

"""`pyramidions score` and `pyramidions loss`; tests/bad_input has what they refuse."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from invoking import fail, run, succeed

from pyramidions.cli.score_report import table
from pyramidions.data.folder import DataFolder
from pyramidions.scoring import FIGURES
from pyramidions.scoring.scores import Scores


@pytest.fixture
def generated(prepared: Path, tmp_path: Path) -> Path:
    """Output of fairseq for the references themselves, the batches out of order."""
    lines = []
    for index, reference in reversed(list(enumerate(DataFolder(prepared).references("test")))):
        lines += [f"S-{index}\tx", f"H-{index}\t-0.5\t▁x", f"D-{index}\t-0.5\t{reference.summary}"]
    path = tmp_path / "generate-test.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def written(tmp_path: Path, **texts: str) -> list[Path]:
    """Return files of these names that hold these texts."""
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return [tmp_path / f"{name}.txt" for name in texts]


def test_perfect_summaries_score_100_whatever_their_order(generated: Path, prepared: Path) -> None:
    result = succeed("score", generated, "--data", prepared)
    assert result.stdout.count("100.00 [100.00, 100.00]") == 4
    assert result.stdout.rstrip().endswith("bootstrap 95% 1000 seed 1 | n=5")


def test_figures_without_bounds_have_three_digits() -> None:
    figures = {"rouge1": FIGURES["rouge1"], "bleurt": FIGURES["bleurt"]}
    ours = Scores(figures, np.tile([40.0, -0.5125], (20, 1)))
    shown = table({"ours": ours, "lead": Scores(figures, np.tile([39.0, -0.5375], (20, 1)))})
    assert "40.00 [40.00, 40.00]" in shown and "-0.512 [-0.512, -0.512]" in shown
    assert "+1.00 [+1.00, +1.00]" in shown and "+0.025 [+0.025, +0.025]" in shown


def test_the_lead_baseline_is_compared_and_needs_a_length_without_a_train_split(
    generated: Path, prepared: Path, papers: Path, tmp_path: Path
) -> None:
    result = run("score", generated, "--data", prepared, "--lead")
    assert result.exit_code == 0 and "lead," in result.stdout.split()
    shorter = run("score", generated, "--data", prepared, "--lead", "--lead-words", 5)
    assert shorter.stdout != result.stdout
    only, tokenizer = tmp_path / "only", prepared / "sentencepiece.model"
    run("prepare", "--test", papers / "test.jsonl", "--tokenizer", tokenizer, "--out", only)
    assert fail("score", generated, "--data", only, "--lead").startswith("--lead needs --lead-words, since")
    succeed("score", generated, "--data", only, "--lead", "--lead-words", 9)


def test_another_system_is_compared_in_all_numbers(generated: Path, prepared: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.txt", tmp_path / "scores.json"
    other.write_text("ba ban\n" * 5)
    succeed("score", generated, "--data", prepared, "--baseline", other, "--json", out)
    result = json.loads(out.read_text())
    assert result["signature"].endswith("n=5")
    assert result["systems"][str(generated)]["rouge2"] == {"mean": 100, "low": 100, "high": 100}
    difference = result["comparisons"][str(other)]["rouge1"]
    assert difference["low"] <= difference["difference"] <= difference["high"]
    assert [document["id"] for document in result["documents"]] == [f"test-{i}" for i in range(5)]
    assert result["documents"][0][str(generated)]["rougeLsum"] == 100


def test_a_summary_is_shown_beside_its_reference(generated: Path, prepared: Path) -> None:
    lines = run("score", generated, "--data", prepared, "--show", 2).stdout.splitlines()
    shown = lines[lines.index("document test-2") + 1 :]
    assert shown[0].split() == ["SUMMARY", "|", "REFERENCE"]
    for row in shown[1:]:
        left, right = row.split(" | ")
        assert left.strip() == right.strip() != ""


def test_a_p_value_at_the_floor_says_so_and_few_documents_are_no_evidence(tmp_path: Path) -> None:
    good, bad, references = written(tmp_path, good="cats sleep\n" * 20, bad="x\n" * 20, references="cats sleep\n" * 20)
    options = ["--references", references, "--baseline", bad]
    many = run("score", good, *options).stdout
    assert "p <= 0.002" in many
    assert "mean little" not in many
    written(tmp_path, good="cats sleep\n", bad="cats sleep\n", references="cats sleep\n")
    few = run("score", good, *options).stdout
    assert "Only 1 document: too few for reliable intervals and p-values." in few
    assert "p = 1.000" in few


def test_any_metric_can_be_chosen(generated: Path, prepared: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    result = succeed("score", generated, "--data", prepared, "--metrics", "meteor,coverage,novelty", "--json", out)
    found = json.loads(out.read_text())
    figures = found["systems"][str(generated)]
    assert list(figures) == ["meteor", "coverage", "density", "compression", "novel1", "novel2", "novel3", "novel4"]
    assert list(found["documents"][0][str(generated)]) == list(figures)
    assert figures["meteor"]["mean"] > 99
    assert "2-grams" in result.stdout and "METEOR" in found["signature"]


@pytest.mark.parametrize(
    ("texts", "options", "shown"),
    [
        ({"s": "cats sleep\nbirds sing\n", "r": "cats sleep\ndogs bark\n"}, [], "50.00 ["),
        (
            {"s": "cats bark\n", "r": "cats sleep\n", "d": "All cats sleep.\n"},
            ["--metrics", "coverage", "--documents"],
            "0.50 [0.50, 0.50]",
        ),
        ({"s": "\u043a\u043e\u0448\u043a\u0430\n", "r": "\u043a\u043e\u0448\u043a\u0430\n"}, [], "  0.00 [0.00, 0.00]"),
        (
            {"s": "\u043a\u043e\u0448\u043a\u0430\n", "r": "\u043a\u043e\u0448\u043a\u0430\n"},
            ["--language", "ru"],
            "100.00 [100.00, 100.00]",
        ),
        (
            {"s": "cats sleep\n\n", "r": "cats sleep\ncats sleep\n"},
            [],
            "1 of 2 summaries is empty and gets the worst of each figure",
        ),
    ],
)
def test_references_documents_and_a_language_are_options(
    tmp_path: Path, texts: dict[str, str], options: list[str], shown: str
) -> None:
    summaries, references, *documents = written(tmp_path, **texts)
    assert shown in run("score", summaries, "--references", references, *options, *documents).stdout


def test_queries_are_no_part_of_documents(prepared: Path, tmp_path: Path) -> None:
    words = "ba ban de kin lo mur"
    meeting: dict[str, Any] = {"id": "a", "query": "ki kin", "article": f"{words}. mu mur ra ras.", "abstract": "ba"}
    (tmp_path / "test.jsonl").write_text(json.dumps(meeting) + "\n")
    data, scores = tmp_path / "data", tmp_path / "scores.json"
    options = ("--query-field", "query", "--tokenizer", prepared / "sentencepiece.model", "--out", data)
    succeed("prepare", "--test", tmp_path / "test.jsonl", *options)
    (summaries,) = written(tmp_path, summaries="ki kin\n")
    succeed("score", summaries, "--data", data, "--metrics", "rouge,novelty", "--json", scores)
    assert json.loads(scores.read_text())["systems"][str(summaries)]["novel1"]["mean"] == 50


def test_both_losses_and_their_difference_are_told(data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "losses.json"
    for documents in (2, 4):
        done = succeed("loss", checkpoint, "--data", data.path, "--documents", documents, "--json", out)
    assert [line[:22].strip() for line in done.stdout.splitlines()[1:4]] == [
        *("own document", "another document", "another document costs"[:22])
    ]
    assert re.findall(r"(\d) documents of (\w+)", done.stdout) == [("4", "valid")]
    found = json.loads(out.read_text())
    costs = [each["another"] - each["own"] for each in found["documents"]]
    assert len(costs) == 4 and found["cost"]["mean"] == pytest.approx(sum(costs) / 4)
    assert found["own"]["low"] <= found["own"]["mean"] <= found["own"]["high"]

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tables import for_each

from pyramidions.cli.score_report import table
from pyramidions.data.folder import DataFolder
from pyramidions.scoring import FIGURES
from pyramidions.scoring.scores import Scores


@pytest.fixture
def generated(prepared, tmp_path):
    """Output of fairseq for the references themselves, the batches out of order."""
    lines = []
    for index, reference in reversed(list(enumerate(DataFolder(prepared).references("test")))):
        lines += [f"S-{index}\tx", f"H-{index}\t-0.5\t▁x", f"D-{index}\t-0.5\t{reference.summary}"]
    path = tmp_path / "generate-test.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_perfect_summaries_score_100_whatever_their_order(run, generated, prepared):
    result = run("score", generated, "--data", prepared)
    assert result.exit_code == 0
    assert result.stdout.count("100.00 [100.00, 100.00]") == 4
    assert result.stdout.rstrip().endswith("bootstrap 95% 1000 seed 1 | n=5")


def test_figures_without_bounds_have_three_digits():
    figures = {"rouge1": FIGURES["rouge1"], "bleurt": FIGURES["bleurt"]}
    ours = Scores(figures, np.tile([40.0, -0.5125], (20, 1)))
    shown = table({"ours": ours, "lead": Scores(figures, np.tile([39.0, -0.5375], (20, 1)))})
    assert "40.00 [40.00, 40.00]" in shown and "-0.512 [-0.512, -0.512]" in shown
    assert "+1.00 [+1.00, +1.00]" in shown and "+0.025 [+0.025, +0.025]" in shown


def test_the_lead_baseline_is_compared(run, generated, prepared):
    result = run("score", generated, "--data", prepared, "--lead")
    assert result.exit_code == 0
    assert f"{generated} minus lead, paired bootstrap:" in result.stdout
    shorter = run("score", generated, "--data", prepared, "--lead", "--lead-words", 5)
    assert shorter.stdout != result.stdout


def test_another_system_is_compared_and_all_numbers_are_written(run, generated, prepared, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("ba ban\n" * 5)
    out = tmp_path / "scores.json"
    assert run("score", generated, "--data", prepared, "--baseline", other, "--json", out).exit_code == 0
    result = json.loads(out.read_text())
    assert result["signature"].endswith("n=5")
    assert result["systems"][str(generated)]["rouge2"] == {"mean": 100, "low": 100, "high": 100}
    difference = result["comparisons"][str(other)]["rouge1"]
    assert difference["low"] <= difference["difference"] <= difference["high"]
    assert [document["id"] for document in result["documents"]] == [f"test-{i}" for i in range(5)]
    assert result["documents"][0][str(generated)]["rougeLsum"] == 100


def test_a_summary_is_shown_beside_its_reference(run, generated, prepared):
    lines = run("score", generated, "--data", prepared, "--show", 2).stdout.splitlines()
    shown = lines[lines.index("document test-2") + 1 :]
    assert shown[0].split() == ["SUMMARY", "|", "REFERENCE"]
    for row in shown[1:]:
        left, right = row.split(" | ")
        assert left.strip() == right.strip() != ""


def test_references_can_come_from_a_file(run, tmp_path):
    (tmp_path / "references.txt").write_text("cats sleep\ndogs bark\n")
    (tmp_path / "summaries.txt").write_text("cats sleep\nbirds sing\n")
    result = run("score", tmp_path / "summaries.txt", "--references", tmp_path / "references.txt")
    assert "50.00 [" in result.stdout


def test_a_dropped_document_is_refused_and_nothing_is_written(fail, generated, prepared, tmp_path):
    generated.write_text("\n".join(generated.read_text().splitlines()[3:]) + "\n")
    out = tmp_path / "scores.json"
    sentence = fail("score", generated, "--data", prepared, "--json", out)
    assert sentence == f"{generated}: lacks 1 of 5 documents (4)."
    assert not out.exists()


@for_each(
    ("arguments", "sentence"),
    [
        ([], "Exactly one of --data and --references must be given."),
        (["--data", "DATA", "--references", "x"], "Exactly one of --data and --references must be given."),
        (["--data", "nowhere"], "The data folder nowhere does not exist."),
        (["--data", "DATA", "--split", "valid"], "--split must be test, as the name of SUMMARIES says, but is valid."),
        (["--data", "DATA", "--json", "DATA/manifest.json"], "--json must not lie in the data folder DATA, but is"),
        (["--data", "DATA", "--json", "SUMMARIES"], "--json must not replace one of the inputs, but is SUMMARIES."),
        (["--references", "REFERENCES", "--json", "REFERENCES"], "--json must not replace one of the inputs, but is"),
        (["--data", "DATA", "--show", "5"], "--show must be below 5, the number of documents, but is 5."),
        (["--data", "DATA", "--lead-words", "5"], "--lead-words can be given only with --lead."),
        (["--data", "DATA", "--baseline", "x", "--baseline", "x"], "--baseline must name other summaries each time"),
        (["--data", "DATA", "--baseline", "x"], "The file x does not exist."),
        (["--references", "REFERENCES", "--split", "test"], "--split can be given only with --data."),
        (["--references", "REFERENCES", "--lead"], "--lead needs --data, which has the documents."),
    ],
)
def test_bad_input_is_one_sentence(fail, generated, prepared, arguments, sentence):
    def fill(text):
        places = {"DATA": prepared, "REFERENCES": prepared / "test.references.jsonl", "SUMMARIES": generated}
        for name, place in places.items():
            text = text.replace(name, str(place))
        return text

    assert fail("score", generated, *map(fill, arguments)).startswith(fill(sentence))


def test_a_baseline_does_not_take_the_name_of_the_lead(fail, generated, prepared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lead").write_text(generated.read_text())
    said = fail("score", generated, "--data", prepared, "--lead", "--baseline", "lead")
    assert said == "No file of summaries may be named lead beside --lead: rename it."


def test_lead_without_train_split_needs_a_length(run, fail, prepared, papers, generated, tmp_path):
    only = tmp_path / "only"
    tokenizer = prepared / "sentencepiece.model"
    run("prepare", "--test", papers / "test.jsonl", "--tokenizer", tokenizer, "--out", only)
    assert fail("score", generated, "--data", only, "--lead").startswith("--lead needs --lead-words, since")
    assert run("score", generated, "--data", only, "--lead", "--lead-words", 9).exit_code == 0


def test_a_manifest_without_splits_is_one_sentence(fail, prepared, generated, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(prepared, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["splits"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    sentence = fail("score", generated, "--data", copy, "--lead")
    assert sentence == f"{copy / 'manifest.json'} must be as written by `pyramidions prepare`, but lacks splits."


def test_the_name_of_the_summaries_says_the_split(run, fail, prepared, generated, tmp_path):
    renamed = generated.rename(tmp_path / "generate-valid.txt")
    assert "lacks valid.references.jsonl" in fail("score", renamed, "--data", prepared)
    renamed = renamed.rename(tmp_path / "mine.txt")
    assert run("score", renamed, "--data", prepared).exit_code == 0


def test_a_p_value_at_the_floor_says_so_and_few_documents_are_no_evidence(run, tmp_path):
    for name, line, count in (("ref", "cats sleep", 20), ("good", "cats sleep", 20), ("bad", "x", 20)):
        (tmp_path / name).write_text(f"{line}\n" * count)
    options = ["--references", tmp_path / "ref", "--baseline", tmp_path / "bad"]
    many = run("score", tmp_path / "good", *options).stdout
    assert "p <= 0.002" in many
    assert "mean little" not in many
    for name in ("ref", "good", "bad"):
        (tmp_path / name).write_text("cats sleep\n")
    few = run("score", tmp_path / "good", *options).stdout
    assert "Only 1 document: too few for reliable intervals and p-values." in few
    assert "p = 1.000" in few


def test_any_metric_can_be_chosen_and_is_in_the_table_the_file_and_the_signature(run, generated, prepared, tmp_path):
    out = tmp_path / "scores.json"
    result = run("score", generated, "--data", prepared, "--metrics", "meteor,coverage,novelty", "--json", out)
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text())
    figures = written["systems"][str(generated)]
    assert list(figures) == ["meteor", "coverage", "density", "compression", "novel1", "novel2", "novel3", "novel4"]
    assert list(written["documents"][0][str(generated)]) == list(figures)
    assert figures["meteor"]["mean"] > 99
    assert "Novel 2-grams" in result.stdout and "METEOR nltk" in written["signature"]


def test_documents_can_come_from_a_file(run, fail, tmp_path):
    for name, text in (("r", "cats sleep"), ("s", "cats bark"), ("d", "All cats sleep.")):
        (tmp_path / f"{name}.txt").write_text(f"{text}\n")
    files = (tmp_path / "s.txt", "--references", tmp_path / "r.txt")
    result = run("score", *files, "--documents", tmp_path / "d.txt", "--metrics", "coverage")
    assert "0.50 [0.50, 0.50]" in result.stdout
    sentence = fail("score", *files, "--metrics", "coverage")
    assert sentence == "The metric coverage reads the documents: give --documents or --data."
    sentence = fail("score", *files, "--documents", tmp_path / "d.txt")
    assert sentence == "--documents has no effect: none of the metrics (rouge) reads documents."


def test_a_language_is_chosen(run, fail, tmp_path):
    (tmp_path / "r.txt").write_text("\u043a\u043e\u0448\u043a\u0430\n")
    files = (tmp_path / "r.txt", "--references", tmp_path / "r.txt")
    assert "  0.00 [0.00, 0.00]" in run("score", *files).stdout
    assert run("score", *files, "--language", "ru").stdout.count("100.00 [100.00, 100.00]") == 3
    assert fail("score", *files, "--language", "xx").startswith("--language must be one of af, ")
    sentence = fail("score", *files, "--wordnet", "x")
    assert sentence == "--wordnet has no effect: none of the metrics (rouge) takes it."


def test_empty_summaries_are_counted(run, tmp_path):
    (tmp_path / "r.txt").write_text("cats sleep\ncats sleep\n")
    (tmp_path / "s.txt").write_text("cats sleep\n\n")
    result = run("score", tmp_path / "s.txt", "--references", tmp_path / "r.txt")
    assert f"{tmp_path / 's.txt'}: 1 of 2 summaries is empty and gets the worst of each figure" in result.stdout


def test_queries_are_no_part_of_documents(run, prepared, tmp_path):
    words = "ba ban de kin lo mur"
    meeting = {"id": "a", "query": "ki kin", "article": f"{words}. mu mur ra ras.", "abstract": "ba ban"}
    (tmp_path / "test.jsonl").write_text(json.dumps(meeting) + "\n")
    data = tmp_path / "data"
    tokenizer = prepared / "sentencepiece.model"
    options = ("--query-field", "query", "--tokenizer", tokenizer, "--out", data)
    assert run("prepare", "--test", tmp_path / "test.jsonl", *options).exit_code == 0
    (tmp_path / "summaries.txt").write_text("ki kin\n")
    scores = tmp_path / "scores.json"
    flags = ("--metrics", "rouge,novelty", "--json", scores)
    assert run("score", tmp_path / "summaries.txt", "--data", data, *flags).exit_code == 0
    assert json.loads(scores.read_text())["systems"][str(tmp_path / "summaries.txt")]["novel1"]["mean"] == 50
